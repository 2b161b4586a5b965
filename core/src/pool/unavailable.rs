//! Why nobody gets a session: a sentence, a word and a time, from the counts of the pool.

use std::fmt::Write;

use crate::contract::pools::{PoolHold, PoolHoldReason, PoolReason};
use crate::policy::one_line;
use crate::time::{DAY, Millis};

/// The slots of a pool, by what they are at the moment. Their sum is the size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PoolCounts {
    pub(crate) size: u32,
    pub(crate) ready: u32,
    pub(crate) leased: u32,
    pub(crate) creating: u32,
    pub(crate) changing: u32,
    /// Can't be lent for now, without those of another request.
    pub(crate) resting: u32,
    /// Left over from another request.
    pub(crate) left: u32,
    pub(crate) in_doubt: u32,
    pub(crate) empty: u32,
    pub(crate) with_others: u32,
    pub(crate) free_in_store: u32,
    pub(crate) unknown: u32,
}

/// The free sessions that rest for a target, and when the first of them has rested (Unix milliseconds).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rests {
    pub(crate) count: u32,
    pub(crate) until: Option<Millis>,
}

/// The situation of a caller who waits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shortage<'a> {
    pub(crate) counts: PoolCounts,
    pub(crate) target: Option<&'a str>,
    pub(crate) rests: Rests,
    /// For how long the oldest lease has been out.
    pub(crate) lent_for: Option<Millis>,
    /// True if a session may be bought for an empty slot, as far as no hold is meant.
    pub(crate) has_room: bool,
    /// True if another session is bought for one that is over.
    pub(crate) replaces: bool,
    /// True if the store is being asked for sessions to take over or to buy.
    pub(crate) is_asking: bool,
    /// True if all of the store was asked for sessions to take over.
    pub(crate) has_asked: bool,
    pub(crate) hold: Option<PoolHold>,
}

/// When a session may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comes {
    /// At any moment.
    Soon,
    /// Not before this (Unix milliseconds).
    At(Millis),
    /// Not by itself.
    Never,
}

impl Shortage<'_> {
    /// When a session may come to this caller.
    pub(crate) fn comes(&self) -> Comes {
        let counts = &self.counts;
        let fits = counts.ready.saturating_sub(self.rests.count);
        let moving = counts.leased + counts.creating + counts.changing + counts.resting + fits;
        let is_unseen = self.is_asking || (counts.unknown > 0 && !self.has_asked);
        let is_replaced = self.hold.as_ref().is_some_and(|hold| hold.reason == PoolHoldReason::Replaced);
        if is_replaced {
            return Comes::Never;
        }
        // A store that is away is asked again all the time.
        let buys = self.hold.as_ref().is_none_or(|hold| hold.reason == PoolHoldReason::Store && hold.retry_at.is_none());
        if moving + counts.with_others + counts.free_in_store > 0 || is_unseen || (self.has_room && buys) {
            return Comes::Soon;
        }
        let tried_at = self.hold.as_ref().filter(|_| self.has_room || counts.in_doubt > 0).and_then(|hold| hold.retry_at);
        match self.rests.until.into_iter().chain(tried_at).min() {
            Some(at) => Comes::At(at),
            None => Comes::Never,
        }
    }

    /// The reason that concerns most of the slots; a hold, where a session could be bought but for that.
    pub(crate) fn reason(&self) -> PoolReason {
        let counts = &self.counts;
        if let Some(hold) =
            self.hold.as_ref().filter(|hold| self.has_room || counts.in_doubt > 0 || hold.reason == PoolHoldReason::Replaced)
        {
            return PoolReason::from(hold.reason);
        }
        let groups = [
            (counts.creating, PoolReason::Creating),
            (self.rests.count, PoolReason::Resting),
            (counts.leased, PoolReason::Leased),
            (counts.with_others, PoolReason::WithOthers),
            (counts.changing + counts.resting, PoolReason::Changing),
            (counts.left, PoolReason::Left),
            (counts.in_doubt, PoolReason::InDoubt),
            (if self.replaces { 0 } else { counts.empty }, PoolReason::Over),
            (counts.free_in_store, PoolReason::Asking),
        ];
        let most = groups.iter().map(|(count, _)| *count).max().filter(|most| *most > 0);
        groups.iter().find(|(count, _)| Some(*count) == most).map_or(PoolReason::Asking, |(_, reason)| *reason)
    }

    /// When to try again, where that is known (Unix milliseconds).
    pub(crate) fn retry_at(&self) -> Option<Millis> {
        let hold = self.hold.as_ref().filter(|_| self.reason() != PoolReason::Resting).and_then(|hold| hold.retry_at);
        self.rests.until.into_iter().chain(hold).min()
    }

    /// The counts as the end of a sentence: `20 sessions: 11 with other clients, 3 are lent, the longest for 58 s`.
    pub(crate) fn in_words(&self) -> String {
        let counts = &self.counts;
        let mut parts: Vec<String> = Vec::new();
        let mut part = |count: u32, one: &str, many: &str| {
            if count > 0 {
                parts.push(format!("{count} {}", if count == 1 { one } else { many }));
            }
        };
        part(counts.with_others, "with another client", "with other clients");
        let until = self.rests.until.map(|at| format!(" until {}", Utc(at))).unwrap_or_default();
        let whom = self.target.map(|target| format!(" for {}", shown(target))).unwrap_or_default();
        part(self.rests.count, &format!("rests{whom}{until}"), &format!("rest{whom}{until}"));
        let out = |which: &str| self.lent_for.map(|ms| format!(", {which}for {} s", ms.div_euclid(1000))).unwrap_or_default();
        part(counts.leased, &format!("is lent{}", out("")), &format!("are lent{}", out("the longest ")));
        part(counts.creating, "is being bought or taken over", "are being bought or taken over");
        part(counts.changing, "is being read or changed", "are being read or changed");
        part(counts.resting, "can't be used for now", "can't be used for now");
        part(counts.ready.saturating_sub(self.rests.count), "is free and does not fit", "are free and do not fit");
        part(counts.free_in_store, "is free in the store", "are free in the store");
        part(counts.in_doubt, "in doubt", "in doubt");
        part(counts.left, "left over from another request", "left over from another request");
        match self.replaces {
            true => part(counts.empty, "empty", "empty"),
            false => part(counts.empty, "empty, and `replace` is `never`", "empty, and `replace` is `never`"),
        }
        part(counts.unknown, "not looked at", "not looked at");
        let mut said = format!("{} session{}", counts.size, if counts.size == 1 { "" } else { "s" });
        if !parts.is_empty() {
            let _ = write!(said, ": {}", parts.join(", "));
        }
        if let Some(hold) = &self.hold {
            let _ = write!(said, "; the pool does not buy {}", hold.why);
        }
        said
    }
}

impl From<PoolHoldReason> for PoolReason {
    fn from(reason: PoolHoldReason) -> Self {
        // A test goes through all of them.
        PoolReason::of(reason.as_str()).unwrap_or(PoolReason::NoAnswer)
    }
}

/// A target for people: without a login, a query or a second line.
pub(crate) fn shown(target: &str) -> String {
    let place = target.split(['?', '#']).next().unwrap_or_default();
    let place = place.rsplit('@').next().unwrap_or_default();
    one_line(place).chars().take(64).collect()
}

/// A time of day, for a sentence.
struct Utc(Millis);

impl std::fmt::Display for Utc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The next whole second: what is said to have rested by then has.
        let second = (self.0.saturating_add(999)).rem_euclid(DAY).div_euclid(1000);
        write!(f, "{:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 12:34 on some day.
    const AT: Millis = 20_000 * DAY + (12 * 60 + 34) * 60_000;

    fn counts(size: u32) -> PoolCounts {
        PoolCounts { size, ..PoolCounts::default() }
    }

    fn usual(counts: PoolCounts) -> Shortage<'static> {
        Shortage { counts, target: Some("shop.example"), replaces: true, has_asked: true, ..Shortage::default() }
    }

    fn hold(reason: PoolHoldReason, retry_at: Option<Millis>) -> Option<PoolHold> {
        Some(reason.told(AT - 60_000, retry_at))
    }

    /// A situation for each reason, with what is said of it and when a session comes.
    fn all() -> Vec<(PoolReason, Shortage<'static>, String, Comes)> {
        let mut rows: Vec<(PoolReason, Shortage<'static>, &str, Comes)> = vec![
            (
                PoolReason::WithOthers,
                Shortage {
                    rests: Rests { count: 6, until: Some(AT) },
                    lent_for: Some(58_999),
                    ..usual(PoolCounts { with_others: 11, ready: 6, leased: 3, ..counts(20) })
                },
                "20 sessions: 11 with other clients, 6 rest for shop.example until 12:34:00 UTC, 3 are lent, the longest for 58 s",
                Comes::Soon,
            ),
            (
                PoolReason::Resting,
                Shortage { rests: Rests { count: 1, until: Some(AT + 1) }, ..usual(PoolCounts { ready: 1, ..counts(1) }) },
                "1 session: 1 rests for shop.example until 12:34:01 UTC",
                Comes::At(AT + 1),
            ),
            (
                PoolReason::Leased,
                Shortage { lent_for: Some(1000), ..usual(PoolCounts { leased: 1, ..counts(1) }) },
                "1 session: 1 is lent, for 1 s",
                Comes::Soon,
            ),
            (
                PoolReason::Creating,
                Shortage { has_room: true, ..usual(PoolCounts { creating: 1, empty: 1, ..counts(2) }) },
                "2 sessions: 1 is being bought or taken over, 1 empty",
                Comes::Soon,
            ),
            (
                PoolReason::Changing,
                usual(PoolCounts { changing: 1, resting: 1, ..counts(2) }),
                "2 sessions: 1 is being read or changed, 1 can't be used for now",
                Comes::Soon,
            ),
            (PoolReason::Left, usual(PoolCounts { left: 2, ..counts(2) }), "2 sessions: 2 left over from another request", Comes::Never),
            (PoolReason::InDoubt, usual(PoolCounts { in_doubt: 2, ..counts(2) }), "2 sessions: 2 in doubt", Comes::Never),
            (
                PoolReason::Over,
                Shortage { replaces: false, ..usual(PoolCounts { empty: 3, ..counts(3) }) },
                "3 sessions: 3 empty, and `replace` is `never`",
                Comes::Never,
            ),
            (
                PoolReason::Asking,
                Shortage { has_room: true, has_asked: false, ..usual(PoolCounts { unknown: 5, free_in_store: 1, ..counts(6) }) },
                "6 sessions: 1 is free in the store, 5 not looked at",
                Comes::Soon,
            ),
            (PoolReason::Waiters, usual(PoolCounts { leased: 1, ..counts(1) }), "", Comes::Soon),
        ];
        rows.retain(|(reason, ..)| *reason != PoolReason::Waiters);
        let mut rows: Vec<_> = rows.into_iter().map(|(reason, at, said, comes)| (reason, at, said.to_owned(), comes)).collect();
        for reason in PoolHoldReason::ALL {
            let at = usual(PoolCounts { empty: 2, ..counts(2) });
            let said = format!("2 sessions: 2 empty; the pool does not buy {}", reason.text());
            let comes = if *reason == PoolHoldReason::Replaced { Comes::Never } else { Comes::At(AT) };
            rows.push((PoolReason::from(*reason), Shortage { has_room: true, hold: hold(*reason, Some(AT)), ..at }, said, comes));
        }
        rows
    }

    #[test]
    fn each_reason_has_its_sentence_and_its_time() {
        for (reason, shortage, said, comes) in all() {
            assert_eq!((shortage.reason(), shortage.in_words(), shortage.comes()), (reason, said, comes), "{shortage:?}");
            let retry_at = if let Comes::At(at) = comes { Some(at) } else { shortage.retry_at() };
            assert_eq!(shortage.retry_at(), retry_at, "{shortage:?}");
        }
        // A caller who is refused since too many wait is not counted among them.
        let seen = all().into_iter().map(|(reason, ..)| reason).chain([PoolReason::Waiters]);
        let seen: std::collections::BTreeSet<&str> = seen.map(PoolReason::as_str).collect();
        let all: std::collections::BTreeSet<&str> = PoolReason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(seen, all);
    }

    #[test]
    fn the_counts_say_all_of_the_size() {
        for (_, shortage, ..) in all() {
            let c = shortage.counts;
            let own = c.ready + c.leased + c.creating + c.changing + c.resting + c.left + c.in_doubt + c.empty;
            assert_eq!(own + c.with_others + c.free_in_store + c.unknown, c.size, "{shortage:?}");
        }
    }

    #[test]
    fn a_hold_is_no_reason_where_nothing_could_be_bought_anyway() {
        let full = usual(PoolCounts { leased: 2, ..counts(2) });
        let held = Shortage { hold: hold(PoolHoldReason::Balance, Some(AT)), ..full };
        assert_eq!((held.reason(), held.comes()), (PoolReason::Leased, Comes::Soon));
        let rests = Shortage { rests: Rests { count: 2, until: Some(AT + 5000) }, ..usual(PoolCounts { ready: 2, ..counts(2) }) };
        let held = Shortage { hold: hold(PoolHoldReason::Paused, None), ..rests };
        assert_eq!((held.reason(), held.comes(), held.retry_at()), (PoolReason::Resting, Comes::At(AT + 5000), Some(AT + 5000)));
    }

    #[test]
    fn what_may_be_bought_or_taken_over_comes_soon() {
        let empty = usual(PoolCounts { empty: 2, ..counts(2) });
        assert_eq!(Shortage { has_room: true, ..empty.clone() }.comes(), Comes::Soon);
        assert_eq!(empty.comes(), Comes::Never);
        let held = Shortage { has_room: true, hold: hold(PoolHoldReason::Account, None), ..empty };
        assert_eq!((held.comes(), held.retry_at()), (Comes::Never, None));
        let others = Shortage { counts: PoolCounts { with_others: 1, empty: 1, ..counts(2) }, ..held.clone() };
        assert_eq!(others.comes(), Comes::Soon);
        let unseen = Shortage { counts: PoolCounts { unknown: 2, ..counts(2) }, has_asked: false, ..held.clone() };
        assert_eq!((unseen.comes(), Shortage { has_asked: true, ..unseen }.comes()), (Comes::Soon, Comes::Never));
    }

    #[test]
    fn a_target_is_shown_without_what_may_be_secret() {
        for (target, expected) in [
            ("shop.example", "shop.example"),
            ("a\nb", "a b"),
            ("https://name:word@shop.example/a?token=word#word", "shop.example/a"),
            (&"x".repeat(300), &"x".repeat(64)),
        ] {
            assert_eq!(shown(target), expected);
        }
    }
}
