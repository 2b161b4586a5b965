//! ! The three laws of pools, and what money and people must find, as an onlooker checks them: from the service's sessions, the leases that
//! callers have, the owners in the store, the requests that are out, and what targets did to each exit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hopline::client::{Millis, Name, StoreAnswer, StoreCall, describe};

use super::{Fleet, MINUTE, SECOND, START};
use crate::pools::watch::is_slot;

/// A law that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// Law 1: a session was idle beside somebody who waited.
    Idle,
    /// Law 2: the same, for a session whose exit was changed, or could not be read or changed, a short time ago.
    Withheld,
    /// Law 1: a session was idle with another program, or with nobody.
    IdleElsewhere,
    /// Law 3: a caller waited for what could not come.
    KeptWaiting,
    /// A caller waited for longer than it may.
    TooLong,
    /// A second session was bought before the first was ready.
    TriedTwice,
    /// A session was bought while another program had one to spare.
    SpentIdle,
    /// A session was bought although somebody had paused the pool.
    BoughtPaused,
    /// A key changed its session while its exit stayed.
    Moved,
    /// What somebody said took longer than five seconds.
    Unheard,
}

impl Law {
    /// All of them.
    pub const ALL: [Law; 10] = [
        Law::Idle,
        Law::Withheld,
        Law::IdleElsewhere,
        Law::KeptWaiting,
        Law::TooLong,
        Law::TriedTwice,
        Law::SpentIdle,
        Law::BoughtPaused,
        Law::Moved,
        Law::Unheard,
    ];
}

/// A session that fits may be idle here for so long: what is under way is over by then.
const MOMENT: Millis = 250;
/// With another program for so long, and as long as the longest lease there.
const ELSEWHERE: Millis = 10 * SECOND;
/// A program needs what it had in use within this.
const PEAK: Millis = 5 * SECOND;
/// So long others must have had more than they need before somebody buys: it is told, read, and asked for.
const SPARE: Millis = 9 * SECOND;
/// After so long everybody has heard of a pause.
const HEARD: Millis = 5 * SECOND;
/// The first purchase that was sent and is not ready: no second one so soon.
const FIRST: Millis = 30 * SECOND;

/// What the onlooker knows of a session.
#[derive(Debug, Default)]
struct Known {
    /// The slot in the store.
    slot: Option<Name>,
    /// The program that has read that it is active, since it owns it.
    read_by: Option<u8>,
    /// Requests about it that are out.
    out: u32,
    /// The last change of its exit, that was made or refused, or its last read that failed.
    braked: Option<Millis>,
    /// Its generation, and the targets (none: its proxy) that were seen to do badly through its present exit.
    rotations: u32,
    bad: BTreeSet<Option<usize>>,
    active: bool,
}

/// What a program had in use: leases and waiters.
#[derive(Debug, Default)]
struct Uses {
    noted: VecDeque<(Millis, usize)>,
    /// Since when it has had more than it needs.
    spare: Option<Millis>,
}

impl Uses {
    fn note(&mut self, now: Millis, uses: usize) {
        if self.noted.back().is_none_or(|(_, last)| *last != uses) {
            self.noted.push_back((now, uses));
        }
        while self.noted.get(1).is_some_and(|(at, _)| *at <= now - PEAK) {
            self.noted.pop_front();
        }
    }

    fn peak(&self) -> usize {
        self.noted.iter().map(|(_, uses)| *uses).max().unwrap_or_default()
    }
}

/// The onlooker.
#[derive(Debug, Default)]
pub(super) struct Laws {
    sessions: BTreeMap<String, Known>,
    slots: BTreeMap<Name, String>,
    uses: BTreeMap<u8, Uses>,
    /// Since when a session has fitted a caller that waits, and is not lent to it.
    fits: BTreeMap<(usize, String), Millis>,
    /// The callers for whom something could come since they wait.
    could: BTreeSet<usize>,
    is_ready: bool,
    tried: Option<Millis>,
    keys: BTreeSet<String>,
    paused: Option<Millis>,
    bound: BTreeMap<(u8, String), (String, u32)>,
    pub(super) broken: BTreeMap<Law, String>,
}

impl Laws {
    fn breaks(&mut self, law: Law, at: Millis, how: String) {
        self.broken.entry(law).or_insert_with(|| format!("{:.3} {how}", at as f64 / 1000.0));
    }

    /// The store has done what a program called for.
    pub(super) fn called(&mut self, number: u8, call: &StoreCall, answer: &StoreAnswer) {
        match (call, answer) {
            (StoreCall::Put { name, data, .. }, StoreAnswer::Done) if is_slot(name) => {
                if let Some(session) = describe(data).and_then(|known| known.session_id) {
                    self.sessions.entry(session.clone()).or_default().slot = Some(name.clone());
                    self.slots.insert(name.clone(), session);
                }
            }
            (_, StoreAnswer::Claimed(claimed)) => {
                for (name, _) in claimed {
                    let session = self.slots.get(name).and_then(|session| self.sessions.get_mut(session));
                    if let Some(known) = session.filter(|known| known.read_by != Some(number)) {
                        known.read_by = None;
                    }
                }
            }
            (StoreCall::Release { names: Some(names) }, _) => {
                for name in names {
                    if let Some(known) = self.slots.get(name).and_then(|session| self.sessions.get_mut(session)) {
                        known.read_by = None;
                    }
                }
            }
            _ => {}
        }
    }

    /// A request about a session goes out.
    pub(super) fn sent(&mut self, session: &str) {
        self.sessions.entry(session.to_owned()).or_default().out += 1;
    }

    /// A program has its answer.
    pub(super) fn answered(&mut self, number: u8, session: &str, operation: &str, status: u16, body: &[u8], now: Millis) {
        let known = self.sessions.entry(session.to_owned()).or_default();
        known.out = known.out.saturating_sub(1);
        let is_active = || serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|told| told["data"]["status"] == "active");
        match (operation, status) {
            ("get_session", 200) if is_active() => {
                known.read_by = Some(number);
                self.is_ready = true;
            }
            ("rotate_session", 200) => {
                (known.rotations, known.braked) = (known.rotations + 1, Some(now));
                known.bad.clear();
            }
            _ => known.braked = Some(now),
        }
    }

    /// A target answered through the present exit of a session.
    pub(super) fn saw(&mut self, session: &str, rotations: u32, target: Option<usize>, status: u16) {
        let Some(known) = self.sessions.get_mut(session).filter(|known| known.rotations == rotations) else { return };
        match status {
            200 => {}
            407 => _ = known.bad.insert(None),
            _ => _ = known.bad.insert(target),
        }
    }

    /// A caller with a key has a lease.
    pub(super) fn granted(
        &mut self,
        number: u8,
        caller: usize,
        key: Option<&str>,
        session: &str,
        owner: impl Fn(&Name) -> Option<u8>,
        now: Millis,
    ) {
        self.fits.retain(|(waits, _), _| *waits != caller);
        self.could.remove(&caller);
        let Some(key) = key else { return };
        let place = (number, key.to_owned());
        if let Some((before, had)) = self.bound.get(&place).filter(|(before, _)| before != session) {
            let stays = self.sessions.get(before).is_some_and(|known| {
                let is_owned = known.slot.as_ref().is_some_and(|slot| owner(slot) == Some(number));
                known.active
                    && is_owned
                    && known.rotations == *had
                    && known.bad.is_empty()
                    && known.out == 0
                    && known.read_by == Some(number)
            });
            if stays {
                let how = format!("the key {key} of program {number} went from {before} to {session}");
                self.breaks(Law::Moved, now, how);
            }
        }
        let rotations = self.sessions.get(session).map_or(0, |known| known.rotations);
        self.bound.insert(place, (session.to_owned(), rotations));
    }

    /// A caller waits no more, and has no lease.
    pub(super) fn refused(&mut self, caller: usize, waited: Millis, now: Millis, error: &str) {
        self.fits.retain(|(waits, _), _| *waits != caller);
        if !self.could.remove(&caller) && waited > HEARD {
            self.breaks(Law::KeptWaiting, now, format!("caller {caller} waited for {waited} ms, and was told: {error}"));
        }
    }

    /// Somebody has said this, and it has come through.
    pub(super) fn said(&mut self, operation: &str, took: Millis, now: Millis) {
        match operation {
            "resume_pool" => self.paused = None,
            _ => self.paused = Some(now),
        }
        if took > HEARD {
            self.breaks(Law::Unheard, now, format!("{operation} took {took} ms"));
        }
    }

    /// Somebody says that the pool may buy again: from now on it may.
    pub(super) fn resumes(&mut self) {
        self.paused = None;
    }
}

impl Fleet {
    /// A purchase with a new key goes out.
    pub(super) fn check_purchase(&mut self, number: u8, key: &str) {
        let now = self.now - self.zero;
        if !self.laws.keys.insert(key.to_owned()) {
            return;
        }
        if !self.laws.is_ready && self.laws.tried.is_some_and(|at| now - at < FIRST) {
            self.laws.breaks(Law::TriedTwice, now, format!("program {number} buys before the first session is ready"));
        }
        self.laws.tried = Some(now);
        if self.laws.paused.is_some_and(|at| now - at > HEARD) {
            self.laws.breaks(Law::BoughtPaused, now, format!("program {number} buys, and the pool is paused or drained"));
        }
        let spare = self.laws.uses.iter().find(|(other, uses)| **other != number && uses.spare.is_some_and(|since| now - since > SPARE));
        if let Some((other, uses)) = spare {
            let how = format!("program {number} buys while program {other} has had a session to spare since {:?}", uses.spare);
            // One that does not fit those who wait is none to spare for them.
            let fits = |session: &String| {
                self.callers.iter().any(|caller| {
                    caller.waits.is_some_and(|(program, _)| program == number) && self.laws.fits_caller(session, caller.target)
                })
            };
            if self.laws.free_of(self, Some(*other)).iter().any(fits) {
                self.laws.breaks(Law::SpentIdle, now, how);
            }
        }
    }

    /// What must hold at every moment.
    pub(super) fn check(&mut self) {
        let now = self.now - self.zero;
        let mut laws = std::mem::take(&mut self.laws);
        let waits: Vec<usize> = (0..self.callers.len()).filter(|caller| self.callers[*caller].waits.is_some()).collect();
        for (session, known) in &mut laws.sessions {
            known.active = self.service.is_active(session, START + self.now);
        }
        let living = laws.sessions.values().any(|known| known.active);
        for (number, program) in self.programs.iter().filter(|(_, program)| !program.is_closing) {
            let held = laws
                .sessions
                .values()
                .filter(|known| known.slot.as_ref().is_some_and(|slot| self.store.owner(slot) == Some(*number)))
                .count();
            let uses = waits.iter().filter(|caller| self.callers[**caller].waits.is_some_and(|(waits, _)| waits == *number)).count()
                + self.lent.values().filter(|(lender, _)| lender == number).count();
            let known = laws.uses.entry(*number).or_default();
            known.note(now, uses);
            let is_spare = held > known.peak() + program.request.keep_ready.unwrap_or_default() as usize;
            known.spare = if is_spare { known.spare.or(Some(now)) } else { None };
        }
        laws.uses.retain(|number, _| self.programs.get(number).is_some_and(|program| !program.is_closing));
        let spare: Vec<u8> = laws.uses.iter().filter(|(_, uses)| uses.spare.is_some()).map(|(number, _)| *number).collect();

        let mut fits: BTreeMap<(usize, String), Millis> = BTreeMap::new();
        let is_well = !self.story.outages.iter().any(|(when, _)| (when.start..when.end.saturating_add(MINUTE)).contains(&now));
        let free: Vec<(Option<u8>, String)> = laws.all_free(self);
        for caller in waits {
            let asker = &self.callers[caller];
            let Some((number, since)) = asker.waits else { continue };
            if living || !is_well {
                laws.could.insert(caller);
            }
            if self.now - since > asker.plan.timeout + SECOND {
                laws.breaks(
                    Law::TooLong,
                    now,
                    format!("caller {caller} of program {number} has waited since {:.3}", (since - self.zero) as f64 / 1000.0),
                );
            }
            if asker.plan.key.is_some()
                || asker.asked_to_avoid.is_some()
                || self.programs.get(&number).is_none_or(|program| program.is_closing)
            {
                continue;
            }
            for (owner, session) in &free {
                let elsewhere = match owner {
                    Some(owner) if *owner == number => false,
                    Some(owner) if spare.contains(owner) => true,
                    Some(_) => continue,
                    None => true,
                };
                if !laws.fits_caller(session, asker.target) || (elsewhere && !is_well) {
                    continue;
                }
                let pair = (caller, session.clone());
                let from = laws.fits.get(&pair).copied().unwrap_or(now);
                let rounds = self.programs.len() as Millis * 6 * SECOND / Millis::from(self.story.size);
                let most = if elsewhere { ELSEWHERE.max(rounds) + self.longest_work() } else { MOMENT };
                if now - from > most {
                    let known = &laws.sessions[session];
                    let is_braked = known.braked.is_some_and(|at| now - at < MINUTE);
                    let law = if elsewhere {
                        Law::IdleElsewhere
                    } else if is_braked {
                        Law::Withheld
                    } else {
                        Law::Idle
                    };
                    let how = format!(
                        "caller {caller} of program {number} (target {:?}) waits, and {session} with {owner:?} fits since {:.3}",
                        asker.target,
                        from as f64 / 1000.0
                    );
                    laws.breaks(law, now, how);
                }
                fits.insert(pair, from);
            }
        }
        laws.fits = fits;
        self.laws = laws;
    }

    fn longest_work(&self) -> Millis {
        self.callers.iter().map(|caller| caller.plan.work * 3 / 2).max().unwrap_or_default()
    }
}

impl Laws {
    /// Through its present exit nothing bad was seen of the target.
    fn fits_caller(&self, session: &str, target: Option<usize>) -> bool {
        self.sessions.get(session).is_some_and(|known| !known.bad.contains(&None) && !known.bad.contains(&target))
    }

    /// The sessions that are free, with whoever has them: active, read, not lent, and no request about them is out.
    fn all_free(&self, fleet: &Fleet) -> Vec<(Option<u8>, String)> {
        let free = self.sessions.iter().filter_map(|(session, known)| {
            if !known.active || known.out > 0 || fleet.lent.contains_key(session) {
                return None;
            }
            let owner = fleet.store.owner(known.slot.as_ref()?);
            let is_read = owner.is_none_or(|owner| known.read_by == Some(owner) && fleet.programs.contains_key(&owner));
            is_read.then(|| (owner, session.clone()))
        });
        free.collect()
    }

    fn free_of(&self, fleet: &Fleet, owner: Option<u8>) -> Vec<String> {
        self.all_free(fleet).into_iter().filter(|(known, _)| *known == owner).map(|(_, session)| session).collect()
    }
}
