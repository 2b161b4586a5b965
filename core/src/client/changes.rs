//! Changes of sessions, and which of them wait for one another. What costs nothing never holds back what costs money: a termination passes
//! everything but another termination, and a rotation in doubt is sent once more before the next one, whatever comes of that.

use std::collections::VecDeque;

use super::go_on::bought_as_of;
use super::job::Entry;
use super::lost::after;
use super::options::CallOptions;
use super::router::Router;
use super::types::busy;
use super::waiting::{After, AfterRetry, Finished, Found, Last, Purpose, SettingInDoubt, Start, Visit};
use crate::contract::agent::{RotateSession, TerminateSession, UpdateBudget};
use crate::contract::{Endpoint, Operation};
use crate::policy::{Advice, Effect, Error, ErrorFields, Kind, Rule};
use crate::state::{CommandId, JobId, Name, SavedCall};
use crate::wire::members;

const LEFT_BEHIND: &str = "was not done, but another client may have found its record, and does it then";

/// So many settings in doubt are remembered.
const SETTINGS: usize = 16;

impl Router {
    /// A write that may be a change of a session is let in: by its name, if it has one. A rotation first has an earlier one, which is in
    /// doubt, sent once more.
    pub(super) fn enter_change(&mut self, command: CommandId, start: Start) {
        match self.rotation_in_doubt(&start) {
            Some(name) => self.visit(&name, Visit::new(Some(command), Purpose::Retry(Box::new(start)))),
            None => self.enter(command, start),
        }
    }

    /// The name of a rotation of the same session that is in doubt, unless it is this very one.
    fn rotation_in_doubt(&self, start: &Start) -> Option<Name> {
        let session = start.built.session_id.as_deref().filter(|_| start.endpoint.name == RotateSession::ENDPOINT.name)?;
        let name = self.sessions.get(session)?.free_doubts.rotation.clone()?;
        let own = start.bought_as.as_ref().map(|known| &known.name);
        (own != Some(&name)).then_some(name)
    }

    /// An earlier rotation is sent once more, if it is still in doubt; then this one goes on.
    pub(super) fn retry_first(&mut self, name: &Name, command: CommandId, start: Start, found: &Found) {
        let session = start.built.session_id.clone().unwrap_or_default();
        if let Some(known) = self.sessions.get_mut(session.as_str()) {
            known.free_doubts.rotation = None;
        }
        let is_of_session = |call: &&SavedCall| {
            call.operation == RotateSession::ENDPOINT.name && call.session_id.as_deref() == Some(session.as_str()) && call.can_resume()
        };
        let Found::Data(data) = found else { return self.enter(command, start) };
        let is_free = self.sessions.get(session.as_str()).is_none_or(|known| known.changing.is_empty());
        match data.call.as_ref().filter(is_of_session).filter(|_| is_free) {
            Some(call) => {
                // One send, and no waiting: neither for a repeat nor for an earlier send of the key to end.
                let once = CallOptions { attempts: Some(1), headers: start.options.headers.clone(), ..CallOptions::default() };
                self.waiting.after_retry.insert(command, AfterRetry { start: Box::new(start), is_wanted: true });
                self.go_on_with_call(name, command, call, bought_as_of(name, data), &once);
            }
            None => self.enter(command, start),
        }
    }

    /// The retry of an earlier rotation has ended for a command: what it wanted itself begins.
    pub(super) fn begin_after_retry(&mut self, command: CommandId, after: AfterRetry) {
        let AfterRetry { start, is_wanted } = after;
        if !is_wanted {
            return self.end_cancelled(command, Visit::new(Some(command), Purpose::Start(start)));
        }
        if let Some(known) = self.commands.get_mut(&command) {
            known.job = None;
        }
        self.enter(command, *start);
    }

    /// Of those whose name can't be had, a termination begins without it, and a rotation without what it was to send first. Otherwise
    /// gives back who waits.
    pub(super) fn begin_all_the_same(&mut self, visit: Visit) -> Option<Visit> {
        match (visit.command, visit.purpose) {
            (Some(command), Purpose::Start(start)) if start.endpoint.name == TerminateSession::ENDPOINT.name => {
                self.begin_write(None, command, Start { bought_as: None, ..*start });
                None
            }
            (Some(command), Purpose::Retry(start)) => {
                self.enter(command, *start);
                None
            }
            (command, purpose) => Some(Visit { command, purpose }),
        }
    }

    /// Joins a termination of the same session that is under way. Whether there is one.
    pub(super) fn join_termination(&mut self, command: CommandId, start: &Start) -> bool {
        if start.endpoint.name != TerminateSession::ENDPOINT.name || start.bought_as.is_some() {
            return false;
        }
        let tracked = start.built.session_id.as_deref().and_then(|session| self.sessions.get(session));
        let is_termination = |id: &JobId| self.jobs.get(id).is_some_and(|entry| entry.job.is_termination());
        let Some(id) = tracked.and_then(|known| known.changing.iter().find(is_termination)) else { return false };
        self.join_job(id, command, &start.options);
        true
    }

    /// Another change of the session that is under way, which holds this one back. A termination is held back by nothing.
    pub(super) fn check_changing(&self, endpoint: &'static Endpoint, session: &str) -> Result<(), Error> {
        if !endpoint.changes_session() || endpoint.name == TerminateSession::ENDPOINT.name {
            return Ok(());
        }
        let Some(other) = self.sessions.get(session).and_then(|known| known.changing.iter().next()) else { return Ok(()) };
        let what = format!("the session's {} is under way", self.jobs.get(&other).map_or("change", |entry| entry.subject.operation));
        Err(Error::from(ErrorFields { session_id: Some(session.to_owned()), ..busy(endpoint.name, &what).into_fields() }))
    }

    /// A session is over: what is in doubt of its free changes is of no use any more. Returns the names that are let go of.
    pub(super) fn drop_free_doubts(&mut self, session: &str) -> Vec<Name> {
        let Some(known) = self.sessions.get_mut(session) else { return Vec::new() };
        let names: Vec<Name> = std::mem::take(&mut known.free_doubts).into_names().collect();
        for name in &names {
            self.visit(name, Visit::new(None, Purpose::DropDoubt));
        }
        names
    }

    /// A termination has ended that lost its name on the way: a record that it left there would be resumed, so it goes. Where what it
    /// said to have had no effect may come all the same, that is not said.
    pub(super) fn drop_left_behind(&mut self, entry: &mut Entry, finished: &mut Finished) {
        let Some(name) = entry.custody.rare.as_mut().and_then(|rare| rare.left_behind.take()) else { return };
        let without_effect = finished.result.as_ref().err().filter(|error| error.effect == Effect::None);
        match (self.journal.is_owned(&name) && !self.journal.is_out(&name), without_effect) {
            // A put that was answered just now has made it.
            (true, None) => self.delete(&name, true),
            (true, Some(_)) => {
                (finished.own, finished.last) = (Some(name.clone()), Last::Erase);
                self.delete(&name, false);
            }
            // It is being let go of, or was: it is claimed anew, and another client may be quicker.
            (false, without_effect) => {
                if let Some(error) = without_effect {
                    let (kind, advice) = match error.kind {
                        Kind::Cancelled => (Kind::Cancelled, Advice::ReadSession),
                        _ => (Kind::InDoubt, Advice::TerminateAgain),
                    };
                    finished.result = Err(Error::from(after(error, kind, Effect::Unknown, LEFT_BEHIND, advice)));
                }
                self.visit(&name, Visit::new(None, Purpose::DropDoubt));
            }
        }
        finished.after.push(After::Name(name));
    }

    /// A setting is in doubt.
    pub(super) fn remember_setting(&mut self, id: JobId, entry: &Entry) {
        let Some((name, members)) = entry.custody.name.clone().zip(members_set(entry)) else { return };
        let known = &mut self.waiting.settings_in_doubt;
        known.push_back(SettingInDoubt { began: id, name, members });
        while known.len() > SETTINGS {
            known.pop_front();
        }
    }

    /// A setting was accepted: what is in doubt of earlier ones that change nothing else would only undo it. Returns the names that are let
    /// go of.
    pub(super) fn drop_settings(&mut self, id: JobId, entry: &Entry) -> Vec<Name> {
        let newer_stands = self.means.rules.holds(Rule::NewerSettingStands);
        // What comes out of a record may be older than what is in doubt.
        let is_restored = entry.job.write().is_some_and(|write| write.restored);
        let Some(members) = members_set(entry).filter(|_| newer_stands && !is_restored) else { return Vec::new() };
        let is_undone = |known: &SettingInDoubt| known.began < id && known.members.iter().all(|name| members.contains(name));
        let (undone, left) = std::mem::take(&mut self.waiting.settings_in_doubt).into_iter().partition(is_undone);
        self.waiting.settings_in_doubt = left;
        let undone: VecDeque<SettingInDoubt> = undone;
        let names: Vec<Name> = undone.into_iter().map(|known| known.name).collect();
        for name in &names {
            self.visit(name, Visit::new(None, Purpose::DropDoubt));
        }
        names
    }

    /// Deletes what is in doubt under a name, if it is a free change of a session, or a setting without a name of its caller's.
    pub(super) fn drop_doubt(&mut self, name: &Name, found: &Found) {
        let Found::Data(data) = found else { return };
        let Some(call) = &data.call else { return };
        let is_free = call.endpoint(self.service.api).is_some_and(|endpoint| endpoint.is_free_change());
        let is_setting = call.operation == UpdateBudget::ENDPOINT.name && data.fingerprint.is_none();
        if is_free || is_setting {
            self.delete(name, true);
        }
    }
}

/// The members that a setting without a name of its caller's sets.
fn members_set(entry: &Entry) -> Option<Vec<String>> {
    let is_setting = entry.subject.operation == UpdateBudget::ENDPOINT.name && entry.custody.bought_as.is_none();
    let body = entry.job.write().filter(|_| is_setting)?.call.exchange.built.body.as_deref()?;
    Some(members(body).ok()?.into_iter().map(|(name, _)| name.to_string()).collect())
}
