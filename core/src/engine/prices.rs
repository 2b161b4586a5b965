//! The price of a purchase, read from the account's list before anything is bought.

use super::attempts::{Attempts, Window};
use super::call::{TOO_LONG, unfit};
use super::choice::Search;
use super::context::Cx;
use super::cost::{Price, Wanted};
use super::exchange::{Exchange, ExchangeResult, FailedSend};
use super::gate::Wake;
use super::machine::{Action, Input, Part};
use crate::contract::agent::{ListProducts, ProductFilter, SessionType};
use crate::contract::{Decimal, Operation, json_of};
use crate::json::{items, pick, plain};
use crate::policy::{Advice, Again, CodeRow, Effect, Error, Kind, RetryPolicy, code, is_usd};
use crate::wire::{Built, build, decimal_of};

/// The most pages of 100 that are searched for a product.
const PAGES: u32 = 20;

/// Reading the price of a product, or of all of them.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Prices {
    exchange: Exchange,
    attempts: Attempts,
    sought: LookedFor,
    filter: ProductFilter,
    cursor: Option<String>,
    pages: u32,
    /// The most pages that one reading of the list came to.
    furthest: u32,
}

/// The product that is looked for.
#[derive(Debug, Clone, Hash)]
enum LookedFor {
    /// This one.
    Product(String),
    /// The cheapest one that fits.
    Cheapest(Box<Search>),
}

impl Prices {
    /// Reads the price of a product.
    pub(crate) fn new(wanted: &Wanted, headers: Vec<(String, String)>, policy: RetryPolicy) -> Self {
        Prices::of(wanted, LookedFor::Product(wanted.product_no.clone()), headers, policy)
    }

    /// Reads the whole list, to choose a product.
    pub(crate) fn choosing(wanted: &Wanted, search: Search, headers: Vec<(String, String)>, policy: RetryPolicy) -> Self {
        Prices::of(wanted, LookedFor::Cheapest(Box::new(search)), headers, policy)
    }

    fn of(wanted: &Wanted, sought: LookedFor, headers: Vec<(String, String)>, policy: RetryPolicy) -> Self {
        let filter = match wanted.session_type {
            SessionType::Dynamic => ProductFilter::Dynamic,
            SessionType::Static => ProductFilter::Static,
            SessionType::Other(_) => ProductFilter::All,
        };
        let endpoint = ListProducts::ENDPOINT;
        let mut exchange = Exchange::new(endpoint, Built::at(endpoint.path), headers, policy.timeout_ms);
        exchange.needs_list = true;
        Prices { exchange, attempts: Attempts::of_shared_request(policy), sought, filter, cursor: None, pages: 0, furthest: 0 }
    }

    /// Reads a page.
    pub(crate) fn read(&mut self, cx: &Cx<'_>) -> Action {
        let list = ListProducts {
            r#type: Some(self.filter.clone()),
            in_stock: Some(false),
            limit: Some(100),
            cursor: self.cursor.clone(),
            ..ListProducts::default()
        };
        if let Ok(built) = build(ListProducts::ENDPOINT, &json_of(&list)) {
            self.exchange.built = built;
        }
        self.pages += 1;
        self.attempts.sent(cx.job_time());
        self.exchange.send(None, i64::MAX, cx)
    }

    /// Advances the reading with one input. The result is the price, or the error if there is none.
    pub(crate) fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Part<Result<Price, Error>> {
        let now = cx.now();
        let received = match input {
            Input::Response(received) => received,
            Input::Due(due) => match self.attempts.window(due, false, cx) {
                Window::Open | Window::Over => return Part::Asks(self.read(cx)),
                Window::Throttled => {
                    let until = cx.shared.gate.until();
                    return Part::Asks(Action::Wake(Wake::spread(until, self.attempts.window_end(cx).max(until))));
                }
                Window::TooLong => {
                    let mut error = cx.subject.error(Kind::Unavailable, Effect::None, TOO_LONG, Advice::Wait);
                    error.retry_at = Some(cx.shared.clock.unix().saturating_add(cx.shared.gate.until().saturating_sub(now)));
                    return Part::Done(Err(error));
                }
            },
            Input::Stored(_) | Input::Granted(_) => return Part::Asks(Action::Wake(Wake::at(now))),
        };
        let answered = match self.exchange.take_in(received, cx) {
            ExchangeResult::Success(answered) => answered,
            ExchangeResult::Late => {
                self.attempts.unsent();
                return self.begin_list(Wake::at(now));
            }
            ExchangeResult::Unfit(rule) => return Part::Done(Err(unfit(&rule, Effect::None, cx))),
            ExchangeResult::Failure(failing) => return self.failed(&failing, cx),
        };
        self.attempts.succeeded(cx);
        // A page that was read before is no progress, or a list whose later page always fails would be read without end.
        if self.pages > self.furthest {
            self.furthest = self.pages;
            self.attempts.begin_anew();
        } else {
            self.attempts.unsent();
        }
        let data = answered.raw.text();
        match &mut self.sought {
            LookedFor::Cheapest(search) => search.take_page(data),
            LookedFor::Product(product_no) => {
                if let Some(price) = price_of(data, product_no) {
                    return Part::Done(Ok(price));
                }
            }
        }
        self.not_on_page(answered.facts.next_cursor, cx)
    }

    /// Goes on to the next page, if there is one, since the product is not on this one, or all of them are wanted.
    fn not_on_page(&mut self, next: Option<String>, cx: &mut Cx<'_>) -> Part<Result<Price, Error>> {
        let repeats = next.is_some() && next == self.cursor;
        if next.is_some() && !repeats && self.pages < PAGES {
            self.cursor = next;
            return Part::Asks(Action::Wake(Wake::at(cx.now())));
        }
        let product_no = match (&mut self.sought, &next) {
            (LookedFor::Cheapest(search), None) => return Part::Done(search.chosen(cx).map(Price::Chosen)),
            (LookedFor::Cheapest(_), Some(_)) => {
                let why = if repeats { "repeats a page".to_owned() } else { format!("has more than {PAGES} pages") };
                let what = format!("was not sent, because the account's list of prices {why}, so the cheapest product is not known");
                return Part::Done(Err(cx.subject.error(Kind::Refused, Effect::None, what, Advice::ReadPrices)));
            }
            (LookedFor::Product(product_no), _) => product_no,
        };
        let why = match next {
            Some(_) if repeats => "was not found before the account's list of prices repeated a page".to_owned(),
            Some(_) => format!("was not found on the first {PAGES} pages of the account's list of prices"),
            None => "is not in the account's list of prices".to_owned(),
        };
        let what = format!("was not sent, because `{product_no}` {why}");
        Part::Done(Err(cx.subject.error(Kind::Refused, Effect::None, what, Advice::ReadPrices)))
    }

    fn failed(&mut self, failing: &FailedSend, cx: &mut Cx<'_>) -> Part<Result<Price, Error>> {
        let again = if failing.passing { Again::Same } else { Again::No };
        if let Some(delay) = self.attempts.next_delay(again, failing.asks_to_wait(), self.exchange.sent_at(), false, cx) {
            return self.begin_list(Wake::at(cx.now().saturating_add(delay)));
        }
        let kind = if failing.passing { Kind::Unavailable } else { Kind::Refused };
        let what = format!("was not sent, because the price could not be read: {}", failing.what(cx.service.api));
        let row = failing.code().filter(|_| !failing.passing).and_then(code);
        let mut error = cx.subject.error(kind, Effect::None, what, row.map_or(Advice::RetryLater, CodeRow::advice_of_read));
        self.exchange.describe(&mut error, failing, cx);
        Part::Done(Err(error))
    }

    /// Begins the list anew: a cursor may not outlive a failure.
    fn begin_list(&mut self, wake: Wake) -> Part<Result<Price, Error>> {
        (self.cursor, self.pages) = (None, 0);
        if let LookedFor::Cheapest(search) = &mut self.sought {
            search.begin();
        }
        Part::Asks(Action::Wake(wake))
    }
}

/// The price of a product on a page of the list, and its currency if that is not USD. A product that can't be read is skipped, and so is
/// one with a price below 0.
fn price_of(data: &str, product_no: &str) -> Option<Price> {
    let [listed] = pick(data, ["items"])?;
    let (price, currency) = items(listed?).ok()?.into_iter().find_map(|item| {
        let [known, price, currency] = pick(item, ["product_no", "price", "currency"])?;
        let price: Decimal = decimal_of(price?)?.0.parse().ok()?;
        (plain(known?) == product_no && price >= Decimal::from(0)).then_some((price, currency))
    })?;
    Some(currency.and_then(other_currency).map_or(Price::Usd(price), Price::Other))
}

/// A currency, from its JSON, that is not USD.
fn other_currency(json: &str) -> Option<String> {
    let name = plain(json);
    (!is_usd(&name)).then(|| name.chars().take(20).collect())
}

#[cfg(test)]
mod tests;
