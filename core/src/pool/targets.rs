//! Observations through a session, for the target of its lease: how long its exit rests for that target, when it is to be changed, and when
//! a change no longer helps.

use super::rules::{PoolRule, holds};
use crate::collections::Map;
use crate::contract::stored;
use crate::policy::Backoff;
use crate::state::{Seen, UNKNOWN};
use crate::time::Millis;

/// How long an exit rests after a 429 that names no time.
const THROTTLED: Millis = 30_000;
/// How long an exit rests after a block.
const BLOCKED: Backoff = Backoff { first: 60_000, most: 3_600_000 };
/// An exit remembers so many targets.
const TARGETS: usize = 4;
/// So many failures of the proxy within a minute, and the exit rests for everybody.
const PROXY_FAILURES: usize = 3;
const MINUTE: Millis = 60_000;
/// Failures within so long that are seen through leases granted before the first of them are one failure.
const MOMENT: Millis = 10_000;
/// When a target blocked so many exits in a row of which each gave fewer than so many good answers, a new exit does not help there.
const EXITS: u32 = 3;
const ANSWERS: u32 = 3;
/// No more exits than these count there.
const MOST_EXITS: u32 = 10;
/// Where it does not help, a rotation is asked for no more often than this.
const RARELY: Millis = 60_000;
/// A pool remembers so many targets that blocked an exit.
const BLOCKING: usize = 256;

/// A target, by the hash of its name; 0 is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TargetId(u64);

impl TargetId {
    pub(crate) const NONE: TargetId = TargetId(0);

    pub(crate) fn of(target: Option<&str>) -> Self {
        let Some(target) = target else { return TargetId::NONE };
        let [a, b, c, d, e, f, g, h, ..] = crate::entropy::digest_bytes("target", target.as_bytes());
        TargetId(u64::from_be_bytes([a, b, c, d, e, f, g, h]).max(1))
    }
}

/// An observation from a request through a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Observation {
    /// An answer of the target, also one that says no to the request itself.
    Good,
    /// 429, with the time that the target asks to wait, if it does; or 503 with such a time.
    Throttled(Option<Millis>),
    /// 403, a captcha, or a block that shows in another way.
    Blocked,
    TimedOut,
    /// The proxy refused the credentials, or was not to be reached.
    Proxy,
    /// The target failed otherwise.
    Failed,
    /// A failure that may be the proxy's or the target's.
    Unknown,
}

impl Observation {
    /// Returns true if the proxy has worked.
    pub(crate) fn is_answer(self) -> bool {
        matches!(self, Observation::Good | Observation::Throttled(_) | Observation::Blocked)
    }

    /// Interprets a caller's observation; `wait` is the Retry-After of the target.
    pub(crate) fn of(seen: Seen, wait: Option<Millis>) -> Self {
        match seen {
            Seen::Status(403 | 999) | Seen::Captcha | Seen::Block => Observation::Blocked,
            Seen::Status(407) => Observation::Proxy,
            Seen::Status(429) => Observation::Throttled(wait),
            Seen::Status(503) if wait.is_some() => Observation::Throttled(wait),
            Seen::Status(500..) => Observation::Failed,
            Seen::Status(_) => Observation::Good,
            Seen::Timeout => Observation::TimedOut,
            Seen::Unknown => Observation::Unknown,
        }
    }
}

/// The consequence for the exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consequence {
    Nothing,
    /// The exit rests for this target.
    Rests,
    /// The exit rests for this target, and another exit may do better. `is_poor`: this one gave few good answers before its first block.
    Blocked {
        is_poor: bool,
    },
    /// The session is to be read: it may be over, or have new credentials.
    Read,
    /// The same, and it rests for everybody, since its proxy fails again and again.
    Refused,
}

/// The observations against one exit. Another exit begins with none of them.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct TargetHistory {
    held: Vec<Rest>,
    proxy_failures: Vec<Millis>,
    /// So many failures in a row may be the proxy's.
    unknown: u32,
    /// How often it has rested for everybody since its proxy worked; since when, and until when.
    refusals: u32,
    refused_at: Option<Millis>,
    rests_until: Millis,
}

/// The observations against it for one target.
#[derive(Debug, Clone, Default, Hash)]
struct Rest {
    target: TargetId,
    until: Millis,
    /// When its last rest began, and its last one for a block.
    began: Option<Millis>,
    blocked_at: Option<Millis>,
    blocks: u32,
    last: LastSeen,
    /// Good answers of the target.
    answers: u32,
}

/// A rest of an exit, as a record has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct SavedRest {
    /// None is all targets.
    target: Option<i64>,
    /// Unix milliseconds, by the clock of whoever wrote it, and how long it was to last from then on.
    until: Millis,
    length: Millis,
    blocks: u32,
}
stored!(SavedRest { target, until, length, blocks });

/// The last observation, where the second in a row counts for more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
enum LastSeen {
    #[default]
    Other,
    Throttled,
    TimedOut(Millis),
}

impl TargetHistory {
    /// Returns true if the exit may be lent for this target now.
    #[cfg(test)]
    pub(crate) fn is_fit(&self, target: TargetId, now: Millis) -> bool {
        self.rested_at(target) <= now
    }

    /// When it may be lent for this target.
    pub(crate) fn rested_at(&self, target: TargetId) -> Millis {
        let held = self.held.iter().find(|held| held.target == target);
        held.filter(|_| holds(PoolRule::ExitsRest)).map_or(0, |held| held.until).max(self.rests_until)
    }

    /// Until when it rests for all targets, as its proxy fails.
    pub(crate) fn rests_until(&self) -> Millis {
        self.rests_until
    }

    /// Returns true if it rests for some target, or for all.
    pub(crate) fn rests(&self, now: Millis) -> bool {
        self.rests_until > now || self.held.iter().any(|held| held.until > now)
    }

    /// How many good answers of the target are known.
    pub(crate) fn answers(&self, target: TargetId) -> u32 {
        self.held.iter().find(|held| held.target == target).map_or(0, |held| held.answers)
    }

    /// Takes an observation for this target, through a lease granted at `since`. What leases see that were granted before a rest began is
    /// what it began for: it counts once.
    pub(crate) fn saw(&mut self, target: TargetId, sight: Observation, since: Millis, now: Millis) -> Consequence {
        let unknown = match sight {
            Observation::Failed => self.unknown,
            _ => std::mem::take(&mut self.unknown),
        };
        if sight.is_answer() {
            self.proxy_failures.clear();
            (self.refusals, self.refused_at, self.rests_until) = (0, None, 0);
        }
        match sight {
            Observation::Failed => Consequence::Nothing,
            Observation::Unknown if unknown + 1 >= UNKNOWN => self.proxy_failed(since, now),
            Observation::Unknown => {
                self.unknown = unknown + 1;
                Consequence::Nothing
            }
            Observation::Proxy => self.proxy_failed(since, now),
            Observation::Good => {
                self.change(target, |held| *held = Rest { target, answers: held.answers.saturating_add(1), ..Rest::default() });
                Consequence::Nothing
            }
            Observation::Throttled(wait) => self.change(target, |held| {
                if Some(since) <= held.began {
                    return Consequence::Rests;
                }
                held.until = held.until.max(now.saturating_add(wait.filter(|_| holds(PoolRule::WaitIsKept)).unwrap_or(THROTTLED).max(0)));
                held.began = Some(now);
                match std::mem::replace(&mut held.last, LastSeen::Throttled) {
                    LastSeen::Throttled if holds(PoolRule::SecondThrottleBlocks) => held.block(now),
                    _ => Consequence::Rests,
                }
            }),
            Observation::TimedOut => self.change(target, |held| match held.last {
                _ if Some(since) <= held.began => Consequence::Rests,
                LastSeen::TimedOut(first) if is_same_moment(first, since, now) => Consequence::Nothing,
                LastSeen::TimedOut(_) => held.block(now),
                _ => {
                    held.last = LastSeen::TimedOut(now);
                    Consequence::Nothing
                }
            }),
            Observation::Blocked => self.change(target, |held| match Some(since) <= held.blocked_at && holds(PoolRule::BlocksCountOnce) {
                true => Consequence::Rests,
                false => held.block(now),
            }),
        }
    }

    fn proxy_failed(&mut self, since: Millis, now: Millis) -> Consequence {
        let is_known = self.proxy_failures.last().is_some_and(|last| is_same_moment(*last, since, now));
        if is_known || Some(since) <= self.refused_at {
            return Consequence::Read;
        }
        self.proxy_failures.retain(|at| now.saturating_sub(*at) < MINUTE);
        self.proxy_failures.push(now);
        if self.proxy_failures.len() < PROXY_FAILURES || !holds(PoolRule::RefusedRests) {
            return Consequence::Read;
        }
        self.proxy_failures.clear();
        self.rests_until = now.saturating_add(BLOCKED.wait(self.refusals));
        (self.refusals, self.refused_at) = (self.refusals.saturating_add(1), Some(now));
        Consequence::Refused
    }

    /// The rests that last, for a record.
    pub(crate) fn saved(&self, now: Millis, unix: Millis) -> Vec<SavedRest> {
        let lasting = |until: Millis| Some(until.saturating_sub(now)).filter(|length| *length > 0);
        let saved = |target, length: Millis, blocks| SavedRest { target, until: unix.saturating_add(length), length, blocks };
        let of_all = lasting(self.rests_until).map(|length| saved(None, length, self.refusals));
        let of_target = |held: &Rest| Some(saved(Some(held.target.0.cast_signed()), lasting(held.until)?, held.blocks));
        of_all.into_iter().chain(self.held.iter().filter_map(of_target)).collect()
    }

    /// The observations against an exit in a record that this client or another one wrote. A clock that is wrong makes no rest longer than it
    /// was then.
    pub(crate) fn of(saved: &[SavedRest], now: Millis, unix: Millis) -> TargetHistory {
        let mut history = TargetHistory::default();
        // Every lease that is granted from now on is later than that.
        let before = now.saturating_sub(1);
        for rest in saved.iter().take(TARGETS + 1) {
            let until = now.saturating_add(rest.until.saturating_sub(unix).clamp(0, rest.length.clamp(0, BLOCKED.most)));
            let blocked_at = (rest.blocks > 0).then_some(before);
            match rest.target {
                None => (history.refusals, history.refused_at, history.rests_until) = (rest.blocks, Some(before), until),
                Some(target) => {
                    let target = TargetId(target.cast_unsigned());
                    history.held.push(Rest { target, until, began: Some(before), blocked_at, blocks: rest.blocks, ..Rest::default() });
                }
            }
        }
        history
    }

    /// Changes what is held for this target; for a further target, that goes whose rest ends first.
    fn change<T>(&mut self, target: TargetId, how: impl FnOnce(&mut Rest) -> T) -> T {
        let known = self.held.iter().position(|held| held.target == target);
        let mut held = known.map_or(Rest { target, ..Rest::default() }, |at| self.held.remove(at));
        if self.held.len() >= TARGETS {
            let first = self.held.iter().enumerate().min_by_key(|(_, held)| held.until).map(|(at, _)| at);
            first.map(|at| self.held.remove(at));
        }
        let came = how(&mut held);
        self.held.push(held);
        came
    }
}

impl Rest {
    fn block(&mut self, now: Millis) -> Consequence {
        let rest = BLOCKED.wait(if holds(PoolRule::RestsDouble) { self.blocks } else { 0 });
        let is_poor = self.blocks == 0 && self.answers < ANSWERS;
        (self.blocks, self.last) = (self.blocks.saturating_add(1), LastSeen::Other);
        (self.began, self.blocked_at) = (Some(now), Some(now));
        self.until = self.until.max(now.saturating_add(rest));
        Consequence::Blocked { is_poor }
    }
}

/// Returns true if a failure was under way when one like it was seen.
fn is_same_moment(first: Millis, since: Millis, now: Millis) -> bool {
    since <= first && now.saturating_sub(first) < MOMENT
}

/// The blocks of a session over its exits, by target, and how often its proxy was refused: each exit counts once, or each lease.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct SessionFailures(Vec<Failing>);

#[derive(Debug, Clone, Hash)]
struct Failing {
    /// None is the proxy.
    target: Option<TargetId>,
    count: u32,
    /// The exit or lease of the last one.
    last: u64,
    since: Millis,
}

impl SessionFailures {
    /// Counts a block at this target, or a refusal of the proxy, by an exit or a lease. Returns how many there are, and since when.
    pub(crate) fn count(&mut self, target: Option<TargetId>, which: u64, now: Millis) -> (u32, Millis) {
        if let Some(known) = self.0.iter_mut().find(|known| known.target == target) {
            known.count = known.count.saturating_add(u32::from(known.last != which));
            known.last = which;
            return (known.count, known.since);
        }
        if self.0.len() > TARGETS {
            let least = self.0.iter().enumerate().filter(|(_, known)| known.target.is_some()).min_by_key(|(_, known)| known.count);
            least.map(|(at, _)| at).into_iter().for_each(|at| _ = self.0.remove(at));
        }
        self.0.push(Failing { target, count: 1, last: which, since: now });
        (1, now)
    }

    /// The session's proxy has worked, with a good answer of this target, if it was one.
    pub(crate) fn worked(&mut self, target: Option<TargetId>) {
        self.0.retain(|known| known.target.is_some() && known.target != target);
    }
}

/// The two sessions whose proxies have worked last.
#[derive(Debug, Clone, Copy, Default, Hash)]
pub(crate) struct ProxyTracker([Option<(u32, Millis)>; 2]);

impl ProxyTracker {
    /// The proxy of a slot's session has worked.
    pub(crate) fn worked(&mut self, slot: u32, now: Millis) {
        let [last, before] = self.0;
        let other = if last.is_some_and(|(known, _)| known == slot) { before } else { last };
        self.0 = [Some((slot, now)), other];
    }

    /// Returns true if the proxy of another session than this slot's has worked since then.
    pub(crate) fn another_worked(&self, slot: u32, since: Millis) -> bool {
        !holds(PoolRule::AnotherHasWorked) || self.0.iter().flatten().any(|(other, at)| *other != slot && *at >= since)
    }
}

/// The targets that blocked exits of a pool after few good answers, so that rotations stop where a new exit does not help.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct BlockTracker(Map<TargetId, Blocked>);

#[derive(Debug, Clone, Default, Hash)]
struct Blocked {
    /// So many exits in a row.
    exits: u32,
    /// Good answers since.
    answers: u32,
    rotated_at: Option<Millis>,
    seen_at: Millis,
}

impl BlockTracker {
    /// Notes the consequence of an observation for this target, of which the exit has seen so many good answers.
    pub(crate) fn note(&mut self, target: TargetId, sight: Observation, follows: Consequence, answers: u32, now: Millis) {
        let is_poor = match (sight, follows) {
            (_, Consequence::Blocked { is_poor }) => is_poor || answers < ANSWERS,
            (Observation::Good, _) => answers < ANSWERS,
            _ => return,
        };
        if !is_poor {
            self.0.remove(&target);
            return;
        }
        match follows {
            Consequence::Blocked { is_poor: true } => {
                let blocked = self.0.get_or_insert_with(target, Blocked::default);
                (blocked.exits, blocked.answers, blocked.seen_at) = (blocked.exits.saturating_add(1), 0, now);
                if self.0.len() > BLOCKING {
                    let oldest = self.0.iter().min_by_key(|(_, blocked)| blocked.seen_at).map(|(target, _)| *target);
                    oldest.map(|target| self.0.remove(&target));
                }
            }
            Consequence::Nothing => {
                // An exit of many targets does not know all of its answers.
                let Some(blocked) = self.0.get_mut(&target) else { return };
                blocked.answers = blocked.answers.saturating_add(1);
                if blocked.answers >= blocked.exits.clamp(EXITS, MOST_EXITS) * ANSWERS {
                    self.0.remove(&target);
                }
            }
            _ => {}
        }
    }

    /// Returns true if a new exit does not help there.
    pub(crate) fn everywhere(&self, target: TargetId) -> bool {
        holds(PoolRule::NoExitHelps) && self.0.get(&target).is_some_and(|blocked| blocked.exits >= EXITS)
    }

    /// The targets where a new exit does not help.
    pub(crate) fn all_everywhere(&self) -> impl Iterator<Item = TargetId> {
        self.0.iter().filter(|(_, blocked)| blocked.exits >= EXITS).map(|(target, _)| *target)
    }

    /// Returns true if there are observations against this target.
    pub(crate) fn knows(&self, target: TargetId) -> bool {
        self.0.get(&target).is_some()
    }

    /// When an exit may be changed for this target, where a new one does not help.
    pub(crate) fn rotates_at(&self, target: TargetId) -> Option<Millis> {
        let blocked = self.0.get(&target).filter(|blocked| blocked.exits >= EXITS && holds(PoolRule::ChangesAreRare))?;
        Some(blocked.rotated_at.map_or(0, |at| at.saturating_add(RARELY)))
    }

    /// Returns true if an exit may be changed for this target now; the caller then changes it.
    pub(crate) fn may_rotate(&mut self, target: TargetId, now: Millis) -> bool {
        let may = self.rotates_at(target).is_none_or(|at| at <= now);
        if may && let Some(blocked) = self.0.get_mut(&target) {
            blocked.rotated_at = Some(now);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: TargetId = TargetId(1);
    const NEWS: TargetId = TargetId(2);

    /// When an exit may be used again for the shop after it saw these, each through a new lease, a second apart, from 0 on.
    fn rests(sights: &[Observation]) -> (Consequence, Millis) {
        let mut record = TargetHistory::default();
        let mut follows = Consequence::Nothing;
        for (second, sight) in sights.iter().enumerate() {
            let now = second as Millis * 1000;
            follows = record.saw(SHOP, *sight, now, now);
        }
        (follows, record.rested_at(SHOP))
    }

    const FIRST: Consequence = Consequence::Blocked { is_poor: true };
    const LATER: Consequence = Consequence::Blocked { is_poor: false };

    #[test]
    fn what_follows_from_what_was_seen() {
        use Observation::{Blocked, Failed, Good, Proxy, Throttled, TimedOut};
        assert_eq!(rests(&[Good]), (Consequence::Nothing, 0));
        assert_eq!(rests(&[Failed]), (Consequence::Nothing, 0));
        assert_eq!(rests(&[Blocked]), (FIRST, 60_000));
        assert_eq!(rests(&[Good, Good, Blocked]), (FIRST, 62_000));
        assert_eq!(rests(&[Good, Good, Good, Blocked]), (LATER, 63_000));
        assert_eq!(rests(&[Throttled(None)]), (Consequence::Rests, 30_000));
        assert_eq!(rests(&[Throttled(Some(90_000))]), (Consequence::Rests, 90_000));
        assert_eq!(rests(&[Throttled(Some(-1))]), (Consequence::Rests, 0));
        assert_eq!(rests(&[Throttled(Some(Millis::MAX)), Good]), (Consequence::Nothing, 0));
        assert_eq!(rests(&[TimedOut]), (Consequence::Nothing, 0));
        assert_eq!(rests(&[Proxy]), (Consequence::Read, 0));
    }

    #[test]
    fn the_second_in_a_row_is_a_block() {
        use Observation::{Blocked, Failed, Good, Throttled, TimedOut};
        assert_eq!(rests(&[Throttled(None), Throttled(None)]), (FIRST, 61_000));
        assert_eq!(rests(&[Throttled(None), Throttled(Some(300_000))]), (FIRST, 301_000));
        assert_eq!(rests(&[Throttled(None), Good, Throttled(None)]), (Consequence::Rests, 32_000));
        assert_eq!(rests(&[TimedOut, TimedOut]), (FIRST, 61_000));
        assert_eq!(rests(&[TimedOut, Good, TimedOut]), (Consequence::Nothing, 0));
        assert_eq!(rests(&[TimedOut, Throttled(None), TimedOut]), (Consequence::Nothing, 31_000));
        // A failure of the target itself is no observation about the exit.
        assert_eq!(rests(&[TimedOut, Failed, TimedOut]), (FIRST, 62_000));
        assert_eq!(rests(&[Blocked, Blocked]), (LATER, 121_000));
    }

    #[test]
    fn the_third_failure_in_a_row_that_says_nothing_counts_as_one_of_the_proxy() {
        use Observation::{Failed, Good, Unknown};
        assert_eq!(rests(&[Unknown, Unknown]), (Consequence::Nothing, 0));
        assert_eq!(rests(&[Unknown, Unknown, Unknown]), (Consequence::Read, 0));
        assert_eq!(rests(&[Unknown, Unknown, Failed, Unknown]), (Consequence::Read, 0));
        assert_eq!(rests(&[Unknown, Unknown, Good, Unknown]), (Consequence::Nothing, 0));
        assert_eq!(rests(&[Unknown; 5]), (Consequence::Nothing, 0));
        assert_eq!(rests(&[Unknown; 9]), (Consequence::Refused, 68_000));
    }

    #[test]
    fn a_rest_doubles_up_to_an_hour_and_a_good_answer_ends_it() {
        let mut record = TargetHistory::default();
        let mut now = 0;
        let rests = [(); 8].map(|()| {
            record.saw(SHOP, Observation::Blocked, now, now);
            let rest = record.rested_at(SHOP) - now;
            now += rest;
            rest
        });
        assert_eq!(rests, [1, 2, 4, 8, 16, 32, 60, 60].map(|minutes| minutes * 60_000));
        record.saw(SHOP, Observation::Good, now, now);
        assert!(record.is_fit(SHOP, now));
        record.saw(SHOP, Observation::Blocked, now, now);
        let fit = [59_999, 60_000].map(|later| record.is_fit(SHOP, now + later));
        assert_eq!((record.rested_at(SHOP) - now, fit), (60_000, [false, true]));
    }

    #[test]
    fn a_rest_is_that_of_one_target_and_four_are_remembered() {
        let mut record = TargetHistory::default();
        record.saw(SHOP, Observation::Blocked, 0, 0);
        assert!(record.is_fit(NEWS, 0) && record.is_fit(TargetId::NONE, 0));
        // Those that matter least go first: a target that only answered, then the rest that ends first.
        record.saw(NEWS, Observation::Good, 0, 0);
        (3..7).for_each(|other| {
            record.saw(TargetId(other), Observation::Throttled(None), 0, 0);
        });
        assert_eq!(record.held.len(), TARGETS);
        assert!(!record.is_fit(SHOP, 0) && !record.is_fit(TargetId(6), 0) && record.is_fit(TargetId(3), 0));
    }

    #[test]
    fn the_third_failure_of_the_proxy_within_a_minute_rests_it_for_everybody() {
        let mut record = TargetHistory::default();
        for at in [0, 59_000, 60_000] {
            assert_eq!(record.saw(SHOP, Observation::Proxy, at, at), Consequence::Read);
            assert!(record.is_fit(SHOP, at));
        }
        assert_eq!(record.saw(SHOP, Observation::Proxy, 61_000, 61_000), Consequence::Refused);
        assert_eq!((record.rested_at(SHOP), record.rested_at(NEWS), record.rests_until()), (121_000, 121_000, 121_000));
    }

    #[test]
    fn a_rest_for_everybody_doubles_up_to_an_hour_and_is_forgotten_after_the_proxy_worked() {
        let mut record = TargetHistory::default();
        let mut now = 0;
        let mut rest = |record: &mut TargetHistory| {
            now = now.max(record.rests_until());
            let refused = [0, 1, 2].map(|second| record.saw(SHOP, Observation::Proxy, now + second * 1000, now + second * 1000));
            assert_eq!(refused[2], Consequence::Refused);
            now += 2000;
            record.rests_until() - now
        };
        let rests = [(); 8].map(|()| rest(&mut record));
        assert_eq!(rests, [1, 2, 4, 8, 16, 32, 60, 60].map(|minutes| minutes * 60_000));
        // A block is an answer, too.
        record.saw(NEWS, Observation::Blocked, 0, 0);
        assert!(record.is_fit(SHOP, 0));
        assert_eq!(rest(&mut record), 60_000);
    }

    /// One exit, and ten leases of it granted at 0 that see the same at one moment.
    #[test]
    fn one_moment_counts_once() {
        use Observation::{Blocked, Proxy, Throttled, TimedOut, Unknown};
        let ten = |sight: Observation| {
            let mut record = TargetHistory::default();
            let follows: Vec<Consequence> = (0..10).map(|lease| record.saw(SHOP, sight, 0, 1000 + lease)).collect();
            (follows[0], follows[9], record.rested_at(SHOP) - 1000)
        };
        assert_eq!(ten(Blocked), (FIRST, Consequence::Rests, 60_000));
        assert_eq!(ten(Throttled(None)), (Consequence::Rests, Consequence::Rests, 30_000));
        assert_eq!(ten(TimedOut), (Consequence::Nothing, Consequence::Nothing, -1000));
        assert_eq!(ten(Proxy), (Consequence::Read, Consequence::Read, -1000));
        assert_eq!(ten(Unknown), (Consequence::Nothing, Consequence::Nothing, -1000));
        // A block is more than a rest, and a lease that was granted after it counts.
        let mut record = TargetHistory::default();
        assert_eq!(record.saw(SHOP, Throttled(None), 0, 1000), Consequence::Rests);
        assert_eq!(record.saw(SHOP, Blocked, 0, 1001), FIRST);
        assert_eq!(record.saw(SHOP, Blocked, 0, 400_000), Consequence::Rests);
        assert_eq!(record.saw(SHOP, Blocked, 61_001, 400_000), LATER);
        // So does one lease that times out again much later.
        let mut record = TargetHistory::default();
        let timeouts = [1000, 10_999, 11_000].map(|now| record.saw(SHOP, TimedOut, 0, now));
        assert_eq!(timeouts, [Consequence::Nothing, Consequence::Nothing, FIRST]);
    }

    #[test]
    fn a_session_fails_by_one_target_or_by_its_proxy() {
        let mut failures = SessionFailures::default();
        assert_eq!([1, 1, 2].map(|exit| failures.count(Some(SHOP), exit, 5).0), [1, 1, 2]);
        assert_eq!((failures.count(Some(NEWS), 2, 6), failures.count(None, 9, 7)), ((1, 6), (1, 7)));
        failures.worked(None);
        assert_eq!((failures.count(Some(SHOP), 3, 8), failures.count(None, 10, 9)), ((3, 5), (1, 9)));
        failures.worked(Some(SHOP));
        assert_eq!((failures.count(Some(SHOP), 4, 10), failures.count(Some(NEWS), 3, 11)), ((1, 10), (2, 6)));
        (10..30).for_each(|target| _ = failures.count(Some(TargetId(target)), 1, 12));
        assert!(failures.0.len() <= TARGETS + 1 && failures.count(Some(NEWS), 4, 13).0 == 3, "{failures:?}");
    }

    #[test]
    fn a_proxy_is_to_blame_where_that_of_another_session_worked_since() {
        let mut proxies = ProxyTracker::default();
        assert!(!proxies.another_worked(1, 0));
        proxies.worked(1, 10);
        assert!(!proxies.another_worked(1, 0) && proxies.another_worked(2, 10) && !proxies.another_worked(2, 11));
        proxies.worked(2, 20);
        proxies.worked(2, 30);
        assert!(proxies.another_worked(1, 30) && proxies.another_worked(2, 10) && !proxies.another_worked(2, 11));
    }

    /// The tracker hears of an exit that gives so many good answers and is blocked then.
    fn block_after(blocking: &mut BlockTracker, answers: u32, now: Millis) {
        let mut record = TargetHistory::default();
        for sight in (0..answers).map(|_| Observation::Good).chain([Observation::Blocked]) {
            let follows = record.saw(SHOP, sight, now, now);
            blocking.note(SHOP, sight, follows, record.answers(SHOP), now);
        }
    }

    #[test]
    fn where_three_exits_gave_few_good_answers_a_new_one_is_rarely_tried() {
        let mut blocking = BlockTracker::default();
        for (exit, answers) in [0, 2, 1].into_iter().enumerate() {
            assert!(blocking.may_rotate(SHOP, exit as Millis) && blocking.may_rotate(SHOP, exit as Millis));
            block_after(&mut blocking, answers, exit as Millis);
        }
        assert!(blocking.everywhere(SHOP) && !blocking.everywhere(NEWS));
        assert_eq!((blocking.rotates_at(SHOP), blocking.rotates_at(NEWS)), (Some(60_002), None));
        assert!(!blocking.may_rotate(SHOP, 60_001) && blocking.may_rotate(SHOP, 60_002) && !blocking.may_rotate(SHOP, 60_003));
        assert!(blocking.may_rotate(NEWS, 10) && blocking.may_rotate(NEWS, 10));
        // An exit that gives three is one that helps.
        (1..=2).for_each(|answers| blocking.note(SHOP, Observation::Good, Consequence::Nothing, answers, 20));
        assert!(blocking.everywhere(SHOP));
        blocking.note(SHOP, Observation::Good, Consequence::Nothing, 3, 20);
        assert!(!blocking.everywhere(SHOP) && blocking.may_rotate(SHOP, 20) && blocking.may_rotate(SHOP, 20));
    }

    #[test]
    fn an_exit_that_worked_before_is_no_sign_that_none_does() {
        for answers in [[3, 3, 3, 3, 3], [0, 0, 3, 0, 0]] {
            let mut blocking = BlockTracker::default();
            answers.into_iter().for_each(|answers| block_after(&mut blocking, answers, 0));
            assert!(!blocking.everywhere(SHOP), "{answers:?}");
        }
        // Nor are exits that do not know all of their answers, as they have many targets.
        let mut blocking = BlockTracker::default();
        (0..5).for_each(|_| block_after(&mut blocking, 0, 0));
        (0..15).for_each(|_| blocking.note(SHOP, Observation::Good, Consequence::Nothing, 1, 0));
        assert!(!blocking.everywhere(SHOP));
    }

    #[test]
    fn a_rest_outlives_the_client_that_saw_why_and_no_clock_makes_it_longer() {
        let mut record = TargetHistory::default();
        record.saw(SHOP, Observation::Blocked, 0, 1000);
        record.saw(NEWS, Observation::Good, 0, 1000);
        let saved = record.saved(11_000, 500_000);
        assert_eq!(saved.len(), 1);
        // The next client has another clock for its waits; and a clock for the time that is right, an hour behind, or an hour ahead.
        let rested = |unix| TargetHistory::of(&saved, 7000, unix).rested_at(SHOP);
        assert_eq!([500_000, 520_000, 600_000, -3_100_000, 4_100_000].map(rested), [57_000, 37_000, 7000, 57_000, 7000]);
        let mut next = TargetHistory::of(&saved, 7000, 500_000);
        assert!(next.is_fit(NEWS, 7000) && !next.is_fit(SHOP, 56_999));
        next.saw(SHOP, Observation::Blocked, 60_000, 60_000);
        assert_eq!(next.rested_at(SHOP), 180_000, "the second in a row");
        let mut over = TargetHistory::of(&saved, 7000, 600_000);
        assert!(matches!(over.saw(SHOP, Observation::Blocked, 7000, 7001), Consequence::Blocked { .. }), "lent as soon as it was read");
        // The rest of all.
        (0..3).for_each(|at| _ = record.saw(SHOP, Observation::Proxy, at * 2000, at * 2000));
        let next = TargetHistory::of(&record.saved(4000, 0), 0, 0);
        assert_eq!((next.rested_at(NEWS), record.saved(64_000, 0).len()), (60_000, 0));
    }

    #[test]
    fn targets_that_block_are_remembered_within_bounds() {
        let mut blocking = BlockTracker::default();
        for target in 0..1000 {
            blocking.note(TargetId(target), Observation::Blocked, FIRST, 0, target as Millis);
        }
        assert_eq!(blocking.0.len(), BLOCKING);
        assert!(blocking.0.get(&TargetId(999)).is_some() && blocking.0.get(&TargetId(0)).is_none());
    }

    #[test]
    fn a_target_is_known_by_its_name() {
        assert_eq!(TargetId::of(Some("shop.example")), TargetId::of(Some("shop.example")));
        assert!(TargetId::of(Some("shop.example")) != TargetId::of(Some("news.example")) && TargetId::of(Some("")) != TargetId::of(None));
    }

    #[test]
    fn what_a_caller_saw_is_one_of_these() {
        let sight = |seen| Observation::of(seen, Some(5));
        let statuses = [200, 404, 403, 999, 407, 429, 500, 503].map(|status| sight(Seen::Status(status)));
        let (good, failed, throttled) = (Observation::Good, Observation::Failed, Observation::Throttled(Some(5)));
        assert_eq!(Observation::of(Seen::Status(503), None), failed);
        assert_eq!(statuses, [good, good, Observation::Blocked, Observation::Blocked, Observation::Proxy, throttled, failed, throttled]);
        assert_eq!(
            [Seen::Captcha, Seen::Block, Seen::Timeout].map(sight),
            [Observation::Blocked, Observation::Blocked, Observation::TimedOut]
        );
    }
}
