//! Commands wait here for the name that they are about. It is claimed once for all that wait, and each is let in by what is found under
//! it, in the order in which they came. Who comes while a job is at work under it joins that job.

use super::outbox::Pending;
use super::root::Client;
use super::types::busy;
use super::waiting::{After, Purpose, Start, Visit};
use crate::policy::{Advice, Effect, Error, Kind, Report, Rule};
use crate::state::{BadRecord, CommandId, Data, JobId, Name, SavedCall, StoreAnswer, StoreCall, User, Version, intent_of};
use crate::time::Now;

/// What is under a name.
#[derive(Debug, Clone)]
pub(super) enum Found {
    Nothing,
    Data(Box<Data>),
    /// It can't be used, and the caller's own name as far as that can be read.
    Bad(BadRecord, Option<String>),
}

impl Client {
    /// Lets somebody wait for a name.
    pub(super) fn visit(&mut self, name: &Name, visit: Visit) {
        if let Some(command) = visit.command.and_then(|command| self.commands.get_mut(&command)) {
            command.waits_for = Some(name.clone());
        }
        self.waiting.visits.entry(name.clone()).or_default().push_back(visit);
        // What could not be written is tried again now, since somebody waits for it.
        self.journal.wake(name);
        self.push_next(name);
        self.attend(name);
    }

    /// Lets in who waits for a name: at once where it is this client's, else once it is claimed, and not while it is on its way out.
    pub(super) fn attend(&mut self, name: &Name) {
        while self.waiting.visits.contains_key(name) && !self.journal.is_leaving(name) {
            match self.journal.user(name).cloned() {
                Some(User::Job(id)) => {
                    let visit = self.next_visit(name);
                    visit.into_iter().for_each(|visit| self.join(id, visit));
                }
                Some(User::Session(session)) => {
                    if let Some(id) = self.opening(&session) {
                        let visit = self.next_visit(name);
                        visit.into_iter().for_each(|visit| self.join(id, visit));
                        continue;
                    }
                    let is_its_name = self.sessions.get(&session).is_some_and(|known| known.name.as_ref() == Some(name));
                    match self.session_data(&session).filter(|_| is_its_name) {
                        Some(data) => {
                            let put_at = self.journal.slot(name).and_then(|slot| slot.named_at.as_deref().copied());
                            self.let_in(name, &Found::Data(Box::new(Data { at: put_at.unwrap_or(data.at), ..data })));
                        }
                        // What is under the name is in the store only.
                        None => {
                            self.journal.give(name, None);
                            self.release(name);
                        }
                    }
                }
                Some(User::Result) => {
                    let visit = self.next_visit(name);
                    let what = "another call of this client has just ended with this record, and its result is there";
                    visit.into_iter().for_each(|visit| self.turn_away(visit, Kind::Misuse, what, Advice::Wait));
                }
                None if self.journal.claim(name) => {
                    let command = self.waiting.visits.get(name).and_then(|visits| visits.iter().find_map(|visit| visit.command));
                    let call = StoreCall::Claim { names: vec![name.clone()], most: 1 };
                    return self.push_store(Pending::Claim(name.clone()), command, call);
                }
                None => return,
            }
        }
    }

    fn next_visit(&mut self, name: &Name) -> Option<Visit> {
        let visits = self.waiting.visits.get_mut(name)?;
        let visit = visits.pop_front();
        if visits.is_empty() {
            self.waiting.visits.remove(name);
        }
        let command = visit.as_ref().and_then(|visit| visit.command).and_then(|command| self.commands.get_mut(&command));
        command.into_iter().for_each(|command| command.waits_for = None);
        visit
    }

    /// What is under the name was claimed, or another client has it, or nobody knows.
    pub(super) fn on_claimed(&mut self, name: &Name, answer: StoreAnswer) {
        match answer {
            // It has ended before this was heard of.
            StoreAnswer::Claimed(_) if self.journal.has_ended(name) => {
                // It is asked again for who waits; where nobody does, what the store may have granted since is let go of.
                let is_wanted = self.waiting.visits.contains_key(name);
                self.journal.claimed(name, !is_wanted, None);
                self.attend(name);
                self.release(name);
            }
            StoreAnswer::Claimed(names) => {
                let data = names.into_iter().find(|(known, _)| known == name).and_then(|(_, data)| data);
                let version = data.as_ref().map(|data| Version::of(data));
                let found = data.map_or(Found::Nothing, |data| self.found(&data));
                self.journal.claimed(name, true, version);
                if let (Found::Data(data), Some(version)) = (&found, version) {
                    self.journal.note(name, data, version);
                }
                self.let_in(name, &found);
                self.attend(name);
            }
            StoreAnswer::Busy(data) => {
                self.journal.claimed(name, false, None);
                let found = data.map_or(Found::Nothing, |data| self.found(&data));
                for visit in self.waiting.visits.remove(name).unwrap_or_default() {
                    self.is_busy(name, visit, &found);
                }
                self.answered(&After::Name(name.clone()), None);
            }
            // It may be this client's now.
            _ => {
                self.journal.claimed(name, true, None);
                self.release(name);
                self.store_fails(name, "was not started, because the store could not be asked about it");
            }
        }
    }

    /// Reads what is under a name.
    pub(super) fn found(&mut self, data: &[u8]) -> Found {
        match Data::read(data, self.service.api).and_then(|data| self.account.ours(data, &self.service.base)) {
            Ok(data) => {
                self.avoid(data.call.as_ref().and_then(|call| call.key.as_deref()));
                Found::Data(Box::new(data))
            }
            Err(bad) if !self.means.rules.holds(Rule::UnreadableIsSomething) && matches!(bad, BadRecord::Damaged(_)) => Found::Nothing,
            Err(bad) => Found::Bad(bad, intent_of(data)),
        }
    }

    /// Where this client's 16 bytes gave a key before, they are used up: a key that is sent again with another request would be a
    /// purchase that nobody knows of.
    fn avoid(&mut self, key: Option<&str>) {
        if key.is_some_and(|key| self.means.dice.may_have_named(key)) {
            let ours = |client: &Client, key: &str| {
                let mut keys = client.jobs.values().filter_map(|entry| entry.job.write()?.call.ledger.key.as_deref());
                keys.any(|known| known == key)
            };
            if !key.is_some_and(|key| ours(self, key)) {
                self.means.dice.turn();
            }
        }
    }

    /// Lets in all who wait, until one of them begins something under the name; then lets go of what nobody uses.
    fn let_in(&mut self, name: &Name, found: &Found) {
        while let Some(visit) = self.next_visit(name) {
            self.receive(name, visit, found);
            if self.journal.user(name).is_some() {
                // It is not let go of, so nobody waits for that.
                self.answered(&After::Name(name.clone()), None);
            }
            if self.journal.is_busy(name) || !matches!(self.journal.user(name), None | Some(User::Session(_))) {
                return;
            }
        }
        if self.journal.user(name).is_none() && !self.journal.is_leaving(name) {
            self.release(name);
        }
    }

    fn receive(&mut self, name: &Name, visit: Visit, found: &Found) {
        let Visit { command, purpose } = visit;
        match (purpose, command) {
            (Purpose::Start(start), Some(command)) => self.admit_start(name, command, *start, found),
            (Purpose::Resume(resume), Some(command)) => self.admit_resume(name, command, *resume, found),
            (Purpose::Act(act), Some(command)) => self.act(name, command, *act, found),
            (Purpose::Change(start), Some(command)) => self.admit_change(name, command, *start, found),
            (Purpose::TakeBack(session, _), _) => self.take_back_session(name, &session, found),
            (_, None) => {}
        }
    }

    /// A write begins, or what is under its name goes on.
    fn admit_start(&mut self, name: &Name, command: CommandId, start: Start, found: &Found) {
        let error = match found {
            Found::Nothing => return self.begin_write(Some(name.clone()), command, start),
            Found::Data(data) if data.fingerprint.as_deref() == start.bought_as.as_ref().map(|known| &*known.fingerprint) => {
                return self.go_on(name, command, data, &start.options, start.options.intent.as_deref());
            }
            Found::Data(_) if start.options.intent.is_some() => used_intent(start.endpoint.name),
            Found::Data(_) => Error::invalid(start.endpoint.name, "idempotency_key", "belongs to another request"),
            Found::Bad(bad, _) => {
                let field = if start.options.intent.is_some() { "intent" } else { "idempotency_key" };
                // It may be this very write.
                Error::from(Report { field: Some(field.to_owned()), ..self.unreadable(name, &start, bad, Effect::Unknown) })
            }
        };
        self.finish_visit(command, Err(error), start.options.intent.clone(), name);
    }

    /// Why nothing is sent before it is known what a record says.
    fn unreadable(&self, name: &Name, start: &Start, bad: &BadRecord, effect: Effect) -> Report {
        let (kind, effect, what, advice) = match bad {
            BadRecord::OtherApi(_) | BadRecord::OtherAccount => {
                let what = "was not sent, because its record is another API key's or base URL's: say `same_account` where only those have \
                            changed; where it is another account, name each with `account` or use another store";
                (Kind::Invalid, Effect::None, what.to_owned(), Advice::ChangeRequest)
            }
            bad => (
                Kind::Store,
                effect,
                format!("was not sent, because {bad}; forget it once you have looked at the account"),
                Advice::CheckAccount,
            ),
        };
        let record = self.journal.slot(name).map(|slot| name.at(slot.version).0);
        Report { record, ..Error::new(kind, effect, start.endpoint.name, what, advice).into_report() }
    }

    /// Whether the change that was left in doubt still is, whoever has tried it last.
    fn admit_change(&mut self, name: &Name, command: CommandId, start: Start, found: &Found) {
        let session = start.built.session_id.clone();
        let changes = |call: &&SavedCall| {
            call.session_id == session && call.endpoint(self.service.api).is_some_and(|endpoint| endpoint.changes_session())
        };
        let report = match found {
            Found::Data(data) => data.call.as_ref().filter(changes).map(|call| {
                let what = format!(
                    "was not sent, because an earlier {} of this session is in doubt and is to be resumed or settled first",
                    call.operation
                );
                let record = self.journal.slot(name).map(|slot| name.at(slot.version).0);
                Report { record, ..Error::new(Kind::Busy, Effect::None, start.endpoint.name, what, Advice::Resume).into_report() }
            }),
            Found::Bad(bad, _) => Some(self.unreadable(name, &start, bad, start.effect())),
            Found::Nothing => None,
        };
        if let Some(report) = report {
            let error = Error::from(Report { session_id: session, ..report });
            return self.finish_visit(command, Err(error), start.options.intent.clone(), name);
        }
        let known = session.as_deref().and_then(|session| self.sessions.get_mut(session));
        known.into_iter().for_each(|known| known.doubt = None);
        self.enter(command, start);
    }

    /// A job is at work under the name: who wants the same joins it.
    fn join(&mut self, id: JobId, visit: Visit) {
        let Some(command) = visit.command else { return };
        let Some(entry) = self.jobs.get(&id) else { return };
        match visit.purpose {
            Purpose::Start(start) => {
                if entry.custody.bought_as.as_ref().map(|known| &known.fingerprint)
                    != start.bought_as.as_ref().map(|known| &known.fingerprint)
                {
                    let operation = start.endpoint.name;
                    let report = match start.options.intent {
                        Some(_) => used_intent(operation),
                        None => Error::invalid(operation, "idempotency_key", "belongs to another request that is under way"),
                    };
                    let report = report.into_report();
                    return self.complete(command, Err(Error::from(Report { intent: start.options.intent.clone(), ..report })));
                }
                self.join_job(id, command, &start.options);
            }
            Purpose::Resume(resume) => self.join_job(id, command, &resume.options),
            Purpose::Act(act) => self.act_on_job(command, *act),
            Purpose::Change(start) => {
                let report = busy(start.endpoint.name, "the session's change is under way").into_report();
                self.complete(command, Err(Error::from(Report { session_id: start.built.session_id.clone(), ..report })));
            }
            Purpose::TakeBack(..) => {}
        }
    }

    /// The time has come to ask again for a name, or to try again to write what could not be written.
    pub(super) fn wake_name(&mut self, name: &Name) {
        self.timers.name_woke(name);
        self.journal.wake(name);
        self.push_next(name);
        self.attend(name);
    }

    /// Claims that have ended while this client lives: of these names, or of all. What is in use ends as it does when a put is lost; a
    /// session that is held is claimed again, and given up if another client has it.
    pub fn lost(&mut self, names: Option<&[Name]>, now: Now) {
        self.means.clock.tick(now);
        let all = || self.journal.names().cloned().collect();
        for name in names.map_or_else(all, <[Name]>::to_vec) {
            match self.journal.lose(&name) {
                Some(User::Session(session)) if self.opening(&session).is_none() && self.is_held(&session) => {
                    if let Some(known) = self.sessions.get_mut(&session) {
                        known.name = None;
                    }
                    self.ask_back(&name, session, 0);
                }
                Some(user) => self.lost_by(user, &name),
                None => {}
            }
        }
    }
}

/// What a caller calls by an intent is another request than it was.
fn used_intent(operation: &'static str) -> Error {
    let report = Error::invalid(operation, "intent", "stands for another request").into_report();
    Error::from(Report { advice: Advice::NewIntent, ..report })
}
