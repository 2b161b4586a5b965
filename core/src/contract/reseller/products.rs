//! Products, stock and address ranges (parts "Product query item" and "IP range item" of the contract).

use super::{Language, OrderUnit};
use crate::contract::{Decimal, Json, Label, OneOrMany};

record! {
    /// A product of the reseller's. An item usually carries these, and may carry more.
    StaticProduct {
        /// The product's number: `poolId` of an order.
        product_id: Option<Label> as "productId";
        /// The product's name.
        name: Option<String>;
        /// The kind of proxy, such as 103.
        proxy_type: Option<Label> as "proxyType";
        /// `2` or `shared` means shared, `1` or `exclusive` exclusive; see `is_shared`.
        product_type: Option<Label> as "productType" | "product_type";
        /// The projects of a shared product, one of which an order names.
        project_list: Option<Vec<Json>> as "projectList" | "project_list" | "projects";
        /// The number that is left.
        stock: Option<Decimal>;
        /// Country, as an order is to name it.
        country_code: Option<String> as "countryCode";
        /// Country, in `nameLanguage`.
        country_name: Option<String> as "countryName";
        /// Country in English.
        country_name_en: Option<String> as "countryNameEn";
        /// Country in Chinese.
        country_name_zh: Option<String> as "countryNameZh";
        /// City, as an order is to name it.
        city_code: Option<String> as "cityCode";
        /// City, in `nameLanguage`.
        city_name: Option<String> as "cityName";
        /// City in English.
        city_name_en: Option<String> as "cityNameEn";
        /// City in Chinese.
        city_name_zh: Option<String> as "cityNameZh";
        /// The language of the names.
        name_language: Option<Language> as "nameLanguage";
        /// The number of units of time that the price covers.
        duration: Option<Decimal>;
        /// The unit of the duration.
        unit: Option<OrderUnit>;
        /// The price.
        price: Option<Decimal>;
    }
}

record! {
    /// The products that were found.
    StaticProductList {
        /// The products.
        items: Vec<StaticProduct> as "items" | "list";
    }
}

record! {
    /// Addresses that are available.
    AvailableRange {
        /// A CIDR block, or a first and a last address; `parse_ip_range` reads it.
        ip_range: Option<String> as "ipRange";
    }
}

record! {
    /// A product and its addresses.
    ProductRanges {
        /// `2` or `shared` means shared, `1` or `exclusive` exclusive; see `is_shared`.
        product_type: Option<Label> as "productType" | "product_type";
        /// The projects of a shared product.
        project_list: Option<Vec<Json>> as "projectList" | "project_list" | "projects";
        /// Country, in `nameLanguage`.
        country_name: Option<String> as "countryName";
        /// Country in English.
        country_name_en: Option<String> as "countryNameEn";
        /// Country in Chinese.
        country_name_zh: Option<String> as "countryNameZh";
        /// State, in `nameLanguage`.
        state_name: Option<String> as "stateName";
        /// City, in `nameLanguage`.
        city_name: Option<String> as "cityName";
        /// City in English.
        city_name_en: Option<String> as "cityNameEn";
        /// City in Chinese.
        city_name_zh: Option<String> as "cityNameZh";
        /// The language of the names.
        name_language: Option<Language> as "nameLanguage";
        /// The addresses.
        ip_ranges: Option<Vec<AvailableRange>> as "ipRanges";
    }
}

record! {
    /// The address ranges that were found, by product.
    ProductRangesList {
        /// The products.
        items: Vec<ProductRanges> as "items" | "list";
    }
}

record! {
    /// The products to look for.
    QueryProducts {
        /// One kind of proxy or several; the server's default is 103.
        proxy_type: Option<OneOrMany<i64>> as "proxyType" => Body;
        /// One product.
        product_no: Option<String> as "productNo" => Body;
        /// Only this country, two letters of ISO 3166.
        standard_country_code: Option<String> as "standardCountryCode" => Body, Country;
        /// Only this city.
        standard_city_code: Option<String> as "standardCityCode" => Body;
        /// The language of names; the server's default is `en`.
        language: Option<Language> => Body;
    }
}

record! {
    /// The address ranges to look for.
    ListIpRanges {
        /// The kind of proxy; the server's default is 103.
        proxy_type: Option<i64> as "proxyType" => Query;
        /// One product.
        product_no: Option<String> as "productNo" => Query;
        /// Only this area.
        area_code: Option<String> as "areaCode" => Query;
        /// Only this country.
        country_code: Option<String> as "countryCode" => Query;
        /// Only this city.
        city_code: Option<String> as "cityCode" => Query;
        /// Include disabled ranges; the server's default is `false`.
        include_disabled: Option<bool> as "includeDisabled" => Query;
        /// The language of names; the server's default is `en`.
        language: Option<Language> => Query;
    }
}

endpoints! { Reseller;
    /// Finds products with their stock and prices. The request changes nothing, though it is a POST.
    query_products: Post "/open/app/product/query-standard/v2", Bearer, Safe, Free, QueryProducts => StaticProductList;
    /// Lists the available address ranges.
    list_ip_ranges: Get "/open/app/product/ip-ranges/v2", Bearer, Safe, Free, ListIpRanges => ProductRangesList;
}
