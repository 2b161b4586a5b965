//! Follows a static order: reads it from the list of static orders by its number until it is usable, over, or the deadline has come.

use super::answer::{Answered, Phase};
use super::attempts::Limit;
use super::call::{Call, CallOutcome};
use super::context::{Cx, Subject};
use super::event::EventKind;
use super::exchange::Exchange;
use super::gate::Wake;
use super::machine::{Action, Input, Note};
use super::poller::Poller;
use super::status::phase_of_order;
use crate::contract::reseller::ListStaticOrders;
use crate::contract::{Json, Operation, Shaped, StaticOrder, json_of};
use crate::json::pick;
use crate::policy::{Advice, Effect, Error, Kind, RetryPolicy, Rule};
use crate::time::Millis;
use crate::wire::{self, Built, Facts, build, id_of, items};

/// The most pages of 100 that are read for an order, and the most bytes of items.
const PAGES: u32 = 20;
const MAX_BYTES: usize = 4 << 20;

/// An order that is followed.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Order {
    pub(crate) order_no: String,
    /// True if a caller that waits for the order placed it, now or before.
    pub(crate) placed: bool,
    /// True if the record stays when no caller waits any more: the order has no intent to find it by, or its number may be wrong.
    pub(crate) outlives_wait: bool,
    /// True if a person named the order, and the service has not confirmed it yet.
    pub(crate) unconfirmed: bool,
    /// The last status that was read.
    pub(crate) status: Option<String>,
    /// The last order that was read.
    last: Option<Json>,
    call: Call,
    poller: Poller,
    pages: OrderPages,
}

/// The page that is read, and the items of those before it, with the digests by which those pages are recognized.
#[derive(Debug, Clone, Hash)]
struct OrderPages {
    page: u32,
    items: Vec<Json>,
    seen: Vec<String>,
}

impl OrderPages {
    const FIRST: OrderPages = OrderPages { page: 1, items: Vec::new(), seen: Vec::new() };
}

/// A page of the list of static orders that shows this one.
fn page_of(order_no: &str, page: u32) -> Option<Built> {
    let page = (page > 1).then(|| page.into());
    let list = ListStaticOrders { search: Some(order_no.to_owned()), page, page_size: Some(100), ..ListStaticOrders::default() };
    build(ListStaticOrders::ENDPOINT, &json_of(&list)).ok()
}

/// Returns the reason why a text can't be the number of an order.
pub(crate) fn bad_order_no(order_no: &str) -> Option<&'static str> {
    match order_no {
        "" => Some("must not be empty"),
        _ if page_of(order_no, 1).is_none() => Some("is too long"),
        _ => None,
    }
}

/// The items of a list of static orders that belong to one order. The contract does not document the fields of an item, so only the order's
/// number and its status are read.
fn found(data: &str, order_no: &str) -> Vec<Json> {
    let belongs = |item: &&str| {
        let spellings = pick(item, ["orderNo", "order_no"]).unwrap_or_default();
        spellings.into_iter().flatten().find_map(id_of).as_deref() == Some(order_no)
    };
    items(data).unwrap_or_default().into_iter().filter(belongs).map(Json::checked).collect()
}

/// The status of an order: the first status of its items that is not `active`, if they differ. It has none, as long as some items are
/// `active` and others have no status yet.
fn status_of(items: &[Json]) -> Option<String> {
    let status = |item: &Json| pick(item.text(), ["status"]).and_then(|[status]| wire::status_of(status?));
    let statuses: Vec<Option<String>> = items.iter().map(status).collect();
    let other = statuses.iter().flatten().find(|status| *status != "active");
    other.cloned().or_else(|| statuses.into_iter().collect::<Option<Vec<_>>>()?.pop())
}

impl Order {
    pub(crate) fn new(order_no: String, placed: bool, headers: Vec<(String, String)>, policy: RetryPolicy) -> Self {
        let built = page_of(&order_no, 1).unwrap_or_else(|| Built::at(ListStaticOrders::ENDPOINT.path));
        let mut call = Call::new(Exchange::new(ListStaticOrders::ENDPOINT, built, headers, policy.timeout_ms), policy);
        call.attempts.limit = Limit::Deadline;
        let pages = OrderPages::FIRST;
        let poller = Poller::default();
        Order { order_no, placed, outlives_wait: false, unconfirmed: false, status: None, last: None, call, poller, pages }
    }

    /// Takes the options of another caller that follows the order.
    pub(crate) fn take_options(&mut self, headers: Vec<(String, String)>, policy: RetryPolicy) {
        self.call.take_options(headers, policy);
    }

    /// Follows the order again.
    pub(crate) fn resume(&mut self, cx: &mut Cx<'_>) {
        self.call.begin_anew(cx);
        self.poller = Poller::default();
    }

    /// The error for a caller that cancels its wait.
    pub(crate) fn cancelled_error(&self, subject: &Subject) -> Error {
        let effect = if self.placed { Effect::Done } else { Effect::None };
        let what = format!("waiting for order {} was cancelled, and the order continues", self.order_no);
        subject.error_of_read(Kind::Cancelled, effect, what, Advice::WaitOrder)
    }

    /// Stops following the order, since no caller waits any more: the order goes on.
    pub(crate) fn stop(&self, cx: &Cx<'_>) -> Action {
        self.leave(self.cancelled_error(cx.subject))
    }

    fn leave(&self, error: Error) -> Action {
        if self.outlives_wait { Action::Rest(error) } else { Action::End(Err(error)) }
    }

    /// Advances the order with one input.
    pub(crate) fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        match self.call.read(input, cx) {
            CallOutcome::Pending(action) => action,
            CallOutcome::Cancelled => self.stop(cx),
            CallOutcome::Success(answered) => self.read(*answered, cx),
            CallOutcome::Failed(_, error) => self.not_read(error, cx),
        }
    }

    /// Takes the list of orders, and decides whether the wait is over.
    fn read(&mut self, answered: Answered, cx: &mut Cx<'_>) -> Action {
        // A service that ignores the page shows the same items again.
        let mark = answered.facts.page_items.clone();
        let repeated = mark.as_ref().is_some_and(|mark| self.pages.seen.contains(mark));
        if !repeated {
            self.pages.items.extend(found(answered.raw.text(), &self.order_no));
            self.pages.seen.extend(mark);
        }
        let more = answered.facts.short_page == Some(false);
        let full = self.pages.items.iter().map(|item| item.text().len()).sum::<usize>() > MAX_BYTES;
        if more && !repeated && !full && self.pages.page < PAGES && cx.wanted {
            self.pages.page += 1;
            self.turn_to_page(cx);
            return Action::Wake(Wake::at(cx.now()));
        }
        let items = std::mem::take(&mut self.pages.items);
        if self.unconfirmed && !items.is_empty() {
            (self.unconfirmed, self.outlives_wait) = (false, self.outlives_wait && cx.subject.intent.is_none());
            cx.notes.push(Note::OrderShown);
        }
        let status = status_of(&items);
        let seen = status.as_deref().or(self.status.as_deref());
        let known = StaticOrder { order_no: self.order_no.clone(), status: seen.map(Into::into), items, truncated: more };
        let phase = phase_of_order(status.as_deref(), &cx.wants.session_options.ends);
        self.last = Some(Json::checked(json_of(&known)));
        if let Some(status) = status.filter(|status| self.status.as_ref() != Some(status)) {
            self.status = Some(status.clone());
            cx.note(EventKind::OrderStatus { order_no: self.order_no.clone(), status, phase });
        }
        if cx.is_past_deadline() || matches!(phase, Phase::Ready | Phase::Ended) {
            return self.end(answered.http_status, cx);
        }
        self.read_again(0, cx)
    }

    /// Takes a final failure of a read, which never loses the order: waiting goes on to the deadline, unless the read is refused.
    fn not_read(&mut self, mut error: Error, cx: &mut Cx<'_>) -> Action {
        if !cx.shared.rules.holds(Rule::OrderOutlivesReads) {
            return Action::Erase(error);
        }
        if !error.may_pass() {
            if self.placed {
                error.effect = Effect::Done;
                error.what = format!("was placed, but could not be read: {}", error.what);
                error.advice = if error.advice == Advice::Reauthenticate { error.advice } else { Advice::WaitOrder };
            }
            return self.leave(error);
        }
        let asked = error.retry_at.map_or(0, |at| at.saturating_sub(cx.shared.clock.unix())).max(0);
        if cx.is_past_deadline() || cx.now().saturating_add(asked) > cx.deadline() {
            return self.end(None, cx);
        }
        self.read_again(asked, cx)
    }

    /// Plans the next read, the last one at the deadline. Each read is a call of its own, with all of its attempts.
    pub(crate) fn read_again(&mut self, asked_to_wait: Millis, cx: &mut Cx<'_>) -> Action {
        let wake = self.poller.next_call(asked_to_wait, cx);
        if !cx.wanted {
            return self.stop(cx);
        }
        self.pages = OrderPages::FIRST;
        self.turn_to_page(cx);
        Action::Wake(wake)
    }

    fn turn_to_page(&mut self, cx: &mut Cx<'_>) {
        if let Some(built) = page_of(&self.order_no, self.pages.page) {
            self.call.exchange.built = built;
        }
        self.call.begin_anew(cx);
    }

    /// Ends the wait with the last known state of the order.
    fn end(&mut self, http_status: Option<u16>, cx: &Cx<'_>) -> Action {
        if self.unconfirmed && self.outlives_wait {
            let what = "was settled as an order that the service does not show; settle it as another order, or as not happened";
            return Action::Rest(cx.subject.error(Kind::InDoubt, Effect::Unknown, what, Advice::CheckAccount));
        }
        let phase = Some(phase_of_order(self.status.as_deref(), &cx.wants.session_options.ends));
        let (order_no, status) = (self.order_no.clone(), self.status.as_deref().map(Into::into));
        let known = StaticOrder { order_no, status, items: Vec::new(), truncated: false };
        let of_known = || Json::checked(json_of(&known));
        let facts = Facts { order_no: Some(self.order_no.clone()), status: self.status.clone(), ..Facts::default() };
        let raw = self.last.clone().unwrap_or_else(of_known);
        Action::End(Ok(Box::new(Answered {
            raw,
            shape: &StaticOrder::SHAPE,
            phase,
            http_status,
            attempts: cx.subject.attempts,
            ..Answered::of(facts)
        })))
    }
}

#[cfg(test)]
mod tests;
