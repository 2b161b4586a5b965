//! What the caller's own traffic shows of a session's exit, and what follows from it.

use super::ids::CommandId;
use crate::contract::agent::RotateReason;
use crate::contract::{Shape, Shaped, Sink, Tell, closed_enum, told};
use crate::json::{FromJson, FromJsonError, Object, word};
use crate::time::Millis;

/// After a change the old exit may still show for this long: what is seen of it is no reason to rotate again. It is also the
/// least time between two rotations that are asked for, whatever comes of the first.
const COOL_DOWN: Millis = 5_000;
/// Rotations asked for within an hour, after which the exit is not what is wrong.
const CAP: usize = 12;
const HOUR: Millis = 3_600_000;
/// One timeout may be anybody's; two in a row are the exit's.
const TIMEOUTS: u32 = 2;
/// So many failures in a row that may be the proxy's, and the session is to be read.
pub(crate) const UNKNOWN: u32 = 3;

/// What a request through the session met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// A response with this status; 999, which some sites answer scrapers with, is a block. What comes in its place is one, too: 407 is a proxy that refuses or can't be reached, as the word
    /// `proxy` says, and 502 a target that can't be reached, as `target` says.
    Status(u16),
    /// A page that asks for a captcha.
    Captcha,
    /// No response in time.
    Timeout,
    /// A block that shows in another way.
    Block,
    /// A failure that may be the proxy's or the target's.
    Unknown,
}

/// `{"status":403}`, or a word.
impl FromJson for Seen {
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        if !json.starts_with('{') {
            const WORDS: &[(&str, Seen)] = &[
                ("captcha", Seen::Captcha),
                ("timeout", Seen::Timeout),
                ("block", Seen::Block),
                ("proxy", Seen::Status(407)),
                ("target", Seen::Status(502)),
                ("unknown", Seen::Unknown),
            ];
            return word(json, WORDS);
        }
        let object = Object::of(json)?;
        object.only(&["status"])?;
        let mut status = 0;
        object.need("status", &mut status)?;
        Ok(Seen::Status(status))
    }
}

/// What to do about it.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Nothing: it works.
    Keep,
    /// Rotate, with this reason.
    Rotate(RotateReason),
    /// It is being rotated, with this reason. The command ends as one of `rotate_session` does: its `Ticket::of` is for `take`.
    Rotating(RotateReason, CommandId),
    /// Not enough is known, or rotating would not help; this says why.
    Unsure(&'static str),
}

closed_enum! {
    /// What to do about what was seen of a session.
    pub enum VerdictName {
        /// Nothing: it works.
        Keep = "keep",
        /// Rotate it, with the `reason`.
        Rotate = "rotate",
        /// It is being rotated, with the `reason`, by the `command`.
        Rotating = "rotating",
        /// Not enough is known, or to rotate would not help; `why` says why.
        Unsure = "unsure",
    }
}

told! {
    /// What to do about what was seen of a session.
    struct Told as "Verdict" {
        /// What to do.
        verdict: VerdictName,
        /// Of `rotate` and `rotating`: the reason to give.
        reason: Option<RotateReason>,
        /// Of `rotating`: what ends as a call of `rotate_session` does.
        command: Option<CommandId>,
        /// Of `unsure`: why.
        why: Option<&'static str>,
    }
}

impl Shaped for Verdict {
    const SHAPE: Shape = Told::SHAPE;
}

impl Tell for Verdict {
    fn tell<S: Sink>(&self, sink: &mut S) -> S::Value {
        let told = |verdict, reason: Option<&RotateReason>| Told { verdict, reason: reason.cloned(), command: None, why: None };
        let told = match self {
            Verdict::Keep => told(VerdictName::Keep, None),
            Verdict::Rotate(reason) => told(VerdictName::Rotate, Some(reason)),
            Verdict::Rotating(reason, command) => Told { command: Some(*command), ..told(VerdictName::Rotating, Some(reason)) },
            Verdict::Unsure(why) => Told { why: Some(why), ..told(VerdictName::Unsure, None) },
        };
        told.tell(sink)
    }
}

/// What was seen of a session, if anything was.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Observed(Option<Box<History>>);

#[derive(Debug, Clone, Default, Hash)]
struct History {
    timeouts: u32,
    unknown: u32,
    /// When the exit changed last, or was asked to.
    moved_at: Option<Millis>,
    /// When rotations were asked for.
    rotations: Vec<Millis>,
}

impl Observed {
    /// A rotation is asked for.
    pub(crate) fn asked(&mut self, now: Millis) {
        let history = self.0.get_or_insert_default();
        history.moved_at = Some(now);
        history.rotations.retain(|at| now.saturating_sub(*at) < HOUR);
        history.rotations.push(now);
    }

    /// The session has a new exit.
    pub(crate) fn changed(&mut self, now: Millis) {
        let history = self.0.get_or_insert_default();
        (history.timeouts, history.unknown) = (0, 0);
        history.moved_at = Some(now);
    }

    pub(crate) fn judge(&mut self, seen: Seen) -> Verdict {
        let take = |history: &mut Box<History>| (std::mem::take(&mut history.timeouts), std::mem::take(&mut history.unknown));
        let (timeouts, unknown) = self.0.as_mut().map(take).unwrap_or_default();
        match seen {
            Seen::Status(403) => Verdict::Rotate(RotateReason::Http403),
            Seen::Status(429) => Verdict::Rotate(RotateReason::Http429),
            Seen::Status(999) | Seen::Block => Verdict::Rotate(RotateReason::Block),
            Seen::Status(407) => Verdict::Unsure("the proxy refused the credentials or could not be reached; read the session again"),
            Seen::Status(500..) => Verdict::Unsure("the target failed, which another exit does not mend"),
            Seen::Status(_) => Verdict::Keep,
            Seen::Captcha => Verdict::Rotate(RotateReason::Captcha),
            Seen::Timeout => {
                let timeouts = timeouts.saturating_add(1);
                self.0.get_or_insert_default().timeouts = timeouts;
                if timeouts < TIMEOUTS {
                    return Verdict::Unsure("one timeout may have any cause");
                }
                Verdict::Rotate(RotateReason::Timeout)
            }
            Seen::Unknown if unknown + 1 >= UNKNOWN => {
                Verdict::Unsure("three requests in a row failed without saying why; read the session again")
            }
            Seen::Unknown => {
                self.0.get_or_insert_default().unknown = unknown + 1;
                Verdict::Unsure("the failure may be the proxy's or the target's")
            }
        }
    }

    /// Why no rotation may be asked for now.
    pub(crate) fn held_back(&self, now: Millis) -> Option<&'static str> {
        let history = self.0.as_deref()?;
        if history.moved_at.is_some_and(|at| now.saturating_sub(at) < COOL_DOWN) {
            return Some("the exit changed a moment ago, or was asked to");
        }
        let often = history.rotations.iter().filter(|at| now.saturating_sub(**at) < HOUR).count() >= CAP;
        often.then_some("this session was rotated too often within the hour for the exit to be the cause")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_a_reason_to_rotate_and_a_success_is_not() {
        let mut observed = Observed::default();
        assert_eq!(observed.judge(Seen::Status(200)), Verdict::Keep);
        assert_eq!(observed.judge(Seen::Status(403)), Verdict::Rotate(RotateReason::Http403));
        assert_eq!(observed.judge(Seen::Status(429)), Verdict::Rotate(RotateReason::Http429));
        assert_eq!(observed.judge(Seen::Captcha), Verdict::Rotate(RotateReason::Captcha));
        assert_eq!(observed.judge(Seen::Status(999)), Verdict::Rotate(RotateReason::Block));
        assert!(matches!(observed.judge(Seen::Status(503)), Verdict::Unsure(_)));
        assert!(matches!(observed.judge(Seen::Status(407)), Verdict::Unsure(_)));
    }

    #[test]
    fn a_failure_of_the_proxy_is_told_apart_from_one_of_the_target() {
        let judged = |seen: &str| Observed::default().judge(Seen::from_json(seen).expect("is a word for it"));
        assert_eq!(judged("\"proxy\""), judged("{\"status\":407}"));
        assert_eq!(judged("\"target\""), judged("{\"status\":502}"));
        assert_ne!(judged("\"proxy\""), judged("\"target\""));
        assert_eq!(judged("\"block\""), Verdict::Rotate(RotateReason::Block));
    }

    #[test]
    fn two_timeouts_in_a_row_are_the_exits_fault() {
        let mut observed = Observed::default();
        assert!(matches!(observed.judge(Seen::Timeout), Verdict::Unsure(_)));
        assert_eq!(observed.judge(Seen::Status(200)), Verdict::Keep);
        assert!(matches!(observed.judge(Seen::Timeout), Verdict::Unsure(_)));
        assert_eq!(observed.judge(Seen::Timeout), Verdict::Rotate(RotateReason::Timeout));
    }

    #[test]
    fn three_failures_in_a_row_that_say_nothing_are_a_reason_to_read_the_session() {
        let mut observed = Observed::default();
        let mut reads = |seen| matches!(observed.judge(seen), Verdict::Unsure(why) if why.contains("read the session"));
        let unknown = Seen::Unknown;
        assert_eq!([unknown, unknown, unknown, unknown].map(&mut reads), [false, false, true, false]);
        assert_eq!([unknown, Seen::Status(200), unknown, unknown, unknown].map(reads), [false, false, false, false, true]);
    }

    #[test]
    fn a_rotation_cools_down_and_too_many_are_no_cure() {
        let mut observed = Observed::default();
        observed.asked(1000);
        assert!(observed.held_back(2000).is_some());
        observed.changed(5000);
        assert!(observed.held_back(7000).is_some());
        assert_eq!(observed.held_back(10_000), None);
        (1..CAP as i64).for_each(|n| observed.asked(10_000 + n));
        assert!(observed.held_back(60_000).is_some_and(|why| why.contains("too often")));
        assert_eq!(observed.held_back(60_000 + HOUR), None);
    }
}
