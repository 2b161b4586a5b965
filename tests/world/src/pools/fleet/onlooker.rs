//! The onlooker's checks of a life.

use std::collections::BTreeMap;

use hopline::client::Millis;

use super::laws::{BESIDE, CHANGE, ELSEWHERE, FIRST, HEARD, KEPT, Law, Laws, MOMENT, SPARE, TRIAL_LATE, Uses};
use super::life::Fleet;
use super::story::{MINUTE, SECOND, START};

impl Fleet {
    /// A purchase with a new key goes out.
    pub(super) fn check_purchase(&mut self, number: u8, key: &str) {
        let now = self.now - self.zero;
        self.laws.kept.clear();
        if !self.laws.keys.insert(key.to_owned()) {
            return;
        }
        let is_told = self.laws.refused_at.is_none_or(|at| now - at > SECOND);
        // Prices that are too high for one program's choice hold nobody else back.
        if !self.story.chooses && !self.laws.is_ready && is_told && self.laws.tried.is_some_and(|at| now - at < FIRST) {
            self.laws.breaks(Law::TriedTwice, now, format!("program {number} buys before the first session is ready"));
        }
        // The hold counts from the refusal that was not told yet.
        if is_told {
            self.laws.tried = Some(now);
        }
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
            if self.free_of(Some(*other)).iter().any(fits) {
                self.laws.breaks(Law::SpentIdle, now, how);
            }
        }
        self.check_beside(number);
    }

    /// A program buys nothing beside sessions that have been free for a while, here or with nobody, and that would serve all who wait in it.
    /// Those who have a key or avoid a session may need another one.
    fn check_beside(&mut self, number: u8) {
        let now = self.now - self.zero;
        let waits = || self.callers.iter().filter(|caller| caller.waits.is_some_and(|(program, _)| program == number));
        let is_choosy = waits().any(|caller| caller.plan.key.is_some() || caller.asked_to_avoid.is_some());
        let keeps = self.programs.get(&number).is_none_or(|program| program.request.keep_ready.unwrap_or_default() > 0);
        if is_choosy || keeps || !self.is_well() {
            return;
        }
        let serves = |(owner, session): &(Option<u8>, String)| {
            let least = match owner {
                Some(owner) if *owner == number => BESIDE,
                Some(_) => return false,
                None => ELSEWHERE,
            };
            let is_idle = self.laws.sessions[session].idle_since.is_some_and(|since| now - since > least);
            is_idle && waits().all(|caller| self.laws.fits_caller(session, caller.target))
        };
        let free: Vec<String> = self.all_free(&self.laws).into_iter().filter(serves).map(|(_, session)| session).collect();
        let waiting = waits().count();
        if !free.is_empty() && free.len() >= waiting {
            let how = format!("program {number} buys for {waiting} who wait, beside {free:?}");
            self.laws.breaks(Law::BoughtBeside, now, how);
        }
    }

    /// Nothing is out of order, or was a minute ago.
    fn is_well(&self) -> bool {
        let now = self.now - self.zero;
        !self.story.outages.iter().any(|(when, _)| (when.start..when.end.saturating_add(MINUTE)).contains(&now))
    }

    /// Checks the laws that hold at every moment.
    pub(super) fn check(&mut self) {
        let now = self.now - self.zero;
        let mut laws = std::mem::take(&mut self.laws);
        let waits: Vec<usize> = (0..self.callers.len()).filter(|caller| self.callers[*caller].waits.is_some()).collect();
        let mut living = laws.buying > 0;
        for (session, known) in &mut laws.sessions {
            let status = self.service.status_of(session, START + self.now);
            known.active = status == Some("active");
            // A session that has an owner who has not seen it end may live, for all that anybody can know.
            let is_owned = known.slot.as_ref().is_some_and(|slot| self.store.owner(slot).is_some());
            known.free_since = if is_owned || !known.active { None } else { known.free_since.or(Some(now)) };
            living |= known.active || status == Some("creating") || (is_owned && !known.is_seen_over);
        }
        for (number, program) in self.programs.iter().filter(|(_, program)| !program.is_closing) {
            let held = laws
                .sessions
                .values()
                .filter(|known| known.active)
                .filter(|known| known.slot.as_ref().is_some_and(|slot| self.store.owner(slot) == Some(*number)))
                .count();
            let uses = waits.iter().filter(|caller| self.callers[**caller].waits.is_some_and(|(waits, _)| waits == *number)).count()
                + self.lent.values().filter(|(lender, _)| lender == number).count();
            let in_hand = uses + laws.kept_for_keys(*number, now - program.request.idle_release_ms.unwrap_or(KEPT));
            let known = laws.uses.entry(*number).or_default();
            known.note(now, uses);
            let is_spare = held > known.peak().max(in_hand) + program.request.keep_ready.unwrap_or_default() as usize;
            known.spare = if is_spare { known.spare.or(Some(now)) } else { None };
        }
        let kept = laws.kept.iter().position(|(at, _)| now - *at > TRIAL_LATE).map(|at| laws.kept.remove(at));
        if let Some((at, how)) = kept {
            laws.breaks(Law::KeptWaiting, at, how);
        }
        let mut moves = std::mem::take(&mut laws.moves);
        moves.retain(|(_, number, before, _)| {
            let slot = laws.sessions.get(before).and_then(|known| known.slot.as_ref());
            slot.is_some_and(|slot| self.store.owner(slot) == Some(*number))
        });
        for (at, .., how) in moves.extract_if(.., |(at, ..)| now - *at > MOMENT) {
            laws.breaks(Law::Moved, at, how);
        }
        laws.moves = moves;
        laws.uses.retain(|number, _| self.programs.get(number).is_some_and(|program| !program.is_closing));
        let spare: Vec<u8> = laws.uses.iter().filter(|(_, uses)| uses.spare.is_some()).map(|(number, _)| *number).collect();

        let mut fits: BTreeMap<(usize, String, Option<u8>), Millis> = BTreeMap::new();
        let is_well = self.is_well();
        let free: Vec<(Option<u8>, String)> = self.all_free(&laws);
        for (session, known) in &mut laws.sessions {
            let is_idle = free.iter().any(|(_, idle)| idle == session);
            known.idle_since = if is_idle { known.idle_since.or(Some(now)) } else { None };
        }
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
                let pair = (caller, session.clone(), *owner);
                let from = laws.fits.get(&pair).copied().unwrap_or(now);
                let rounds = self.programs.len() as Millis * 6 * SECOND / Millis::from(self.story.size);
                let is_changing = laws.sessions[session].changes.is_some_and(|at| now - at < CHANGE);
                let most = match elsewhere {
                    true => ELSEWHERE.max(rounds) + self.longest_work(),
                    false if is_changing => CHANGE,
                    false => MOMENT,
                };
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
        self.check_share(&mut laws, is_well);
        laws.fits = fits;
        self.laws = laws;
    }

    /// No program that waits has nothing for long while another one lends more than its share of the sessions that there are.
    fn check_share(&self, laws: &mut Laws, is_well: bool) {
        let now = self.now - self.zero;
        let active = laws.sessions.values().filter(|known| known.active).count();
        let programs = self.programs.values().filter(|program| !program.is_closing).count().max(1);
        let (share, mut starves) = ((active / programs).max(1), BTreeMap::new());
        for number in self.programs.iter().filter(|(_, program)| !program.is_closing).map(|(number, _)| *number) {
            if !is_well || self.lent.values().any(|(lender, _)| *lender == number) {
                continue;
            }
            let fits = |session: &String| {
                self.callers.iter().any(|caller| {
                    let waits = caller.waits.is_some_and(|(program, _)| program == number);
                    waits && caller.plan.key.is_none() && caller.asked_to_avoid.is_none() && laws.fits_caller(session, caller.target)
                })
            };
            // What rests for its own targets is its share all the same.
            let owns = laws
                .sessions
                .values()
                .filter(|known| known.active && known.slot.as_ref().and_then(|slot| self.store.owner(slot)) == Some(number))
                .count();
            let needs = laws.uses.get(&number).map_or(0, Uses::peak);
            if owns > 0 && owns >= share.min(needs) {
                continue;
            }
            let has_more = |other: u8| self.lent.iter().filter(|(session, (lender, _))| *lender == other && fits(session)).count() > share;
            if let Some(other) = self.programs.keys().copied().find(|other| *other != number && has_more(*other)) {
                let since = laws.starves.get(&number).copied().unwrap_or(now);
                starves.insert(number, since);
                let slowest = self.callers.iter().filter_map(|caller| caller.target).map(|target| self.targets.takes(target)).max();
                let rounds = programs as Millis * 6 * SECOND / active.max(1) as Millis;
                if now - since > ELSEWHERE.max(rounds) + self.longest_work() + slowest.unwrap_or_default() {
                    let how =
                        format!("program {number} has had nothing since {:.3}, and {other} has more than {share}", since as f64 / 1000.0);
                    laws.breaks(Law::Starved, now, how);
                }
            }
        }
        laws.starves = starves;
    }

    /// A session that fits and has no owner is there for whoever is told that nothing comes.
    pub(super) fn check_told(&mut self, number: u8, caller: usize, error: &str) {
        let now = self.now - self.zero;
        let target = self.callers[caller].target;
        let fits = |session: &String| self.laws.fits_caller(session, target);
        let free = self
            .free_of(None)
            .into_iter()
            .find(|session| fits(session) && self.laws.sessions[session].free_since.is_some_and(|since| now - since > ELSEWHERE));
        if let Some(session) = free {
            let how = format!("program {number} tells caller {caller} for target {target:?}, though {session} is free: {error}");
            self.laws.breaks(Law::ToldTooSoon, now, how);
        }
    }

    fn longest_work(&self) -> Millis {
        self.callers.iter().map(|caller| caller.plan.work * 3 / 2).max().unwrap_or_default()
    }

    /// The sessions that are free, with whoever has them: active, read, not lent, and no request about them is out.
    fn all_free(&self, laws: &Laws) -> Vec<(Option<u8>, String)> {
        let free = laws.sessions.iter().filter_map(|(session, known)| {
            if !known.active || known.out > 0 || self.lent.contains_key(session) {
                return None;
            }
            let owner = self.store.owner(known.slot.as_ref()?);
            let is_read = owner.is_none_or(|owner| known.read_by == Some(owner) && self.programs.contains_key(&owner));
            is_read.then(|| (owner, session.clone()))
        });
        free.collect()
    }

    fn free_of(&self, owner: Option<u8>) -> Vec<String> {
        self.all_free(&self.laws).into_iter().filter(|(known, _)| *known == owner).map(|(_, session)| session).collect()
    }
}
