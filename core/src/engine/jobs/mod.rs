//! The scripts: the parts of each kind of job, one after the other.

mod change;
pub(crate) mod open_session;
mod place_order;
mod terminate;
#[cfg(test)]
mod tests;

use self::change::Change;
use self::open_session::SessionPurchase;
use self::place_order::OrderPlacement;
use self::terminate::Terminate;
use crate::contract::agent::{CreateSession, RenewSession, RotateSession, TerminateSession};
use crate::contract::reseller::CreateStaticOrder;
use crate::contract::{Decimal, Operation};
use crate::engine::call::{Call, CallOutcome};
use crate::engine::context::{Cx, Subject};
use crate::engine::exchange::Exchange;
use crate::engine::gate::Wake;
use crate::engine::lookup::Lookup;
use crate::engine::machine::{Action, Input, Part};
use crate::engine::order::Order;
use crate::engine::session::Follow;
use crate::engine::until::{Until, UntilRead, stop};
use crate::engine::write::{Write, WriteOutcome};
use crate::policy::{Advice, Effect, Error, Kind, RetryPolicy};

/// The continuation after a write was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Then {
    /// None: the answer is the end.
    End,
    /// The purchase or the order is followed until it can be used.
    Follow,
}

/// A place among the sends of a client that may be out at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The place of a read.
    Read,
    /// The place of a write, from before it is counted and put until it was answered.
    Write,
}

/// A job: one call, one purchase, one change of a session, from its start to its end.
#[derive(Debug, Clone, Hash)]
pub(crate) enum Job {
    Read(Box<Call>),
    Until(Box<UntilRead>),
    Lookup(Box<Lookup>),
    Write(Box<Write>),
    OpenSession(SessionPurchase),
    Change(Box<Change>),
    Terminate(Box<Terminate>),
    PlaceOrder(Box<OrderPlacement>),
    WaitSession(Box<Follow>),
    WaitOrder(Box<Order>),
}

impl Job {
    /// A job that reads, once or until a condition holds.
    pub(crate) fn read(exchange: Exchange, policy: RetryPolicy, until: Option<Until>) -> Job {
        let call = Call::new(exchange, policy);
        match until {
            Some(until) => Job::Until(Box::new(UntilRead::new(until, call))),
            None => Job::Read(Box::new(call)),
        }
    }

    /// The job of a write.
    pub(crate) fn write_then(write: Write, then: Then) -> Job {
        match (write.call.exchange.endpoint.name, then) {
            (name, Then::Follow) if name == CreateSession::ENDPOINT.name => Job::OpenSession(SessionPurchase::Buys(Box::new(write))),
            (name, Then::Follow) if name == CreateStaticOrder::ENDPOINT.name => Job::PlaceOrder(Box::new(OrderPlacement::new(write))),
            (name, _) if name == RotateSession::ENDPOINT.name || name == RenewSession::ENDPOINT.name => {
                Job::Change(Box::new(Change::new(write)))
            }
            (name, _) if name == TerminateSession::ENDPOINT.name => Job::Terminate(Box::new(Terminate::new(write))),
            _ => Job::Write(Box::new(write)),
        }
    }

    /// Advances the job with one input and returns what it waits for next.
    pub(crate) fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        match self {
            Job::Read(call) => read(call, input, cx),
            Job::Until(until) => until.handle(input, cx),
            Job::Lookup(lookup) => lookup.handle(input, cx),
            Job::Write(write) => match write.handle(input, cx) {
                Part::Asks(action) => action,
                Part::Done(WriteOutcome::Accepted(answered)) => Action::End(Ok(answered)),
                Part::Done(WriteOutcome::NotThere(error)) => Action::End(Err(error)),
            },
            Job::OpenSession(job) => job.handle(input, cx),
            Job::Change(job) => job.handle(input, cx),
            Job::Terminate(job) => job.handle(input, cx),
            Job::PlaceOrder(job) => job.handle(input, cx),
            Job::WaitSession(follow) => follow.handle(input, cx),
            Job::WaitOrder(order) => order.handle(input, cx),
        }
    }

    /// The write that the job began with, unless it was accepted and is not needed any more.
    pub(crate) fn write(&self) -> Option<&Write> {
        match self {
            Job::Write(write) => Some(write),
            Job::OpenSession(SessionPurchase::Buys(write)) => Some(write),
            Job::Change(job) => Some(&job.write),
            Job::Terminate(job) => Some(&job.write),
            Job::PlaceOrder(job) => Some(&job.write),
            Job::OpenSession(SessionPurchase::Follows(_)) | Job::Read(_) | Job::Until(_) => None,
            Job::Lookup(_) | Job::WaitSession(_) | Job::WaitOrder(_) => None,
        }
    }

    pub(crate) fn write_mut(&mut self) -> Option<&mut Write> {
        match self {
            Job::Write(write) => Some(write),
            Job::OpenSession(SessionPurchase::Buys(write)) => Some(write),
            Job::Change(job) => Some(&mut job.write),
            Job::Terminate(job) => Some(&mut job.write),
            Job::PlaceOrder(job) => Some(&mut job.write),
            Job::OpenSession(SessionPurchase::Follows(_)) | Job::Read(_) | Job::Until(_) => None,
            Job::Lookup(_) | Job::WaitSession(_) | Job::WaitOrder(_) => None,
        }
    }

    /// Takes the options of another caller that goes on with the job.
    pub(crate) fn take_options(
        &mut self,
        headers: Vec<(String, String)>,
        policy: RetryPolicy,
        limit: Option<Decimal>,
        said: Option<Decimal>,
    ) {
        match self {
            Job::OpenSession(SessionPurchase::Follows(follow)) => follow.take_options(headers.clone(), policy.timeout_ms),
            Job::PlaceOrder(job) => job.order.iter_mut().for_each(|order| order.take_options(headers.clone(), policy)),
            Job::Change(job) => job.confirm.iter_mut().for_each(|confirm| confirm.take_options(headers.clone(), policy)),
            Job::Terminate(job) => job.confirm.iter_mut().for_each(|confirm| confirm.take_options(headers.clone(), policy)),
            _ => {}
        }
        if let Some(write) = self.write_mut() {
            write.take_options(headers, policy, limit, said);
        }
    }

    /// Takes the price limit of another caller that joins the job.
    pub(crate) fn lower_limit(&mut self, limit: Option<Decimal>) {
        self.write_mut().into_iter().for_each(|write| write.lower_limit(limit));
    }

    /// The order that the job follows.
    pub(crate) fn order(&self) -> Option<&Order> {
        match self {
            Job::PlaceOrder(job) => job.order.as_ref(),
            Job::WaitOrder(order) => Some(order),
            _ => None,
        }
    }

    /// Returns true if the job's purchase or order is followed until it can be used.
    pub(crate) fn follows(&self) -> bool {
        matches!(self, Job::OpenSession(_) | Job::PlaceOrder(_) | Job::WaitSession(_))
    }

    /// Returns true if the job gives its caller a session to use.
    pub(crate) fn is_of_session(&self) -> bool {
        matches!(self, Job::OpenSession(_) | Job::WaitSession(_))
    }

    /// Returns true if the job ends a session.
    pub(crate) fn is_termination(&self) -> bool {
        matches!(self, Job::Terminate(_))
    }

    /// Returns true if the job's write was accepted, so that only reads are left.
    pub(crate) fn was_accepted(&self) -> bool {
        match self {
            Job::OpenSession(job) => job.is_following(),
            Job::Change(job) => job.is_reading(),
            Job::PlaceOrder(job) => job.order.is_some(),
            _ => false,
        }
    }

    /// The place that the next send needs. A termination needs none.
    pub(crate) fn place(&self) -> Option<Place> {
        match self {
            Job::Terminate(_) => None,
            _ if self.write().is_some() && !self.was_accepted() => Some(Place::Write),
            _ => Some(Place::Read),
        }
    }

    /// Returns true if the next send may have been sent before.
    pub(crate) fn may_have_been_sent(&self) -> bool {
        self.write().is_some_and(|write| write.call.is_open())
    }

    /// Goes on after a doubt, or for a caller that waits for the order again.
    pub(crate) fn resume(&mut self, cx: &mut Cx<'_>) -> Action {
        match self {
            Job::Terminate(job) => return job.resume(cx),
            Job::PlaceOrder(job) => {
                if let Some(order) = &mut job.order {
                    order.resume(cx);
                    return Action::Wake(Wake::at(cx.now()));
                }
            }
            _ => {}
        }
        self.write_mut().map_or(Action::Wake(Wake::at(cx.now())), |write| write.resume(cx))
    }

    /// The error for a command that no longer waits for this job.
    pub(crate) fn cancelled_error(&self, subject: &Subject) -> Error {
        if let Some(order) = self.order() {
            return order.cancelled_error(subject);
        }
        let effect = match self {
            Job::OpenSession(job) if job.is_following() => Effect::Done,
            Job::Change(job) if job.is_reading() => Effect::Done,
            Job::WaitSession(follow) => follow.effect(),
            _ => {
                return subject.error(
                    Kind::Cancelled,
                    Effect::Unknown,
                    "was cancelled by one of its callers, while others still wait for it",
                    Advice::Resume,
                );
            }
        };
        let what = "waiting for the session was cancelled, and the session continues";
        subject.error_of_read(Kind::Cancelled, effect, what, Advice::ReadSession)
    }
}

/// A plain read.
fn read(call: &mut Call, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
    match call.read(input, cx) {
        CallOutcome::Pending(action) => action,
        CallOutcome::Cancelled => stop(cx),
        CallOutcome::Failed(_, error) => Action::End(Err(error)),
        CallOutcome::Success(answered) => {
            call.learn(&answered, cx);
            Action::End(Ok(answered))
        }
    }
}
