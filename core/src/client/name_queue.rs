//! Commands wait here for the name that they are about. It is claimed once for all that wait, and each is let in by what is found under
//! it, in the order in which they came. Who comes while a job is at work under it joins that job.

use super::deferred::Deferred;
use super::outbox::Pending;
use super::router::Router;
use super::waiting::{After, Found, Purpose, Visit};
use crate::policy::{Advice, Kind};
use crate::state::{CommandId, Data, JobId, Name, StoreAnswer, StoreCall, User, Version};

impl Router {
    /// Lets somebody wait for a name.
    pub(super) fn visit(&mut self, name: &Name, visit: Visit) {
        if let Some(command) = visit.command.and_then(|command| self.commands.get_mut(&command)) {
            command.waits_for = Some(name.clone());
        }
        self.waiting.visits.get_or_insert_with(name.clone(), Default::default).push_back(visit);
        // What could not be written is tried again now, since somebody waits for it.
        self.journal.wake(name);
        self.push_next(name);
        match self.journal.user(name) {
            None => self.claim_for_visits(name),
            Some(_) => self.deferred.push(Deferred::Attend(name.clone())),
        }
    }

    /// Claims a name that somebody waits for, unless it is on its way out, or claimed already.
    fn claim_for_visits(&mut self, name: &Name) {
        if self.journal.is_leaving(name) || !self.journal.claim(name) {
            return;
        }
        let command = self.waiting.visits.get(name).and_then(|visits| visits.iter().find_map(|visit| self.who_waits(visit)));
        let call = StoreCall::Claim { names: vec![name.clone()], most: 1 };
        self.push_store(Pending::Claim(name.clone()), command, call);
    }

    /// Lets in the first of those who wait for a name, and then the others: at once where it is this client's, else once it is claimed,
    /// and not while it is on its way out.
    pub(super) fn attend(&mut self, name: &Name) {
        if !self.waiting.visits.contains_key(name) || self.journal.is_leaving(name) {
            return;
        }
        match self.journal.user(name).cloned() {
            Some(User::Job(id) | User::Marker(id)) => self.join_next(name, id),
            Some(User::Session(session)) => match self.opening(&session) {
                Some(id) => self.join_next(name, id),
                None => self.let_in_to_session(name, &session),
            },
            Some(User::Pool) => {
                let found = self.take_slot(name);
                self.deferred.push(Deferred::LetIn(name.clone(), Box::new(found)));
            }
            // A result that nobody takes holds no other renewal back.
            Some(User::Result) if self.is_next_a_renewal(name) => {
                self.journal.give(name, None);
                self.deferred.push(Deferred::LetIn(name.clone(), Box::new(Found::Nothing)));
            }
            Some(User::Result) => {
                let visit = self.next_visit(name);
                let what = "another call of this client has just ended with this record, and its result is there";
                visit.into_iter().for_each(|visit| self.turn_away(visit, Kind::Misuse, what, Advice::Wait));
            }
            None => return self.claim_for_visits(name),
        }
        self.deferred.push(Deferred::Attend(name.clone()));
    }

    /// A job is at work under the name, or opens the session whose name it is.
    fn join_next(&mut self, name: &Name, id: JobId) {
        if let Some(visit) = self.next_visit(name) {
            self.join(id, visit);
        }
    }

    /// The name is a session's.
    fn let_in_to_session(&mut self, name: &Name, session: &str) {
        let is_its_name = self.sessions.get(session).is_some_and(|known| known.name.as_ref() == Some(name));
        match self.session_data(session).filter(|_| is_its_name) {
            Some(data) => {
                let put_at = self.journal.slot(name).and_then(|slot| slot.named_at.as_deref().copied());
                let found = Found::Data(Box::new(Data { at: put_at.unwrap_or(data.at), ..data }));
                self.deferred.push(Deferred::LetIn(name.clone(), Box::new(found)));
            }
            // What is under the name is in the store only.
            None => {
                self.journal.give(name, None);
                self.release(name);
            }
        }
    }

    fn is_next_a_renewal(&self, name: &Name) -> bool {
        let visits = self.waiting.visits.get(name);
        visits.and_then(|visits| visits.front()).is_some_and(|visit| matches!(visit.purpose, Purpose::Renewal(_)))
    }

    /// The command for which somebody waits for a name.
    fn who_waits(&self, visit: &Visit) -> Option<CommandId> {
        match visit.purpose {
            Purpose::Renewal(id) | Purpose::Marked(id, _) => self.jobs.get(&id)?.waiting.first(),
            _ => visit.command,
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
                self.deferred.push(Deferred::LetIn(name.clone(), Box::new(found)));
                self.deferred.push(Deferred::Attend(name.clone()));
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
                self.store_fails(name, "could not be asked about it");
            }
        }
    }

    /// Lets in the next of those who wait. Where nobody does, what nobody uses is let go of.
    pub(super) fn let_in(&mut self, name: Name, found: Box<Found>) {
        if let Some(visit) = self.next_visit(&name) {
            self.receive(&name, visit, &found);
            self.deferred.push(Deferred::WasLetIn(name, found));
        } else if self.journal.user(&name).is_none() && !self.journal.is_leaving(&name) {
            self.release(&name);
        }
    }

    /// One was let in. The next one is, unless this one has begun something under the name.
    pub(super) fn was_let_in(&mut self, name: Name, found: Box<Found>) {
        if self.journal.user(&name).is_some() {
            // It is not let go of, so nobody waits for that.
            self.answered(&After::Name(name.clone()), None);
        }
        if !self.journal.is_busy(&name) && matches!(self.journal.user(&name), None | Some(User::Session(_))) {
            self.deferred.push(Deferred::LetIn(name, found));
        }
    }

    fn receive(&mut self, name: &Name, visit: Visit, found: &Found) {
        let visit = if matches!(found, Found::Bad(..)) { self.begin_all_the_same(visit) } else { Some(visit) };
        let Some(Visit { command, purpose }) = visit else { return };
        match (purpose, command) {
            (Purpose::Start(start), Some(command)) => self.admit_start(name, command, *start, found),
            (Purpose::Resume(resume), Some(command)) => self.admit_resume(name, command, *resume, found),
            (Purpose::Act(act), Some(command)) => self.act(name, command, *act, found),
            (Purpose::Retry(start), Some(command)) => self.retry_first(name, command, *start, found),
            (Purpose::DropDoubt, _) => self.drop_doubt(name, found),
            (Purpose::Renewal(id), _) => self.admit_renewal(name, id, found),
            (Purpose::Marked(id, marker), _) => self.admit_marked(name, id, &marker, found),
            (Purpose::DropMarker(own), _) => self.drop_marker(name, &own, found),
            (Purpose::SessionOver(session), _) => self.session_is_over(name, &session, found),
            (Purpose::Reclaim(session, _), _) => self.reclaimed(name, &session, found),
            (_, None) => {}
        }
    }

    /// The time has come to ask again for a name, or to try again to write what could not be written.
    pub(super) fn wake_name(&mut self, name: &Name) {
        self.timers.name_woke(name);
        self.journal.wake(name);
        self.push_next(name);
        self.attend(name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BUY, NOW, agent};
    use super::super::{CallOptions, Client, Outcome, Step};
    use super::*;
    use crate::policy::Effect;
    use crate::state::{CommandId, Listed, Space, Whose};

    /// What a command ends with that a store answers with names that nobody asked it for.
    fn told(start: impl FnOnce(&mut Client) -> CommandId, wrong: impl Fn(&StoreCall) -> Option<StoreAnswer>) -> (Kind, Effect) {
        let mut client = agent(7, true);
        let command = start(&mut client);
        loop {
            match client.poll(NOW) {
                Step::Store { id, call, .. } => {
                    let answer = wrong(&call).unwrap_or(StoreAnswer::Done);
                    assert!(!matches!(call, StoreCall::Put { .. }), "nothing is put under a name that was not claimed");
                    client.resolve(id, Outcome::Store(answer), NOW).expect("is answered once");
                }
                Step::Send { .. } => panic!("nothing is sent under a name that was not claimed"),
                Step::Wait { .. } => {
                    let error = client.take_answer(command).expect("has completed").expect_err("has failed");
                    return (error.kind, error.effect);
                }
                Step::Completed { .. } | Step::Notify(_) => {}
            }
        }
    }

    #[test]
    fn a_store_that_claims_what_nobody_asked_for_has_failed() {
        let other = Name::from("5e.i0000000000000000000000000000000".to_owned());
        type Claims<'a> = &'a dyn Fn(&Name) -> Vec<(Name, Option<Vec<u8>>)>;
        let claims: [Claims<'_>; 4] =
            [&|_| Vec::new(), &|_| vec![(other.clone(), None)], &|name| vec![(name.clone(), None), (other.clone(), None)], &|name| {
                vec![(name.clone(), None), (name.clone(), None)]
            }];
        for claimed in claims {
            let buy = |client: &mut Client| client.start_json("create_session", BUY, CallOptions::intent("job"));
            let wrong = |call: &StoreCall| match call {
                StoreCall::Claim { names, .. } => names.first().map(|name| StoreAnswer::Claimed(claimed(name))),
                _ => None,
            };
            assert_eq!(told(buy, wrong), (Kind::Store, Effect::Unknown));
        }
    }

    #[test]
    fn a_store_that_lists_what_nobody_asked_for_has_failed() {
        let listed = |space: &Space, names: &[&str]| {
            let name = |hash: &&str| Name::from(format!("{}.r{hash}", space.0));
            names.iter().map(|hash| Listed { name: name(hash), data: b"{}".to_vec(), whose: Whose::Free }).collect::<Vec<_>>()
        };
        type Pages<'a> = &'a dyn Fn(&Space) -> (Vec<Listed>, bool);
        let pages: [Pages<'_>; 4] = [
            // Of another space, out of order, twice the same, and nothing with more behind it.
            &|_| (listed(&Space("5e".to_owned()), &["1"]), false),
            &|space| (listed(space, &["2", "1"]), false),
            &|space| (listed(space, &["1", "1"]), false),
            &|_| (Vec::new(), true),
        ];
        for page in pages {
            let wrong = |call: &StoreCall| match call {
                StoreCall::List { space, .. } => Some(page(space)).map(|(entries, more)| StoreAnswer::Listed { entries, more }),
                _ => None,
            };
            assert_eq!(told(|client| client.saved(None).command, wrong), (Kind::Store, Effect::None));
        }
    }
}
