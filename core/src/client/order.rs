//! The life of a static order: placed once, then read from the list of static orders by its number until it is usable.

use super::Client;
use super::job::{Follow, Job, On, State};
use super::listed::{found, status_of};
use super::options::CallOptions;
use super::record::SavedCall;
use super::store::JobId;
use super::types::{Answered, CommandId, Happening, Millis, Misfit, Outputs, Phase, Ticket};
use crate::contract::reseller::{CreateStaticOrder, ListStaticOrders};
use crate::contract::{Json, Operation, StaticOrder};
use crate::policy::{Advice, Effect, Error, Kind, Report, Rule};
use crate::wire::{Built, Facts, build};

/// No order is read further than this many pages of 100, or this many bytes of items.
const PAGES: u32 = 20;
const MAX_BYTES: usize = 4 << 20;

/// An order that a job watches.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(super) struct OrderWatch {
    pub(super) order_no: String,
    /// The status that was read last.
    pub(super) status: Option<String>,
    /// What was read last.
    pub(super) shown: Option<Json>,
    /// The page that is read, and the items of those before it.
    page: u32,
    items: Vec<Json>,
    /// The call that placed it, for its record; none of an order that was known by its number.
    pub(super) call: Option<SavedCall>,
    /// Whether it was placed by whoever waits for it, now or before.
    pub(super) placed: bool,
}

impl OrderWatch {
    fn new(order_no: String, status: Option<String>, call: Option<SavedCall>) -> Self {
        OrderWatch { order_no, status, shown: None, page: 1, items: Vec::new(), placed: call.is_some(), call }
    }

    /// Whether a person named it, and the service has not shown it yet.
    pub(super) fn is_only_named(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.unanswered)
    }
}

/// Marks the ticket of [`Client::place_order`] and [`Client::wait_order`].
#[derive(Debug, Clone, Copy)]
pub enum PlaceOrder {}

/// How a static order is, when waiting for it ended: usable, over, or (`Pending`, `Unknown`) not yet, at the deadline.
/// [`Client::wait_order`] waits on.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderReply {
    /// Its number: the handle for everything that comes after.
    pub order_no: String,
    /// Where it is.
    pub phase: Phase,
    /// What the list of static orders shows of it.
    pub order: StaticOrder,
}

impl Outputs for PlaceOrder {
    type Output = OrderReply;

    fn read(answered: Answered) -> Result<Self::Output, Misfit> {
        match answered.raw.read::<StaticOrder>() {
            Ok(order) => Ok(OrderReply { order_no: order.order_no.clone(), phase: answered.phase.unwrap_or(Phase::Unknown), order }),
            Err(error) => Err(Box::new((answered, error))),
        }
    }
}

/// What a status means for waiting.
fn phase_of(status: Option<&str>, ends: &[String]) -> Phase {
    match status {
        Some(status) if ends.iter().any(|end| end == status) => Phase::Ended,
        Some("processing") => Phase::Pending,
        Some("active") => Phase::Ready,
        // NOT DOCUMENTED: any other status. Waiting goes on, and the caller is told.
        _ => Phase::Unknown,
    }
}

/// A page of the list of static orders that shows this one.
fn page_of(order_no: &str, page: u32) -> Option<Built> {
    let page = (page > 1).then(|| page.into());
    let list = ListStaticOrders { search: Some(order_no.to_owned()), page, page_size: Some(100), ..ListStaticOrders::default() };
    build(ListStaticOrders::ENDPOINT, &serde_json::to_string(&list).ok()?).ok()
}

/// Why a text can't be the number of an order.
pub(super) fn bad_order_no(order_no: &str) -> Option<&'static str> {
    match order_no {
        "" => Some("must not be empty"),
        _ if page_of(order_no, 1).is_none() => Some("is too long"),
        _ => None,
    }
}

impl Job {
    /// What was to be placed is an order: all that is left is to watch it.
    pub(super) fn become_order(&mut self, order_no: String, status: Option<String>, elapsed: Millis) {
        (self.spent, self.doubt_since) = (false, None);
        let call = self.saved(elapsed).map(|call| SavedCall { order_no: Some(order_no.clone()), ..call });
        self.endpoint = ListStaticOrders::ENDPOINT;
        self.built = page_of(&order_no, 1);
        self.order = Some(OrderWatch::new(order_no, status, call));
    }
}

impl Client {
    /// Places a static order and waits until its proxies can be used, it has ended, or the deadline has come. It is placed
    /// once: with its effect unknown it stays in doubt, and `reconcile` shows what it may have become.
    pub fn place_order(&mut self, request: CreateStaticOrder, options: CallOptions) -> Ticket<PlaceOrder> {
        Ticket::of(match serde_json::to_string(&request) {
            Ok(params) => self.start_json("place_order", &params, options),
            Err(error) => self.reject(Error::invalid("create_static_order", "parameters", &error.to_string()), None),
        })
    }

    /// Waits for a static order that is known by its number, as `place_order` does once it was placed.
    pub fn wait_order(&mut self, order_no: &str, options: CallOptions) -> Ticket<PlaceOrder> {
        Ticket::of(self.watch_order(order_no, options))
    }

    pub(super) fn watch_order(&mut self, order_no: &str, options: CallOptions) -> CommandId {
        let endpoint = ListStaticOrders::ENDPOINT;
        let refusal = options.refusal().or(bad_order_no(order_no).map(|rule| ("order_no", rule)));
        if let Some((field, rule)) = refusal {
            return self.reject(Error::invalid(endpoint.name, field, rule), options.intent);
        }
        if options.until.is_some() {
            return self.reject(Error::invalid(endpoint.name, "until", "belongs to a read that is repeated"), options.intent);
        }
        if let Err(error) = self.check_use(endpoint, &options) {
            return self.reject(error, options.intent);
        }
        let command = self.command(endpoint);
        self.begin_order_watch(command, order_no.to_owned(), false, &options);
        command
    }

    /// Queues a job that reads an order it knows; `placed` of one that an intent was accepted as.
    pub(super) fn begin_order_watch(&mut self, command: CommandId, order_no: String, placed: bool, options: &CallOptions) {
        let id = self.job_id();
        let mut job = Job::new(id, ListStaticOrders::ENDPOINT, page_of(&order_no, 1), options, options.policy(&self.retry));
        job.order = Some(OrderWatch { placed, ..OrderWatch::new(order_no, None, None) });
        job.recalls = true;
        self.begin(job, command);
    }

    /// A restored order: what is left is to watch it.
    pub(super) fn hold_order(&mut self, job: &mut Job, call: SavedCall) {
        let Some(order_no) = call.order_no.clone() else { return };
        job.endpoint = ListStaticOrders::ENDPOINT;
        job.built = page_of(&order_no, 1);
        job.order = Some(OrderWatch::new(order_no, None, Some(call)));
    }

    /// An order was accepted: from here on it is watched, and its record says so.
    pub(super) fn ordered(&mut self, id: JobId, answered: Answered) {
        let elapsed = self.clock.elapsed();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(order_no) = answered.facts.order_no.clone().filter(|order_no| !order_no.is_empty()) else {
            let what = "was accepted, but the answer names no order";
            let raw = Some(answered.raw);
            let error = Report { raw, ..job.error(Kind::Decode, Effect::Done, what, Advice::ReadRaw).into_report() };
            return self.finish(id, Err(Error::from(error)));
        };
        job.become_order(order_no.clone(), answered.facts.status, elapsed);
        self.notify(id, Happening::Ordered { order_no });
        if self.rules.holds(Rule::OrderIsSaved) {
            self.save_job(id, None);
        }
        self.read_order_again(id);
    }

    /// The list of orders was read: is that the end of waiting?
    pub(super) fn order_read(&mut self, id: JobId, answered: Answered) {
        let now = self.clock.monotonic();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let over = job.is_past_deadline(now);
        let ends = job.watch.ends.clone();
        let Some(order) = &mut job.order else { return };
        let items = found(answered.raw.text(), &order.order_no);
        // A service that takes no notice of the page shows the same items again.
        let repeated = !items.is_empty() && order.items.ends_with(&items);
        if !repeated {
            order.items.extend(items);
        }
        let more = answered.facts.short_page == Some(false);
        let full = order.items.iter().map(|item| item.text().len()).sum::<usize>() > MAX_BYTES;
        if more && !repeated && !full && order.page < PAGES && !job.cancelled {
            order.page += 1;
            job.built = page_of(&order.order_no, order.page);
            job.read_anew();
            return self.set_timer(id, now);
        }
        let items = std::mem::take(&mut order.items);
        if let Some(call) = order.call.as_mut().filter(|_| !items.is_empty()) {
            call.unanswered = false;
        }
        let status = status_of(&items);
        let seen = status.as_deref().or(order.status.as_deref());
        let known = StaticOrder { order_no: order.order_no.clone(), status: seen.map(Into::into), items, truncated: more };
        let phase = phase_of(status.as_deref(), &ends);
        order.shown = serde_json::to_string(&known).ok().and_then(|text| text.parse().ok());
        let order_no = order.order_no.clone();
        if let Some(status) = status.filter(|status| order.status.as_ref() != Some(status)) {
            order.status = Some(status.clone());
            self.notify(id, Happening::OrderStatus { order_no, status, phase });
        }
        if over || matches!(phase, Phase::Ready | Phase::Ended) {
            return self.end_order_watch(id, answered.http_status);
        }
        self.read_order_again(id);
    }

    /// A read of an order failed for good. It never loses the order: waiting goes on to the deadline, unless the read is
    /// refused.
    pub(super) fn order_not_read(&mut self, id: JobId, error: Error) {
        let (now, unix) = (self.clock.monotonic(), self.clock.unix());
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.cancelled {
            return self.stop_cancelled(id);
        }
        if !error.may_pass() {
            let placed = job.order.as_ref().is_some_and(|order| order.placed);
            let what = format!("was placed, but could not be read: {}", error.what);
            let advice = if error.advice == Advice::Reauthenticate { error.advice } else { Advice::WaitOrder };
            let error = match placed {
                true => Error::from(Report { effect: Effect::Done, what, advice, ..error.into_report() }),
                false => error,
            };
            return if job.outlives_wait() { self.set_aside(id, error) } else { self.finish(id, Err(error)) };
        }
        let deadline = job.deadline(now);
        let asked = error.retry_at.map_or(0, |at| at.saturating_sub(unix)).max(0);
        if job.is_past_deadline(now) || now.saturating_add(asked) > deadline {
            return self.end_order_watch(id, None);
        }
        job.watch.not_before = now.saturating_add(asked);
        self.read_order_again(id);
    }

    /// Plans the next read, the last one at the deadline. Each is a call of its own, with all of its attempts.
    fn read_order_again(&mut self, id: JobId) {
        let now = self.clock.monotonic();
        let wait = self.interval(id);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.cancelled {
            return self.stop_cancelled(id);
        }
        if let Some(order) = &mut job.order {
            (order.page, order.items) = (1, Vec::new());
            job.built = page_of(&order.order_no, 1);
        }
        job.read_anew();
        let deadline = job.deadline(now).max(now);
        let at = now.saturating_add(wait).max(job.watch.not_before).min(deadline);
        self.set_timer(id, at);
    }

    /// The caller gets what is known of the order.
    fn end_order_watch(&mut self, id: JobId, http_status: Option<u16>) {
        let Some(job) = self.jobs.get(&id) else { return };
        let Some(order) = job.order.clone() else { return };
        if order.is_only_named() && job.record.is_some() {
            let what = "was settled as an order that the service does not show; settle it as another, or as not happened";
            let error = job.error(Kind::InDoubt, Effect::Unknown, what, Advice::CheckAccount);
            return self.set_aside(id, error);
        }
        let phase = Some(phase_of(order.status.as_deref(), &job.watch.ends));
        let (order_no, status) = (order.order_no.clone(), order.status.as_deref().map(Into::into));
        let known = StaticOrder { order_no, status, items: Vec::new(), truncated: false };
        let of_known = || serde_json::to_string(&known).ok()?.parse().ok();
        let facts = Facts { order_no: Some(order.order_no), status: order.status, ..Facts::default() };
        let (raw, attempts) = (order.shown.or_else(of_known).unwrap_or_default(), job.tally.attempts);
        self.finish(id, Ok(Answered { raw, phase, http_status, attempts, ..Answered::of(facts) }));
    }
}

impl Job {
    /// Before a further read, which is a call of its own.
    pub(super) fn read_anew(&mut self) {
        self.tally = Default::default();
        self.last = None;
        self.cause = None;
        self.renewed = false;
        if self.state != State::Waiting {
            self.go(On::Again);
        }
    }

    /// Whether its record stays when nobody waits for its order any more: it has no intent to ask for it by, or the number may
    /// be wrong.
    pub(super) fn outlives_wait(&self) -> bool {
        self.record.is_some() && (self.intent.is_none() || self.order.as_ref().is_some_and(OrderWatch::is_only_named))
    }

    /// The operation that it stands for: a placed order is one for as long as it is watched.
    pub(super) fn operation(&self) -> &'static str {
        match &self.order {
            Some(OrderWatch { placed: true, .. }) => CreateStaticOrder::ENDPOINT.name,
            _ => self.endpoint.name,
        }
    }

    /// Whether it placed an order, or is to, and then waits for it.
    pub(super) fn places_order(&self) -> bool {
        self.endpoint.name == CreateStaticOrder::ENDPOINT.name && self.watch.follow == Follow::UntilReady
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_statuses_of_the_contract_mean_something() {
        let phase = |status| phase_of(status, &["failed".to_owned()]);
        assert_eq!([phase(Some("processing")), phase(Some("active"))], [Phase::Pending, Phase::Ready]);
        assert_eq!([phase(Some("failed")), phase(Some("odd")), phase(None)], [Phase::Ended, Phase::Unknown, Phase::Unknown]);
    }
}
