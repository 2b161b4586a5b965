//! The work of callers.

use hopline::client::{Millis, Name, Seen};
use hopline::contract::pools::AcquireLease;

use super::agenda::Due;
use super::caller::{Aim, Out};
use super::laws::Law;
use super::life::{Awaited, Fleet};
use super::story::{MINUTE, Outage, START};
use crate::pools::watch::Wrong;
use crate::swarm::Source;

impl Fleet {
    /// A caller asks for a lease, if it is its time.
    pub(super) fn asks(&mut self, number: u8, caller: usize) {
        let story_time = self.now - self.zero;
        let Some(program) = self.programs.get_mut(&number).filter(|program| !program.is_closing) else { return };
        let (Some(pool), plan) = (program.pool, &self.callers[caller].plan) else { return };
        if story_time < plan.during.start {
            return self.agenda.write(self.zero + plan.during.start, Due::Asks(number, caller));
        }
        if story_time >= plan.during.end {
            return;
        }
        let target = match plan.aim {
            Aim::Nothing => None,
            Aim::One(target) => Some(target),
            Aim::Any => Some(self.chance.below(self.targets.len())),
        };
        let ticket = program.client.acquire(AcquireLease {
            pool,
            target: target.map(|target| format!("host-{target}.example")),
            key: plan.key.clone(),
            timeout_ms: Some(plan.timeout),
            avoid: self.callers[caller].avoids.clone(),
        });
        program.awaits.insert(ticket.command, Awaited::Lease(caller));
        self.callers[caller].waits = Some((number, self.now));
        self.callers[caller].target = target;
        self.callers[caller].asked_to_avoid = self.callers[caller].avoids.take();
    }

    /// A caller has a lease.
    pub(super) fn granted(&mut self, number: u8, caller: usize, out: Out) -> Result<(), Wrong> {
        let (_, since) = self.callers[caller].waits.take().ok_or("a caller got a lease that it did not ask for")?;
        if let Some((lender, other)) = self.lent.get(&out.session)
            && self.is_valid(*lender, other)
        {
            return Err(format!("{} is lent twice, by programs {lender} and {number}", out.session));
        }
        let owner = |name: &Name| self.store.owner(name);
        let key = self.callers[caller].plan.key.as_deref();
        self.laws.granted(number, caller, key, &out.session, owner, self.now - self.zero);
        if self.story.programs.iter().all(|part| part.skew == 0)
            && let Some(target) = self.callers[caller].target
        {
            self.laws.lent(number, &out.session, out.rotations, target, self.now - self.zero);
        }
        if self.callers[caller].asked_to_avoid.as_ref() == Some(&out.session) {
            let how = format!("program {number} lends {} to caller {caller}, who avoids it", out.session);
            self.laws.breaks(Law::LentAvoided, self.now - self.zero, how);
        }
        self.lent.insert(out.session.clone(), (number, out.lease.clone()));
        self.lived.granted(self.now - self.zero, self.callers[caller].place, caller, self.now - since, &out.session);
        let leases = self.lent.values().filter(|(lender, _)| *lender == number).count();
        self.lived.has(self.callers[caller].place, leases, self.now - self.zero);
        self.tell(|| format!("program {number} lends {} to caller {caller}", out.session));
        let plan = &self.callers[caller].plan;
        let work = if plan.is_exact { plan.work } else { plan.work / 2 + self.chance.below(plan.work.max(1) as usize) as Millis };
        let work = work + self.callers[caller].target.map_or(0, |target| self.targets.takes(target));
        self.agenda.write(self.now + work, Due::GivesBack(number, caller, out));
        Ok(())
    }

    /// A caller got an error in place of a lease.
    pub(super) fn refused(&mut self, number: u8, caller: usize, error: &str) {
        if self.has_laws && error.contains("no session is free;") {
            self.check_told(number, caller, error);
        }
        let Some((_, since)) = self.callers[caller].waits.take() else { return };
        let waited = self.now - since;
        self.lived.refused(caller, waited, error);
        self.laws.refused(caller, waited, self.now - self.zero, error);
        self.tell(|| format!("program {number} tells caller {caller}: {error}"));
        // One that is refused at once comes again a second later.
        let rest = if waited < 200 { 1000 } else { 200 };
        self.asks_again(number, caller, rest);
    }

    /// A caller says what it saw, and gives the lease back.
    pub(super) fn gives_back(&mut self, number: u8, caller: usize, out: &Out) {
        let mut requests = self.callers[caller].plan.requests;
        let seen = match self.callers[caller].target {
            Some(target) => self.targets.answer(target, &out.session, out.rotations, self.now - self.zero),
            None => Seen::Status(200),
        };
        // Through a session that is over nothing comes.
        let is_over = self.service.status_of(&out.session, START + self.now) != Some("active");
        let is_refused = self.is_out(Outage::Proxies) || (self.is_out(Outage::OtherProxies) && !self.lived.is_first(&out.session));
        let seen = if is_over || is_refused { Seen::Status(407) } else { seen };
        let wait = self.callers[caller].target.and_then(|target| self.targets.wait(target));
        let Some(program) = self.programs.get_mut(&number) else { return };
        if let Seen::Status(status) = seen {
            self.laws.saw(&out.session, out.rotations, self.callers[caller].target, status);
            if let Some(target) = self.callers[caller].target {
                let rests = if status == 429 { wait.unwrap_or_default() } else { MINUTE };
                let until = (status == 403 || status == 429).then_some(self.now - self.zero + rests);
                self.laws.rests(&out.session, out.rotations, target, until.filter(|_| status != 407), status == 200);
            }
        }
        let now = program.clock(self.now);
        let plan = &self.callers[caller].plan;
        if plan.keeps_data && !out.has_data && program.client.is_valid(&out.lease) {
            let data = format!("{{\"by\":{}}}", self.now);
            if program.client.set_lease_data(&out.lease, &data, now).is_ok() {
                self.laws.puts(&out.session, out.rotations, data, self.now - self.zero);
            }
        }
        let advice = program.client.observe_lease(&out.lease, seen, wait, now);
        while requests > 1 {
            requests -= 1;
            program.client.observe_lease(&out.lease, seen, wait, now);
        }
        if plan.discards && matches!(seen, Seen::Status(403 | 429)) && program.client.discard(&out.lease, now) {
            self.laws.discarded.insert(out.session.clone());
        }
        program.client.give_back(&out.lease, now);
        self.lent.remove(&out.session);
        let asker = &mut self.callers[caller];
        asker.avoids = (asker.plan.avoids && seen != Seen::Status(200)).then(|| out.session.clone());
        self.lived.answered(caller, seen == Seen::Status(200));
        self.tell(|| format!("caller {caller} of program {number} saw {seen:?} by {}: {advice:?}", out.session));
        self.asks_again(number, caller, self.callers[caller].plan.pause);
    }

    fn asks_again(&mut self, number: u8, caller: usize, pause: Millis) {
        let plan = &self.callers[caller].plan;
        let story_time = self.now - self.zero;
        let at = match plan.every {
            Some(every) => plan.during.start + ((story_time - plan.during.start) / every + 1) * every,
            None => story_time + pause,
        };
        self.agenda.write(self.zero + at, Due::Asks(number, caller));
    }
}
