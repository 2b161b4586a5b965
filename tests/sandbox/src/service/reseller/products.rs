//! The products as the backend sells them, and the addresses that are free.

use std::sync::Arc;

use serde::Serialize;

use super::call::Call;
use super::envelope::ProductType;
use super::places::{self, Place};
use crate::service::Service;
use crate::service::catalogue::{DYNAMIC, Product, STATIC};
use crate::service::envelope::{Number, Refusal, Reply, raw};
use crate::service::input::{Body, Query};

const PROXY_TYPE_STATIC: i64 = 103;
/// The type of the dynamic products.
pub(super) const PROXY_TYPE_DYNAMIC: i64 = 104;
const LANGUAGES: &[&str] = &["zh", "en"];

/// The filter of the catalogue.
struct Filter {
    types: Vec<i64>,
    number: Option<String>,
    codes: Vec<String>,
    language: &'static str,
}

/// The members of a product in both lists.
#[derive(Serialize)]
struct Common<'a> {
    #[serde(rename = "productId")]
    product_id: &'a str,
    name: &'a str,
    #[serde(rename = "proxyType")]
    proxy_type: i64,
    product_type: Box<serde_json::value::RawValue>,
    #[serde(rename = "productType")]
    camel_product_type: Box<serde_json::value::RawValue>,
    project_list: Vec<Project<'a>>,
    projects: Vec<Project<'a>>,
    #[serde(rename = "projectList")]
    camel_project_list: Vec<Project<'a>>,
    #[serde(flatten)]
    names: Option<Names>,
    #[serde(rename = "nameLanguage")]
    name_language: &'static str,
}

/// The projects that a shared product may be bought for.
#[derive(Clone, Serialize)]
struct Project<'a> {
    #[serde(rename = "projectId")]
    id: &'a str,
    #[serde(rename = "projectName")]
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Names {
    country_code: &'static str,
    country_name: &'static str,
    country_name_en: &'static str,
    country_name_zh: &'static str,
    state_name: &'static str,
    city_code: &'static str,
    city_name: &'static str,
    city_name_en: &'static str,
    city_name_zh: &'static str,
}

#[derive(Serialize)]
struct Item<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stock: Option<u32>,
    /// The duration and the unit of the price; traffic has neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<u32>,
    price: Number,
}

#[derive(Serialize)]
struct Ranges<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    #[serde(rename = "ipRanges")]
    ip_ranges: Vec<IpRange>,
}

#[derive(Serialize)]
struct IpRange {
    #[serde(rename = "ipRange")]
    ip_range: String,
    available: usize,
}

pub(crate) fn query(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::parse(call.body)?;
    let country = body.text("standardCountryCode")?;
    let is_country = |code: &String| code.len() == 2 && code.bytes().all(|letter| letter.is_ascii_alphabetic());
    if country.as_ref().is_some_and(|code| !is_country(code)) {
        return Err(Refusal::invalid("standardCountryCode", "must be a country code of two letters"));
    }
    let filter = Filter {
        types: types(&body)?,
        number: body.text("productNo")?,
        codes: [country, body.text("standardCityCode")?].into_iter().flatten().collect(),
        language: body.word("language", LANGUAGES)?.unwrap_or("en"),
    };
    let item = |product: Arc<Product>| {
        let (duration, unit) = if product.kind == STATIC { (Some(1), Some(3)) } else { (None, None) };
        let common = service.common(&product, filter.language);
        raw(&Item { common, stock: service.stock(&product), duration, unit, price: Number(service.price(&product)) })
    };
    let items: Vec<_> = service.matching(&filter).into_iter().map(item).collect();
    Ok(service.backend.spelling.listed(&items, &[("total", i64::try_from(items.len()).unwrap_or(i64::MAX))]))
}

/// The free addresses of static products. Those that are sold out count as disabled.
pub(crate) fn ip_ranges(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let query: &Query = &call.query;
    let with_disabled = query.flag("includeDisabled", false)?;
    let codes = ["areaCode", "countryCode", "cityCode"].into_iter().filter_map(|field| query.text(field));
    let filter = Filter {
        types: vec![query.whole("proxyType", i64::MIN, i64::MAX)?.unwrap_or(PROXY_TYPE_STATIC)],
        number: query.text("productNo").map(str::to_owned),
        codes: codes.map(str::to_owned).collect(),
        language: query.word("language", LANGUAGES)?.unwrap_or("en"),
    };
    let item = |product: Arc<Product>| {
        let free = service.free_addresses(&product, call.now_ms);
        let available = |range: &super::addresses::Range| range.addresses().filter(|address| free.contains(address)).count();
        let ranges = service.ranges(&product);
        let ip_ranges = ranges.into_iter().map(|range| IpRange { available: available(&range), ip_range: range.text }).collect();
        raw(&Ranges { common: service.common(&product, filter.language), ip_ranges })
    };
    let wanted = service.matching(&filter).into_iter().filter(|product| with_disabled || service.stock(product) != Some(0));
    let items: Vec<_> = wanted.filter(|product| product.kind == STATIC).map(item).collect();
    Ok(service.backend.spelling.listed(&items, &[("total", i64::try_from(items.len()).unwrap_or(i64::MAX))]))
}

/// A number or a list of numbers.
fn types(body: &Body) -> Result<Vec<i64>, Refusal> {
    let is_list = body.raw("proxyType").is_some_and(|value| value.get().starts_with('['));
    let types = match is_list {
        true => body.wholes("proxyType", i64::MIN, i64::MAX),
        false => body.whole("proxyType", i64::MIN).map(|one| one.map(|one| vec![one])),
    };
    let types = types.map_err(|_| Refusal::invalid("proxyType", "must be a whole number or an array of them"))?;
    Ok(types.unwrap_or_else(|| vec![PROXY_TYPE_STATIC]))
}

fn proxy_type(product: &Product) -> i64 {
    if product.kind == DYNAMIC { PROXY_TYPE_DYNAMIC } else { PROXY_TYPE_STATIC }
}

impl Names {
    fn of(place: &Place, language: &str) -> Self {
        let (country_name, city_name) =
            if language == "zh" { (place.country_zh, place.city_zh) } else { (place.country_en, place.city_en) };
        Self {
            country_code: place.country_code,
            country_name,
            country_name_en: place.country_en,
            country_name_zh: place.country_zh,
            state_name: place.state,
            city_code: place.city_code,
            city_name,
            city_name_en: place.city_en,
            city_name_zh: place.city_zh,
        }
    }
}

impl Service {
    fn matching(&self, filter: &Filter) -> Vec<Arc<Product>> {
        let is_wanted = |product: &&Arc<Product>| {
            let place = places::of(product);
            filter.types.contains(&proxy_type(product))
                && filter.number.as_ref().is_none_or(|number| *number == product.number)
                && filter.codes.iter().all(|code| code.is_empty() || place.is_some_and(|place| place.is_named(code)))
        };
        self.catalogue.iter().filter(is_wanted).cloned().collect()
    }

    fn common<'a>(&self, product: &'a Product, language: &'static str) -> Common<'a> {
        let is_shared = product.sharing == "shared";
        let projects: Vec<Project<'_>> = product.projects.iter().map(|name| Project { id: name, name }).collect();
        let product_type = match self.backend.spelling.product_type {
            ProductType::Number => raw(&if is_shared { 2 } else { 1 }),
            ProductType::Word => raw(&product.sharing),
        };
        Common {
            product_id: &product.number,
            name: &product.name,
            proxy_type: proxy_type(product),
            camel_product_type: product_type.clone(),
            product_type,
            project_list: projects.clone(),
            projects: projects.clone(),
            camel_project_list: projects,
            names: places::of(product).map(|place| Names::of(place, language)),
            name_language: language,
        }
    }
}
