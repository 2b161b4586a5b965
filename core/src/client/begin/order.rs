//! Static orders: placed once, then followed by their number.

use arcstr::ArcStr;

use crate::client::jobs::job::{Entry, headers};
use crate::client::router::Router;
use crate::client::types::{Outputs, ReadFailure};
use crate::contract::reseller::{CreateStaticOrder, ListStaticOrders};
use crate::contract::{Operation, StaticOrder};
use crate::engine::{Answered, Job, Order, Phase, Subject, bad_order_no};
use crate::options::{CallOptions, Use};
use crate::policy::{Error, Rule};
use crate::state::{CommandId, JobId};

/// Marks the ticket of [`Client::place_order`](crate::client::Client::place_order) and [`Client::wait_order`](crate::client::Client::wait_order).
#[derive(Debug, Clone, Copy)]
pub enum PlaceOrder {}

/// How a static order is, when waiting for it ended: usable, over, or (`Pending`, `Unknown`) not yet, at the deadline.
/// [`Client::wait_order`](crate::client::Client::wait_order) waits on.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderReply {
    /// Its number: the handle for everything that comes after.
    pub order_no: String,
    /// Where it is.
    pub phase: Phase,
    /// The order, as the list of static orders shows it.
    pub order: StaticOrder,
}

impl Outputs for PlaceOrder {
    type Output = OrderReply;

    fn read(answered: Answered) -> Result<Self::Output, ReadFailure> {
        match answered.raw.read::<StaticOrder>() {
            Ok(order) => Ok(OrderReply { order_no: order.order_no.clone(), phase: answered.phase.unwrap_or(Phase::Unknown), order }),
            Err(error) => Err(Box::new((answered, error))),
        }
    }
}

impl Router {
    pub(crate) fn watch_order(&mut self, order_no: &str, options: CallOptions) -> CommandId {
        let endpoint = ListStaticOrders::ENDPOINT;
        let bad_number = || bad_order_no(order_no).map(|rule| ("order_no", rule));
        let refusal = options.refusal().or_else(bad_number).or_else(|| options.without_use(Use::WaitOrder));
        if let Some((field, rule)) = refusal {
            return self.reject(Error::invalid(endpoint.name, field, rule), options.intent);
        }
        if let Err(error) = self.check_use(endpoint, &options) {
            return self.reject(error, options.intent);
        }
        let command = self.command(endpoint);
        self.begin_order_watch(command, order_no.to_owned(), false, &options);
        command
    }

    /// Queues a job that follows an order it knows; `placed` of one that an intent was accepted as.
    pub(crate) fn begin_order_watch(&mut self, command: CommandId, order_no: String, placed: bool, options: &CallOptions) {
        let operation = if placed { CreateStaticOrder::ENDPOINT.name } else { ListStaticOrders::ENDPOINT.name };
        let order_no_of = Some(order_no.as_str().into());
        let order = Order::new(order_no, placed, headers(options), self.policy(options));
        let subject =
            Subject { operation, intent: options.intent.as_deref().map(ArcStr::from), order_no: order_no_of, ..Subject::default() };
        let mut entry = Entry::new(Job::WaitOrder(Box::new(order)), subject, options);
        entry.record.recalls = Some(Phase::Unknown);
        self.begin(entry, command);
    }

    /// An order was placed: its record says so from here on.
    pub(crate) fn placed(&mut self, id: JobId, order_no: &str) {
        let clock = self.clock();
        self.jobs.placed(id, order_no, &clock);
        if self.holds(Rule::OrderIsSaved) {
            self.put_job(id, None);
        }
    }
}
