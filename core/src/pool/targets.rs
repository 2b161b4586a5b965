//! Observations through a session, for the target of its lease: how long its exit rests for that target, when it is to be changed, and when
//! a change no longer helps.

use crate::collections::Map;
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
/// So many exits in a row that a target blocked at their first use, and a new exit does not help there.
const EXITS: u32 = 3;
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
    /// 429, with the time that the target asks to wait, if it does.
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
    /// Interprets a caller's observation; `wait` is the Retry-After of the target.
    pub(crate) fn of(seen: Seen, wait: Option<Millis>) -> Self {
        match seen {
            Seen::Status(403 | 999) | Seen::Captcha | Seen::Block => Observation::Blocked,
            Seen::Status(407) => Observation::Proxy,
            Seen::Status(429) => Observation::Throttled(wait),
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
    /// The exit rests for this target, and another exit may do better. `at_once`: this one never worked for it.
    Blocked {
        at_once: bool,
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
    /// Until when it rests for everybody.
    rests_until: Millis,
}

/// The observations against it for one target.
#[derive(Debug, Clone, Default, Hash)]
struct Rest {
    target: TargetId,
    until: Millis,
    blocks: u32,
    last: LastSeen,
    /// True if the target ever answered it.
    answered: bool,
}

/// The last observation, where the second in a row counts for more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
enum LastSeen {
    #[default]
    Other,
    Throttled,
    TimedOut,
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
        held.map_or(0, |held| held.until).max(self.rests_until)
    }

    /// Takes an observation for this target.
    pub(crate) fn saw(&mut self, target: TargetId, sight: Observation, now: Millis) -> Consequence {
        let unknown = match sight {
            Observation::Failed => self.unknown,
            _ => std::mem::take(&mut self.unknown),
        };
        match sight {
            Observation::Failed => Consequence::Nothing,
            Observation::Unknown if unknown + 1 >= UNKNOWN => self.proxy_failed(now),
            Observation::Unknown => {
                self.unknown = unknown + 1;
                Consequence::Nothing
            }
            Observation::Proxy => self.proxy_failed(now),
            Observation::Good => {
                self.change(target, |held| *held = Rest { target, answered: true, ..Rest::default() });
                Consequence::Nothing
            }
            Observation::Throttled(wait) => self.change(target, |held| {
                held.until = held.until.max(now.saturating_add(wait.unwrap_or(THROTTLED).max(0)));
                match held.follows_on(LastSeen::Throttled) {
                    true => held.block(now),
                    false => Consequence::Rests,
                }
            }),
            Observation::TimedOut => self.change(target, |held| match held.follows_on(LastSeen::TimedOut) {
                true => held.block(now),
                false => Consequence::Nothing,
            }),
            Observation::Blocked => self.change(target, |held| held.block(now)),
        }
    }

    fn proxy_failed(&mut self, now: Millis) -> Consequence {
        self.proxy_failures.retain(|at| now.saturating_sub(*at) < MINUTE);
        self.proxy_failures.push(now);
        if self.proxy_failures.len() >= PROXY_FAILURES {
            self.proxy_failures.clear();
            self.rests_until = now.saturating_add(BLOCKED.first);
            return Consequence::Refused;
        }
        Consequence::Read
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
    /// Returns true if the last observation was the same.
    fn follows_on(&mut self, last: LastSeen) -> bool {
        std::mem::replace(&mut self.last, last) == last
    }

    fn block(&mut self, now: Millis) -> Consequence {
        let rest = BLOCKED.wait(self.blocks);
        let at_once = !self.answered && self.blocks == 0;
        (self.blocks, self.last) = (self.blocks.saturating_add(1), LastSeen::Other);
        self.until = self.until.max(now.saturating_add(rest));
        Consequence::Blocked { at_once }
    }
}

/// The targets that blocked exits of a pool at their first use, so that rotations stop where a new exit does not help.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct BlockTracker(Map<TargetId, Blocked>);

#[derive(Debug, Clone, Default, Hash)]
struct Blocked {
    /// So many exits in a row.
    exits: u32,
    rotated_at: Option<Millis>,
    seen_at: Millis,
}

impl BlockTracker {
    /// Notes the consequence of an observation for this target.
    pub(crate) fn note(&mut self, target: TargetId, sight: Observation, follows: Consequence, now: Millis) {
        match (sight, follows) {
            (Observation::Good, _) => {
                self.0.remove(&target);
            }
            (_, Consequence::Blocked { at_once: true }) => {
                let blocked = self.0.get_or_insert_with(target, Blocked::default);
                blocked.exits = blocked.exits.saturating_add(1);
                blocked.seen_at = now;
                if self.0.len() > BLOCKING {
                    let oldest = self.0.iter().min_by_key(|(_, blocked)| blocked.seen_at).map(|(target, _)| *target);
                    oldest.map(|target| self.0.remove(&target));
                }
            }
            _ => {}
        }
    }

    /// Returns true if a new exit does not help there.
    pub(crate) fn everywhere(&self, target: TargetId) -> bool {
        self.0.get(&target).is_some_and(|blocked| blocked.exits >= EXITS)
    }

    /// The targets where a new exit does not help.
    pub(crate) fn all_everywhere(&self) -> impl Iterator<Item = TargetId> {
        self.0.iter().filter(|(_, blocked)| blocked.exits >= EXITS).map(|(target, _)| *target)
    }

    /// Returns true if there are observations against this target.
    pub(crate) fn knows(&self, target: TargetId) -> bool {
        self.0.get(&target).is_some()
    }

    /// Returns true if an exit may be changed for this target now; the caller then changes it.
    pub(crate) fn may_rotate(&mut self, target: TargetId, now: Millis) -> bool {
        if !self.everywhere(target) {
            return true;
        }
        let Some(blocked) = self.0.get_mut(&target) else { return true };
        let waits = blocked.rotated_at.is_some_and(|at| now.saturating_sub(at) < RARELY);
        if !waits {
            blocked.rotated_at = Some(now);
        }
        !waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: TargetId = TargetId(1);
    const NEWS: TargetId = TargetId(2);

    /// When an exit may be used again for the shop after it saw these, a second apart, from 0 on.
    fn rests(sights: &[Observation]) -> (Consequence, Millis) {
        let mut record = TargetHistory::default();
        let mut follows = Consequence::Nothing;
        for (second, sight) in sights.iter().enumerate() {
            follows = record.saw(SHOP, *sight, second as Millis * 1000);
        }
        (follows, record.rested_at(SHOP))
    }

    const FIRST: Consequence = Consequence::Blocked { at_once: true };
    const LATER: Consequence = Consequence::Blocked { at_once: false };

    #[test]
    fn what_follows_from_what_was_seen() {
        use Observation::{Blocked, Failed, Good, Proxy, Throttled, TimedOut};
        assert_eq!(rests(&[Good]), (Consequence::Nothing, 0));
        assert_eq!(rests(&[Failed]), (Consequence::Nothing, 0));
        assert_eq!(rests(&[Blocked]), (FIRST, 60_000));
        assert_eq!(rests(&[Good, Blocked]), (LATER, 61_000));
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
        let rests: Vec<Millis> = (0..8)
            .map(|_| {
                record.saw(SHOP, Observation::Blocked, 0);
                record.rested_at(SHOP)
            })
            .collect();
        assert_eq!(rests, [1, 2, 4, 8, 16, 32, 60, 60].map(|minutes| minutes * 60_000));
        record.saw(SHOP, Observation::Good, 0);
        assert!(record.is_fit(SHOP, 0));
        record.saw(SHOP, Observation::Blocked, 0);
        assert_eq!((record.rested_at(SHOP), record.is_fit(SHOP, 59_999), record.is_fit(SHOP, 60_000)), (60_000, false, true));
    }

    #[test]
    fn a_rest_is_that_of_one_target_and_four_are_remembered() {
        let mut record = TargetHistory::default();
        record.saw(SHOP, Observation::Blocked, 0);
        assert!(record.is_fit(NEWS, 0) && record.is_fit(TargetId::NONE, 0));
        // Those that matter least go first: a target that only answered, then the rest that ends first.
        record.saw(NEWS, Observation::Good, 0);
        (3..7).for_each(|other| {
            record.saw(TargetId(other), Observation::Throttled(None), 0);
        });
        assert_eq!(record.held.len(), TARGETS);
        assert!(!record.is_fit(SHOP, 0) && !record.is_fit(TargetId(6), 0) && record.is_fit(TargetId(3), 0));
    }

    #[test]
    fn the_third_failure_of_the_proxy_within_a_minute_rests_it_for_everybody() {
        let mut record = TargetHistory::default();
        for at in [0, 59_000, 60_000] {
            assert_eq!(record.saw(SHOP, Observation::Proxy, at), Consequence::Read);
            assert!(record.is_fit(SHOP, at));
        }
        assert_eq!(record.saw(SHOP, Observation::Proxy, 61_000), Consequence::Refused);
        assert_eq!((record.rested_at(SHOP), record.rested_at(NEWS)), (121_000, 121_000));
    }

    #[test]
    fn where_three_exits_were_blocked_at_once_a_new_one_is_rarely_tried() {
        let mut blocking = BlockTracker::default();
        for exit in 0..3 {
            assert!(blocking.may_rotate(SHOP, exit) && blocking.may_rotate(SHOP, exit));
            let follows = TargetHistory::default().saw(SHOP, Observation::Blocked, exit);
            blocking.note(SHOP, Observation::Blocked, follows, exit);
        }
        assert!(blocking.everywhere(SHOP) && !blocking.everywhere(NEWS));
        assert!(blocking.may_rotate(SHOP, 10) && !blocking.may_rotate(SHOP, 60_009) && blocking.may_rotate(SHOP, 60_010));
        assert!(blocking.may_rotate(NEWS, 10) && blocking.may_rotate(NEWS, 10));
        blocking.note(SHOP, Observation::Good, Consequence::Nothing, 20);
        assert!(!blocking.everywhere(SHOP) && blocking.may_rotate(SHOP, 20) && blocking.may_rotate(SHOP, 20));
    }

    #[test]
    fn an_exit_that_worked_before_is_no_sign_that_none_does() {
        let mut blocking = BlockTracker::default();
        for _ in 0..5 {
            let mut record = TargetHistory::default();
            for sight in [Observation::Good, Observation::Blocked] {
                let follows = record.saw(SHOP, sight, 0);
                blocking.note(SHOP, sight, follows, 0);
            }
        }
        assert!(!blocking.everywhere(SHOP));
    }

    #[test]
    fn targets_that_block_are_remembered_within_bounds() {
        let mut blocking = BlockTracker::default();
        for target in 0..1000 {
            blocking.note(TargetId(target), Observation::Blocked, FIRST, target as Millis);
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
        let (good, failed) = (Observation::Good, Observation::Failed);
        assert_eq!(
            statuses,
            [good, good, Observation::Blocked, Observation::Blocked, Observation::Proxy, Observation::Throttled(Some(5)), failed, failed]
        );
        assert_eq!(
            [Seen::Captcha, Seen::Block, Seen::Timeout].map(sight),
            [Observation::Blocked, Observation::Blocked, Observation::TimedOut]
        );
    }
}
