//! Ownership of names: claims end while their program lives, and each step that leaves a program must still be for a name of its own.

use hopline::client::{FailureKind, Millis, Name, Outcome, RecordKind, Saved, Sent, StepId, StoreCall, describe};
use hopline::contract::Method;
use hopline::wire::Request;
use hopline_sandbox::Service;

use crate::checker::{About, FOREIGN, STUCK, UNSAVED};
use crate::job::{Manner, Name as JobName, Task};
use crate::process::name_of;
use crate::service::is_login;
use crate::world::{Admitted, Out, Process, World, Wrong};

/// How long claims outlast the last sign of life.
pub(crate) const OUTLASTS: Millis = 61_000;
/// A send follows its put within this time.
const LATEST: Millis = 21_000;

impl World {
    /// Records the answer to a claim. The commands that waited for the name join the purchase of its record; without one, they begin a
    /// purchase of their own, if the earlier one has ended.
    pub(crate) fn claimed(&mut self, name: &Name, data: Option<&[u8]>) -> Result<(), Wrong> {
        let (Some(job), Some(process)) = (self.job_of(name), &mut self.process) else { return Ok(()) };
        let admitted = Admitted { next: process.next_command(), was_left: false };
        let before = process.admitted.insert(name.clone(), admitted);
        // A job with a key continues under it; and no start waits for the name of a session's renewals.
        let is_of_renewals = self.jobs[job].task == Task::Renew && name.as_str().contains(".r");
        // Nor does anybody who starts a change without a name wait for an earlier one of its kind.
        let is_own = self.jobs[job].name == JobName::None && self.jobs[job].is_change();
        if self.jobs[job].name == JobName::Key || is_of_renewals || is_own {
            return Ok(());
        }
        let about = match data {
            Some(data) => {
                let told = describe(data);
                let about = self.checker.of_key(job, told.as_ref().and_then(|told| told.key.as_deref()));
                if let Some(about) = about.filter(|_| told.is_some_and(|told| told.refused)) {
                    self.checker.finds_refused(about)?;
                }
                // A purchase that an app's own backend refused begins again, with its key.
                let is_open = |about: &About| !self.scope.relayed || !self.checker.is_denied(*about);
                let current = self.checker.current(job).filter(is_open);
                // Nor does anybody go on with a session that has given way to the next one.
                let about = about.filter(|about| self.jobs[job].task != Task::Next || !self.checker.has_ended(*about));
                about.filter(is_open).or(current).or_else(|| self.checker.begins_anew(job, false))
            }
            // A purchase that another program began there does not belong to this program.
            None => {
                let current = self.checker.current(job);
                let mut others = self.others.iter().flatten().flat_map(|other| other.commands.values());
                let is_anothers = others.any(|about| about.is_some() && *about == current);
                self.checker.begins_anew(job, before.is_some_and(|before| before.was_left) || is_anothers)
            }
        };
        let Some(about) = about else { return Ok(()) };
        let (client, checker) = (&process.client, &self.checker);
        // A command that still waits after its purchase has ended was not admitted to it.
        let is_new = |command| before.is_none_or(|before| command >= before.next);
        let waits = |command, known: About| client.is_pending(command) && (is_new(command) || checker.has_ended(known));
        let known = process.commands.iter_mut().filter_map(|(command, known)| Some((*command, known.as_mut()?)));
        let waiting = known.filter(|(command, known)| known.job == job && waits(*command, **known));
        waiting.for_each(|(_, known)| *known = about);
        Ok(())
    }

    /// A driver that comes to a request too late, or can't vouch for its claims, does not send it.
    pub(crate) fn comes_late(&mut self, id: StepId) -> Result<(), Wrong> {
        let now = self.clock();
        self.tell(|| "it comes too late to be sent".into());
        let Some(process) = &mut self.process else { return Ok(()) };
        let late = Outcome::Failed { kind: FailureKind::Late, sent: Sent::Never };
        process.client.resolve(id, late, now).map_err(|misuse| misuse.to_string())
    }

    /// True if the store has recently told this program that it has the record of a write: a record with the key of the write or, without
    /// keys, of its job.
    pub(crate) fn is_kept(&self, process: &Process, request: &Request, about: Option<About>) -> bool {
        if !is_put_first(request) {
            return true;
        }
        let operation = http::Request::try_from(request).ok().and_then(|request| Service::operation(&request)).unwrap_or_default();
        let key = request.header("idempotency-key");
        let kept = process.kept.iter().filter(|(_, at)| self.now - **at <= LATEST);
        let data = kept.filter_map(|(name, _)| Some((name, self.store.data(name)?)));
        let mut kept =
            data.filter(|(_, data)| key.is_none_or(|key| has(data, key))).filter_map(|(name, data)| Some((name, describe(data)?)));
        kept.any(|(name, told)| {
            let is_its_job = key.is_some() || about.is_none_or(|about| self.job_of(name) == Some(about.job));
            told.operation.as_deref() == Some(operation) && told.key.as_deref() == key && is_its_job
        })
    }

    /// True if a program reaches a request after the last time at which it may be sent.
    pub(crate) fn is_late(&self, process: &Process, request: &Request) -> bool {
        self.clock_of(process).monotonic > request.send_before
    }

    /// A request leaves its program: what was true when it was handed out must still be.
    pub(crate) fn leaves(&self, request: &Request, about: Option<About>) -> Result<(), Wrong> {
        let Some(process) = &self.process else { return Ok(()) };
        if !self.is_kept(process, request, about) {
            return Err(UNSAVED.into());
        }
        let names = self.living().filter(|other| other.number != process.number).flat_map(|other| self.store.owned_by(other.number));
        let mut foreign = names.filter(|name| self.is_its_name(name, request, about));
        foreign.next().map_or(Ok(()), |name| Err(format!("{FOREIGN}: {name}")))
    }

    /// True if the record under a name is the record of this write: it has its key or, without keys, its intent.
    fn is_its_name(&self, name: &Name, request: &Request, about: Option<About>) -> bool {
        match request.header("idempotency-key") {
            Some(key) => {
                let data = self.store.data(name).filter(|data| has(data, key));
                data.and_then(|data| describe(data)?.key).as_deref() == Some(key)
            }
            None => {
                let named = about.filter(|about| is_put_first(request) && self.jobs[about.job].name == JobName::Intent);
                named.is_some_and(|about| self.job_of(name) == Some(about.job))
            }
        }
    }

    /// The claims of a program end while it lives. No message that it was about to send is younger than that: claims outlast the last
    /// sign of life.
    pub(crate) fn lose(&mut self, is_told: bool) -> Result<(), Wrong> {
        if self.process.as_ref().is_some_and(Process::sends) {
            self.pass(OUTLASTS)?;
        }
        self.ends_claims();
        if is_told { self.told() } else { Ok(()) }
    }

    pub(crate) fn ends_claims(&mut self) {
        let Some(process) = &mut self.process else { return };
        process.untold = true;
        let number = process.number;
        self.store.ends_claims(number);
        self.checker.claims_ended();
        self.tell(|| format!("the claims of program {number} end"));
    }

    /// A client is told that its claims have ended.
    pub(crate) fn told(&mut self) -> Result<(), Wrong> {
        let now = self.clock();
        let Some(process) = self.process.as_mut().filter(|process| process.untold) else { return Ok(()) };
        process.untold = false;
        let claim = |out: &Out| if let Out::Store { id, call: StoreCall::Claim { .. }, .. } = out { Some(*id) } else { None };
        process.ended.extend(process.out.iter().filter_map(claim));
        process.client.lost(None, now);
        let number = process.number;
        self.tell(|| format!("program {number} is told that its claims have ended"));
        self.drain()
    }

    /// Every program that starts its jobs again comes to an end of them, and owns nothing but the sessions that it has.
    pub(crate) fn nobody_is_stuck(&mut self) -> Result<(), Wrong> {
        self.each(|world| {
            world.start_all(Manner::Usual)?;
            world.settle_all()
        })?;
        // A call that failed in the store is tried again, after a minute at the latest.
        self.pass(OUTLASTS)?;
        self.each(|world| world.drain().and_then(|()| world.settle_all()))?;
        self.each(World::owns_what_it_has)
    }

    fn owns_what_it_has(&mut self) -> Result<(), Wrong> {
        let Some(process) = &self.process else { return Ok(()) };
        let has = |name: &Name| {
            let is_its = |saved: &Saved| saved.holds == RecordKind::Session && name_of(&saved.record).as_ref() == Some(name);
            self.saved().iter().any(is_its)
        };
        let mut owned = self.store.owned_by(process.number);
        owned.find(|name| !has(name)).map_or(Ok(()), |name| Err(format!("{STUCK}: {name}")))
    }
}

/// True if a key may be in a record: most other records need not be parsed.
fn has(data: &[u8], key: &str) -> bool {
    data.windows(key.len()).any(|part| part == key.as_bytes())
}

/// True if a request must not be sent before its record is put.
fn is_put_first(request: &Request) -> bool {
    !matches!(request.method, Method::Get | Method::Delete) && !is_login(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::{Act, Leaves};
    use crate::delivery::{Delivery, StoreResult};
    use crate::scope::SCOPES;

    /// Two programs of which the first is about to send what it has put.
    fn about_to_send(scope: &str) -> World {
        let scope = SCOPES.iter().find(|known| known.name == scope).unwrap();
        let mut world = World::new(scope, None, false).unwrap();
        while !world.process.as_ref().unwrap().sends() {
            world.keep(0, StoreResult::Done).unwrap();
        }
        world
    }

    fn harm(done: Result<(), Wrong>) -> Option<String> {
        Some(done.err()?.split(':').next().unwrap_or_default().to_owned())
    }

    #[test]
    fn a_write_under_a_name_that_another_program_owns_by_then_is_harm() {
        for scope in ["two programs open one session", "two programs place one static order"] {
            for (is_taken, found) in [(true, Some(FOREIGN.to_owned())), (false, None)] {
                let mut world = about_to_send(scope);
                let number = world.process.as_ref().unwrap().number;
                if is_taken {
                    world.store.ends_claims(number);
                    world.turn(1, |world| world.keep(0, StoreResult::Done)).unwrap();
                }
                let mut dying = world.clone();
                assert_eq!(harm(world.deliver(0, Delivery::Answered)), found, "{scope}");
                assert_eq!(harm(dying.act(&Act::Crash { leaves: Leaves::All })), found, "{scope}");
            }
        }
    }

    #[test]
    fn a_write_that_is_not_what_is_kept_any_more_is_harm() {
        let mut world = about_to_send("two programs open one session");
        world.process.as_mut().unwrap().kept.clear();
        assert_eq!(harm(world.deliver(0, Delivery::Answered)), Some(UNSAVED.to_owned()));
    }

    #[test]
    fn what_comes_too_late_is_not_sent_even_by_who_dies_then() {
        for act in [Act::Deliver { at: 0, delivery: Delivery::Answered }, Act::Crash { leaves: Leaves::All }] {
            let mut world = about_to_send("two programs open one session");
            world.pass(OUTLASTS).unwrap();
            world.act(&act).unwrap();
            assert!(!world.checker.was_done(0), "{act:?}");
        }
    }

    #[test]
    fn a_name_that_is_owned_without_use_is_harm() {
        for (is_kept_back, found) in [(true, Some(STUCK.to_owned())), (false, None)] {
            let mut world = about_to_send("two programs open one session");
            let number = world.process.as_ref().unwrap().number;
            if is_kept_back {
                let claim = StoreCall::Claim { names: vec![Name::from("of.another".to_owned())], most: 1 };
                world.store.call(&claim, number, world.now);
            }
            assert_eq!(harm(world.act(&Act::End)), found);
        }
    }
}
