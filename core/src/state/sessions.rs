//! The sessions that this client knows: what is known of each, who has it, and which jobs change it. Nothing here asks the store, a job or
//! a command; what is to be put is returned.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use arcstr::ArcStr;

use super::ids::CommandId;
use super::names::Name;
use super::observed::{Seen, Verdict};
use super::record::SavedSession;
use super::slot::JobId;
use super::tracked::{RequestIdentity, Shown, Tracked, word};
use crate::collections::Map;
use crate::contract::Operation;
use crate::contract::agent::{RotateSession, TerminateSession};
use crate::engine::{Bought, Known, Phase, SessionOptions, TERMINATED};
use crate::time::Millis;

/// The sessions of a client.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Sessions {
    known: Map<ArcStr, Box<Tracked>>,
    /// The last ones that this client had, by their callers' names or for a caller, also those that are over and forgotten: no purchase
    /// becomes one of them.
    had: VecDeque<ArcStr>,
}

/// So many sessions that this client had are remembered.
const HAD: usize = 1024;

/// A session as its record has it.
#[derive(Debug)]
pub(crate) struct KeptSession {
    /// The name of its record, if this client has it.
    pub(crate) name: Option<Name>,
    pub(crate) session: SavedSession,
    pub(crate) bought_as: Option<Arc<RequestIdentity>>,
}

/// The consequences of what an answer says of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Learnt {
    /// True if its record is to be put: it is over now and was not, it lives again, or a person had named it and it is there.
    pub(crate) is_news: bool,
    /// True if its name was released when it was over, and it lives again.
    pub(crate) lives_again: bool,
}

/// The facts about sessions.
impl Sessions {
    fn get(&self, session: &str) -> Option<&Tracked> {
        self.known.get(session).map(|known| &**known)
    }

    fn get_mut(&mut self, session: &str) -> Option<&mut Tracked> {
        self.known.get_mut(session).map(|known| &mut **known)
    }

    fn is(&self, session: &str, is: impl FnOnce(&Tracked) -> bool) -> bool {
        self.get(session).is_some_and(is)
    }

    /// The number of sessions of which something is known.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// The id of a session, the very text that is kept here.
    pub(crate) fn shared_id(&self, session: &str) -> ArcStr {
        let known = self.known.from(session).next().map(|(id, _)| id).filter(|id| id.as_str() == session);
        known.map_or_else(|| session.into(), ArcStr::clone)
    }

    /// The facts that a job may use.
    pub(crate) fn known(&self, session: &str) -> Option<Known<'_>> {
        self.get(session).map(Tracked::known)
    }

    /// Returns true if this client has the session, its record or a caller with a handle, or had it.
    pub(crate) fn is_had(&self, session: &str) -> bool {
        self.is(session, Tracked::is_had) || self.had.iter().any(|had| had == session)
    }

    /// This client has a session from here on.
    pub(crate) fn have(&mut self, session: &str) {
        if !self.had.iter().any(|had| had == session) {
            self.had.push_back(self.shared_id(session));
            while self.had.len() > HAD {
                self.had.pop_front();
            }
        }
    }

    pub(crate) fn status(&self, session: &str) -> Option<&ArcStr> {
        self.get(session)?.shown.status.as_ref()
    }

    pub(crate) fn type_of(&self, session: &str) -> Option<&ArcStr> {
        self.get(session)?.shown.session_type.as_ref()
    }

    /// The protocol of a session's proxy, as its purchase named it.
    pub(crate) fn protocol(&self, session: &str) -> Option<&ArcStr> {
        self.get(session)?.shown.protocol.as_ref()
    }

    /// The charge of its purchase in USD, if the service stated it.
    pub(crate) fn charged_usd(&self, session: &str) -> Option<&ArcStr> {
        self.get(session)?.shown.charged_usd.as_ref()
    }

    /// The further statuses that end it.
    pub(crate) fn ends(&self, session: &str) -> &[String] {
        self.get(session).map_or(&[], |known| &known.session_options.ends)
    }

    /// Returns true if observations rotate it.
    pub(crate) fn rotates(&self, session: &str) -> bool {
        self.is(session, |known| known.session_options.auto_rotate)
    }

    /// The name of its record, if this client has it.
    pub(crate) fn name(&self, session: &str) -> Option<&Name> {
        self.get(session)?.name.as_ref()
    }

    /// The name that its caller has for its purchase.
    pub(crate) fn bought_as(&self, session: &str) -> Option<&RequestIdentity> {
        self.get(session)?.bought_as.as_deref()
    }

    /// Returns true if this client has the session under that name, or had it and claims it again.
    pub(crate) fn may_be_under(&self, session: &str, name: &Name) -> bool {
        self.is(session, |known| known.may_be_under(name))
    }

    /// Returns true if a caller has a handle of the session, or is about to get one.
    pub(crate) fn is_held(&self, session: &str) -> bool {
        self.is(session, Tracked::is_held)
    }

    /// Returns true if a session is over, as far as is known. One that is not known counts as over.
    pub(crate) fn is_over(&self, session: &str) -> bool {
        self.get(session).is_none_or(Tracked::is_over)
    }

    /// Returns true if it has expired, and may be renewed by this client.
    pub(crate) fn is_expired(&self, session: &str) -> bool {
        let is_expired = |known: &Tracked| known.shown.status.as_deref() == Some("expired") && known.is_over() && !known.is_over_for_good();
        self.is(session, |known| known.name.is_some() && is_expired(known))
    }

    /// Returns true if the service has shown it, or it is of a slot, and no change of it is under way, and it was past its creation.
    pub(crate) fn was_there(&self, session: &str) -> bool {
        let is_own = |known: &Tracked| known.shown.seen || known.name.as_ref().is_some_and(Name::is_of_a_pool);
        self.is(session, |known| is_own(known) && known.changing.is_empty() && known.phase() != Phase::Pending)
    }

    /// The jobs that change it.
    pub(crate) fn changing(&self, session: &str) -> impl Iterator<Item = JobId> {
        self.get(session).into_iter().flat_map(|known| known.changing.iter())
    }

    /// The jobs that work on it.
    pub(crate) fn jobs(&self, session: &str) -> impl Iterator<Item = JobId> {
        self.get(session).into_iter().flat_map(|known| known.jobs.iter())
    }

    /// The reason to refuse a change of it without a request.
    pub(crate) fn forbids(&self, session: &str, operation: &str) -> Option<String> {
        self.get(session)?.forbids(operation)
    }

    /// The rotation in doubt that the next rotation sends once more first.
    pub(crate) fn rotation_in_doubt(&self, session: &str) -> Option<&Name> {
        self.get(session)?.free_doubts.rotation.as_ref()
    }

    /// The notes of its pool.
    pub(crate) fn pool_notes(&self, session: &str) -> Option<&str> {
        self.get(session)?.pool_notes.as_deref()
    }

    /// The session as its record has it.
    pub(crate) fn kept(&self, session: &str) -> Option<KeptSession> {
        let known = self.get(session)?;
        Some(KeptSession { name: known.name.clone(), session: known.saved(session), bought_as: known.bought_as.clone() })
    }

    /// Returns the record to put of a session that was claimed again. The record may be of another client and newer, unless this client wrote it,
    /// or has just seen that the session is usable again. All else comes from the record: little may be known of a session that was released
    /// meanwhile. `None` if the session is not to be claimed.
    pub(crate) fn reclaimed(&self, record: &SavedSession, is_own_record: bool) -> Option<SavedSession> {
        let known = self.get(&record.id).filter(|known| known.name.is_none())?;
        let mut saved = record.clone();
        if known.lapsed || is_own_record {
            let SavedSession { status, session_type, credentials, ends, .. } = known.saved(&record.id);
            saved.status = status.or(saved.status);
            saved.session_type = session_type.or(saved.session_type);
            saved.credentials |= credentials;
            saved.ends = if ends.is_empty() { saved.ends } else { ends };
        }
        Some(saved)
    }
}

/// The holders of sessions.
impl Sessions {
    /// From here on a session is this client's, under that name, as its record has it. Returns its id, unless it is followed already under
    /// another name, which keeps it.
    pub(crate) fn hold(&mut self, name: &Name, session: SavedSession, bought_as: Option<RequestIdentity>) -> Option<ArcStr> {
        let id = ArcStr::from(session.id);
        self.have(&id);
        if let Some(known) = self.get_mut(&id).filter(|known| !known.may_be_under(name)) {
            known.session_options.want(session.credentials, session.auto_rotate);
            return None;
        }
        let before = self.known.remove(&id).unwrap_or_default();
        let tracked = Tracked {
            name: Some(name.clone()),
            shown: Shown {
                session_type: session.session_type.as_deref().map(word),
                status: session.status.as_deref().map(word),
                seen: before.shown.seen,
                unconfirmed: session.unconfirmed && !before.shown.seen,
                charged_usd: session.charged_usd.as_deref().map(ArcStr::from),
                protocol: session.protocol.as_deref().map(word),
                not_found: false,
            },
            session_options: SessionOptions {
                credentials: session.credentials,
                auto_rotate: session.auto_rotate || before.session_options.auto_rotate,
                ends: session.ends.into(),
            },
            bought_as: bought_as.map(Arc::new),
            lapsed: false,
            pool_notes: session.pool_notes.map(ArcStr::from),
            ..*before
        };
        self.known.insert(id.clone(), Box::new(tracked));
        Some(id)
    }

    /// A job has bought a session, under its name. Returns false for a replay: the session is followed already, and keeps its name.
    pub(crate) fn bought(
        &mut self,
        (session, id): (&ArcStr, JobId),
        bought: Bought,
        name: Option<&Name>,
        bought_as: Option<&Arc<RequestIdentity>>,
        options: &SessionOptions,
    ) -> bool {
        self.have(session);
        let known = self.known.get_or_insert_with(session.clone(), Box::default);
        known.jobs.insert(id);
        if known.name.is_some() {
            known.session_options.want(options.credentials, options.auto_rotate);
            return false;
        }
        known.changing.insert(id);
        let Tracked { held, promised, free_doubts, jobs, changing, .. } = mem::take(&mut **known);
        **known = Tracked {
            name: name.cloned(),
            shown: Shown {
                session_type: bought.facts.session_type.or(bought.session_type).as_deref().map(word),
                status: bought.facts.status.as_deref().map(word),
                charged_usd: bought.facts.estimated_charge_usd.as_deref().map(Into::into),
                protocol: bought.protocol.as_deref().map(word),
                ..Shown::default()
            },
            session_options: options.clone(),
            bought_as: bought_as.cloned(),
            held,
            promised,
            free_doubts,
            jobs,
            changing,
            ..Tracked::default()
        };
        true
    }

    /// Callers who have it let go of it. Returns true if this client followed it.
    pub(crate) fn release(&mut self, session: &str) -> bool {
        let Some(known) = self.get_mut(session) else { return false };
        known.held = false;
        known.promised.clear();
        known.name.is_some()
    }

    /// Returns whether a session that commands end with is their callers', as soon as they take it, and they find it by a name of their
    /// own. One that is over is not, but where it is of a slot and may live again: its pool renews it.
    pub(crate) fn is_promised(&self, session: &str) -> Option<bool> {
        let is_pools = |known: &Tracked| known.name.as_ref().is_some_and(Name::is_of_a_pool) && !known.is_over_for_good();
        let known = self.get(session).filter(|known| !known.is_over() || is_pools(known))?;
        Some(known.name.as_ref().is_some_and(Name::is_findable))
    }

    /// The caller of a command has it, once that is taken.
    pub(crate) fn promise(&mut self, session: &str, command: CommandId) {
        self.get_mut(session).into_iter().for_each(|known| known.promised.insert(command));
    }

    /// A command that ended with it was taken, or its caller is gone.
    pub(crate) fn give(&mut self, session: &str, command: CommandId, taken: bool) {
        if let Some(known) = self.get_mut(session) {
            known.held |= known.promised.remove(&command) && taken;
        }
    }

    /// Lets go of a session that no caller has and no job is about. Returns what is to be put of it. That it may become usable again is
    /// remembered, and so are the doubts about its free changes.
    pub(crate) fn let_go(&mut self, session: &str) -> Option<KeptSession> {
        self.get(session).filter(|known| !known.is_held() && known.jobs.is_empty())?;
        let kept = self.kept(session);
        let known = self.known.remove(session).and_then(|known| known.without_name());
        known.into_iter().for_each(|known| _ = self.known.insert(session.into(), Box::new(known)));
        kept
    }

    /// A name is a session's no more, so nobody here has it by that name. Changes of it that are under way or in doubt are known all the
    /// same. Returns true if it was the session's.
    pub(crate) fn give_up(&mut self, session: &str, name: &Name) -> bool {
        let Some(known) = self.get_mut(session).filter(|known| known.may_be_under(name)) else { return false };
        let Tracked { shown, free_doubts, jobs, changing, .. } = mem::take(known);
        *known = Tracked { shown: Shown { unconfirmed: false, ..shown }, free_doubts, jobs, changing, ..Tracked::default() };
        true
    }

    /// The name of a session was lost, and is claimed again.
    pub(crate) fn lose_name(&mut self, session: &str) {
        self.get_mut(session).into_iter().for_each(|known| known.name = None);
    }

    /// A session has a new name.
    pub(crate) fn rename(&mut self, session: &str, name: Name) {
        self.get_mut(session).into_iter().for_each(|known| (known.name, known.lapsed) = (Some(name.clone()), false));
    }

    /// Lets go of the name of a session that is over, where its caller has one for it. One that can live again is kept for good, so that its
    /// intent buys no other; where it is of a slot, its pool renews it or lets go of it. Returns whether it is over for good, if the name
    /// was let go of.
    pub(crate) fn lapse(&mut self, session: &str) -> Option<bool> {
        let known = self.get_mut(session).filter(|known| known.is_over())?;
        let is_for_good = known.is_over_for_good();
        known.name.take_if(|name| name.is_findable() && (is_for_good || !name.is_of_a_pool()))?;
        known.lapsed = true;
        Some(is_for_good)
    }

    /// The name of a session that is over and that its caller has no name for: its record goes once that was told.
    pub(crate) fn take_finished(&mut self, session: &str) -> Option<Name> {
        let known = self.get_mut(session).filter(|known| known.is_over() && known.changing.is_empty())?;
        let name = known.name.take_if(|name| !name.is_findable())?;
        known.lapsed = true;
        Some(name)
    }

    /// One answer did not find a session, so it counts as over, and lives again if a later one shows it. Returns what may be remembered of it.
    pub(crate) fn not_found(&mut self, session: &str) -> Option<KeptSession> {
        self.get_mut(session)?.shown.status = Some(word(TERMINATED));
        let kept = self.kept(session);
        let known = self.get_mut(session)?;
        (known.name, known.lapsed, known.shown.not_found) = (None, true, true);
        kept
    }

    /// A session is no more. Returns what may be remembered of it.
    pub(crate) fn terminated(&mut self, session: &str) -> Option<KeptSession> {
        self.get_mut(session)?.shown.status = Some(word(TERMINATED));
        let kept = self.kept(session);
        self.known.remove(session);
        kept
    }
}

/// The changes of sessions.
impl Sessions {
    /// Takes in what an answer says of a session.
    pub(crate) fn learn(&mut self, session: &str, status: Option<&str>, session_type: Option<&str>) -> Learnt {
        let Some(known) = self.get_mut(session) else { return Learnt::default() };
        let was_over = known.is_over();
        let is_confirmed = known.shown.take_in(status, session_type);
        let is_over = known.is_over();
        Learnt { is_news: is_confirmed || is_over != was_over, lives_again: !is_over && known.lapsed }
    }

    /// A job works on a session, if it is known.
    pub(crate) fn join(&mut self, session: &str, id: JobId) {
        self.get_mut(session).into_iter().for_each(|known| known.jobs.insert(id));
    }

    /// A job changes a session by that operation.
    pub(crate) fn change(&mut self, session: ArcStr, id: JobId, operation: &str, now: Millis) {
        let known = self.known.get_or_insert_with(session, Box::default);
        known.jobs.insert(id);
        known.changing.insert(id);
        if operation == RotateSession::ENDPOINT.name {
            known.observed.asked(now);
        }
    }

    /// A job works on it no more. A doubt that it leaves under a name is remembered, where it costs nothing.
    pub(crate) fn end_job(&mut self, session: &str, id: JobId, operation: &str, in_doubt: Option<&Name>) {
        let Some(known) = self.get_mut(session) else { return };
        known.without_job(id);
        let Some(name) = in_doubt else { return };
        match operation {
            _ if operation == RotateSession::ENDPOINT.name => known.free_doubts.rotation = Some(name.clone()),
            _ if operation == TerminateSession::ENDPOINT.name => known.free_doubts.termination = Some(name.clone()),
            _ => {}
        }
    }

    /// The rotation in doubt is about to be sent once more.
    pub(crate) fn forget_rotation(&mut self, session: &str) {
        self.get_mut(session).into_iter().for_each(|known| known.free_doubts.rotation = None);
    }

    /// A session is over: the names of what is in doubt of its free changes, which is of no use any more.
    pub(crate) fn take_free_doubts(&mut self, session: &str) -> Vec<Name> {
        self.get_mut(session).map(|known| mem::take(&mut known.free_doubts).into_names().collect()).unwrap_or_default()
    }

    /// Those who wait for the job that opens it want this of it. Returns true if they wanted something else before.
    pub(crate) fn set_options(&mut self, session: &str, id: JobId, options: &SessionOptions) -> bool {
        let known = self.get_mut(session).filter(|known| known.changing.contains(&id) && known.session_options != *options);
        known.is_some_and(|known| {
            known.session_options = options.clone();
            true
        })
    }

    /// From now on what is seen through a session may rotate it. Returns true if it could not before.
    pub(crate) fn rotate_when_seen(&mut self, session: &str) -> bool {
        let known = self.known.get_or_insert_with(session.into(), Box::default);
        !mem::replace(&mut known.session_options.auto_rotate, true)
    }

    /// Takes in what was seen through a session.
    pub(crate) fn observe(&mut self, session: &str, seen: Seen) -> Option<Verdict> {
        self.get_mut(session).map(|known| known.observed.judge(seen))
    }

    /// The reason why it is not rotated now; `is_changing` where a job changes it.
    pub(crate) fn keeps_exit(&self, session: &str, is_changing: bool, now: Millis) -> Option<&'static str> {
        let known = self.get(session)?;
        match known.phase() {
            _ if known.shown.session_type.as_deref() == Some("static") => Some("a static session can't be rotated"),
            _ if is_changing => Some("a change of the session is under way"),
            Phase::Pending | Phase::Ended => Some("the session is not active, as far as is known"),
            _ => known.observed.held_back(now),
        }
    }

    /// A rotation is begun since it was seen that one is needed; where an earlier one is in doubt, that is sent once more first, and
    /// meanwhile nothing is seen as news. Returns true if credentials are wanted.
    pub(crate) fn begins_rotation(&mut self, session: &str, now: Millis) -> bool {
        self.get_mut(session).is_some_and(|known| {
            if known.free_doubts.rotation.is_some() {
                known.observed.asked(now);
            }
            known.session_options.credentials
        })
    }

    /// A session has a new exit.
    pub(crate) fn exit_changed(&mut self, session: &str, now: Millis) {
        self.get_mut(session).into_iter().for_each(|known| known.observed.changed(now));
    }

    /// A pool remembers this of its session. Returns true if the session is known.
    pub(crate) fn set_pool_notes(&mut self, session: &str, notes: Option<String>) -> bool {
        let known = self.get_mut(session);
        known.is_some_and(|known| {
            known.pool_notes = notes.map(ArcStr::from);
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Facts;

    const ID: &str = "s-1";

    fn name(of: &str) -> Name {
        Name::from(format!("5e.{of}"))
    }

    fn saved(status: &str, session_type: &str) -> SavedSession {
        SavedSession { id: ID.into(), status: Some(status.into()), session_type: Some(session_type.into()), ..SavedSession::default() }
    }

    /// One session under that name.
    fn held(of: &str, status: &str, session_type: &str) -> Sessions {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.hold(&name(of), saved(status, session_type), None), Some(ID.into()));
        sessions
    }

    #[test]
    fn a_session_stays_for_as_long_as_a_caller_or_a_job_has_it() {
        type Act<'a> = &'a dyn Fn(&mut Sessions);
        let (promise, job): (Act<'_>, Act<'_>) = (&|all| all.promise(ID, CommandId(1)), &|all| all.join(ID, 1));
        let (taken, gone): (Act<'_>, Act<'_>) = (&|all| all.give(ID, CommandId(1), true), &|all| all.give(ID, CommandId(1), false));
        let (released, done): (Act<'_>, Act<'_>) = (&|all| _ = all.release(ID), &|all| all.end_job(ID, 1, "create_session", None));
        for (acts, is_let_go) in [
            (&[][..], true),
            (&[promise], false),
            (&[promise, taken], false),
            (&[promise, gone], true),
            (&[promise, taken, released], true),
            (&[promise, released, taken], true),
            (&[job], false),
            (&[job, done], true),
            (&[promise, taken, job, done], false),
        ] {
            let mut sessions = held("i1", "active", "dynamic");
            acts.iter().for_each(|act| act(&mut sessions));
            let kept = sessions.let_go(ID);
            assert_eq!((kept.is_some(), sessions.name(ID).is_none()), (is_let_go, is_let_go));
            assert!(kept.is_none_or(|kept| kept.name == Some(name("i1")) && kept.session.status.as_deref() == Some("active")));
        }
    }

    #[test]
    fn a_session_that_is_over_is_let_go_of_unless_its_pool_may_renew_it_or_its_caller_has_no_name_for_it() {
        for (of, status, session_type, lapses) in [
            ("i1", "active", "dynamic", None),
            ("i1", "terminated", "dynamic", Some(true)),
            ("i1", "expired", "static", Some(false)),
            ("p1", "expired", "static", None),
            ("p1", "terminated", "static", Some(true)),
            ("r1", "terminated", "dynamic", None),
        ] {
            let mut sessions = held(of, status, session_type);
            assert_eq!(sessions.lapse(ID), lapses, "{of} {status}");
            assert_eq!(sessions.name(ID).is_none(), lapses.is_some());
            let finished = (of == "r1").then(|| name(of));
            assert_eq!(sessions.take_finished(ID), finished, "{of} {status}");
        }
    }

    #[test]
    fn a_session_that_was_let_go_of_when_it_was_over_may_live_again() {
        let mut sessions = held("i1", "expired", "static");
        assert_eq!(sessions.lapse(ID), Some(false));
        assert!(sessions.let_go(ID).is_some_and(|kept| kept.name.is_none()) && sessions.len() == 1, "it may be renewed");
        assert_eq!(sessions.learn(ID, Some("expired"), None), Learnt::default());
        assert_eq!(sessions.learn(ID, Some("active"), None), Learnt { is_news: true, lives_again: true });
        // Another client's record is older than what was seen, but has what was forgotten.
        let record = SavedSession { credentials: true, ..saved("expired", "static") };
        let again = sessions.reclaimed(&record, false).expect("is claimed");
        assert_eq!((again.status.as_deref(), again.credentials), (Some("active"), true));
        sessions.rename(ID, name("i1"));
        assert!(sessions.reclaimed(&record, false).is_none(), "it has a name");
        assert_eq!(sessions.learn(ID, Some("active"), None), Learnt::default());

        let mut sessions = held("i1", "terminated", "dynamic");
        assert_eq!(sessions.lapse(ID), Some(true));
        assert!(sessions.let_go(ID).is_some() && sessions.len() == 0, "nothing is to be known of it");
    }

    #[test]
    fn a_session_that_one_answer_did_not_find_lives_again_if_a_later_one_shows_it_to_a_caller_who_has_it() {
        for (is_held, lives_again) in [(true, true), (false, false)] {
            let mut sessions = held("i1", "active", "dynamic");
            if is_held {
                sessions.promise(ID, CommandId(1));
                sessions.give(ID, CommandId(1), true);
            }
            let kept = sessions.not_found(ID).expect("is known");
            assert_eq!((kept.name, kept.session.status.as_deref()), (Some(name("i1")), Some("terminated")));
            assert!(sessions.is_over(ID) && sessions.name(ID).is_none());
            assert_eq!(sessions.let_go(ID).is_none(), is_held);
            assert_eq!(sessions.learn(ID, Some("active"), None), Learnt { is_news: lives_again, lives_again });
        }
    }

    #[test]
    fn the_record_of_another_client_is_newer_than_what_this_one_knew() {
        let mut sessions = held("i1", "active", "dynamic");
        sessions.lose_name(ID);
        let record = saved("rotating", "dynamic");
        let status = |is_own| sessions.reclaimed(&record, is_own).and_then(|saved| saved.status);
        assert_eq!((status(false).as_deref(), status(true).as_deref()), (Some("rotating"), Some("active")));
    }

    #[test]
    fn a_purchase_that_is_replayed_keeps_the_name_that_its_session_has() {
        let bought =
            |status: &str| Bought { facts: Facts { status: Some(status.into()), ..Facts::default() }, session_type: None, protocol: None };
        let options = SessionOptions { credentials: true, ..SessionOptions::default() };
        let mut sessions = Sessions::default();
        assert!(sessions.bought((&ID.into(), 1), bought("creating"), Some(&name("i1")), None, &options));
        assert!(!sessions.bought((&ID.into(), 2), bought("creating"), Some(&name("i2")), None, &options));
        assert_eq!((sessions.name(ID), sessions.status(ID).map(ArcStr::as_str)), (Some(&name("i1")), Some("creating")));
        assert_eq!(sessions.changing(ID).collect::<Vec<_>>(), [1]);
        assert_eq!(sessions.jobs(ID).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(sessions.hold(&name("i3"), saved("active", "dynamic"), None), None, "it has a name");
        assert!(sessions.give_up(ID, &name("i1")) && sessions.name(ID).is_none() && sessions.changing(ID).eq([1]), "its changes go on");
    }

    #[test]
    fn a_session_keeps_its_exit_while_a_rotation_would_not_help() {
        for (status, session_type, is_changing, why) in [
            ("active", "dynamic", false, None),
            ("active", "static", false, Some("a static session can't be rotated")),
            ("active", "dynamic", true, Some("a change of the session is under way")),
            ("expired", "dynamic", false, Some("the session is not active, as far as is known")),
        ] {
            assert_eq!(held("i1", status, session_type).keeps_exit(ID, is_changing, 0), why, "{status} {session_type}");
        }
        let mut sessions = held("i1", "active", "dynamic");
        sessions.change(ID.into(), 1, RotateSession::ENDPOINT.name, 1000);
        assert!(sessions.keeps_exit(ID, false, 1001).is_some_and(|why| why.contains("a moment ago")));
        assert_eq!(sessions.keeps_exit(ID, false, 100_000), None);
    }

    #[test]
    fn doubts_about_free_changes_are_remembered_until_the_session_is_over() {
        let mut sessions = held("i1", "active", "dynamic");
        for (id, operation) in [(1, RotateSession::ENDPOINT.name), (2, TerminateSession::ENDPOINT.name), (3, "renew_session")] {
            sessions.change(ID.into(), id, operation, 0);
            sessions.end_job(ID, id, operation, Some(&name(&format!("r{id}"))));
        }
        assert_eq!((sessions.rotation_in_doubt(ID), sessions.changing(ID).next()), (Some(&name("r1")), None));
        assert!(sessions.let_go(ID).is_some() && sessions.name(ID).is_none(), "no caller has it");
        assert_eq!(sessions.take_free_doubts(ID), [name("r1"), name("r2")]);
        assert!(sessions.take_free_doubts(ID).is_empty() && sessions.terminated(ID).is_some() && sessions.len() == 0);
    }

    #[test]
    fn a_session_that_the_service_does_not_have_was_there_if_it_was_seen_or_is_of_a_slot() {
        for (of, status, is_seen, is_changing, was_there) in [
            ("i1", "active", false, false, false),
            ("i1", "active", true, false, true),
            ("p1", "active", false, false, true),
            ("i1", "creating", true, false, false),
            ("i1", "active", true, true, false),
        ] {
            let mut sessions = held(of, status, "dynamic");
            if is_seen {
                sessions.learn(ID, Some(status), None);
            }
            if is_changing {
                sessions.change(ID.into(), 1, "renew_session", 0);
            }
            assert_eq!(sessions.was_there(ID), was_there, "{of} {status} {is_seen} {is_changing}");
        }
    }
}
