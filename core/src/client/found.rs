//! Going on with what a record says: a call that may have been sent, a session, something finished. Nothing is known but the record, in
//! the process that wrote it as in any other.

use std::sync::Arc;

use arcstr::ArcStr;

use super::admit::Found;
use super::job::{Custody, Entry};
use super::options::CallOptions;
use super::people::becomes;
use super::root::Client;
use super::session::ended;
use super::start::check_rotation;
use super::types::{busy, misfit};
use super::waiting::{After, Finished, Last, Left, Purpose, Resume, Visit};
use crate::contract::agent::{CreateSession, GetSession};
use crate::contract::{ANY, Json, Operation, Shape, endpoint};
use crate::engine::{Age, Answered, Exchange, Job, RecordId, Subject, Terms, Then, Wishes, Write, phase_of, requested_type};
use crate::policy::{Advice, Effect, Error, Kind, Ledger, Report, Rule};
use crate::state::{BoughtAs, CommandId, Data, Done, Name, SavedCall, SavedSession, Shown, Tracked, User, is_over_for_good, word};
use crate::wire::{Built, Facts, view};

impl Client {
    /// Goes on with what a record stands for: a keyed call sends the same bytes with the same key, a session or an order is waited for.
    /// What can't be sent again comes back in doubt. What was accepted gives what it was accepted with. The options are those of the
    /// rest of it: what they leave out has its default, not what the first start had.
    pub fn resume(&mut self, record: &RecordId, options: CallOptions) -> CommandId {
        if let Err(error) = options.check_resume() {
            return self.reject(error, None);
        }
        let Some((name, _)) = Name::of(record) else {
            return self
                .reject(Error::new(Kind::Misuse, Effect::None, "resume", "this is not the name of a record", Advice::ChangeRequest), None);
        };
        self.resume_name(&name, Resume { options, intent: None })
    }

    /// Goes on with what an intent stands for: a doubt is resumed, a call that is under way is joined, a session or an order is waited
    /// for, an accepted answer is given again. Nothing new is ever bought: where it stands for nothing, the facts of the
    /// answer say so.
    pub fn resume_intent(&mut self, intent: &str, options: CallOptions) -> CommandId {
        if let Err(error) = options.check_resume() {
            return self.reject(error, Some(intent.to_owned()));
        }
        let name = self.account.space.intent(intent);
        let options = CallOptions { intent: Some(intent.to_owned()), ..options };
        self.resume_name(&name, Resume { options, intent: Some(intent.to_owned()) })
    }

    pub(super) fn resume_name(&mut self, name: &Name, resume: Resume) -> CommandId {
        let command = self.command_for("resume");
        self.visit(name, Visit::new(Some(command), Purpose::Resume(Box::new(resume))));
        command
    }

    /// Goes on with what is under a name, for somebody who asked for that.
    pub(super) fn admit_resume(&mut self, name: &Name, command: CommandId, resume: Resume, found: &Found) {
        let Resume { options, intent } = resume;
        match found {
            Found::Data(data) => {
                let options = CallOptions { intent: data.intent.clone(), ..options };
                self.go_on(name, command, data, &options, data.intent.as_deref());
            }
            Found::Nothing if intent.is_some() => {
                let answered = Answered::of(Facts { nothing: true, ..Facts::default() });
                self.finish_visit(command, Ok(answered), intent, name);
            }
            Found::Nothing => {
                let error = Error::new(Kind::Misuse, Effect::None, "resume", "there is no such record", Advice::ChangeRequest);
                self.finish_visit(command, Err(error), intent, name);
            }
            Found::Bad(bad, known) => {
                let what = format!("can't go on, because {bad}; forget it once you have looked at the account");
                let record = self.journal.slot(name).map(|slot| name.at(slot.version).0);
                let report = Error::new(Kind::Store, Effect::Unknown, "resume", what, Advice::CheckAccount).into_report();
                let error = Error::from(Report { record, ..report });
                self.finish_visit(command, Err(error), intent.or_else(|| known.clone()), name);
            }
        }
    }

    /// Ends a command that found all that it asked for, once its name was let go of.
    pub(super) fn finish_visit(&mut self, command: CommandId, result: Result<Answered, Error>, intent: Option<String>, name: &Name) {
        let result = result.map_err(|error| match error.intent {
            Some(_) => error,
            None => Error::from(Report { intent, ..error.into_report() }),
        });
        let after = After::Name(name.clone());
        let finished = Finished {
            commands: vec![command],
            result,
            own: None,
            left: Left::default(),
            last: Last::Put,
            is_act: false,
            after: vec![after.clone()],
        };
        match self.journal.user(name) {
            // The name is let go of as soon as all who wait have been let in.
            None => self.waiting.finishing.push(after, finished),
            Some(_) => self.finish_after(finished),
        }
    }

    /// Goes on with a record, for a start or for somebody who asks for it.
    pub(super) fn go_on(&mut self, name: &Name, command: CommandId, data: &Data, options: &CallOptions, intent: Option<&str>) {
        let (operation, then, session_type) = what_of(data);
        if let Some(known) = self.commands.get_mut(&command) {
            known.operation = operation;
        }
        let intent_of = || intent.map(str::to_owned);
        if let Err(error) = check_rotation(operation, then, session_type.as_deref(), options) {
            return self.finish_visit(command, Err(error), intent_of(), name);
        }
        let bought_as = bought_as_of(name, data);
        match (&data.session, &data.call, &data.done) {
            (Some(session), ..) => self.go_on_with_session(name, command, session, bought_as, options),
            (_, Some(call), _) => self.go_on_with_call(name, command, call, bought_as, options),
            (_, _, Some(done)) => self.recall(name, command, done, options),
            _ => {}
        }
    }

    /// A session is taken back and waited for; one that is over is an error: its caller wants one that can be used.
    fn go_on_with_session(
        &mut self,
        name: &Name,
        command: CommandId,
        session: &SavedSession,
        bought_as: Option<BoughtAs>,
        options: &CallOptions,
    ) {
        let id = session.id.clone();
        if is_over_for_good(session.status.as_deref(), session.session_type.as_deref()) {
            let facts = Facts { session_id: Some(id), status: session.status.clone(), ..Facts::default() };
            let record = self.journal.slot(name).map(|slot| name.at(slot.version));
            let error = ended(&facts, bought_as.and_then(|known| Some(known.intent?.to_string())), record);
            return self.finish_visit(command, Err(error), None, name);
        }
        let endpoint = if bought_as.is_some() { CreateSession::ENDPOINT } else { GetSession::ENDPOINT };
        self.hold_session(name, session.clone(), bought_as);
        let credentials = options.credentials || session.credentials;
        let options = CallOptions { credentials, ..options.clone() };
        if let Some(known) = self.commands.get_mut(&command) {
            known.operation = endpoint.name;
        }
        self.begin_watch(command, endpoint, id.into(), &options);
    }

    /// From here on a session is this client's, under that name.
    pub(super) fn hold_session(&mut self, name: &Name, session: SavedSession, bought_as: Option<BoughtAs>) {
        let id = ArcStr::from(session.id);
        if let Some(known) = self.sessions.get_mut(&id).filter(|known| known.name.as_ref().is_some_and(|known| known != name)) {
            // It is followed already under another name: that one has it.
            known.wishes.credentials |= session.credentials;
            known.wishes.auto_rotate |= session.auto_rotate;
            return;
        }
        let before = self.sessions.remove(&id).unwrap_or_default();
        self.journal.give(name, Some(User::Session(id.clone())));
        let tracked = Tracked {
            name: Some(name.clone()),
            shown: Shown {
                session_type: session.session_type.as_deref().map(word),
                status: session.status.as_deref().map(word),
                seen: before.shown.seen,
                only_named: session.only_named && !before.shown.seen,
            },
            wishes: Wishes {
                credentials: session.credentials,
                auto_rotate: session.auto_rotate || before.wishes.auto_rotate,
                ends: session.ends,
            },
            bought_as: bought_as.map(Arc::new),
            lapsed: false,
            ..*before
        };
        self.sessions.insert(id, Box::new(tracked));
    }

    /// A call that may have been sent is resumed, and joined by whoever asks for it.
    fn go_on_with_call(&mut self, name: &Name, command: CommandId, call: &SavedCall, bought_as: Option<BoughtAs>, options: &CallOptions) {
        let Some(endpoint) = call.endpoint(self.service.api) else { return };
        let changed = call.session_id.as_deref().filter(|_| endpoint.changes_session() && call.order_no.is_none());
        if let Some(other) = changed.and_then(|session| self.sessions.get(session)?.changing.iter().next()) {
            let what = format!("the session's {} is under way", self.jobs.get(&other).map_or("change", |entry| entry.subject.operation));
            let report = busy(endpoint.name, &what).into_report();
            let error = Error::from(Report { session_id: call.session_id.clone(), ..report });
            return self.finish_visit(command, Err(error), options.intent.clone(), name);
        }
        let entry = self.entry_of(call, bought_as, options);
        let last_put = self.journal.slot(name).map(|slot| slot.version);
        let id = self.begin(Entry { custody: Custody { name: Some(name.clone()), last_put, ..entry.custody }, ..entry }, command);
        self.journal.give(name, Some(User::Job(id)));
        let session = call.session_id.as_deref().filter(|_| endpoint.changes_session());
        self.changes(id, session.map(ArcStr::from), endpoint);
        self.clear_timer(id);
        if let Some(action) = self.with(id, |job, cx| job.resume(cx)) {
            self.carry_out(id, action);
        }
    }

    /// The job of a call that may have been sent.
    fn entry_of(&self, call: &SavedCall, bought_as: Option<BoughtAs>, options: &CallOptions) -> Entry {
        let endpoint = call.endpoint(self.service.api).unwrap_or(CreateSession::ENDPOINT);
        let built = Built {
            body: call.body.clone(),
            secret: call.secret,
            session_id: call.session_id.clone(),
            credentials: call.credentials,
            clues: call.clues.clone(),
            ..Built::at(&call.target)
        };
        let mut ledger = Ledger::restored(call.key.clone(), call.given, call.may_have_sold);
        if !self.means.rules.holds(Rule::RestoredIsUnanswered) {
            ledger.unanswered = call.unanswered;
        }
        let mut terms = Terms::new(endpoint, &built, None, None);
        // What the key itself counts is counted anew before it is sent again, at what it was quoted.
        let own = call.key.as_deref().map(crate::engine::entry_of);
        terms.quote = call.counted.iter().filter(|counted| own.as_ref() == Some(&counted.entry)).map(|counted| counted.usd).next_back();
        terms.counted.clone_from(&call.counted);
        let exchange = Exchange::new(endpoint, built, Vec::new(), self.service.retry.timeout_ms);
        let mut write = Write::new(exchange, self.service.retry, ledger, terms);
        (write.key.age, write.key.settled, write.restored) = (Age::Saved(call.age), call.spent, true);
        let mut job = Job::write_then(write, if call.opens { Then::Follow } else { Then::End });
        let subject = Subject {
            operation: endpoint.name,
            intent: bought_as.as_ref().and_then(|known| known.intent.clone()),
            named: bought_as.is_some(),
            session_id: call.session_id.as_deref().map(ArcStr::from),
            order_no: call.order_no.as_deref().map(ArcStr::from),
            key: call.key.as_deref().map(ArcStr::from),
            ..Subject::default()
        };
        let mut custody = Custody { doubt_since: call.doubt_since.or(Some(call.age.at.unix)), ..Custody::default() };
        if let (Job::PlaceOrder(job), Some(order_no)) = (&mut job, call.order_no.clone()) {
            let order = job.become_order(order_no, None, bought_as.is_none() || call.unanswered);
            order.only_named = call.unanswered;
            custody.placed = Some(Box::new(call.clone()));
        }
        custody.bought_as = bought_as.map(Arc::new);
        let mut ends = call.ends.clone();
        ends.extend(options.ends.iter().filter(|end| !call.ends.contains(end)).cloned());
        let (credentials, auto_rotate) = (options.credentials || call.credentials, options.auto_rotate || call.auto_rotate);
        let options = CallOptions { credentials, auto_rotate, ends, ..options.clone() };
        let mut entry = Entry { custody, ..Entry::new(job, subject, &options) };
        entry.take_over(&options, options.policy(&self.service.retry));
        entry
    }

    /// Gives what was accepted once more: an order is waited for, anything else comes back as it is remembered. Of what was settled by
    /// hand there is no answer, so a typed one is an error.
    fn recall(&mut self, name: &Name, command: CommandId, done: &Done, options: &CallOptions) {
        let operation = endpoint(&done.operation).map_or(ANY, |endpoint| endpoint.name);
        if let (true, Some(order_no)) = (done.opened, &done.facts.order_no) {
            self.begin_order_watch(command, order_no.clone(), true, options);
            return;
        }
        let facts = done.facts.clone();
        let is_open = endpoint(operation).is_none_or(|endpoint| matches!(endpoint.response, Shape::Json));
        if facts.settled && !is_open {
            let mut error = misfit(operation, Answered::of(facts), "all");
            error.record = self.journal.slot(name).map(|slot| name.at(slot.version).0);
            if becomes(operation) {
                error.what.push_str(": settle it again with the id of what it became");
            }
            return self.finish_visit(command, Err(error), options.intent.clone(), name);
        }
        let phase = facts.session_id.as_ref().map(|_| phase_of(facts.status.as_deref(), &options.ends));
        // What is kept of the answer is what its type names; where that is too long there are the facts, which have its members' names.
        let of_facts = || serde_json::to_string(&facts).ok().filter(|_| !facts.settled)?.parse().ok();
        let raw = done.answer.clone().or_else(of_facts).unwrap_or_default();
        let view = endpoint(operation).and_then(|endpoint| view(&endpoint.response, raw.text()).map(Json::checked));
        self.finish_visit(command, Ok(Answered { raw, view, phase, ..Answered::of(facts) }), options.intent.clone(), name);
    }

    /// What a start that joins a job wants of it.
    pub(super) fn join_job(&mut self, id: u32, command: CommandId, options: &CallOptions) {
        let policy = options.policy(&self.service.retry);
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let session_type = match (entry.job.write(), &entry.subject.session_id) {
            (Some(write), _) => requested_type(&write.call.exchange.built),
            (None, session) => {
                session.as_ref().and_then(|session| Some(self.sessions.get(session)?.shown.session_type.as_ref()?.to_string()))
            }
        };
        let then = if entry.job.follows() { Then::Follow } else { Then::End };
        if let Err(error) = check_rotation(entry.subject.operation, then, session_type.as_deref(), options) {
            let report = error.into_report();
            return self.complete(command, Err(Error::from(Report { intent: options.intent.clone(), ..report })));
        }
        let operation = entry.subject.operation;
        entry.join(options, policy);
        let wishes = entry.wants.wishes.clone();
        let session = entry.subject.session_id.clone().filter(|_| entry.job.follows());
        if let Some(known) = self.commands.get_mut(&command) {
            known.operation = operation;
        }
        if let Some(tracked) =
            session.as_ref().and_then(|session| self.sessions.get_mut(session)).filter(|known| known.changing.contains(&id))
            && tracked.wishes != wishes
        {
            tracked.wishes = wishes;
            session.iter().for_each(|session| self.put_session(session));
        }
        self.attach(id, command);
    }

    /// Lets a command wait for a job. A job that was given up is carried on.
    pub(super) fn attach(&mut self, id: u32, command: CommandId) {
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let let_go = if entry.wanted { Vec::new() } else { std::mem::take(&mut entry.waiting) };
        let error = entry.let_go();
        entry.wanted = true;
        entry.waiting.push(command);
        if let Some(known) = self.commands.get_mut(&command) {
            known.job = Some(id);
        }
        for command in let_go {
            self.complete(command, Err(error.clone()));
        }
    }

    /// A session lives again, or its name was lost: its record says what is known of it, if it is still its own.
    pub(super) fn take_back_session(&mut self, name: &Name, session: &str, found: &Found) {
        let data = if let Found::Data(data) = found { Some(&**data) } else { None };
        let Some((data, saved)) = data.and_then(|data| Some((data, data.session.as_ref().filter(|saved| saved.id == session)?))) else {
            return self.lost_by(User::Session(session.into()), name);
        };
        let Some(tracked) = self.sessions.get(session).filter(|known| known.name.is_none()) else { return };
        let mut saved = saved.clone();
        // What another client has put meanwhile is newer, but where this one has just seen that it lives again. All else is as the record
        // says: little may be known of a session that was released meanwhile.
        if tracked.lapsed || data.at.client == self.means.clock.at().client {
            saved.status = tracked.shown.status.as_ref().map(ArcStr::to_string).or(saved.status);
            saved.session_type = tracked.shown.session_type.as_ref().map(ArcStr::to_string).or(saved.session_type);
            saved.credentials |= tracked.wishes.credentials;
            if !tracked.wishes.ends.is_empty() {
                saved.ends.clone_from(&tracked.wishes.ends);
            }
        }
        self.hold_session(name, saved, bought_as_of(name, data));
        self.put_session(session);
        self.let_go_of_session(session);
    }
}

/// What its caller calls what is under a name.
fn bought_as_of(name: &Name, data: &Data) -> Option<BoughtAs> {
    let fingerprint = data.fingerprint.as_deref()?.into();
    Some(BoughtAs {
        name: name.clone(),
        intent: data.intent.as_deref().map(ArcStr::from),
        key: data.key.as_deref().map(ArcStr::from),
        fingerprint,
    })
}

/// The operation of a record, what comes after it, and the type of its session where that is known.
fn what_of(data: &Data) -> (&'static str, Then, Option<String>) {
    let name = |operation: &str| endpoint(operation).map_or(ANY, |endpoint| endpoint.name);
    match (&data.session, &data.call, &data.done) {
        (Some(session), ..) => (CreateSession::ENDPOINT.name, Then::Follow, session.session_type.clone()),
        (_, Some(call), _) => {
            let built = Built { body: call.body.clone(), ..Built::at(&call.target) };
            (name(&call.operation), if call.opens { Then::Follow } else { Then::End }, requested_type(&built))
        }
        (_, _, Some(done)) => (name(&done.operation), if done.opened { Then::Follow } else { Then::End }, None),
        _ => (ANY, Then::End, None),
    }
}
