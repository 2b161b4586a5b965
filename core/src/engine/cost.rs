//! The cost of a purchase: the caller's limits, the price that was read, and the amount that counts under the day's cap.

use std::borrow::Cow;

use super::context::Cx;
use super::counted::{Counted, new_entry};
use super::event::EventKind;
use super::machine::Note;
use crate::contract::agent::{CreateSession, ProvisioningMode, RenewSession, SessionType};
use crate::contract::{Decimal, Endpoint, Operation};
use crate::json::{pick, text_of};
use crate::policy::{Advice, Effect, Error, Kind, Rule, Rules, times};
use crate::time::Millis;
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
        let [product_no, session_type, mode, duration, quantity] =
            pick(body, ["product_no", "session_type", "provisioning_mode", "duration", "quantity"])?;
        let word = |json: Option<&'_ str>| json.and_then(text_of).map(Cow::into_owned);
        let session_type = SessionType::from(word(session_type)?.as_str());
        (word(mode).as_deref() != Some(ProvisioningMode::Existing.as_str())).then_some(Wanted {
            by_unit: session_type == SessionType::Dynamic || duration.is_none(),
            quantity: quantity.map_or(Ok(Decimal::from(1)), str::parse).ok()?,
            session_type,
            product_no: word(product_no)?,
        })
    }
}

/// The price of one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Price {
    Usd(Decimal),
    /// It is in another currency.
    Other(String),
}

/// What is known of the price of a purchase.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Terms {
    /// What is bought, where its price can be read.
    pub(crate) wanted: Option<Wanted>,
    /// Whether a day's cap counts it.
    counts: bool,
    /// The caller's own limit for one unit.
    pub(crate) limit: Option<Decimal>,
    /// What it is to cost, as the caller said.
    pub(crate) said: Option<Decimal>,
    /// What the key that is sent next may be charged, by the list.
    pub(crate) quote: Option<Decimal>,
    /// Whether the list was read for that key.
    pub(crate) is_read: bool,
    /// That the next send counts: since when, and at how much.
    granted: Option<(CountedAt, Decimal)>,
    /// The entry and the day of it, where only that send counts on that day.
    ahead: Option<(String, i64)>,
    /// What that key counts under the day's cap, and keys before it that may have bought all the same.
    pub(crate) counted: Vec<Counted>,
}

/// When a store was asked to count something, by this client's clocks.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct CountedAt {
    day: i64,
    elapsed: Millis,
}

impl CountedAt {
    pub(crate) fn now(cx: &Cx<'_>) -> Self {
        CountedAt { day: cx.day.unwrap_or_default(), elapsed: cx.means.clock.elapsed() }
    }
}

/// A grant is good for this long: when the store's day ends, only a clock knows that is right.
const SHORTLY: Millis = 60 * 1000;

impl Terms {
    pub(crate) fn new(endpoint: &Endpoint, built: &Built, limit: Option<Decimal>, said: Option<Decimal>) -> Self {
        let wanted = Wanted::of(endpoint, built);
        let counts = wanted.is_some() || endpoint.name == RenewSession::ENDPOINT.name;
        Terms { wanted, counts, limit, said, ..Terms::default() }
    }

    fn is_by_unit(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| wanted.by_unit)
    }

    /// Why it can't be bought under a day's cap: what it is to cost must be known.
    pub(crate) fn refusal(&self, endpoint: &Endpoint) -> Option<Error> {
        if !self.counts || self.said.is_some() || self.is_by_unit() {
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

    /// Whether it has to be counted before the key is sent: each send counts on its own day, at what its key may be charged then.
    pub(crate) fn must_count(&self, cx: &Cx<'_>) -> bool {
        let Some(today) = cx.day.filter(|_| self.counts) else { return false };
        let is_today = |asked: CountedAt| {
            let is_recent = cx.means.clock.elapsed().saturating_sub(asked.elapsed) <= SHORTLY;
            (asked.day >= today && is_recent) || !cx.means.rules.holds(Rule::NewDayCounts)
        };
        !self.granted.is_some_and(|(asked, usd)| is_today(asked) && self.charge().is_none_or(|charge| charge <= usd))
    }

    /// It counts on that day of the store's.
    pub(crate) fn count(&mut self, entry: String, day: i64, asked: CountedAt) {
        let Some(usd) = self.charge() else { return };
        self.granted = Some((asked, usd));
        let before = self.counted.len();
        self.counted.retain(|counted| counted.entry != entry || counted.day != day);
        if self.counted.len() == before {
            self.ahead = Some((entry.clone(), day));
        }
        self.counted.push(Counted { entry, day, usd });
    }

    /// It may count on that day, though nobody has said so: what becomes of the key is to be said of that, too.
    pub(crate) fn may_count(&mut self, entry: String, day: i64) {
        let is_known = self.counted.iter().any(|counted| counted.entry == entry && counted.day == day);
        if let Some(usd) = self.charge().filter(|_| !is_known) {
            self.counted.push(Counted { entry, day, usd });
        }
    }

    /// What counts on a day for a send that was never made. It is counted no more from here on.
    pub(crate) fn take_ahead(&mut self) -> Vec<Counted> {
        let Some((entry, day)) = self.ahead.take() else { return Vec::new() };
        let is_ahead = |counted: &Counted| counted.entry == entry && counted.day == day;
        let (taken, left) = std::mem::take(&mut self.counted).into_iter().partition(is_ahead);
        (self.counted, self.granted) = (left, None);
        taken
    }

    /// The key was sent: another send of it counts anew.
    pub(crate) fn sent(&mut self, rules: Rules) {
        self.ahead = None;
        if rules.holds(Rule::NewDayCounts) {
            self.granted = None;
        }
    }

    /// What a key is counted by, where it has been.
    pub(crate) fn entry_of(&self, key: &str) -> Option<String> {
        self.counted.iter().find(|counted| counted.is_of(key)).map(|counted| counted.entry.clone())
    }

    /// What a key counts, which is counted no more from here on.
    pub(crate) fn take_counted(&mut self, key: &str) -> Vec<Counted> {
        let (taken, left) = std::mem::take(&mut self.counted).into_iter().partition(|counted| counted.is_of(key));
        (self.counted, self.granted, self.ahead) = (left, None, None);
        taken
    }

    /// Another key takes the place of one that was answered, and has a price of its own. If the earlier one may have bought all the
    /// same, it stays counted; otherwise it counts no more.
    pub(crate) fn begin_key(&mut self, before: &str, may_have_sold: bool, rules: Rules) -> Option<Note> {
        (self.is_read, self.quote) = (false, None);
        if !rules.holds(Rule::NewKeyCounts) {
            return None;
        }
        self.granted = None;
        let freed = if may_have_sold { Vec::new() } else { self.take_counted(before) };
        (!freed.is_empty()).then_some(Note::Freed(freed))
    }

    /// Why a key that was not sent yet is not sent at this price, if so. A key that was sent is sent again as it is.
    pub(crate) fn refuses(&self, price: &Price, was_sent: bool, cx: &mut Cx<'_>) -> Option<Error> {
        let limit = self.limit.filter(|_| !was_sent);
        match price {
            Price::Usd(price) => {
                cx.note(EventKind::Priced { unit_price: price.to_string() });
                limit.filter(|limit| price > limit).map(|limit| {
                    let what = format!("was not sent, because one unit costs {price} USD, above `max_unit_price`, {limit} USD");
                    cx.subject.error(Kind::Refused, Effect::None, what, Advice::ReadPrices)
                })
            }
            Price::Other(currency) => self.refuses_other(limit, currency, cx),
        }
    }

    /// Where the list has no price in USD, the caller's own estimate is compared with the limit.
    fn refuses_other(&self, limit: Option<Decimal>, currency: &str, cx: &Cx<'_>) -> Option<Error> {
        let wanted = self.wanted.as_ref()?;
        let Some(said) = self.said else {
            let product_no = &wanted.product_no;
            let what = format!("was not sent, because the price of `{product_no}` is in `{currency}` and not in USD: give `{PRICE_FIELD}`");
            return Some(no_price(what, cx));
        };
        let limit = limit.filter(|limit| times(*limit, wanted.quantity).is_none_or(|most| said > most))?;
        let what =
            format!("was not sent, because it costs {said} USD, above `max_unit_price`, {limit} USD for each of {} units", wanted.quantity);
        Some(cx.subject.error(Kind::Refused, Effect::None, what, Advice::ReadPrices))
    }

    /// The entry and the amount to count for a key, or why it can't be counted. A key that was counted before keeps its entry.
    pub(crate) fn to_count(&self, key: &str, cx: &mut Cx<'_>) -> Result<(String, Decimal), Error> {
        let Some(usd) = self.charge() else {
            let what = format!("was not sent, because its price is not known, and under a daily cap it needs one: give `{PRICE_FIELD}`");
            return Err(no_price(what, cx));
        };
        let intent = cx.subject.intent.as_deref();
        let entry = self.entry_of(key).unwrap_or_else(|| new_entry(key, intent, &mut cx.means.dice, cx.means.rules));
        Ok((entry, usd))
    }
}

/// The error where only the caller can tell the price.
fn no_price(what: String, cx: &Cx<'_>) -> Error {
    let mut error = cx.subject.error(Kind::Invalid, Effect::None, what, Advice::ChangeRequest);
    error.field = Some(PRICE_FIELD.to_owned());
    error
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::entropy::Entropy;

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
    fn each_send_counts_on_its_day_and_at_its_price() {
        let mut given = Given::agent();
        let params = r#"{"session_type":"dynamic","product_no":"p"}"#;
        for (day, said, again) in [(TODAY, "10", false), (TODAY, "10.01", true), (TODAY + 1, "10", true), (TODAY - 1, "9", false)] {
            given.day = Some(TODAY);
            let mut terms = terms(&mut given, "create_session", params, Some("10"));
            let asked = CountedAt::now(&given.cx());
            terms.count("k".to_owned(), TODAY, asked);
            (given.day, terms.said) = (Some(day), said.parse().ok());
            assert_eq!(terms.must_count(&given.cx()), again, "{day} {said}");
            terms.sent(Rules::default());
            assert!(terms.must_count(&given.cx()));
        }
    }

    #[test]
    fn what_counts_on_a_day_for_a_send_that_was_never_made_counts_no_more() {
        let mut terms = Terms { said: Some(Decimal::from(10)), ..Terms::default() };
        let count = |terms: &mut Terms, day| terms.count("k".to_owned(), day, CountedAt { day, elapsed: 0 });
        count(&mut terms, TODAY);
        terms.sent(Rules::default());
        count(&mut terms, TODAY + 1);
        assert_eq!(terms.take_ahead().iter().map(|counted| counted.day).collect::<Vec<_>>(), [TODAY + 1]);
        // It was sent on that day before.
        count(&mut terms, TODAY);
        assert!(terms.take_ahead().is_empty());
        assert_eq!(terms.counted.iter().map(|counted| counted.day).collect::<Vec<_>>(), [TODAY]);
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
    fn a_key_counts_once_a_day_and_stays_counted_where_it_may_have_bought() {
        let (rules, key) = (Rules::default(), "k-1");
        let mut dice = Entropy::new([7; 16]);
        let mut terms = Terms { said: Some(Decimal::from(10)), ..Terms::default() };
        for day in [TODAY, TODAY, TODAY + 1] {
            let entry = terms.entry_of(key).unwrap_or_else(|| new_entry(key, None, &mut dice, rules));
            terms.count(entry, day, CountedAt { day, elapsed: 0 });
        }
        assert_eq!(terms.counted.iter().map(|counted| counted.day).collect::<Vec<_>>(), [TODAY, TODAY + 1]);
        assert!(terms.begin_key(key, true, rules).is_none());
        terms.count(new_entry("k-2", None, &mut dice, rules), TODAY + 1, CountedAt { day: TODAY, elapsed: 0 });
        assert!(matches!(terms.begin_key("k-2", false, rules), Some(Note::Freed(freed)) if freed.len() == 1));
        assert_eq!(terms.counted.len(), 2);
    }
}
