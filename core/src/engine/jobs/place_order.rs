//! `place_order`: places a static order once, and follows it until its proxies can be used.

use crate::engine::answer::Answered;
use crate::engine::context::Cx;
use crate::engine::event::EventKind;
use crate::engine::machine::{Action, Input, Note, Part};
use crate::engine::order::Order;
use crate::engine::write::{Write, WriteOutcome};
use crate::policy::{Advice, Effect, Kind};

/// A static order, and its follow-up.
#[derive(Debug, Clone, Hash)]
pub(crate) struct OrderPlacement {
    pub(crate) write: Write,
    pub(crate) order: Option<Order>,
}

impl OrderPlacement {
    pub(crate) fn new(write: Write) -> Self {
        OrderPlacement { write, order: None }
    }

    /// Advances the order with one input.
    pub(crate) fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        if let Some(order) = &mut self.order {
            return order.handle(input, cx);
        }
        match self.write.handle(input, cx) {
            Part::Asks(action) => action,
            Part::Done(WriteOutcome::Accepted(answered)) => self.placed(*answered, cx),
            Part::Done(WriteOutcome::NotThere(error)) => Action::End(Err(error)),
        }
    }

    /// Turns to the order after it was accepted: from here on it is followed, and its record says so.
    fn placed(&mut self, answered: Answered, cx: &mut Cx<'_>) -> Action {
        let Some(order_no) = answered.facts.order_no.clone().filter(|order_no| !order_no.is_empty()) else {
            let what = "was accepted, but the answer has no order number";
            let mut error = cx.subject.error(Kind::Decode, Effect::Done, what, Advice::ReadRaw);
            error.raw = Some(answered.raw);
            return Action::End(Err(error));
        };
        cx.note(EventKind::Ordered { order_no: order_no.clone() });
        let order = self.become_order(order_no, answered.facts.status, cx.subject.intent.is_none());
        cx.subject.order_no = Some(order.order_no.as_str().into());
        cx.notes.push(Note::Placed(order.order_no.clone()));
        order.read_again(0, cx)
    }

    /// Turns to an order that is already known: only following it is left.
    pub(crate) fn become_order(&mut self, order_no: String, status: Option<String>, outlives_wait: bool) -> &mut Order {
        self.write.key.settled = false;
        let (exchange, policy) = (&self.write.call.exchange, self.write.call.attempts.policy);
        let mut order = Order::new(order_no, true, exchange.headers.clone(), policy);
        (order.status, order.outlives_wait) = (status, outlives_wait);
        self.order.insert(order)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::jobs::{Job, Then};
    use crate::engine::testing::*;

    const ORDER: &str = r#"{"poolId":"7","userId":1,"unitPrice":0,"totalAmount":0,"ipCount":1,"cycleTimes":1,"duration":1,"unit":"month"}"#;
    const LIST: &str = "send GET /open/app/static/order/list/v2?pageSize=100&search=o-1";

    fn place(given: &mut Given) -> Job {
        Job::write_then(given.write("create_static_order", ORDER), Then::Follow)
    }

    #[test]
    fn an_order_is_placed_and_followed_until_it_can_be_used() {
        let mut given = Given::reseller();
        let mut job = place(&mut given);
        assert_eq!(given.tell(&mut job, [due(), stored(), success(r#"{"orderNo":"o-1","status":"processing"}"#)])[2], "wake");
        assert_eq!(given.notes(), ["event charged", "event ordered", "placed o-1"]);
        let active = success(r#"{"items":[{"orderNo":"o-1","status":"active"}]}"#);
        assert_eq!(given.tell(&mut job, [due(), active]), [LIST, "end: done Ready"]);
        assert_eq!(given.subject.order_no.as_deref(), Some("o-1"));
    }

    #[test]
    fn an_order_whose_answer_names_no_number_is_done_and_says_so() {
        for data in ["{}", r#"{"orderNo":""}"#] {
            let mut given = Given::reseller();
            let mut job = place(&mut given);
            assert_eq!(given.tell(&mut job, [due(), stored(), success(data)])[2], "end: Decode Done ReadRaw", "{data}");
        }
    }

    #[test]
    fn an_order_without_an_intent_can_be_waited_for_again_after_it_was_given_up() {
        for (intent, ends) in [(None, "rest: Cancelled Done WaitOrder"), (Some("job-17"), "end: Cancelled Done WaitOrder")] {
            let mut given = Given::reseller();
            let mut job = place(&mut given);
            given.subject.intent = intent.map(arcstr::ArcStr::from);
            given.tell(&mut job, [due(), stored(), success(r#"{"orderNo":"o-1"}"#)]);
            given.wanted = false;
            assert_eq!(given.tell(&mut job, [due()]), [ends]);
            given.wanted = true;
            let action = job.resume(&mut given.cx());
            assert_eq!(given.say(action), "wake");
            assert_eq!(given.tell(&mut job, [due()]), [LIST]);
        }
    }
}
