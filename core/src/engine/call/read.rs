//! A call that only reads: nothing is put in the store for it, and whatever comes of it can be asked for again.

use super::{Call, Called, Next};
use crate::contract::Operation;
use crate::contract::agent::GetSession;
use crate::engine::answer::Answered;
use crate::engine::gate::Wake;
use crate::engine::machine::{Action, Cx, Input, Note};
use crate::engine::service::Received;
use crate::time::Millis;

impl Call {
    /// Of a read: what an answer says of a session.
    pub(crate) fn learn(&self, answered: &Answered, cx: &mut Cx<'_>) {
        if self.exchange.endpoint.name == GetSession::ENDPOINT.name {
            cx.notes.push(Note::Learnt(answered.facts.clone()));
        }
    }

    /// Of a read: what came of a send.
    pub(crate) fn handle(&mut self, received: Received<'_>, cx: &mut Cx<'_>) -> Called {
        let failing = match self.hear(received, cx) {
            Ok(called) => return called,
            Err(failing) => failing,
        };
        let (judgement, error) = self.judge(&failing, cx);
        match self.go_on(&failing, judgement, error, cx) {
            Next::Is(called) => called,
            Next::Repeats(again) => Called::Waits(self.repeat(again, cx)),
        }
    }

    /// Of a read: its time has come.
    pub(crate) fn due(&mut self, due: Millis, cx: &mut Cx<'_>) -> Called {
        if let Some(hindrance) = self.hindrance(due, cx) {
            return hindrance;
        }
        Called::Waits(match self.need(cx) {
            Some(need) => Action::Need(need),
            None => self.send(Millis::MAX, cx),
        })
    }

    /// Of a read: whatever it is told.
    pub(crate) fn read(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Called {
        match input {
            Input::Due(_) | Input::Granted(_) if !cx.wanted => Called::Unwanted,
            Input::Due(due) => self.due(due, cx),
            Input::Granted(Ok(_)) | Input::Stored(_) => Called::Waits(Action::Wake(Wake::at(cx.now()))),
            Input::Granted(Err(error)) => self.not_logged_in(&error, cx),
            Input::Response(received) => self.handle(received, cx),
        }
    }
}
