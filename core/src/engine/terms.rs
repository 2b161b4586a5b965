//! What a purchase may cost: the caller's limits, the price that was read, and what is set aside of the day's cap for it.

use super::machine::{Cx, Note};
use super::reserved::{Reserved, sum};
use crate::contract::agent::{CreateSession, ProvisioningMode, RenewSession, SessionType};
use crate::contract::{Decimal, Endpoint, Operation};
use crate::policy::{Error, Rule, Rules, times};
use crate::wire::Built;

/// How a purchase gets a price where the list has none in USD.
pub(crate) const PRICE_FIELD: &str = "expected_charge_usd";

/// What is bought.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Wanted {
    pub(crate) product_no: String,
    pub(crate) session_type: SessionType,
    pub(crate) quantity: Decimal,
    /// Whether the price of one unit tells what it costs: the unit of `duration` is not documented.
    pub(crate) by_unit: bool,
}

impl Wanted {
    /// What a request buys, if it buys a session.
    fn of(endpoint: &Endpoint, built: &Built) -> Option<Wanted> {
        let body = built.body.as_deref().filter(|_| endpoint.name == CreateSession::ENDPOINT.name)?;
        let purchase: CreateSession = serde_json::from_str(body).ok()?;
        (purchase.provisioning_mode != Some(ProvisioningMode::Existing)).then(|| Wanted {
            by_unit: purchase.session_type == SessionType::Dynamic || purchase.duration.is_none(),
            quantity: purchase.quantity.unwrap_or(Decimal::from(1)),
            session_type: purchase.session_type,
            product_no: purchase.product_no,
        })
    }
}

/// What is known of the price of a purchase.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Terms {
    /// What is bought, where its price can be read.
    pub(crate) wanted: Option<Wanted>,
    /// Whether a day's cap counts it.
    is_counted: bool,
    /// The caller's own limit for one unit.
    pub(crate) limit: Option<Decimal>,
    /// What it is to cost, as the caller said.
    pub(crate) said: Option<Decimal>,
    /// What the key that is sent next may be charged, by the list.
    pub(crate) quote: Option<Decimal>,
    /// Whether the list was read for that key.
    pub(crate) is_read: bool,
    /// What is set aside of the day's cap for the key that is sent next.
    pub(crate) reserved: Option<Reserved>,
    /// What is set aside for keys before it that may have bought all the same.
    pub(crate) earlier: Option<Reserved>,
}

impl Terms {
    pub(crate) fn new(endpoint: &Endpoint, built: &Built, limit: Option<Decimal>, said: Option<Decimal>) -> Self {
        let wanted = Wanted::of(endpoint, built);
        let is_counted = wanted.is_some() || endpoint.name == RenewSession::ENDPOINT.name;
        Terms { wanted, is_counted, limit, said, ..Terms::default() }
    }

    fn is_by_unit(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| wanted.by_unit)
    }

    /// Why it can't be bought under a day's cap: what it is to cost must be known.
    pub(crate) fn refusal(&self, endpoint: &Endpoint) -> Option<Error> {
        if !self.is_counted || self.said.is_some() || self.is_by_unit() {
            return None;
        }
        let rule = "is required under a daily cap, since the service does not document the unit of `duration` and the charge can't be \
                    known from the price";
        Some(Error::invalid(endpoint.name, PRICE_FIELD, rule))
    }

    /// What the key that is sent next may be charged, where that is known: the caller's word does not make the list's price less.
    pub(crate) fn charge(&self) -> Option<Decimal> {
        let known = self.said.into_iter().chain(self.quote);
        known.reduce(|one, other| if other > one { other } else { one })
    }

    /// Whether the list has to be read before the key is sent.
    pub(crate) fn needs_price(&self, was_sent: bool, cx: &Cx<'_>) -> bool {
        // A key that was sent is asked about as it is, whatever things cost by now; under a daily cap it has to be counted all the same.
        let limited = self.limit.is_some() && !was_sent;
        let uncounted = cx.day.is_some() && self.charge().is_none() && self.is_by_unit();
        (limited || uncounted) && !self.is_read && self.wanted.is_some()
    }

    /// The price of one unit was read.
    pub(crate) fn priced(&mut self, unit_price: Option<Decimal>) {
        if let Some((price, wanted)) = unit_price.zip(self.wanted.as_ref()) {
            self.quote = if wanted.by_unit { times(price, wanted.quantity) } else { None };
        }
        self.is_read = true;
    }

    /// Whether it has to be counted before the key is sent.
    pub(crate) fn must_count(&self, cx: &Cx<'_>) -> bool {
        let Some(day) = cx.day.filter(|_| self.is_counted) else { return false };
        let today = |reserved: Reserved| reserved.day == day || !cx.rules.holds(Rule::NewDayCounts);
        let enough = |reserved: Reserved| self.charge().is_some_and(|usd| usd <= reserved.usd) || !cx.rules.holds(Rule::NewKeyCounts);
        !self.reserved.is_some_and(|reserved| today(reserved) && enough(reserved))
    }

    /// Another key takes the place of one that was answered, and has a price of its own. If the earlier one may have bought all the
    /// same, it stays counted; otherwise what was set aside for it is free again.
    pub(crate) fn begin_key(&mut self, may_have_sold: bool, rules: Rules) -> Option<Note> {
        (self.is_read, self.quote) = (false, None);
        if !rules.holds(Rule::NewKeyCounts) {
            return None;
        }
        let reserved = self.reserved.take()?;
        if !may_have_sold {
            return Some(Note::Freed(reserved));
        }
        let earlier = self.earlier.filter(|earlier| earlier.day == reserved.day);
        let usd = earlier.map_or(reserved.usd, |earlier| sum(earlier.usd, reserved.usd));
        self.earlier = Some(Reserved { usd, ..reserved });
        None
    }
}
