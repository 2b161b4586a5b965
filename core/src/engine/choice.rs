//! The choice of a product: the cheapest one of the account's list that fits, for a purchase that names none.

use super::context::Cx;
use crate::contract::agent::{SessionType, Sharing};
use crate::contract::{Cheapest, Decimal, json_of, stored};
use crate::json::{items, members, pick, plain, quoted, text_of};
use crate::policy::{Advice, Effect, Error, Kind, Rule, is_usd};
use crate::wire::decimal_of;

/// The most keys of a purchase that chooses its product.
const KEYS: u32 = 5;

/// The codes after which a purchase chooses again: nothing was bought, and another product, or another price, may be.
const CHOOSE_AGAIN: [&str; 3] = ["PRODUCT_OUT_OF_STOCK", "PRODUCT_NOT_FOUND", "PRICE_MISMATCH"];

impl Cheapest {
    /// A choice among all products of a type.
    pub fn of(session_type: &SessionType) -> Self {
        Cheapest { session_type: session_type.as_str().to_owned(), ..Cheapest::default() }
    }

    /// The rule that the choice breaks, if it breaks one.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        let is_sharing = |word: &String| matches!(Sharing::from(word.as_str()), Sharing::Other(_));
        match () {
            () if matches!(SessionType::from(self.session_type.as_str()), SessionType::Other(_)) => {
                Some("must have the type `dynamic` or `static`")
            }
            () if self.sharing.as_ref().is_some_and(is_sharing) => Some("must have `exclusive` or `shared` as its `sharing`"),
            () if self.max_unit_price.is_some_and(|limit| limit < Decimal::from(0)) => Some("must have a `max_unit_price` of at least 0"),
            () => None,
        }
    }

    /// The parameters of a purchase with this choice in the place of a product. Limits are no part of it, since they are not compared under
    /// an intent.
    pub(crate) fn lay_over(&self, params: &str) -> Result<String, &'static str> {
        let Ok(given) = members(params) else { return Ok(params.to_owned()) };
        let value = |name: &str| given.iter().find(|(known, _)| known == name).map(|(_, value)| *value).filter(|value| *value != "\"\"");
        if value("product_no").is_some() {
            return Err("chooses the product, so leave `product_no` out");
        }
        if value("session_type").is_some_and(|kind| plain(kind) != self.session_type) {
            return Err("has another type than `session_type`");
        }
        if value("provisioning_mode").is_some_and(|mode| plain(mode) == "existing") {
            return Err("chooses what to buy, and `provisioning_mode` is `existing`, which buys nothing");
        }
        let project = self.project_id.as_deref().filter(|project| !project.is_empty());
        if let (Some(project), Some(other)) = (project, value("project_id"))
            && plain(other) != project
        {
            return Err("has another project than `project_id`");
        }
        let own = [("session_type", quoted(&self.session_type).to_string()), ("product_no", quoted(&self.place()).to_string())];
        let project = project.map(|project| ("project_id", quoted(project).to_string()));
        let is_own = |name: &str| matches!(name, "session_type" | "product_no") || (name == "project_id" && project.is_some());
        let others = given.iter().filter(|(name, _)| !is_own(name));
        let all = own.into_iter().chain(project.clone()).chain(others.map(|(name, value)| (&**name, (*value).to_owned())));
        Ok(format!("{{{}}}", all.map(|(name, value)| format!("{}:{value}", quoted(name))).collect::<Vec<_>>().join(",")))
    }

    /// The text that stands for the product until one is chosen, and by which two choices are compared.
    fn place(&self) -> String {
        format!("cheapest {}", json_of(&Cheapest { max_unit_price: None, project_id: None, ..self.clone() }))
    }
}

/// The choice of a purchase, as its record has it.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(crate) struct SavedChoice {
    pub(crate) wanted: Cheapest,
    /// True if shared products fit, since the purchase names a project.
    pub(crate) has_project: bool,
    /// The price of the product that was chosen first.
    pub(crate) first_price: Option<Decimal>,
    /// The unit of that price, which the products that are chosen later have, too.
    pub(crate) unit: Option<String>,
    /// The products that the service does not sell now.
    pub(crate) left_out: Vec<String>,
}

stored!(SavedChoice { wanted, has_project, first_price, unit, left_out });

/// The choice of a purchase.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Choice {
    pub(crate) saved: SavedChoice,
    /// True if the present key has a product.
    pub(crate) is_made: bool,
    /// The number of keys of this start.
    keys: u32,
}

impl Choice {
    /// A choice that is to be made.
    pub(crate) fn new(wanted: Cheapest, has_project: bool) -> Self {
        Choice { saved: SavedChoice { wanted, has_project, ..SavedChoice::default() }, is_made: false, keys: 1 }
    }

    /// A choice that was made, out of a record.
    pub(crate) fn restored(saved: SavedChoice) -> Self {
        Choice { saved, is_made: true, keys: 1 }
    }

    /// Returns true if another key may be made for another choice.
    pub(crate) fn may_choose_again(&self) -> bool {
        self.keys < KEYS
    }

    /// The key that was answered with this code bought nothing: the next one chooses again.
    pub(crate) fn begin_key(&mut self, code: Option<&str>, product_no: &str) {
        self.keys = self.keys.saturating_add(1);
        let Some(code) = code.filter(|code| CHOOSE_AGAIN.contains(code)) else { return };
        self.is_made = false;
        if code != "PRICE_MISMATCH" {
            self.saved.left_out.push(product_no.to_owned());
        }
    }

    /// A product was chosen.
    pub(crate) fn made(&mut self, price: Decimal, unit: String) {
        self.is_made = true;
        self.saved.first_price.get_or_insert(price);
        self.saved.unit.get_or_insert(unit);
    }
}

/// Returns true if a purchase that chooses its product may choose again after this code.
pub(crate) fn chooses_after(code: &str) -> bool {
    CHOOSE_AGAIN.contains(&code)
}

/// A product that fits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Candidate {
    pub(crate) price: Decimal,
    pub(crate) product_no: String,
    /// The unit of the price, empty if the list does not say it.
    pub(crate) unit: String,
}

/// The search of a list for the cheapest product that fits.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Search {
    choice: SavedChoice,
    quantity: Decimal,
    limit: Option<Decimal>,
    best: Option<Candidate>,
    /// The units of the products that fit, in order.
    units: Vec<String>,
}

impl Search {
    pub(crate) fn new(choice: &SavedChoice, quantity: Decimal, limit: Option<Decimal>) -> Self {
        Search { choice: choice.clone(), quantity, limit, best: None, units: Vec::new() }
    }

    /// Begins the list anew.
    pub(crate) fn begin(&mut self) {
        (self.best, self.units) = (None, Vec::new());
    }

    /// Takes in a page of the list.
    pub(crate) fn take_page(&mut self, data: &str) {
        let listed = pick(data, ["items"]).and_then(|[listed]| items(listed?).ok()).unwrap_or_default();
        let fitting: Vec<Candidate> = listed.into_iter().filter_map(|item| self.fitting(item)).collect();
        for candidate in fitting {
            if !self.units.iter().any(|known| known.eq_ignore_ascii_case(&candidate.unit)) {
                let at = self.units.partition_point(|known| *known < candidate.unit);
                self.units.insert(at, candidate.unit.clone());
            }
            let is_left_out = self.choice.left_out.contains(&candidate.product_no);
            let is_better =
                |best: &Candidate| (candidate.price, candidate.product_no.as_bytes()) < (best.price, best.product_no.as_bytes());
            if !is_left_out && self.best.as_ref().is_none_or(is_better) {
                self.best = Some(candidate);
            }
        }
    }

    /// A product of the list, if it fits.
    fn fitting(&self, item: &str) -> Option<Candidate> {
        let [number, kind, sharing, available, price, currency, unit, stock, country, city] =
            pick(item, ["product_no", "type", "sharing", "available", "price", "currency", "unit", "stock", "country", "city"])?;
        let wanted = &self.choice.wanted;
        let is = |own: Option<&str>, asked: &str| own.is_some_and(|own| plain(own).trim().eq_ignore_ascii_case(asked.trim()));
        let may = |own: Option<&str>, asked: &Option<String>| asked.as_deref().is_none_or(|asked| is(own, asked));
        let price: Decimal = decimal_of(price?)?.0.parse().ok()?;
        let stock = stock.map_or(Some(self.quantity), |stock| decimal_of(stock)?.0.parse().ok())?;
        let is_shared_right = match &wanted.sharing {
            Some(asked) => is(sharing, asked),
            None => self.choice.has_project || is(sharing, Sharing::Exclusive.as_str()),
        };
        let unit = unit.map(|unit| plain(unit).trim().to_owned()).unwrap_or_default();
        let fits = is(kind, &wanted.session_type)
            && available == Some("true")
            && price > Decimal::from(0)
            && currency.is_none_or(|currency| is_usd(&plain(currency)))
            && stock >= self.quantity
            && is_shared_right
            && may(country, &wanted.country)
            && may(city, &wanted.city)
            && wanted.unit.as_deref().or(self.choice.unit.as_deref()).is_none_or(|asked| unit.eq_ignore_ascii_case(asked.trim()));
        let product_no = text_of(number?)?.into_owned();
        (fits && !product_no.is_empty()).then_some(Candidate { price, product_no, unit })
    }

    /// The cheapest product, once the whole list was read, or the reason why none is bought.
    pub(crate) fn chosen(&mut self, cx: &Cx<'_>) -> Result<Candidate, Error> {
        if self.units.len() > 1 {
            let units = self.units.iter().map(|unit| format!("`{unit}`")).collect::<Vec<_>>().join(", ");
            let what = format!("was not sent, because products that fit are priced for different units, {units}: set `unit` of the choice");
            let error = cx.subject.error(Kind::Invalid, Effect::None, what, Advice::ChangeRequest);
            return Err(error.with(|new| new.field = Some("product".to_owned())));
        }
        let unit = self.units.first().filter(|unit| !unit.is_empty()).map_or_else(|| "unit".to_owned(), |unit| format!("`{unit}`"));
        let refuse = |what: String| {
            let error = cx.subject.error(Kind::Refused, Effect::None, what, Advice::ReadPrices);
            Err(error.with(|new| new.cause = cx.subject.cause.clone()))
        };
        let Some(best) = self.best.take() else {
            let refused = refuse("was not sent, because no product of the account's list fits and can be bought now".to_owned());
            return refused.map_err(|error| error.with(|new| new.field = Some("product".to_owned())));
        };
        let Candidate { price, product_no, .. } = &best;
        match (self.limit, self.choice.first_price) {
            (Some(limit), _) if *price > limit && cx.shared.rules.holds(Rule::LimitHolds) => refuse(format!(
                "was not sent, because the cheapest product that fits, `{product_no}`, costs {price} USD for one {unit}, above `max_unit_price`, \
                 {limit} USD"
            )),
            (None, Some(first)) if *price > first && cx.shared.rules.holds(Rule::FirstChoiceLimits) => refuse(format!(
                "was not sent, because the cheapest product that is left, `{product_no}`, costs {price} USD for one {unit}, more than the first \
                 choice, {first} USD, and no `max_unit_price` allows that"
            )),
            _ => Ok(best),
        }
    }
}

/// The body of a purchase with this product.
pub(crate) fn with_product(body: &str, product_no: &str) -> Option<String> {
    let set = |(name, value): &(std::borrow::Cow<'_, str>, &str)| {
        let value = if name == "product_no" { quoted(product_no).to_string() } else { (*value).to_owned() };
        format!("{}:{value}", quoted(name))
    };
    let all: Vec<String> = members(body).ok()?.iter().map(set).collect();
    Some(format!("{{{}}}", all.join(",")))
}
