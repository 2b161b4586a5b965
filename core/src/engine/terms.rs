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
        self.said.max(self.quote)
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

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    const RESERVED: Reserved = Reserved { day: TODAY, usd: Decimal(rust_decimal::Decimal::TEN) };

    fn terms(given: &mut Given, operation: &str, params: &str, said: Option<&str>) -> Terms {
        given.write_within(operation, params, None, said).terms
    }

    /// Which purchases a cap counts, and which of them can be counted by the price of the list.
    #[test]
    fn a_cap_counts_what_buys_a_session_or_lengthens_it() {
        let rows = [
            ("create_session", r#"{"session_type":"dynamic","product_no":"p","duration":2}"#, true, true),
            ("create_session", r#"{"session_type":"static","product_no":"p"}"#, true, true),
            ("create_session", r#"{"session_type":"static","product_no":"p","duration":2}"#, true, false),
            ("create_session", r#"{"session_type":"static","product_no":"p","provisioning_mode":"existing"}"#, false, false),
            ("renew_session", r#"{"session_id":"s-1","duration":1}"#, true, false),
            ("rotate_session", r#"{"session_id":"s-1"}"#, false, false),
            ("create_recharge", r#"{"amount":20}"#, false, false),
        ];
        for (operation, params, counts, by_unit) in rows {
            let mut given = Given::agent();
            let of_list = terms(&mut given, operation, params, None);
            assert!(!of_list.must_count(&given.cx()), "without a cap");
            given.day = Some(TODAY);
            assert_eq!(
                (of_list.must_count(&given.cx()), of_list.needs_price(false, &given.cx())),
                (counts, by_unit),
                "{operation} {params}"
            );
            let endpoint = crate::contract::endpoint(operation).expect(operation);
            assert_eq!(of_list.refusal(endpoint).is_some(), counts && !by_unit, "{operation} {params}");
            let said = terms(&mut given, operation, params, Some("3"));
            assert!(said.refusal(endpoint).is_none() && !said.needs_price(false, &given.cx()));
        }
    }

    #[test]
    fn what_is_set_aside_is_enough_for_its_day_and_its_price() {
        let mut given = Given::agent();
        let params = r#"{"session_type":"dynamic","product_no":"p"}"#;
        for (day, said, again) in [(TODAY, "10", false), (TODAY, "10.01", true), (TODAY + 1, "10", true), (TODAY, "9", false)] {
            given.day = Some(day);
            let terms = Terms { reserved: Some(RESERVED), ..terms(&mut given, "create_session", params, Some(said)) };
            assert_eq!(terms.must_count(&given.cx()), again, "{day} {said}");
        }
    }

    #[test]
    fn a_quote_is_the_price_of_all_units_where_the_unit_tells_it() {
        let mut given = Given::agent();
        for (params, charge) in [
            (r#"{"session_type":"dynamic","product_no":"p","quantity":0.5}"#, Some("1.05")),
            (r#"{"session_type":"dynamic","product_no":"p"}"#, Some("2.10")),
            (r#"{"session_type":"static","product_no":"p","quantity":3,"duration":2}"#, None),
        ] {
            let mut terms = terms(&mut given, "create_session", params, None);
            terms.priced("2.10".parse().ok());
            assert_eq!(terms.charge(), charge.and_then(|usd| usd.parse().ok()), "{params}");
            assert!(terms.is_read);
        }
    }

    #[test]
    fn what_earlier_keys_may_have_bought_adds_up_within_a_day() {
        let rules = Rules::default();
        let mut terms = Terms { reserved: Some(RESERVED), ..Terms::default() };
        assert!(terms.begin_key(true, rules).is_none() && terms.reserved.is_none());
        terms.reserved = Some(RESERVED);
        terms.begin_key(true, rules);
        assert_eq!(terms.earlier, Some(Reserved { usd: Decimal::from(20), ..RESERVED }));
        terms.reserved = Some(Reserved { day: TODAY + 1, ..RESERVED });
        terms.begin_key(true, rules);
        assert_eq!(terms.earlier, Some(Reserved { day: TODAY + 1, ..RESERVED }));
        terms.reserved = Some(RESERVED);
        assert!(matches!(terms.begin_key(false, rules), Some(Note::Freed(freed)) if freed == RESERVED));
    }
}
