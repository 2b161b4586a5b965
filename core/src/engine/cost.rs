//! The cost of a purchase: the caller's limits, the price that was read, and the amount that counts under the day's cap.

use std::borrow::Cow;

use super::choice::{Candidate, Choice, SavedChoice};
use super::context::Cx;
use super::counted::{Counted, new_entry};
use super::event::EventKind;
use super::machine::Note;
use crate::contract::agent::{CreateSession, ProvisioningMode, RenewSession, SessionType};
use crate::contract::{Decimal, Endpoint, Operation};
use crate::json::{pick, text_of};
use crate::policy::{Advice, Effect, Error, Kind, Rule, Rules, times};
use crate::time::{DAY, Millis};
use crate::wire::Built;

/// The parameter that states a price where the list has none in USD.
pub(crate) const PRICE_FIELD: &str = "expected_charge_usd";

/// The session to buy.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Wanted {
    pub(crate) product_no: String,
    pub(crate) session_type: SessionType,
    pub(crate) quantity: Decimal,
    /// True if the price of one unit decides the cost: the unit of `duration` is not documented.
    pub(crate) by_unit: bool,
}

impl Wanted {
    /// The session that a request buys, if it buys one.
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
    /// The price is in another currency.
    Other(String),
    /// The product that was chosen, with its price in USD.
    Chosen(Candidate),
}

/// The terms of a purchase.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Terms {
    /// The session to buy, if its price can be read.
    pub(crate) wanted: Option<Wanted>,
    /// The choice of its product, if the caller left that to the client. Boxed, as few purchases have one.
    pub(crate) choice: Option<Box<Choice>>,
    /// True if a day's cap counts the purchase.
    counts: bool,
    /// The caller's own limit for one unit.
    pub(crate) limit: Option<Decimal>,
    /// The cost that the caller stated.
    pub(crate) said: Option<Decimal>,
    /// The possible charge of the next key, by the list.
    pub(crate) quote: Option<Decimal>,
    /// True if the list was read for that key.
    pub(crate) is_read: bool,
    /// The moment and the amount of the next send's grant.
    granted: Option<(CountedAt, Decimal)>,
    /// The entry and the day on which only the next send counts.
    ahead: Option<(String, i64)>,
    /// The entries under the day's cap of this key, and of earlier keys that may have bought all the same.
    pub(crate) counted: Vec<Counted>,
}

/// The moment of a request to count, by this client's clocks.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct CountedAt {
    day: i64,
    elapsed: Millis,
}

impl CountedAt {
    pub(crate) fn now(cx: &Cx<'_>) -> Self {
        CountedAt { day: cx.day.unwrap_or_default(), elapsed: cx.shared.clock.elapsed() }
    }
}

/// The time for which a grant is good: only the store's own clock knows when its day ends.
const SHORTLY: Millis = 60 * 1000;

impl Terms {
    pub(crate) fn new(endpoint: &Endpoint, built: &Built, limit: Option<Decimal>, said: Option<Decimal>) -> Self {
        let wanted = Wanted::of(endpoint, built);
        let counts = wanted.is_some() || endpoint.name == RenewSession::ENDPOINT.name;
        Terms { wanted, counts, limit, said, ..Terms::default() }
    }

    /// Goes on with a choice that was made: the request names its product.
    pub(crate) fn restore_choice(&mut self, saved: SavedChoice, endpoint: &Endpoint, built: &Built) {
        self.choice = Some(Box::new(Choice::restored(saved)));
        self.wanted = Wanted::of(endpoint, built);
    }

    /// Takes the limit of another caller that waits for the purchase, of which nothing was sent: the smaller one holds, and a price that was
    /// read before is read again.
    pub(crate) fn lower_limit(&mut self, limit: Decimal) {
        if self.unit_limit().is_some_and(|own| own <= limit) {
            return;
        }
        (self.limit, self.is_read) = (Some(limit), false);
        if let Some(choice) = &mut self.choice {
            (choice.is_made, choice.saved.wanted.max_unit_price) = (false, Some(limit));
        }
    }

    fn is_by_unit(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| wanted.by_unit)
    }

    /// The reason why the purchase is refused under a day's cap: its cost must be known.
    pub(crate) fn refusal(&self, endpoint: &Endpoint) -> Option<Error> {
        let is_static = self.wanted.as_ref().is_some_and(|wanted| wanted.session_type == SessionType::Static);
        if is_static && self.choice.is_some() && self.unit_limit().is_none() {
            let rule = "is required for the choice of a static product under a daily cap";
            return Some(Error::invalid(endpoint.name, "max_unit_price", rule));
        }
        if !self.counts || self.said.is_some() || self.is_by_unit() {
            return None;
        }
        let rule = "is required under a daily cap, since the service does not document the unit of `duration` and the charge can't be \
                    known from the price";
        Some(Error::invalid(endpoint.name, PRICE_FIELD, rule))
    }

    /// The possible charge of the next key, where it is known: the caller's estimate does not lower the list's price.
    pub(crate) fn charge(&self) -> Option<Decimal> {
        self.said.max(self.quote)
    }

    /// Returns true if the list has to be read before the key is sent.
    pub(crate) fn needs_price(&self, was_sent: bool, cx: &Cx<'_>) -> bool {
        // A key that was sent is repeated as it is, whatever the price is by now; under a daily cap it has to be counted all the same.
        let limited = self.limit.is_some() && !was_sent;
        let uncounted = cx.day.is_some() && self.charge().is_none() && self.is_by_unit();
        (limited || uncounted) && !self.is_read && self.wanted.is_some()
    }

    /// Takes the price of one unit. A price of 0 stands for one that is not told.
    pub(crate) fn priced(&mut self, unit_price: Option<Decimal>) {
        if let Some((price, wanted)) = unit_price.zip(self.wanted.as_ref()) {
            self.quote = times(price, wanted.quantity).filter(|quote| wanted.by_unit && !quote.0.is_zero());
        }
        self.is_read = true;
    }

    /// Returns true if the purchase has to be counted before the key is sent: each send counts on its own day, with the key's possible
    /// charge then.
    pub(crate) fn must_count(&self, cx: &Cx<'_>) -> bool {
        let Some(today) = cx.day.filter(|_| self.counts) else { return false };
        let is_today = |asked: CountedAt| {
            let is_recent = cx.shared.clock.elapsed().saturating_sub(asked.elapsed) <= SHORTLY;
            (asked.day >= today && is_recent) || !cx.shared.rules.holds(Rule::NewDayCounts)
        };
        !self.granted.is_some_and(|(asked, usd)| is_today(asked) && self.charge().is_none_or(|charge| charge <= usd))
    }

    /// The time for which the next send counts on the right day: until the day ends, if a cap counts it.
    pub(crate) fn counts_for(&self, cx: &Cx<'_>) -> Millis {
        let is_counted = self.counts && cx.day.is_some() && cx.shared.rules.holds(Rule::NewDayCounts);
        if is_counted { DAY - cx.shared.clock.unix().rem_euclid(DAY) } else { Millis::MAX }
    }

    /// Counts the purchase on that day of the store's.
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

    /// Notes an entry that may count on that day, though the store did not confirm it: the result of the key must settle that entry, too.
    pub(crate) fn may_count(&mut self, entry: String, day: i64) {
        let is_known = self.counted.iter().any(|counted| counted.entry == entry && counted.day == day);
        if let Some(usd) = self.charge().filter(|_| !is_known) {
            self.counted.push(Counted { entry, day, usd });
        }
    }

    /// Takes the entry of a send that was never made, so that it counts no more.
    pub(crate) fn take_ahead(&mut self) -> Vec<Counted> {
        let Some((entry, day)) = self.ahead.take() else { return Vec::new() };
        let is_ahead = |counted: &Counted| counted.entry == entry && counted.day == day;
        let (taken, left) = std::mem::take(&mut self.counted).into_iter().partition(is_ahead);
        (self.counted, self.granted) = (left, None);
        taken
    }

    /// Notes that the key was sent: another send of it counts anew.
    pub(crate) fn sent(&mut self, rules: Rules) {
        self.ahead = None;
        if rules.holds(Rule::NewDayCounts) {
            self.granted = None;
        }
    }

    /// Returns the entry of a key, if it has one.
    pub(crate) fn entry_of(&self, key: &str) -> Option<String> {
        self.counted.iter().find(|counted| counted.is_of(key)).map(|counted| counted.entry.clone())
    }

    /// Takes the entries of a key, so that they count no more.
    pub(crate) fn take_counted(&mut self, key: &str) -> Vec<Counted> {
        let (taken, left) = std::mem::take(&mut self.counted).into_iter().partition(|counted| counted.is_of(key));
        (self.counted, self.granted, self.ahead) = (left, None, None);
        taken
    }

    /// Replaces a key that was answered by a new one, which has a price of its own. If the old key may have bought all the same, it stays
    /// counted; otherwise it counts no more.
    pub(crate) fn begin_key(&mut self, before: &str, may_have_sold: bool, rules: Rules) -> Option<Note> {
        (self.is_read, self.quote) = (false, None);
        if !rules.holds(Rule::NewKeyCounts) {
            return None;
        }
        self.granted = None;
        let freed = if may_have_sold { Vec::new() } else { self.take_counted(before) };
        (!freed.is_empty()).then_some(Note::Freed(freed))
    }

    /// Returns an error if a key that was not sent yet is too expensive. A key that was sent is repeated as it is.
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
            // The search knows the limit of the caller for whom it began, and another caller may go on with it.
            Price::Chosen(_) if !cx.shared.rules.holds(Rule::LimitHolds) => None,
            Price::Chosen(candidate) => self.unit_limit().filter(|limit| candidate.price > *limit).map(|limit| {
                let Candidate { price, product_no, .. } = candidate;
                let what =
                    format!("was not sent, because `{product_no}` costs {price} USD for one unit, above `max_unit_price`, {limit} USD");
                cx.subject.error(Kind::Refused, Effect::None, what, Advice::ReadPrices)
            }),
        }
    }

    /// The limit for the price of one unit: the caller's own, or that of the choice.
    pub(crate) fn unit_limit(&self) -> Option<Decimal> {
        self.limit.or_else(|| self.choice.as_ref()?.saved.wanted.max_unit_price)
    }

    /// Returns true if the product has to be chosen before the next key is sent.
    pub(crate) fn must_choose(&self) -> bool {
        self.choice.as_ref().is_some_and(|choice| !choice.is_made)
    }

    /// Compares the caller's own estimate with the limit, where the list has no price in USD.
    fn refuses_other(&self, limit: Option<Decimal>, currency: &str, cx: &Cx<'_>) -> Option<Error> {
        let wanted = self.wanted.as_ref()?;
        let Some(said) = self.said else {
            let product_no = &wanted.product_no;
            let what = format!("was not sent, because the price of `{product_no}` is in `{currency}` and not in USD: set `{PRICE_FIELD}`");
            return Some(no_price(what, cx));
        };
        let limit = limit.filter(|limit| times(*limit, wanted.quantity).is_none_or(|most| said > most))?;
        let what =
            format!("was not sent, because it costs {said} USD, above `max_unit_price`, {limit} USD for each of {} units", wanted.quantity);
        Some(cx.subject.error(Kind::Refused, Effect::None, what, Advice::ReadPrices))
    }

    /// Returns the entry and the amount to count for a key, or an error if it can't be counted. A key that was counted before keeps its
    /// entry.
    pub(crate) fn to_count(&self, key: &str, cx: &mut Cx<'_>) -> Result<(String, Decimal), Error> {
        let Some(usd) = self.charge() else {
            let what = format!("was not sent, because its price is not known, and a daily cap needs one: set `{PRICE_FIELD}`");
            return Err(no_price(what, cx));
        };
        let intent = cx.subject.intent.as_deref();
        let entry = self.entry_of(key).unwrap_or_else(|| new_entry(key, intent, &mut cx.shared.rng, cx.shared.rules));
        Ok((entry, usd))
    }
}

/// The error if only the caller can state the price.
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

    /// The purchases that a cap counts, and those of them that the list's price can count.
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
        // The key was sent on that day before.
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
        let mut rng = Entropy::new([7; 16]);
        let mut terms = Terms { said: Some(Decimal::from(10)), ..Terms::default() };
        for day in [TODAY, TODAY, TODAY + 1] {
            let entry = terms.entry_of(key).unwrap_or_else(|| new_entry(key, None, &mut rng, rules));
            terms.count(entry, day, CountedAt { day, elapsed: 0 });
        }
        assert_eq!(terms.counted.iter().map(|counted| counted.day).collect::<Vec<_>>(), [TODAY, TODAY + 1]);
        assert!(terms.begin_key(key, true, rules).is_none());
        terms.count(new_entry("k-2", None, &mut rng, rules), TODAY + 1, CountedAt { day: TODAY, elapsed: 0 });
        assert!(matches!(terms.begin_key("k-2", false, rules), Some(Note::Freed(freed)) if freed.len() == 1));
        assert_eq!(terms.counted.len(), 2);
    }
}
