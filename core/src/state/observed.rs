//! Observations of a session's exit from the caller's own traffic, and the advice that follows.

use super::ids::CommandId;
use crate::contract::agent::RotateReason;
use crate::contract::{Encode, Shape, Shaped, Sink, closed_enum, host_record};
use crate::json::{FromJson, FromJsonError, Object, word};
use crate::time::Millis;

/// The time for which the old exit may still show after a change: an observation within it is no reason to rotate again. This is also the
/// shortest time between two requested rotations, whatever the result of the first.
const COOL_DOWN: Millis = 5_000;
/// The number of rotations within an hour after which the exit is not the cause.
const CAP: usize = 12;
const HOUR: Millis = 3_600_000;
/// The number of timeouts in a row that count against the exit; a single timeout may have any cause.
const TIMEOUTS: u32 = 2;
/// The number of failures in a row, possibly the proxy's, after which the session is read.
pub(crate) const UNKNOWN: u32 = 3;

/// An observation from one request through the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// A response with this status. 999, which some sites send to scrapers, is a block. Two statuses stand for failures of the connection:
    /// 407 for a proxy that refuses or can't be reached, as the word `proxy` does, and 502 for a target that can't be reached, as `target`
    /// does.
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
        object.need(&mut [("status", &mut status)])?;
        Ok(Seen::Status(status))
    }
}

/// The advice after an observation.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Keep the exit: it works.
    Keep,
    /// Rotate, with this reason.
    Rotate(RotateReason),
    /// The session is being rotated, with this reason. The command ends as one of `rotate_session` does: its `Ticket::of` is for `take`.
    Rotating(RotateReason, CommandId),
    /// No advice: too little is known, or a rotation would not help; the text says why.
    Unsure(&'static str),
}

closed_enum! {
    /// The advice after an observation of a session, by name.
    pub enum VerdictName {
        /// Keep the exit: it works.
        Keep = "keep",
        /// Rotate it, with the `reason`.
        Rotate = "rotate",
        /// The session is being rotated, with the `reason`, by the `command`.
        Rotating = "rotating",
        /// No advice: too little is known, or a rotation would not help; `why` says why.
        Unsure = "unsure",
    }
}

host_record! {
    /// The advice after an observation of a session.
    struct HostVerdict as "Verdict" {
        /// The advice.
        verdict: VerdictName,
        /// Of `rotate` and `rotating`: the reason to give.
        reason: Option<RotateReason>,
        /// Of `rotating`: the command, which ends as a call of `rotate_session` does.
        command: Option<CommandId>,
        /// Of `unsure`: the reason.
        why: Option<&'static str>,
    }
}

impl Shaped for Verdict {
    const SHAPE: Shape = HostVerdict::SHAPE;
}

impl Encode for Verdict {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        let told = |verdict, reason: Option<&RotateReason>| HostVerdict { verdict, reason: reason.cloned(), command: None, why: None };
        let told = match self {
            Verdict::Keep => told(VerdictName::Keep, None),
            Verdict::Rotate(reason) => told(VerdictName::Rotate, Some(reason)),
            Verdict::Rotating(reason, command) => HostVerdict { command: Some(*command), ..told(VerdictName::Rotating, Some(reason)) },
            Verdict::Unsure(why) => HostVerdict { why: Some(why), ..told(VerdictName::Unsure, None) },
        };
        told.encode(sink)
    }
}

/// The observations of a session, if there are any.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Observed(Option<Box<History>>);

#[derive(Debug, Clone, Default, Hash)]
struct History {
    timeouts: u32,
    unknown: u32,
    /// The time of the exit's last change, or of the request for one.
    moved_at: Option<Millis>,
    /// The times of the requested rotations.
    rotations: Vec<Millis>,
}

impl Observed {
    /// Notes a request for a rotation.
    pub(crate) fn asked(&mut self, now: Millis) {
        let history = self.0.get_or_insert_default();
        history.moved_at = Some(now);
        history.rotations.retain(|at| now.saturating_sub(*at) < HOUR);
        history.rotations.push(now);
    }

    /// Notes a new exit of the session.
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

    /// The reason why no rotation may be requested now.
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
