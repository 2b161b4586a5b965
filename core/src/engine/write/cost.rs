//! What a write may cost: its price is read, and counted under the day's cap, before each send that needs it.

use super::{Before, Write};
use crate::contract::Decimal;
use crate::engine::counted::new_entry;
use crate::engine::event::EventKind;
use crate::engine::gate::Wake;
use crate::engine::machine::{Action, Cx, Grant, Input, Need, Part};
use crate::engine::prices::{Price, Prices};
use crate::engine::terms::{CountedAt, PRICE_FIELD, Wanted};
use crate::policy::{Advice, Effect, Error, Kind, times};

impl Write {
    pub(super) fn needs_price(&self, cx: &Cx<'_>) -> Option<&Wanted> {
        self.terms.wanted.as_ref().filter(|_| self.terms.needs_price(self.call.ledger.sends > 0, cx))
    }

    /// The price is being read.
    pub(super) fn pricing(&mut self, mut prices: Box<Prices>, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        match input {
            Input::Due(_) if !cx.wanted => return self.stop(cx),
            // Somebody goes on with it who asks for no price.
            Input::Due(due) if self.needs_price(cx).is_none() => return self.due(due, cx),
            _ => {}
        }
        let part = prices.handle(input, cx);
        let price = match part {
            _ if !cx.wanted => return self.stop(cx),
            Part::Asks(action) => {
                self.before = Before::Pricing(prices);
                return action;
            }
            Part::Done(_) if self.needs_price(cx).is_none() => return Action::Wake(Wake::at(cx.now())),
            Part::Done(Ok(price)) => price,
            Part::Done(Err(error)) => return self.not_sent(error, cx),
        };
        // A key that was sent is asked about as it is.
        let limit = self.terms.limit.filter(|_| self.call.ledger.sends == 0);
        let refusal = match &price {
            Price::Usd(price) => {
                cx.note(EventKind::Priced { unit_price: price.to_string() });
                limit.filter(|limit| price > limit).map(|limit| {
                    let what = format!("was not sent, because one unit costs {price} USD, above `max_unit_price`, {limit} USD");
                    cx.subject.error(Kind::Refused, Effect::None, what, Advice::ReadPrices)
                })
            }
            Price::Other(currency) => self.not_in_usd(limit, currency, cx),
        };
        match refusal {
            Some(error) => self.not_sent(error, cx),
            None => {
                self.terms.priced(if let Price::Usd(price) = price { Some(price) } else { None });
                Action::Wake(Wake::at(cx.now()))
            }
        }
    }

    /// The list has no price in USD: what the caller says that it costs is held against the limit instead.
    pub(super) fn not_in_usd(&self, limit: Option<Decimal>, currency: &str, cx: &Cx<'_>) -> Option<Error> {
        let wanted = self.terms.wanted.as_ref()?;
        let Some(said) = self.terms.said else {
            let product_no = &wanted.product_no;
            let what = format!("was not sent, because the price of `{product_no}` is in `{currency}` and not in USD: give `{PRICE_FIELD}`");
            return Some(no_price(what, cx));
        };
        let limit = limit.filter(|limit| times(*limit, wanted.quantity).is_none_or(|most| said > most))?;
        let what =
            format!("was not sent, because it costs {said} USD, above `max_unit_price`, {limit} USD for each of {} units", wanted.quantity);
        Some(cx.subject.error(Kind::Refused, Effect::None, what, Advice::ReadPrices))
    }

    /// Counts what it may cost under the day's cap.
    pub(super) fn count(&mut self, cx: &mut Cx<'_>) -> Action {
        let Some(usd) = self.terms.charge() else {
            let what = format!("was not sent, because its price is not known, and under a daily cap it needs one: give `{PRICE_FIELD}`");
            return self.not_sent(no_price(what, cx), cx);
        };
        let key = self.call.ledger.key.as_deref().unwrap_or_default();
        // By the entry that it has in its record, where it is not the first time.
        let entry = self.terms.entry_of(key).unwrap_or_else(|| new_entry(key, &mut cx.means.dice, cx.means.rules));
        self.before = Before::Counting(Box::new((CountedAt::now(cx), entry.clone())));
        Action::Need(Need::Count { entry, usd })
    }

    pub(super) fn counted(&mut self, (asked, entry): (CountedAt, String), granted: Result<Grant, Error>, cx: &mut Cx<'_>) -> Action {
        match granted {
            Ok(granted) => {
                if let Grant::Counted { day } = granted {
                    self.terms.count(entry, day, asked);
                }
                if cx.wanted { self.put(cx) } else { self.stop(cx) }
            }
            Err(error) => {
                let is_store = error.kind == Kind::Store;
                if is_store {
                    self.terms.may_count(entry, cx.day.unwrap_or_default());
                }
                match is_store {
                    _ if !cx.wanted => self.stop(cx),
                    true => self.store_failed("was not sent, because the store could not count it under the day's cap", cx),
                    false => self.not_sent(error, cx),
                }
            }
        }
    }
}

/// A price is needed that only the caller can tell.
fn no_price(what: String, cx: &Cx<'_>) -> Error {
    let mut error = cx.subject.error(Kind::Invalid, Effect::None, what, Advice::ChangeRequest);
    error.field = Some(PRICE_FIELD.to_owned());
    error
}

#[cfg(test)]
mod tests {
    use crate::engine::testing::*;
    use crate::engine::write::Write;

    /// A purchase whose price is being read for a limit, when somebody goes on with it who sets none.
    fn without_a_limit(given: &mut Given) -> Write {
        let mut write = given.write_within("create_session", r#"{"session_type":"dynamic","product_no":"p-1"}"#, Some("3"), None);
        assert!(given.tell_one(&mut write, due()).starts_with("send GET /products"));
        write.take_options(Vec::new(), given.service.retry, None, None);
        write
    }

    #[test]
    fn who_goes_on_with_a_purchase_without_a_limit_needs_no_price() {
        for answer in [lost(), failure("AUTH_INVALID_KEY", 401), success(r#"{"items":[{"product_no":"p-1","price":4}]}"#)] {
            let mut given = Given::agent();
            let mut write = without_a_limit(&mut given);
            assert_eq!(given.tell(&mut write, [answer, due()]), ["wake", "put"]);
        }
    }

    #[test]
    fn a_purchase_that_needs_no_price_any_more_and_is_given_up_is_not_sent() {
        let mut given = Given::agent();
        let mut write = without_a_limit(&mut given);
        assert_eq!(given.tell(&mut write, [lost()]), ["wake"]);
        given.wanted = false;
        assert_eq!(given.tell(&mut write, [due()]), ["erase: Cancelled None Nothing"]);
    }
}
