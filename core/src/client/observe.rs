//! What the caller's own traffic says about a session: keep it, rotate it, or it is too early to tell. A session that was
//! opened with [`CallOptions::auto_rotate`] is rotated at once.

use serde::{Deserialize, Serialize};

use super::options::CallOptions;
use super::types::{CommandId, Millis, Phase};
use super::{Client, Now};
use crate::contract::Operation;
use crate::contract::agent::{RotateReason, RotateSession};
use crate::engine::phase_of;

/// After a change the old exit may still show for this long: what is seen of it is no reason to rotate again. It is also the
/// least time between two rotations that are asked for, whatever comes of the first.
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
    /// It is being rotated, with this reason. The command ends as one of `rotate_session` does: its `Ticket::of` is for `take`.
    Rotating(RotateReason, CommandId),
    /// Not enough is known, or rotating would not help; this says why.
    Unsure(&'static str),
}

#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Observed {
    timeouts: u32,
    /// When the exit changed last, or was asked to.
    moved_at: Option<Millis>,
    /// When rotations were asked for.
    rotations: Vec<Millis>,
}

impl Observed {
    /// A rotation is asked for.
    pub(super) fn asked(&mut self, now: Millis) {
        self.moved_at = Some(now);
        self.rotations.retain(|at| now.saturating_sub(*at) < HOUR);
        self.rotations.push(now);
    }

    /// The session has a new exit.
    pub(super) fn changed(&mut self, now: Millis) {
        self.timeouts = 0;
        self.moved_at = Some(now);
    }

    fn judge(&mut self, seen: Seen) -> Verdict {
        let timeouts = std::mem::take(&mut self.timeouts);
        match seen {
            Seen::Status(403) => Verdict::Rotate(RotateReason::Http403),
            Seen::Status(429) => Verdict::Rotate(RotateReason::Http429),
            Seen::Status(407) => Verdict::Unsure("the proxy refused the credentials; read the session again"),
            Seen::Status(500..) => Verdict::Unsure("the target failed, which another exit does not mend"),
            Seen::Status(_) => Verdict::Keep,
            Seen::Captcha => Verdict::Rotate(RotateReason::Captcha),
            Seen::Block => Verdict::Rotate(RotateReason::Block),
            Seen::Timeout => {
                self.timeouts = timeouts.saturating_add(1);
                if self.timeouts < TIMEOUTS {
                    return Verdict::Unsure("one timeout may have any cause");
                }
                Verdict::Rotate(RotateReason::Timeout)
            }
        }
    }

    /// Why no rotation may be asked for now.
    fn held_back(&self, now: Millis) -> Option<&'static str> {
        if self.moved_at.is_some_and(|at| now.saturating_sub(at) < COOL_DOWN) {
            return Some("the exit changed a moment ago, or was asked to");
        }
        let often = self.rotations.iter().filter(|at| now.saturating_sub(**at) < HOUR).count() >= CAP;
        often.then_some("this session was rotated too often within the hour for the exit to be the cause")
    }
}

impl Client {
    /// Turns what was seen through a session into advice, and sends nothing: to rotate is the caller's decision. If that
    /// decision was made by [`CallOptions::auto_rotate`], the session is rotated where the advice would be to, or the
    /// rotation that is under way is joined. `None` if this client does not follow the session.
    pub fn observe(&mut self, session_id: &str, seen: Seen, now: Now) -> Option<Verdict> {
        self.clock.tick(now);
        let tracked = self.sessions.get_mut(session_id)?;
        let reason = match tracked.observed.judge(seen) {
            Verdict::Rotate(reason) => reason,
            verdict => return Some(verdict),
        };
        let auto = tracked.auto_rotate;
        let changing = tracked.changing.first().and_then(|id| self.jobs.get(id).map(|entry| (*id, entry)));
        let phase = phase_of(tracked.status.as_deref(), &tracked.ends);
        Some(match changing {
            _ if tracked.session_type.as_deref() == Some("static") => Verdict::Unsure("a static session can't be rotated"),
            Some((_, entry)) if entry.is_resting() => Verdict::Unsure("a change of the session is in doubt; resume or settle it first"),
            Some((id, entry)) if auto && entry.subject.operation == RotateSession::ENDPOINT.name => {
                let command = self.command(RotateSession::ENDPOINT);
                self.attach(id, command);
                Verdict::Rotating(reason, command)
            }
            Some(_) => Verdict::Unsure("a change of the session is under way"),
            None if matches!(phase, Phase::Pending | Phase::Ended) => Verdict::Unsure("the session is not active, as far as is known"),
            None => match tracked.observed.held_back(now.monotonic) {
                Some(why) => Verdict::Unsure(why),
                None if auto => self.rotate(session_id, reason),
                None => Verdict::Rotate(reason),
            },
        })
    }

    fn rotate(&mut self, session_id: &str, reason: RotateReason) -> Verdict {
        let credentials = self.sessions.get(session_id).is_some_and(|tracked| tracked.credentials);
        let rotation = RotateSession {
            session_id: session_id.to_owned(),
            include_credentials: credentials.then_some(true),
            reason: Some(reason.clone()),
        };
        Verdict::Rotating(reason, self.start(rotation, CallOptions::default()).command)
    }

    /// From now on what is seen through a session may rotate it.
    pub(super) fn rotate_when_seen(&mut self, session_id: &str) {
        let tracked = self.sessions.entry(session_id.to_owned()).or_default();
        if !std::mem::replace(&mut tracked.auto_rotate, true) {
            self.save_session(session_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ClientOptions, Step};
    use super::*;
    use crate::client::session::Tracked;
    use crate::contract::agent::TerminateSession;

    #[test]
    fn a_block_is_a_reason_to_rotate_and_a_success_is_not() {
        let mut observed = Observed::default();
        assert_eq!(observed.judge(Seen::Status(200)), Verdict::Keep);
        assert_eq!(observed.judge(Seen::Status(403)), Verdict::Rotate(RotateReason::Http403));
        assert_eq!(observed.judge(Seen::Status(429)), Verdict::Rotate(RotateReason::Http429));
        assert_eq!(observed.judge(Seen::Captcha), Verdict::Rotate(RotateReason::Captcha));
        assert!(matches!(observed.judge(Seen::Status(503)), Verdict::Unsure(_)));
        assert!(matches!(observed.judge(Seen::Status(407)), Verdict::Unsure(_)));
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

    const NOW: Now = Now { unix: 1_700_000_000_000, monotonic: 1_000_000 };

    fn following(auto_rotate: bool) -> Client {
        let options = ClientOptions { base_url: "https://api.example/v1".into(), ..ClientOptions::default() };
        let mut client = Client::new(options, [7; 16]).expect("the options are sound");
        let active = Tracked { auto_rotate, status: Some("active".into()), session_type: Some("dynamic".into()), ..Tracked::default() };
        client.sessions.insert("s-1".to_owned(), active);
        client
    }

    fn seen(client: &mut Client) -> Verdict {
        client.observe("s-1", Seen::Status(403), NOW).expect("is followed")
    }

    #[test]
    fn advice_sends_nothing_and_a_session_that_rotates_by_itself_saves_its_rotation_first() {
        let mut client = following(false);
        assert_eq!(seen(&mut client), Verdict::Rotate(RotateReason::Http403));
        assert!(matches!(client.poll(NOW), Step::Wait { .. }));
        let mut client = following(true);
        assert!(matches!(seen(&mut client), Verdict::Rotating(RotateReason::Http403, _)));
        assert!(matches!(client.poll(NOW), Step::Save { data: Some(_), .. }));
        assert!(matches!(client.poll(NOW), Step::Wait { .. }));
    }

    #[test]
    fn whoever_sees_a_block_during_a_rotation_waits_for_that_one() {
        let mut client = following(true);
        let (Verdict::Rotating(_, one), Verdict::Rotating(_, other)) = (seen(&mut client), seen(&mut client)) else {
            panic!("both wait for a rotation")
        };
        assert!(one != other && client.jobs.len() == 1);
        assert_eq!(client.cancel(one, NOW), None);
        assert!(!client.is_pending(one) && client.is_pending(other));
    }

    #[test]
    fn what_changes_the_session_otherwise_keeps_it_from_rotating() {
        let mut client = following(true);
        client.start(TerminateSession { session_id: "s-1".into() }, CallOptions::default());
        assert!(matches!(seen(&mut client), Verdict::Unsure(why) if why.contains("under way")));
        let mut client = following(true);
        client.sessions.entry("s-1".to_owned()).and_modify(|tracked| tracked.status = Some("expired".into()));
        assert!(matches!(seen(&mut client), Verdict::Unsure(why) if why.contains("not active")));
    }
}
