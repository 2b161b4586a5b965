//! Lists of what a store holds, read page by page: for people, to resume it all, or for what a doubt may not have become.

use super::became::Made;
use super::deferred::Deferred;
use super::outbox::Pending;
use super::router::{Asker, Router};
use super::waiting::{Act, Found, Listing, Purpose, Reading, Visit};
use crate::contract::agent::CreateSession;
use crate::contract::{Json, Operation, json_of};
use crate::engine::{Answered, RecordId};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{CommandId, Listed, Name, SavedPage, StoreAnswer, StoreCall, Version};
use crate::wire::Facts;

impl Router {
    /// Looks through what other records stand for, before something is done about one.
    pub(super) fn scan(&mut self, command: CommandId, name: Name, act: Act) {
        self.list(Listing { command, what: Reading::Others(name, Box::new(act)) }, None, false);
    }

    pub(super) fn list(&mut self, listing: Listing, after: Option<Name>, open: bool) {
        let command = Some(listing.command);
        let number = self.waiting.listings.insert(listing);
        self.push_store(Pending::List(number), command, StoreCall::List { space: self.account.space.clone(), after, open });
    }

    /// Gives up what reads a list, or resumes what is in it. What was begun with it ends by what is known, and nobody is told.
    pub(super) fn stop_listing(&mut self, command: CommandId) {
        let Some(number) = self.waiting.listings.iter().find(|(_, listing)| listing.command == command).map(|(number, _)| *number) else {
            return;
        };
        self.waiting.listings.remove(&number);
        let parts = self.commands.iter().filter(|(_, known)| known.asker == Asker::List(number));
        let parts: Vec<CommandId> = parts.map(|(id, _)| *id).collect();
        for part in parts {
            let has_ended = self.result(part).is_some();
            self.deferred.push(if has_ended { Deferred::Abandon(part) } else { Deferred::Cancel(part) });
        }
        let operation = self.commands.get(&command).map_or("list", |command| command.operation);
        let error = Error::new(Kind::Cancelled, Effect::None, operation, "was cancelled; `saved` shows what is under way", Advice::Nothing);
        self.complete(command, Err(error));
    }

    /// A page was read, or could not be.
    pub(super) fn on_listed(&mut self, number: u32, answer: StoreAnswer) {
        let Some(Listing { command, what }) = self.waiting.listings.remove(&number) else { return };
        let StoreAnswer::Listed { entries, more } = answer else {
            let operation = self.commands.get(&command).map_or("saved", |command| command.operation);
            let what = "could not be done, because the store could not be read";
            return self.complete(command, Err(Error::new(Kind::Store, Effect::None, operation, what, Advice::MendStore)));
        };
        let after = entries.last().filter(|_| more).map(|listed| listed.name.clone());
        match what {
            Reading::Page => {
                let entries = entries.into_iter().filter_map(|listed| self.shown(&listed)).collect();
                let raw = Json::checked(json_of(&SavedPage { entries, after }));
                self.complete(command, Ok(Answered { raw, ..Answered::of(Facts::default()) }));
            }
            Reading::Open { mut found, options } => {
                found.extend(entries.into_iter().filter(|listed| self.is_to_resume(listed)).map(|listed| listed.name));
                if after.is_some() {
                    return self.list(Listing { command, what: Reading::Open { found, options } }, after, true);
                }
                if !found.is_empty() {
                    let at = usize::try_from(self.means.dice.jitter() % found.len() as u64).unwrap_or_default();
                    found.rotate_left(at);
                }
                found.reverse();
                let what = Reading::Resuming { waiting: found, out: 0, ended: Vec::new(), options };
                self.waiting.listings.put_back(number, Listing { command, what });
                self.resume_more(number);
            }
            Reading::Others(name, mut act) => {
                act.others.extend(entries.iter().filter_map(|listed| self.stands_for(listed)));
                match after {
                    Some(after) => self.list(Listing { command, what: Reading::Others(name, act) }, Some(after), false),
                    None => self.visit(&name, Visit::new(Some(command), Purpose::Act(act))),
                }
            }
            Reading::Resuming { .. } => {}
        }
    }

    /// What another record stands for.
    fn stands_for(&mut self, listed: &Listed) -> Option<(String, String, RecordId)> {
        let Found::Data(data) = self.found(&listed.data) else { return None };
        let record = listed.name.at(Version::of(&listed.data));
        let (operation, facts) = match (data.session, data.call, data.done) {
            (Some(session), ..) => (CreateSession::ENDPOINT.name.to_owned(), Facts { session_id: Some(session.id), ..Facts::default() }),
            (_, Some(call), _) => (call.operation, Facts { order_no: call.order_no, ..Facts::default() }),
            (.., Some(done)) => (done.operation, done.facts),
            _ => return None,
        };
        let became = Made::by(&operation)?.name(&facts)?;
        Some((operation, became, record))
    }
}
