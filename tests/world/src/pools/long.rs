//! Two long lives: a large pool that meets one trouble after the other, and a month of restarts.

use hopline::client::{CallOptions, Millis, Seen};
use hopline::contract::pools::{ClosePool, PoolStatus};
use rand::SeedableRng;

use super::{Config, Decimal, LeaseAdvice, Life, MINUTE, OUTLASTS, PoolsLived, START, Service, Wrong, Xoshiro256PlusPlus, lease_ref};
use crate::service::API_KEY;
use crate::swarm::Source;

const SECOND: Millis = 1000;
const DAY: Millis = 24 * 60 * MINUTE;

impl Life {
    /// A life of one program, in which only what is done to it happens.
    fn steady(seed: u64, size: u32, ready: u32) -> Life {
        let config = Config { api_key: API_KEY.to_owned(), session_limit: 1000, requests_per_minute: 100_000, ..Config::new(seed) };
        let mut service = Service::new(config);
        service.set_balance(Decimal::from(1_000_000));
        let mut life = Life::of(Xoshiro256PlusPlus::seed_from_u64(seed), service, size, ready);
        life.begin_with(size);
        life
    }

    fn told(self, lived: Result<(), Wrong>) -> Result<PoolsLived, String> {
        let last = self.story.len().saturating_sub(200);
        lived.map_err(|wrong| format!("{wrong}\n  {}", self.story[last..].join("\n  ")))?;
        Ok(self.lived)
    }

    fn status(&self) -> Result<PoolStatus, Wrong> {
        let program = self.programs.first().ok_or("there is no program")?;
        program.pool.and_then(|pool| program.client.status(pool)).ok_or_else(|| "the pool is not open".into())
    }

    /// Callers use what is lent for a second: one in ten is blocked, and, where they end, a session is used up now and then.
    fn use_for(&mut self, time: Millis, callers: usize, ends: bool) -> Result<(), Wrong> {
        let until = self.now + time;
        while self.now < until {
            for _ in 0..callers {
                self.acquire(0);
            }
            self.pass(SECOND)?;
            let leases: Vec<_> = self.programs[0].leases.keys().copied().collect();
            for lease in leases {
                let seen = if self.chance.below(10) == 0 { Seen::Status(403) } else { Seen::Status(200) };
                let now = self.clock(&self.programs[0]);
                let program = &mut self.programs[0];
                let advice = program.client.observe_lease(&lease_ref(lease), seen, None, now);
                if seen == Seen::Status(403) && advice == Some(LeaseAdvice::Keep) {
                    return Err("a blocked session is kept".into());
                }
                program.client.give_back(&lease_ref(lease), now);
                program.leases.remove(&lease);
            }
            if ends && self.chance.below(10) == 0 {
                self.expire();
            }
        }
        Ok(())
    }

    /// Each slot is ready, or says why not; or none is bought, and the hold says why not.
    fn is_explained(&self, when: &str) -> Result<(), Wrong> {
        let status = self.status()?;
        let explained = status.slots.iter().filter(|slot| slot.reason.is_some()).count() as u32;
        match status.ready + status.leased + explained == self.size || status.hold.is_some() {
            true => Ok(()),
            false => Err(format!("{when} a slot is neither ready nor explained: {status:?}")),
        }
    }

    fn fleet(&mut self) -> Result<(), Wrong> {
        let size = self.size;
        let is_whole = |life: &Life, when: &str| {
            let status = life.status()?;
            life.is_explained(when)?;
            if status.ready + status.leased < size * 9 / 10 {
                return Err(format!("{when} the pool has not come back: {status:?}"));
            }
            if life.service.charges().len() != life.service.sessions(life.now).len() {
                return Err(format!("{when} what was charged is not what was bought"));
            }
            Ok(())
        };
        self.faults = 2;
        // A session that ends while it is new holds purchases back.
        self.use_for(3 * MINUTE, 5, false)?;
        self.use_for(10 * MINUTE, 5, true)?;
        is_whole(self, "after ten minutes")?;

        self.tell(|| "the backend is out".to_owned());
        self.is_out = true;
        self.use_for(MINUTE, 5, true)?;
        let lent = self.lived.granted;
        self.use_for(MINUTE, 5, true)?;
        if self.lived.granted < lent + 200 {
            return Err(format!("while the backend is out the pool does not lend what it has: {:?}", self.status()));
        }
        self.use_for(8 * MINUTE, 5, true)?;
        self.is_explained("while the backend is out")?;
        self.is_out = false;
        self.use_for(20 * MINUTE, 5, true)?;
        is_whole(self, "after the outage")?;

        self.tell(|| "the balance is empty".to_owned());
        self.service.set_balance(Decimal::ZERO);
        self.use_for(10 * MINUTE, 5, true)?;
        let reason = self.status()?.hold.map(|hold| hold.reason.as_str());
        if reason != Some("balance") {
            return Err(format!("the balance is empty, and the pool is held for {reason:?}"));
        }
        self.service.set_balance(Decimal::from(1_000_000));
        self.use_for(20 * MINUTE, 5, true)?;
        is_whole(self, "after the balance was raised")
    }

    /// One program after the other, for a month; each of them ends as programs do.
    fn month(&mut self) -> Result<(), Wrong> {
        while self.now < START + 30 * DAY {
            let hours = 1 + self.chance.below(12) as Millis;
            let until = self.now + hours * 60 * MINUTE;
            while self.now < until {
                self.use_for(3 * SECOND, 2, false)?;
                self.pass(self.now % (40 * MINUTE))?;
                if self.chance.below(10) == 0 {
                    self.expire();
                }
            }
            let program = &mut self.programs[0];
            let mut is_drained = false;
            match (self.chance.below(3), program.pool) {
                (0, Some(pool)) => {
                    let closed = program.client.close_pool(ClosePool { pool, grace_ms: Some(0) });
                    program.waits.insert(closed);
                    self.pass(2 * MINUTE)?;
                }
                (1, Some(pool)) if self.chance.below(4) == 0 => {
                    let drain = format!(r#"{{"pool":{pool},"grace_ms":0}}"#);
                    let drained = program.client.start_json("drain_pool", &drain, CallOptions::default());
                    program.waits.insert(drained);
                    self.pass(2 * MINUTE)?;
                    is_drained = true;
                }
                _ => {}
            }
            let ended = self.programs.remove(0);
            self.store.ends_claims(ended.number);
            self.pass(OUTLASTS)?;
            self.begin_with(self.size);
            if is_drained {
                // A drain pauses the pool until somebody resumes it.
                self.pass(MINUTE)?;
                self.resume(0);
            }
        }
        self.pass(10 * MINUTE)?;
        let names: Vec<String> = self.store.names().map(ToString::to_string).collect();
        if names.len() > self.size as usize + 1 {
            return Err(format!("a month leaves more than one record a slot: {names:?}"));
        }
        Ok(())
    }
}

/// A pool with 200 ready sessions: one answer in sixteen is lost, one use in ten is blocked, sessions are used up, the backend is out for
/// ten minutes, and the balance is empty for as long. The pool recovers by itself each time.
pub fn pool_fleet(seed: u64) -> Result<PoolsLived, String> {
    let mut life = Life::steady(seed, 200, 200);
    let lived = life.fleet();
    life.told(lived)
}

/// A month of a pool, in which programs end and begin: it leaves one record a slot.
pub fn pool_month(seed: u64) -> Result<PoolsLived, String> {
    let mut life = Life::steady(seed, 4, 1);
    life.faults = 1;
    let lived = life.month();
    life.told(lived)
}
