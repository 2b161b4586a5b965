//! Doubts about what costs nothing: remembered, so that the next change of its kind finds them, and dropped once they are of no use any more.

use std::collections::VecDeque;

use crate::client::account::is_of;
use crate::client::end::commands::{FinalWrite, Finished, PendingWrite};
use crate::client::end::taken_over::after;
use crate::client::jobs::job::Entry;
use crate::client::names::deletion::Deletion;
use crate::client::requests::{AcceptedSetting, Listing, ListingPurpose, NameRequest, RequestKind, SettingInDoubt, StoredRecord};
use crate::client::router::Router;
use crate::contract::Operation;
use crate::contract::agent::UpdateBudget;
use crate::engine::SavedAge;
use crate::policy::{Advice, Effect, Kind};
use crate::state::{CommandId, Data, JobId, Listed, Name, SavedCall, StoreAnswer, Whose};
use crate::time::Millis;
use crate::wire::members;

impl Router {
    /// A session is over: what is in doubt of its free changes is of no use any more. Returns the names that are let go of.
    pub(crate) fn drop_free_doubts(&mut self, session: &str) -> Vec<Name> {
        let names = self.sessions.take_free_doubts(session);
        self.drop_doubts(names)
    }

    /// A setting was accepted: what is in doubt of earlier ones that change nothing else would only undo it, here and in the store. Returns
    /// what its result waits for.
    pub(crate) fn drop_settings(&mut self, id: JobId, entry: &Entry) -> Vec<PendingWrite> {
        let dropped = self.drop_own_settings(id, entry);
        dropped.into_iter().map(PendingWrite::Name).chain(self.look_for_settings(entry)).collect()
    }

    fn drop_own_settings(&mut self, id: JobId, entry: &Entry) -> Vec<Name> {
        let Some(members) = entry.members_set_anew() else { return Vec::new() };
        let is_undone = |known: &SettingInDoubt| known.began < id && known.members.iter().all(|name| members.contains(name));
        let (undone, left) = std::mem::take(&mut self.settings_in_doubt).into_iter().partition(is_undone);
        self.settings_in_doubt = left;
        let undone: VecDeque<SettingInDoubt> = undone;
        self.drop_doubts(undone.into_iter().map(|known| known.name).collect())
    }

    /// Looks for what other processes have left.
    fn look_for_settings(&mut self, entry: &Entry) -> Option<PendingWrite> {
        let members = entry.members_set()?;
        let write = entry.job.write()?;
        // Of two that began in one millisecond, one that comes out of its record may be the older one.
        let began = began(&write.key.saved_age(&self.clock())).saturating_sub(Millis::from(write.restored));
        let command = entry.waiting.first().unwrap_or(CommandId(0));
        let newer = Box::new(AcceptedSetting { members, began, undone: Vec::new() });
        let number = self.listings.insert(Listing { command, what: ListingPurpose::Settings(newer) });
        self.ask_list(number, command, None, true);
        Some(PendingWrite::Listing(number))
    }

    /// A page was read, or could not be: then what is in doubt stays so.
    pub(crate) fn on_settings(&mut self, number: u32, command: CommandId, mut newer: Box<AcceptedSetting>, answer: StoreAnswer) {
        let (entries, more) = if let StoreAnswer::Listed { entries, more } = answer { (entries, more) } else { (Vec::new(), false) };
        let after = entries.last().filter(|_| more).map(|listed| listed.name.clone());
        let undone: Vec<Name> = entries.into_iter().filter(|listed| self.is_set_anew(listed, &newer)).map(|listed| listed.name).collect();
        newer.undone.extend(undone);
        if after.is_some() {
            self.listings.put_back(number, Listing { command, what: ListingPurpose::Settings(newer) });
            return self.ask_list(number, command, after, true);
        }
        let dropped = self.drop_doubts(newer.undone);
        for mut finished in self.commands.answered(&PendingWrite::Listing(number)) {
            finished.after.extend(dropped.iter().cloned().map(PendingWrite::Name));
            self.finish_after(finished);
        }
    }

    /// Returns true if an entry is a doubt of another process about a setting that began before this one and sets nothing else. A budget
    /// belongs to a key, and the record of an account that has a name does not say which.
    fn is_set_anew(&mut self, listed: &Listed, newer: &AcceptedSetting) -> bool {
        let own_client = self.clock().at().client;
        let found = self.read_record(&listed.data);
        let is_by_key = |data: &Data| self.service.key.as_ref().is_some_and(|key| is_of(data, key));
        match found {
            StoredRecord::Readable(data) if listed.whose == Whose::Free && data.at.client != own_client && is_by_key(&data) => {
                let set = setting_in(&data).and_then(|call| Some((members(call.body.as_deref()?).ok()?, began(&call.age))));
                set.is_some_and(|(set, began)| {
                    began <= newer.began && set.iter().all(|(name, _)| newer.members.iter().any(|new| new == name))
                })
            }
            _ => false,
        }
    }

    fn drop_doubts(&mut self, names: Vec<Name>) -> Vec<Name> {
        names.iter().for_each(|name| self.request_name(name, NameRequest::new(None, RequestKind::DropDoubt)));
        names
    }

    /// A setting is in doubt.
    pub(crate) fn remember_setting(&mut self, id: JobId, entry: &Entry) {
        if entry.record.is_set_anew() {
            return;
        }
        let Some((name, members)) = entry.record.name.clone().zip(entry.members_set()) else { return };
        let known = &mut self.settings_in_doubt;
        known.push_back(SettingInDoubt { began: id, name, members });
        while known.len() > SETTINGS {
            known.pop_front();
        }
    }

    /// A termination has ended that lost names on the way: a record that it left there would be resumed, so it goes. Where what it said
    /// to have had no effect may come all the same, that is not said.
    pub(crate) fn drop_left_behind(&mut self, entry: &mut Entry, finished: &mut Finished) {
        let left = entry.record.rare.as_mut().map(|rare| std::mem::take(&mut rare.left_behind)).unwrap_or_default();
        left.into_iter().for_each(|name| self.drop_one_left_behind(name, finished));
    }

    fn drop_one_left_behind(&mut self, name: Name, finished: &mut Finished) {
        let without_effect = finished.result.as_ref().err().filter(|error| error.effect == Effect::None);
        match (self.journal.is_owned(&name) && !self.journal.is_out(&name), without_effect) {
            // A put that was answered just now has made it.
            (true, None) => self.delete(&name, Deletion::UselessDoubt),
            (true, Some(_)) => {
                (finished.own, finished.last) = (Some(name.clone()), FinalWrite::Erase);
                self.delete(&name, Deletion::NoEffect);
            }
            // The name is being released, or was: it is claimed anew, and another client may be faster.
            (false, without_effect) => {
                if let Some(error) = without_effect {
                    let (kind, advice) = match error.kind {
                        Kind::Cancelled => (Kind::Cancelled, Advice::ReadSession),
                        _ => (Kind::InDoubt, Advice::TerminateAgain),
                    };
                    finished.result = Err(after(error, kind, Effect::Unknown, LEFT_BEHIND, advice));
                }
                self.request_name(&name, NameRequest::new(None, RequestKind::DropDoubt));
            }
        }
        finished.after.push(PendingWrite::Name(name));
    }

    /// Deletes what is in doubt under a name, if it is a free change of a session, or a setting without a name of its caller's.
    pub(crate) fn drop_doubt(&mut self, name: &Name, found: &StoredRecord) {
        let StoredRecord::Readable(data) = found else { return };
        let Some(call) = &data.call else { return };
        let is_free = call.endpoint(self.api()).is_some_and(|endpoint| endpoint.is_free_change());
        if is_free || setting_in(data).is_some() {
            self.delete(name, Deletion::UselessDoubt);
        }
    }
}

/// The setting in a record, if it has no name of its caller's.
fn setting_in(data: &Data) -> Option<&SavedCall> {
    data.call.as_ref().filter(|call| call.operation == UpdateBudget::ENDPOINT.name && data.fingerprint.is_none())
}

/// When the key of a write was made. Unix milliseconds.
fn began(age: &SavedAge) -> Millis {
    age.at.unix.saturating_sub(age.ms)
}

/// So many settings in doubt are remembered.
const SETTINGS: usize = 16;

const LEFT_BEHIND: &str = "was not done, but another client may have found its record and may do it";
