//! Lists of what a store holds, read page by page: for people, to resume it all, or for what a doubt may not have become.

use arcstr::ArcStr;

use crate::client::deferred::Deferred;
use crate::client::doubts::settle::UNDER_WAY;
use crate::client::outbox::Pending;
use crate::client::requests::{Act, Listing, ListingPurpose, StoredRecord};
use crate::client::router::Router;
use crate::contract::Operation;
use crate::contract::agent::CreateSession;
use crate::engine::RecordId;
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{CommandId, Data, Listed, Name, RecordKind, Saved, SavedCall, StoreCall, User, Version, Whose};

impl Router {
    /// A page of what the store holds, behind that name.
    pub(crate) fn saved(&mut self, after: Option<Name>) -> CommandId {
        let command = self.command_for("saved");
        self.list(Listing { command, what: ListingPurpose::Page }, after, false);
        command
    }

    /// One name as people are shown it. A result that waits to be taken is nobody's business yet.
    pub(crate) fn shown(&mut self, listed: &Listed) -> Option<Saved> {
        let user = self.journal.user(&listed.name).cloned();
        if user == Some(User::Result) || listed.name.is_a_pool() {
            return None;
        }
        let record = listed.name.at(Version::of(&listed.data));
        let mut saved = match self.read_record(&listed.data) {
            StoredRecord::Readable(data)
                if data.renewal.is_some() || data.later.is_none() && data.done.as_ref().is_some_and(|done| done.facts.nothing) =>
            {
                return None;
            }
            StoredRecord::Readable(data) => of_data(&data, record, listed.whose),
            StoredRecord::Unreadable(bad, intent) => {
                Saved { intent, reason: Some(bad.as_str().to_owned()), ..empty(record, listed.whose, "unknown", RecordKind::Refused) }
            }
            StoredRecord::Empty => return None,
        };
        let is_at_work = matches!(user, Some(User::Job(_))) || listed.whose == Whose::Other && saved.holds == RecordKind::InDoubt;
        if is_at_work {
            (saved.holds, saved.in_doubt_since, saved.settle_from) = (RecordKind::UnderWay, None, None);
        }
        if let Some(User::Session(id)) = &user {
            saved.status = self.sessions.status(id).map(ArcStr::to_string).or(saved.status);
        }
        Some(saved)
    }
}

fn empty(record: RecordId, whose: Whose, operation: &str, holds: RecordKind) -> Saved {
    Saved {
        record,
        whose,
        operation: operation.to_owned(),
        intent: None,
        session_id: None,
        order_no: None,
        status: None,
        holds,
        reason: None,
        in_doubt_since: None,
        settle_from: None,
        settled: None,
        session_over: None,
    }
}

fn of_data(data: &Data, record: RecordId, whose: Whose) -> Saved {
    let intent = data.intent.clone();
    if let Some(session) = &data.session {
        let holds = if session.is_over() { RecordKind::Accepted } else { RecordKind::Session };
        let of = empty(record, whose, CreateSession::ENDPOINT.name, holds);
        let settled = session.unconfirmed.then_some(true);
        return Saved { intent, session_id: Some(session.id.clone()), status: session.status.clone(), settled, ..of };
    }
    if let Some(call) = data.refused() {
        let reason = Some("backend".to_owned());
        return Saved { intent, session_id: call.session_id.clone(), reason, ..empty(record, whose, &call.operation, RecordKind::Refused) };
    }
    if let Some(call) = &data.call {
        let holds = match call {
            SavedCall { order_no: Some(_), .. } => RecordKind::Order,
            call if call.can_resume() => RecordKind::InDoubt,
            _ => RecordKind::InDoubtForGood,
        };
        let in_doubt = call.order_no.is_none();
        let since = call.doubt_since.unwrap_or(data.at.unix);
        return Saved {
            intent,
            session_id: call.session_id.clone(),
            order_no: call.order_no.clone(),
            in_doubt_since: in_doubt.then_some(since),
            settle_from: in_doubt.then(|| data.at.unix.saturating_add(UNDER_WAY)),
            session_over: call.session_over.then_some(true),
            ..empty(record, whose, &call.operation, holds)
        };
    }
    let (operation, facts) = data.done.as_ref().map(|done| (done.operation.as_str(), done.facts.clone())).unwrap_or_default();
    Saved {
        intent,
        session_id: facts.session_id,
        order_no: facts.order_no,
        status: facts.status,
        settled: facts.settled.then_some(true),
        ..empty(record, whose, operation, RecordKind::Accepted)
    }
}

impl Router {
    /// Looks through what other records stand for, before something is done about one.
    pub(crate) fn scan(&mut self, command: CommandId, name: Name, act: Act) {
        self.list(Listing { command, what: ListingPurpose::Others(name, Box::new(act)) }, None, false);
    }

    pub(crate) fn list(&mut self, listing: Listing, after: Option<Name>, open: bool) {
        let command = listing.command;
        let number = self.listings.insert(listing);
        self.ask_list(number, command, after, open);
    }

    /// Asks for a page of a listing.
    pub(crate) fn ask_list(&mut self, number: u32, command: CommandId, after: Option<Name>, open: bool) {
        let call = StoreCall::List { space: self.account.space().clone(), after, open };
        self.push_store(Pending::List(number), Some(command), call);
    }

    /// Stops a command that reads a list, or resumes its entries. Its other commands end with their last known state, without a report.
    pub(crate) fn stop_listing(&mut self, command: CommandId) {
        let Some(number) = self.listings.iter().find(|(_, listing)| listing.command == command).map(|(number, _)| *number) else {
            return;
        };
        self.listings.remove(&number);
        for part in self.commands.parts_of(number) {
            let has_ended = self.commands.result(part).is_some();
            self.deferred.push(if has_ended { Deferred::Abandon(part) } else { Deferred::Cancel(part) });
        }
        let operation = self.commands.operation(command).unwrap_or("list");
        let error =
            Error::new(Kind::Cancelled, Effect::None, operation, "was cancelled; `saved` shows the operations under way", Advice::Nothing);
        self.deferred.push(Deferred::Fail(command, Box::new(error)));
    }
}
