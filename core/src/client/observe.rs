//! What the caller's own traffic says about a session: keep it, rotate it, or it is too early to tell.

use serde::{Deserialize, Serialize};

use super::Client;
use super::types::Millis;
use crate::contract::agent::RotateReason;

/// After a change the old exit may still show for this long: what is seen of it is no reason to rotate again.
const COOL_DOWN: Millis = 5_000;
/// Rotations asked for within an hour, after which the exit is not what is wrong.
const CAP: usize = 12;
const HOUR: Millis = 3_600_000;
/// One timeout may be anybody's; two in a row are the exit's.
const TIMEOUTS: u32 = 2;

/// What a request through the session met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// A response with this status.
    Status(u16),
    /// A page that asks for a captcha.
    Captcha,
    /// No response in time.
    Timeout,
    /// A block that shows in another way.
    Block,
}

/// What to do about it.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Nothing: it works.
    Keep,
    /// Rotate, with this reason.
    Rotate(RotateReason),
    /// Not enough is known, or rotating would not help; this says why.
    Unsure(&'static str),
}

#[derive(Debug, Default)]
pub(super) struct Observed {
    timeouts: u32,
    changed_at: Option<Millis>,
    rotations: Vec<Millis>,
}

impl Observed {
    /// The session has a new exit.
    pub(super) fn changed(&mut self, now: Millis) {
        self.timeouts = 0;
        self.changed_at = Some(now);
        self.rotations.retain(|at| now.saturating_sub(*at) < HOUR);
        self.rotations.push(now);
    }

    fn judge(&mut self, seen: Seen, now: Millis) -> Verdict {
        let timeouts = std::mem::take(&mut self.timeouts);
        let reason = match seen {
            Seen::Status(403) => RotateReason::Http403,
            Seen::Status(429) => RotateReason::Http429,
            Seen::Status(407) => return Verdict::Unsure("the proxy refused the credentials; read the session again"),
            Seen::Status(500..) => return Verdict::Unsure("the target failed, which another exit does not mend"),
            Seen::Status(_) => return Verdict::Keep,
            Seen::Captcha => RotateReason::Captcha,
            Seen::Block => RotateReason::Block,
            Seen::Timeout => {
                self.timeouts = timeouts.saturating_add(1);
                if self.timeouts < TIMEOUTS {
                    return Verdict::Unsure("one timeout may have any cause");
                }
                RotateReason::Timeout
            }
        };
        if self.changed_at.is_some_and(|at| now.saturating_sub(at) < COOL_DOWN) {
            return Verdict::Unsure("the exit changed a moment ago");
        }
        if self.rotations.iter().filter(|at| now.saturating_sub(**at) < HOUR).count() >= CAP {
            return Verdict::Unsure("this session was rotated too often within the hour for the exit to be the cause");
        }
        Verdict::Rotate(reason)
    }
}

impl Client {
    /// Turns what was seen through a session into advice. Nothing is sent: to rotate is the caller's decision.
    /// `None` if this client does not follow the session.
    pub fn observe(&mut self, session_id: &str, seen: Seen, now: super::Now) -> Option<Verdict> {
        self.clock.tick(now);
        let tracked = self.sessions.get_mut(session_id)?;
        Some(match tracked.observed.judge(seen, now.monotonic) {
            Verdict::Rotate(_) if tracked.session_type.as_deref() == Some("static") => Verdict::Unsure("a static session can't be rotated"),
            verdict => verdict,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_a_reason_to_rotate_and_a_success_is_not() {
        let mut observed = Observed::default();
        assert_eq!(observed.judge(Seen::Status(200), 0), Verdict::Keep);
        assert_eq!(observed.judge(Seen::Status(403), 0), Verdict::Rotate(RotateReason::Http403));
        assert_eq!(observed.judge(Seen::Status(429), 0), Verdict::Rotate(RotateReason::Http429));
        assert_eq!(observed.judge(Seen::Captcha, 0), Verdict::Rotate(RotateReason::Captcha));
        assert!(matches!(observed.judge(Seen::Status(503), 0), Verdict::Unsure(_)));
        assert!(matches!(observed.judge(Seen::Status(407), 0), Verdict::Unsure(_)));
    }

    #[test]
    fn two_timeouts_in_a_row_are_the_exits_fault() {
        let mut observed = Observed::default();
        assert!(matches!(observed.judge(Seen::Timeout, 0), Verdict::Unsure(_)));
        assert_eq!(observed.judge(Seen::Status(200), 0), Verdict::Keep);
        assert!(matches!(observed.judge(Seen::Timeout, 0), Verdict::Unsure(_)));
        assert_eq!(observed.judge(Seen::Timeout, 0), Verdict::Rotate(RotateReason::Timeout));
    }

    #[test]
    fn a_rotation_cools_down_and_too_many_are_no_cure() {
        let mut observed = Observed::default();
        observed.changed(1000);
        assert!(matches!(observed.judge(Seen::Status(403), 2000), Verdict::Unsure(_)));
        assert_eq!(observed.judge(Seen::Status(403), 7000), Verdict::Rotate(RotateReason::Http403));
        (0..CAP as i64).for_each(|n| observed.changed(10_000 + n));
        assert!(matches!(observed.judge(Seen::Status(403), 60_000), Verdict::Unsure(_)));
        assert_eq!(observed.judge(Seen::Status(403), 60_000 + HOUR), Verdict::Rotate(RotateReason::Http403));
    }
}
