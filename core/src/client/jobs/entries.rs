//! The jobs that are under way: what each waits for, who waits for it, its place and its timer, and the record that it is kept under. Any
//! file may look at a job, and only this one changes it; its machine is lent out to be advanced.

use crate::client::jobs::job::{Entry, Parked};
use crate::client::jobs::places::{Places, QueueTurn};
use crate::client::timers::Timers;
use crate::collections::{IdMap, SmallSet};
use crate::contract::Operation;
use crate::contract::agent::{RenewSession, UpdateBudget};
use crate::engine::{Counted, Job, Subject, WaitOptions};
use crate::options::CallOptions;
use crate::policy::RetryPolicy;
use crate::state::{CommandId, JobId, Name, SavedCall, Version};
use crate::time::{Clock, Millis};
use crate::wire::members;

/// The jobs of a client.
#[derive(Debug)]
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(crate) struct Jobs {
    // Boxed, as a map's nodes have room for more than they hold.
    entries: IdMap<JobId, Box<Entry>>,
    places: Places,
}

/// A job's machine, and what it may change and read as it advances.
pub(crate) struct LentJob<'a> {
    pub(crate) job: &'a mut Job,
    pub(crate) subject: &'a mut Subject,
    pub(crate) wants: &'a WaitOptions,
    pub(crate) wanted: bool,
    /// Of a later purchase of an intent: the session before.
    pub(crate) last_session: Option<&'a str>,
}

/// Jobs and their machines.
impl Jobs {
    /// No jobs; so many sends may be out at once.
    pub(crate) fn new(most_out: u32) -> Self {
        Jobs { entries: IdMap::default(), places: Places::new(most_out) }
    }

    pub(crate) fn get(&self, id: JobId) -> Option<&Entry> {
        self.entries.get(&id).map(|entry| &**entry)
    }

    fn get_mut(&mut self, id: JobId) -> Option<&mut Entry> {
        self.entries.get_mut(&id).map(|entry| &mut **entry)
    }

    fn change(&mut self, id: JobId, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.get_mut(id) {
            change(entry);
        }
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().map(|entry| &**entry)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The jobs that wait for this.
    pub(crate) fn parked(&self, is: impl Fn(&Parked) -> bool) -> Vec<JobId> {
        self.entries.iter().filter(|(_, entry)| is(&entry.parked)).map(|(id, _)| *id).collect()
    }

    /// The first of the commands that wait for a job.
    pub(crate) fn command(&self, id: JobId) -> Option<CommandId> {
        self.get(id)?.waiting.first()
    }

    /// Returns true if a job reads a session or an order until it can be used.
    pub(crate) fn follows(&self, id: JobId) -> bool {
        self.get(id).is_some_and(|entry| entry.job.follows())
    }

    /// A job begins for a command.
    pub(crate) fn begin(&mut self, mut entry: Entry, command: CommandId) -> JobId {
        entry.waiting = SmallSet::one(command);
        self.entries.insert(Box::new(entry))
    }

    /// Lends a job's machine.
    pub(crate) fn lend(&mut self, id: JobId) -> Option<LentJob<'_>> {
        let Entry { job, subject, wants, wanted, record, .. } = self.get_mut(id)?;
        let later = record.bought_as.as_ref().and_then(|known| known.later.as_deref());
        let last_session = later.map(|later| later.last_session_id.as_str());
        Some(LentJob { job, subject, wants, wanted: *wanted, last_session })
    }

    /// Takes a job that has ended: nothing wakes it, and its place is free.
    pub(crate) fn remove(&mut self, id: JobId, timers: &mut Timers) -> Option<Entry> {
        self.clear_timer(id, timers);
        self.leave_queue(id);
        self.free_place(id);
        self.entries.remove(&id).map(|entry| *entry)
    }
}

/// The waits of jobs, and their places.
impl Jobs {
    pub(crate) fn park(&mut self, id: JobId, parked: Parked) {
        self.change(id, |entry| entry.parked = parked);
    }

    pub(crate) fn set_timer(&mut self, id: JobId, at: Millis, timers: &mut Timers) {
        self.change(id, |entry| timers.move_job(id, entry.timer.replace(at), Some(at)));
    }

    pub(crate) fn clear_timer(&mut self, id: JobId, timers: &mut Timers) {
        self.change(id, |entry| timers.move_job(id, entry.timer.take(), None));
    }

    /// The timer of a job has come. Returns what it waits for.
    pub(crate) fn woke(&mut self, id: JobId, now: Millis) -> Option<&Parked> {
        let entry = self.get_mut(id)?;
        entry.timer = None;
        if !matches!(entry.parked, Parked::Waking) {
            entry.wants.begin(now);
        }
        Some(&entry.parked)
    }

    /// A job whose time has come takes a place, where its next send needs one, or waits for one. Returns true if it goes on at once. A job
    /// that was cancelled or lost gets its input, and sends nothing.
    pub(crate) fn take_place(&mut self, id: JobId, due: Millis, now: Millis) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        let goes_on = entry.wanted && !entry.record.taken_over;
        if let Some(place) = entry.job.place().filter(|_| goes_on && entry.place.is_none()) {
            if !self.places.take(place) {
                let turn = QueueTurn { is_new: !entry.job.may_have_been_sent(), since: now, id };
                entry.parked = Parked::Queued { place, turn, due };
                self.places.wait(place, turn);
                return false;
            }
            entry.place = Some(place);
        }
        entry.wants.begin(now);
        true
    }

    /// Gives a free place to the next job. Returns the job, and when it was to go on, later by the time for which it waited.
    pub(crate) fn give_place(&mut self, now: Millis) -> Option<(JobId, Millis)> {
        let (place, turn) = self.places.give()?;
        let waited = now.saturating_sub(turn.since);
        let entry = self.entries.get_mut(&turn.id)?;
        let Parked::Queued { due, .. } = entry.parked else { return None };
        (entry.place, entry.parked) = (Some(place), Parked::Waking);
        entry.wants.queued = entry.wants.queued.saturating_add(waited);
        entry.wants.begin(now);
        Some((turn.id, due.saturating_add(waited)))
    }

    /// A job waits for no place any more.
    fn leave_queue(&mut self, id: JobId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if let Parked::Queued { place, turn, .. } = entry.parked {
            entry.parked = Parked::Waking;
            self.places.leave(place, &turn);
        }
    }

    /// A job that waits for neither an answer nor the store lets others send meanwhile.
    pub(crate) fn free_place(&mut self, id: JobId) {
        if let Some(place) = self.get_mut(id).and_then(|entry| entry.place.take()) {
            self.places.free(place);
        }
    }
}

/// The commands that wait for jobs.
impl Jobs {
    /// A start joins a job with its options.
    pub(crate) fn join(&mut self, id: JobId, options: &CallOptions, policy: RetryPolicy) {
        self.change(id, |entry| entry.join(options, policy));
    }

    /// A command waits for a job. A job that was given up is carried on for that command; returns those that gave it up.
    pub(crate) fn attach(&mut self, id: JobId, command: CommandId) -> SmallSet<CommandId> {
        let Some(entry) = self.get_mut(id) else { return SmallSet::default() };
        let cancelled = if entry.wanted { SmallSet::default() } else { std::mem::take(&mut entry.waiting) };
        entry.wanted = true;
        entry.waiting.insert(command);
        cancelled
    }

    /// One of several commands waits for a job no more.
    pub(crate) fn detach(&mut self, id: JobId, command: CommandId) {
        self.change(id, |entry| _ = entry.waiting.remove(&command));
    }

    /// The last command that waits for a job gives it up. Returns what it waited for; for a place it waits no more.
    pub(crate) fn give_up(&mut self, id: JobId) -> Option<Parked> {
        let entry = self.get_mut(id)?;
        entry.wanted = false;
        let parked = entry.parked.clone();
        self.leave_queue(id);
        Some(parked)
    }
}

/// The records of jobs.
impl Jobs {
    /// A job is put under this name.
    pub(crate) fn set_name(&mut self, id: JobId, name: &Name) {
        self.change(id, |entry| entry.record.name = Some(name.clone()));
    }

    /// A job's record was put in this version, or may have been.
    pub(crate) fn was_put(&mut self, id: JobId, version: Version) {
        self.change(id, |entry| entry.record.last_put = Some(version));
    }

    /// The name that a job made up is another client's, and what was counted for its key is that client's. It goes on without a name, with
    /// a new key.
    pub(crate) fn rename(&mut self, id: JobId, new_key: impl FnOnce() -> String) {
        let Some(entry) = self.get_mut(id) else { return };
        (entry.record.name, entry.record.taken_over) = (None, false);
        if let Some(write) = entry.job.write_mut()
            && let Some(key) = &mut write.call.ledger.key
        {
            write.terms.take_counted(key);
            *key = new_key();
            entry.subject.key = Some(key.as_str().into());
        }
    }

    /// Another client has a job's name. Returns what it waited for; for a place it waits no more.
    pub(crate) fn lose_name(&mut self, id: JobId, ends: bool) -> Option<Parked> {
        let entry = self.get_mut(id)?;
        entry.record.taken_over = ends;
        let parked = entry.parked.clone();
        self.leave_queue(id);
        Some(parked)
    }

    /// Lets a termination continue without its name, whichever client owns it now: nothing holds it back. Returns true if the job is one.
    pub(crate) fn goes_on_unnamed(&mut self, id: JobId) -> bool {
        let Some(entry) = self.get_mut(id).filter(|entry| entry.job.is_termination()) else { return false };
        if let Some(name) = entry.record.name.take() {
            entry.record.rare().left_behind.push(name);
        }
        entry.record.bought_as = None;
        true
    }

    /// A job ends only once these changes under the day's cap were answered.
    pub(crate) fn wait_for(&mut self, id: JobId, spends: Vec<u32>) {
        if !spends.is_empty() {
            self.change(id, |entry| entry.record.rare().spends.extend(spends));
        }
    }

    /// Takes the entries that certainly bought nothing: all of them if the job had no effect, else those of a further key that was never
    /// sent, or was refused. They stop counting once the record is deleted, or no longer has them: until then another client may take the
    /// record over. The entries of a record that another client has taken over are that client's; it knows nothing of entries that were
    /// never put.
    pub(crate) fn take_unspent(&mut self, id: JobId, has_no_effect: bool) -> Vec<Counted> {
        let Some(Entry { job, record, .. }) = self.get_mut(id) else { return Vec::new() };
        let is_only_ours = record.taken_over && record.last_put.is_none();
        let Some(write) = job.write_mut().filter(|_| !record.taken_over || is_only_ours) else { return Vec::new() };
        if has_no_effect || is_only_ours { std::mem::take(&mut write.terms.counted) } else { write.take_unspent() }
    }

    /// A job is in doubt, since then at the latest.
    pub(crate) fn doubts(&mut self, id: JobId, unix: Millis) {
        self.change(id, |entry| _ = entry.record.rare().doubt_since.get_or_insert(unix));
    }

    /// A job sends the key that an app's own backend refused, with the request that had it.
    pub(crate) fn begin_refused(&mut self, id: JobId, call: SavedCall, age: Millis, clock: &Clock) {
        let Some(entry) = self.get_mut(id) else { return };
        if let (Some(key), Some(write)) = (call.key, entry.job.write_mut()) {
            entry.subject.key = Some(key.as_str().into());
            write.begin_refused(key, age, clock);
            let exchange = &mut write.call.exchange;
            if !call.secret {
                (exchange.built.target, exchange.built.body) = (call.target, call.body);
            }
            if let Some(saved) = call.choice {
                write.terms.restore_choice(saved, exchange.endpoint, &exchange.built);
            }
        }
    }

    /// A job has bought a session, whose record is where its own was.
    pub(crate) fn bought(&mut self, id: JobId, now: Millis) {
        self.change(id, |entry| {
            entry.wants.begin(now);
            entry.record.session_name.clone_from(&entry.record.name);
        });
    }

    /// The name of a job is its session's from here on.
    pub(crate) fn take_name(&mut self, id: JobId) -> Option<Name> {
        self.get_mut(id)?.record.name.take()
    }

    /// A job has ended its session. Once its result was taken the record `also_delete` goes; it waits for what is written under the others.
    pub(crate) fn ended_session(&mut self, id: JobId, session_name: Option<Name>, also_delete: Option<Name>, dropped: Vec<Name>) {
        self.change(id, |entry| {
            let rare = entry.record.rare();
            (rare.also_delete, rare.dropped) = (also_delete, dropped);
            entry.record.session_name = session_name;
        });
    }

    /// A job waits for what is written under this name, too.
    pub(crate) fn waits_for(&mut self, id: JobId, name: &Name) {
        self.change(id, |entry| entry.record.rare().dropped.push(name.clone()));
    }

    /// An order was placed: from here on its number is what a job's record says.
    pub(crate) fn placed(&mut self, id: JobId, order_no: &str, clock: &Clock) {
        self.change(id, |entry| {
            let mut placed = entry.saved_call(clock);
            if let Some(call) = &mut placed {
                (call.order_no, call.doubt_since) = (Some(order_no.to_owned()), None);
            }
            let rare = entry.record.rare();
            (rare.doubt_since, rare.placed) = (None, placed);
        });
    }

    /// The order of a job was shown by the service.
    pub(crate) fn order_shown(&mut self, id: JobId) {
        if let Some(call) = self.get_mut(id).and_then(|entry| entry.record.rare.as_mut()?.placed.as_mut()) {
            call.unanswered = false;
        }
    }

    /// Puts a renewal under the name of its session's renewals. One that has a name of its own leaves a marker there, and returns that name.
    pub(crate) fn put_renewal(&mut self, id: JobId, name: &Name) -> Option<Name> {
        let entry = self.get_mut(id)?;
        let own = entry.record.name.clone();
        if own.is_some() {
            entry.record.rare().marker = Some(name.clone());
            entry.parked = Parked::Marking;
        } else {
            entry.record.name = Some(name.clone());
        }
        own
    }

    /// The session of a job was ended, which is noted of a renewal.
    pub(crate) fn session_is_over(&mut self, id: JobId) {
        let renewal = self.get_mut(id).filter(|entry| entry.subject.operation == RenewSession::ENDPOINT.name);
        renewal.into_iter().for_each(|entry| entry.record.rare().session_over = true);
    }

    /// A setting was accepted: an earlier one that is under way and changes nothing else goes on for who waits for it, and leaves no doubt.
    pub(crate) fn set_anew(&mut self, id: JobId, entry: &Entry) {
        let Some(members) = entry.members_set_anew() else { return };
        let sets_no_more = |job: &Entry| job.members_set().is_some_and(|set| set.iter().all(|name| members.contains(name)));
        let earlier: Vec<JobId> =
            self.entries.iter().filter(|(other, job)| **other < id && sets_no_more(job)).map(|(other, _)| *other).collect();
        for other in earlier {
            self.change(other, |job| job.record.rare().set_anew = true);
        }
    }
}

impl Entry {
    /// The members that an accepted setting has set anew. A setting from a record may be older than any other one.
    pub(crate) fn members_set_anew(&self) -> Option<Vec<String>> {
        self.members_set().filter(|_| self.job.write().is_some_and(|write| !write.restored))
    }

    /// The members that a setting without a name of its caller's sets.
    pub(crate) fn members_set(&self) -> Option<Vec<String>> {
        let is_setting = self.subject.operation == UpdateBudget::ENDPOINT.name && self.record.bought_as.is_none();
        let body = self.job.write().filter(|_| is_setting)?.call.exchange.built.body.as_deref()?;
        Some(members(body).ok()?.into_iter().map(|(name, _)| name.to_string()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::BUY;
    use crate::engine::Then;
    use crate::engine::testing::Given;

    const SESSION: &str = r#"{"session_id":"s-1"}"#;

    /// A job that writes, or reads.
    fn entry(operation: &str, params: &str) -> Entry {
        let mut given = Given::agent();
        let job = if operation.starts_with("get_") {
            Job::read(given.exchange(operation, params), RetryPolicy::default(), None)
        } else {
            Job::write_then(given.write(operation, params), Then::End)
        };
        Entry::new(job, given.subject, &CallOptions::default())
    }

    fn name(of: &str) -> Name {
        Name::from(format!("5e.{of}"))
    }

    /// One job, which one command waits for.
    fn one(operation: &str, params: &str) -> (Jobs, JobId) {
        let mut jobs = Jobs::new(8);
        let id = jobs.begin(entry(operation, params), CommandId(1));
        (jobs, id)
    }

    fn waiting(jobs: &Jobs, id: JobId) -> Vec<u32> {
        jobs.get(id).map(|entry| entry.waiting.iter().map(|command| command.0).collect()).unwrap_or_default()
    }

    #[test]
    fn a_job_that_its_last_command_gave_up_is_carried_on_for_the_next_one() {
        let (mut jobs, id) = one("create_session", BUY);
        assert!(jobs.attach(id, CommandId(2)).is_empty(), "both wait");
        assert_eq!((waiting(&jobs, id), jobs.command(id)), (vec![1, 2], Some(CommandId(1))));
        jobs.detach(id, CommandId(1));
        assert!(matches!(jobs.give_up(id), Some(Parked::Waking)) && jobs.get(id).is_some_and(|entry| !entry.wanted));
        assert_eq!(jobs.attach(id, CommandId(3)).iter().collect::<Vec<_>>(), [CommandId(2)], "it gets its own end");
        assert_eq!(waiting(&jobs, id), [3]);
        assert!(jobs.get(id).is_some_and(|entry| entry.wanted));
    }

    #[test]
    fn a_job_waits_for_a_place_until_another_one_frees_it_or_it_is_given_up() {
        let (mut jobs, mut timers) = (Jobs::new(1), Timers::default());
        let ids = [0; 4].map(|_| jobs.begin(entry("get_session", SESSION), CommandId(1)));
        assert_eq!(ids.map(|id| jobs.take_place(id, 5, 10)), [true, false, false, false]);
        assert!(ids.iter().all(|id| jobs.give_place(20).is_none() && jobs.get(*id).is_some()), "the one place is taken");
        assert!(matches!(jobs.give_up(ids[1]), Some(Parked::Queued { .. })));
        assert!(matches!(jobs.lose_name(ids[2], true), Some(Parked::Queued { .. })));
        jobs.free_place(ids[0]);
        assert_eq!(jobs.give_place(30), Some((ids[3], 25)), "it was due at 5, and waited for 20");
        assert_eq!(jobs.get(ids[3]).map(|entry| entry.wants.queued), Some(20));
        assert!(jobs.take_place(ids[1], 40, 40) && jobs.take_place(ids[2], 40, 40), "they send nothing, so they need no place");
        assert!(jobs.remove(ids[3], &mut timers).is_some() && jobs.give_place(50).is_none());
        assert!(jobs.take_place(ids[0], 60, 60), "a job that has ended has freed its place");
    }

    #[test]
    fn a_job_has_one_timer_and_none_after_its_end() {
        let ((mut jobs, id), mut timers) = (one("create_session", BUY), Timers::default());
        jobs.set_timer(id, 20, &mut timers);
        jobs.set_timer(id, 10, &mut timers);
        assert_eq!((timers.next(), timers.pop_due(30).is_some(), timers.next()), (Some(10), true, None));
        assert!(matches!(jobs.woke(id, 30), Some(Parked::Waking)));
        jobs.set_timer(id, 40, &mut timers);
        assert!(jobs.remove(id, &mut timers).is_some() && timers.next().is_none() && jobs.get(id).is_none());
    }

    #[test]
    fn only_a_termination_goes_on_without_its_name() {
        for (operation, params, goes_on) in [("terminate_session", SESSION, true), ("create_session", BUY, false)] {
            let (mut jobs, id) = one(operation, params);
            for one in ["r1", "r2"] {
                jobs.set_name(id, &name(one));
                assert_eq!(jobs.goes_on_unnamed(id), goes_on, "{operation}");
            }
            let record = &jobs.get(id).expect("is there").record;
            let left_behind = record.rare.as_ref().map_or(0, |rare| rare.left_behind.len());
            assert_eq!((left_behind, record.name.is_none()), (if goes_on { 2 } else { 0 }, goes_on), "{operation}");
        }
    }

    #[test]
    fn a_renewal_is_put_under_the_name_of_all_renewals_or_leaves_a_marker_there() {
        for own in [None, Some(name("i1"))] {
            let (mut jobs, id) = one("renew_session", r#"{"session_id":"s-1","duration":30}"#);
            own.iter().for_each(|own| jobs.set_name(id, own));
            assert_eq!(jobs.put_renewal(id, &name("n1")), own);
            let entry = jobs.get(id).expect("is there");
            let marker = entry.record.rare.as_ref().and_then(|rare| rare.marker.clone());
            let expected = if own.is_some() { (name("i1"), Some(name("n1"))) } else { (name("n1"), None) };
            assert_eq!((entry.record.name.clone(), marker), (Some(expected.0), expected.1));
            assert_eq!(matches!(entry.parked, Parked::Marking), own.is_some());
        }
    }

    #[test]
    fn a_job_whose_made_up_name_was_there_has_another_key() {
        let (mut jobs, id) = one("create_session", BUY);
        let key = |jobs: &Jobs| jobs.get(id).and_then(|entry| entry.job.write()?.call.ledger.key.clone());
        let before = key(&jobs);
        jobs.set_name(id, &name("r1"));
        jobs.lose_name(id, true);
        jobs.rename(id, || "another-key".to_owned());
        let entry = jobs.get(id).expect("is there");
        assert_eq!((key(&jobs).as_deref(), entry.subject.key.as_deref()), (Some("another-key"), Some("another-key")));
        assert!(before.is_some() && !entry.record.taken_over && entry.record.name.is_none());
    }

    #[test]
    fn an_accepted_setting_ends_the_doubts_of_earlier_ones_that_set_no_more() {
        let mut jobs = Jobs::new(8);
        let settings = [r#"{"key_limit_usd":1}"#, r#"{"key_limit_usd":1,"paused":true}"#, r#"{"key_limit_usd":2}"#];
        let ids = settings.map(|params| jobs.begin(entry("update_budget", params), CommandId(1)));
        let accepted = jobs.remove(ids[2], &mut Timers::default()).expect("is there");
        jobs.set_anew(ids[2], &accepted);
        let set_anew = |id: JobId| jobs.get(id).map(|entry| entry.record.is_set_anew());
        assert_eq!((set_anew(ids[0]), set_anew(ids[1])), (Some(true), Some(false)));
    }
}
