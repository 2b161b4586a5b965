//! The three laws of pools, and what money and people must find, as an onlooker checks them: from the service's sessions, the leases that
//! callers have, the owners in the store, the requests that are out, and what targets did to each exit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hopline::client::{Millis, Name, StoreAnswer, StoreCall, describe};

use super::story::SECOND;
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
    /// Law 3: a caller got no lease and was told no reason.
    Unsaid,
    /// Law 1: a caller was told that nothing comes, beside a session that nobody had.
    ToldTooSoon,
    /// A caller waited for longer than it may.
    TooLong,
    /// A second session was bought before the first was ready.
    TriedTwice,
    /// A session was bought while another program had one to spare.
    SpentIdle,
    /// A session was bought beside free ones that would have served all who waited.
    BoughtBeside,
    /// A session was bought although somebody had paused the pool.
    BoughtPaused,
    /// A key that had its session to itself changed it while its exit stayed. Keys that had to share part once they can.
    Moved,
    /// The word of a person took longer than five seconds to take effect.
    Unheard,
    /// A session was lent for a target that had blocked its exit, or asked it to wait, a short time before.
    Rested,
    /// A program that waits had nothing for a long time while another one had more than its share.
    Starved,
    /// An exit was changed over and over, or more of them at once than may be.
    Churn,
    /// The data of callers for an exit was not found by whoever leased the session next, or by those with another exit.
    DataLost,
    /// A session that was discarded was lent again.
    LentDiscarded,
    /// A caller got the session that it had asked to avoid.
    LentAvoided,
}

impl Law {
    /// All of them.
    pub const ALL: [Law; 19] = [
        Law::Idle,
        Law::Withheld,
        Law::IdleElsewhere,
        Law::KeptWaiting,
        Law::Unsaid,
        Law::ToldTooSoon,
        Law::TooLong,
        Law::TriedTwice,
        Law::SpentIdle,
        Law::BoughtBeside,
        Law::BoughtPaused,
        Law::Moved,
        Law::Unheard,
        Law::Rested,
        Law::Starved,
        Law::Churn,
        Law::DataLost,
        Law::LentDiscarded,
        Law::LentAvoided,
    ];
}

/// A session that fits may be idle here for so long: what is under way is over by then.
pub(super) const MOMENT: Millis = 250;
/// The longest time that a change takes, where it is sent again.
pub(super) const CHANGE: Millis = 5 * SECOND;
/// With another program for so long, and as long as the longest lease there.
pub(super) const ELSEWHERE: Millis = 10 * SECOND;
/// A program needs what it had in use within this.
const PEAK: Millis = 5 * SECOND;
/// A key keeps its session for so long, where nothing else is said.
pub(super) const KEPT: Millis = 5 * SECOND;
/// So long others must have had more than they need before somebody buys: it is told, read, and asked for.
pub(super) const SPARE: Millis = 9 * SECOND;
/// After so long everybody has heard of a pause.
pub(super) const HEARD: Millis = 5 * SECOND;
/// So long a drain waits for the sessions that it ends, where nothing else is said.
const GRACE: Millis = 10 * SECOND;
/// The first purchase that was sent and is not ready: no second one so soon.
pub(super) const FIRST: Millis = 30 * SECOND;

/// The shortest time between two changes of an exit by one program.
const APART: Millis = 5 * SECOND;
/// A trial that somebody waited for is made so long after its time at most.
pub(super) const TRIAL_LATE: Millis = 3 * SECOND;
/// So long a session was free before a purchase of its program that it makes needless; one that nobody has, for `ELSEWHERE`.
pub(super) const BESIDE: Millis = 2 * SECOND;
/// So long a put takes at most.
const PUT: Millis = SECOND;

/// The onlooker's knowledge of a session.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The slot in the store.
    pub(super) slot: Option<Name>,
    /// The program that has read that it is active, since it owns it.
    pub(super) read_by: Option<u8>,
    /// Requests about it that are out.
    pub(super) out: u32,
    /// Since when nobody owns it.
    pub(super) free_since: Option<Millis>,
    /// Since when it is free, whoever has it.
    pub(super) idle_since: Option<Millis>,
    /// True if a program has read that it is over.
    pub(super) is_seen_over: bool,
    /// The last change of its exit, that was made or refused, or its last read that failed.
    pub(super) braked: Option<Millis>,
    /// The last change that was answered by a failure: it is sent again.
    pub(super) changes: Option<Millis>,
    /// Its generation, and the targets (none: its proxy) that were seen to do badly through its present exit.
    pub(super) rotations: u32,
    pub(super) bad: BTreeSet<Option<usize>>,
    pub(super) active: bool,
    /// Until when its present exit rests for a target.
    rests: BTreeMap<usize, Millis>,
    /// The targets of which something was seen through it.
    targets: BTreeSet<usize>,
    /// The program that changed its exit last, and when.
    changed: Option<(u8, Millis)>,
    /// The rotations of the exit that has data, what was put last, and when; none where nobody can say.
    data: Option<(u32, String, Millis)>,
    /// True if the last put may not have come through, or was through another exit.
    is_data_unsure: bool,
    /// True if the last change of its exit had no answer: it may have been made, or may be made yet.
    is_exit_unsure: bool,
}

/// The sessions that a program had use for: leases and waiters.
#[derive(Debug, Default)]
pub(super) struct Uses {
    pub(super) noted: VecDeque<(Millis, usize)>,
    /// Since when it has had more than it needs.
    pub(super) spare: Option<Millis>,
}

impl Uses {
    pub(super) fn note(&mut self, now: Millis, uses: usize) {
        if self.noted.back().is_none_or(|(_, last)| *last != uses) {
            self.noted.push_back((now, uses));
        }
        while self.noted.get(1).is_some_and(|(at, _)| *at <= now - PEAK) {
            self.noted.pop_front();
        }
    }

    pub(super) fn peak(&self) -> usize {
        self.noted.iter().map(|(_, uses)| *uses).max().unwrap_or_default()
    }
}

/// The onlooker.
#[derive(Debug, Default)]
pub(super) struct Laws {
    pub(super) sessions: BTreeMap<String, Known>,
    pub(super) slots: BTreeMap<Name, String>,
    pub(super) uses: BTreeMap<u8, Uses>,
    /// Since when a session of a program, or of nobody, has fitted a caller that waits, and is not lent to it.
    pub(super) fits: BTreeMap<(usize, String, Option<u8>), Millis>,
    /// The callers for whom something could come since they wait.
    pub(super) could: BTreeSet<usize>,
    pub(super) is_ready: bool,
    pub(super) tried: Option<Millis>,
    /// When a purchase was refused last: what that came to is told to the others a moment later.
    pub(super) refused_at: Option<Millis>,
    /// Purchases that are out.
    pub(super) buying: u32,
    pub(super) keys: BTreeSet<String>,
    pub(super) paused: Option<Millis>,
    pub(super) bound: BTreeMap<(u8, String), (String, u32)>,
    /// Those who waited for what could not come, in words; unless a purchase is tried at about that time.
    pub(super) kept: Vec<(Millis, String)>,
    /// The moves of keys: when, of a program, from a session, and in words. The session may just be let go of.
    pub(super) moves: Vec<(Millis, u8, String, String)>,
    /// The sessions that each program is changing.
    changing: BTreeMap<u8, BTreeSet<String>>,
    pub(super) discarded: BTreeSet<String>,
    /// Since when a program has had nothing while another one has had more than its share.
    pub(super) starves: BTreeMap<u8, Millis>,
    pub(super) broken: BTreeMap<Law, String>,
}

impl Laws {
    /// How many free sessions a program keeps for its keys, which had them since then.
    pub(super) fn kept_for_keys(&self, number: u8, since: Millis) -> usize {
        let of_keys: BTreeSet<&String> = self.bound.iter().filter(|((of, _), _)| *of == number).map(|(_, (session, _))| session).collect();
        let is_kept = |session: &&String| self.sessions.get(*session).is_some_and(|known| known.idle_since.is_some_and(|at| at >= since));
        of_keys.into_iter().filter(is_kept).count()
    }

    pub(super) fn breaks(&mut self, law: Law, at: Millis, how: String) {
        self.broken.entry(law).or_insert_with(|| format!("{:.3} {how}", at as f64 / 1000.0));
    }

    /// The store has done what a program called for.
    pub(super) fn called(&mut self, number: u8, call: &StoreCall, answer: &StoreAnswer) {
        match (call, answer) {
            (StoreCall::Put { name, data, release, .. }, StoreAnswer::Done) if is_slot(name) => {
                if let Some(known) = self.slots.get(name).and_then(|session| self.sessions.get_mut(session)).filter(|_| *release) {
                    known.read_by = None;
                    // Whoever takes it over next knows nothing of its changes.
                    known.changed = None;
                    self.bound.retain(|(program, _), (session, _)| *program != number || self.slots.get(name) != Some(session));
                }
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
                        self.bound.retain(|(program, _), (session, _)| *program != number || self.slots.get(name) != Some(session));
                    }
                }
            }
            _ => {}
        }
    }

    /// A request about a session goes out.
    pub(super) fn sent(&mut self, number: u8, session: &str, operation: &str, now: Millis) {
        let known = self.sessions.entry(session.to_owned()).or_default();
        known.out += 1;
        if operation != "rotate_session" {
            return;
        }
        let (changed, changing) = (known.changed, self.changing.entry(number).or_default());
        changing.insert(session.to_owned());
        let many = changing.len();
        if let Some((by, at)) = changed.filter(|(by, at)| *by == number && now - at < APART) {
            self.breaks(Law::Churn, now, format!("program {by} changes the exit of {session} again {} ms after the last time", now - at));
        }
        if many > 4 {
            self.breaks(Law::Churn, now, format!("program {number} changes {many} exits at once"));
        }
    }

    /// A program has its answer.
    pub(super) fn answered(&mut self, number: u8, session: &str, operation: &str, status: u16, body: &[u8], now: Millis) {
        let known = self.sessions.entry(session.to_owned()).or_default();
        known.out = known.out.saturating_sub(1);
        if operation == "rotate_session" {
            self.changing.entry(number).or_default().remove(session);
        }
        match (operation, status) {
            ("get_session", 200) if status_of(body).is_some_and(|status| status == "active") => {
                // Without the credentials nobody can lend it.
                known.read_by = Some(number).filter(|_| has_password(body)).or(known.read_by);
                self.is_ready = true;
            }
            ("get_session", 200) => known.is_seen_over |= status_of(body).is_some_and(|status| status != "creating"),
            (_, 404 | 410) => known.is_seen_over = true,
            ("rotate_session", 200) => {
                (known.rotations, known.braked) = (known.rotations + 1, Some(now));
                known.bad.clear();
                known.rests.clear();
                known.targets.clear();
                // A change that is sent again is no further one.
                if !std::mem::take(&mut known.is_exit_unsure) {
                    known.changed = Some((number, now));
                }
            }
            ("rotate_session", 500..) => {
                (known.braked, known.changes) = (Some(now), Some(now));
                (known.is_exit_unsure, known.is_data_unsure) = (true, known.data.is_some());
                known.rests.clear();
            }
            ("rotate_session", _) => (known.braked, known.changes) = (Some(now), Some(now)),
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

    /// What a target says of a time to wait; a good answer ends it.
    pub(super) fn rests(&mut self, session: &str, rotations: u32, target: usize, until: Option<Millis>, is_good: bool) {
        let Some(known) = self.sessions.get_mut(session).filter(|known| known.rotations == rotations) else { return };
        known.targets.insert(target);
        if is_good {
            known.rests.remove(&target);
        }
        if let Some(until) = until {
            let rests = known.rests.entry(target).or_default();
            *rests = until.max(*rests);
        }
    }

    /// A session is lent for a target.
    pub(super) fn lent(&mut self, number: u8, session: &str, rotations: u32, target: usize, now: Millis) {
        let Some(known) = self.sessions.get(session).filter(|known| known.rotations == rotations) else { return };
        // An exit remembers four targets.
        let Some(until) = known.rests.get(&target).filter(|until| **until > now && known.targets.len() <= 4) else { return };
        let how = format!("program {number} lends {session} for target {target}, where it rests until {:.3}", *until as f64 / 1000.0);
        self.breaks(Law::Rested, now, how);
    }

    /// A caller puts data for an exit.
    pub(super) fn puts(&mut self, session: &str, rotations: u32, data: String, now: Millis) {
        let known = self.sessions.entry(session.to_owned()).or_default();
        (known.data, known.is_data_unsure) = (Some((rotations, data, now)), false);
    }

    /// The data that came with a lease.
    pub(super) fn found(&mut self, number: u8, session: &str, rotations: u32, data: String, now: Millis) {
        if self.discarded.contains(session) {
            self.breaks(Law::LentDiscarded, now, format!("program {number} lends {session}, which was discarded"));
        }
        let known = self.sessions.entry(session.to_owned()).or_default();
        let expected = known.data.as_ref().filter(|(of, ..)| *of == rotations).map_or("{}", |(_, data, _)| data.as_str());
        if data == expected {
            return;
        }
        let how = format!("program {number} lends {session} with {data} in place of {expected}");
        if known.is_data_unsure && data == "{}" {
            (known.data, known.is_data_unsure) = (None, false);
        } else {
            self.breaks(Law::DataLost, now, how);
        }
    }

    /// A program was killed: what it noted of its sessions is lost, and so is what it put a moment ago.
    pub(super) fn killed(&mut self, number: u8, now: Millis) {
        self.changing.remove(&number);
        for known in self.sessions.values_mut().filter(|known| known.read_by == Some(number)) {
            known.rests.clear();
            known.is_data_unsure |= known.data.as_ref().is_some_and(|(.., at)| now - at < PUT);
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
        self.fits.retain(|(waits, ..), _| *waits != caller);
        self.could.remove(&caller);
        let Some(key) = key else { return };
        let place = (number, key.to_owned());
        if let Some((before, had)) = self.bound.get(&place).filter(|(before, _)| before != session) {
            let shares = |((of, other), (bound, _)): (&(u8, String), &(String, u32))| *of == number && other != key && bound == before;
            let is_shared = self.bound.iter().any(shares);
            let stays = !is_shared
                && self.sessions.get(before).is_some_and(|known| {
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
                self.moves.push((now, number, before.clone(), how));
            }
        }
        let rotations = self.sessions.get(session).map_or(0, |known| known.rotations);
        self.bound.insert(place, (session.to_owned(), rotations));
    }

    /// A caller waits no more, and has no lease.
    pub(super) fn refused(&mut self, caller: usize, waited: Millis, now: Millis, error: &str) {
        self.fits.retain(|(waits, ..), _| *waits != caller);
        if !self.could.remove(&caller) && waited > HEARD {
            self.kept.push((now, format!("caller {caller} waited for {waited} ms, and was told: {error}")));
        }
    }

    /// A caller was told that nothing is available, without a reason.
    pub(super) fn unsaid(&mut self, caller: usize, now: Millis, error: &str) {
        self.breaks(Law::Unsaid, now, format!("caller {caller} was told no reason: {error}"));
    }

    /// A person says this: a pool that is to buy again may from now on, and one that is paused or drained buys nothing after a moment.
    pub(super) fn says(&mut self, operation: &str, now: Millis) {
        self.paused = Some(now).filter(|_| operation != "resume_pool");
        self.tried = self.tried.filter(|_| operation != "resume_pool");
    }

    /// The word has come through, or failed. A drain also waits for the sessions that it ends.
    pub(super) fn said(&mut self, operation: &str, is_done: bool, took: Millis, now: Millis) {
        let most = if operation == "drain_pool" { GRACE + HEARD } else { HEARD };
        if took > most {
            self.breaks(Law::Unheard, now, format!("{operation} took {took} ms"));
        }
        if !is_done {
            self.unsays();
        }
    }

    /// The word of a person may have come through, or not.
    pub(super) fn unsays(&mut self) {
        self.paused = None;
    }
}

/// Returns true if an answer shows how to log in at the proxy of a session.
fn has_password(body: &[u8]) -> bool {
    let told: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    told["data"]["proxy"]["password"].as_str().is_some_and(|password| !password.is_empty() && !password.starts_with('*'))
}

/// The status of a session that an answer shows.
fn status_of(body: &[u8]) -> Option<String> {
    let told: serde_json::Value = serde_json::from_slice(body).ok()?;
    told["data"]["status"].as_str().map(str::to_owned)
}

impl Laws {
    /// Through its present exit nothing bad was seen of the target.
    pub(super) fn fits_caller(&self, session: &str, target: Option<usize>) -> bool {
        self.sessions.get(session).is_some_and(|known| !known.bad.contains(&None) && !known.bad.contains(&target))
    }
}
