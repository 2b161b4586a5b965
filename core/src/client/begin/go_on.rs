//! Going on with what a record says: a call that may have been sent, a session, something finished. Nothing is known but the record, in
//! the process that wrote it as in any other.

use std::sync::Arc;

use arcstr::ArcStr;

use crate::client::begin::check::check_rotation;
use crate::client::begin::next_purchase::is_nothing_again;
use crate::client::doubts::became::Made;
use crate::client::jobs::job::{Entry, JobRecord};
use crate::client::router::Router;
use crate::client::sessions::session::ended;
use crate::client::types::misfit;
use crate::contract::agent::{CreateSession, GetSession};
use crate::contract::{ANY, Json, Operation, Shape, endpoint, json_of};
use crate::engine::{Age, Answered, Choice, Exchange, Job, Subject, Terms, Then, Write, phase_of, requested_type};
use crate::options::CallOptions;
use crate::policy::{Advice, Effect, Error, Kind, Ledger, Rule};
use crate::state::{CommandId, Data, Done, Name, RequestIdentity, SavedCall, SavedSession, User};
use crate::wire::{Built, Facts};

impl Router {
    /// Goes on with a record, for a start or for somebody who asks for it.
    pub(crate) fn go_on(&mut self, name: &Name, command: CommandId, data: &Data, options: &CallOptions, intent: Option<&str>) {
        let (operation, then, session_type) = what_of(data);
        self.commands.set_operation(command, operation);
        let intent_of = || intent.map(str::to_owned);
        if let Err(error) = check_rotation(operation, then, session_type.as_deref(), options) {
            return self.finish_request(command, Err(error), intent_of(), name);
        }
        let bought_as = bought_as_of(name, data);
        match (&data.session, &data.call, &data.done) {
            (Some(session), ..) => self.go_on_with_session(name, command, session, bought_as, options),
            (_, Some(call), _) => self.go_on_with_call(name, command, call, bought_as, options),
            _ if is_nothing_again(data) => {
                let error = self.ended_again(name, data);
                self.finish_request(command, Err(error), None, name);
            }
            (_, _, Some(done)) => self.recall(name, command, done, options),
            (None, None, None) => {
                let error = Error::new(Kind::Misuse, Effect::None, operation, "there is nothing to go on with", Advice::ChangeRequest);
                self.finish_request(command, Err(error), intent_of(), name);
            }
        }
    }

    /// A session is taken back and waited for; one that is over is an error: its caller wants one that can be used.
    fn go_on_with_session(
        &mut self,
        name: &Name,
        command: CommandId,
        session: &SavedSession,
        bought_as: Option<RequestIdentity>,
        options: &CallOptions,
    ) {
        let id = session.id.clone();
        if session.is_over_for_good() {
            let facts = Facts { session_id: Some(id), status: session.status.clone(), ..Facts::default() };
            let record = self.journal.record_of(name);
            let error = ended(&facts, bought_as.and_then(|known| Some(known.intent?.to_string())), record);
            return self.finish_request(command, Err(error), None, name);
        }
        let endpoint = if bought_as.is_some() { CreateSession::ENDPOINT } else { GetSession::ENDPOINT };
        self.hold_session(name, session.clone(), bought_as);
        let mut options = options.clone();
        options.credentials = if session.credentials { Some(true) } else { options.credentials };
        self.commands.set_operation(command, endpoint.name);
        self.begin_watch(command, endpoint, id.into(), None, &options);
    }

    /// A call that may have been sent is resumed, and joined by whoever asks for it.
    pub(crate) fn go_on_with_call(
        &mut self,
        name: &Name,
        command: CommandId,
        call: &SavedCall,
        bought_as: Option<RequestIdentity>,
        options: &CallOptions,
    ) {
        let endpoint = call.endpoint(self.api()).unwrap_or(CreateSession::ENDPOINT);
        let changed = call.session_id.as_deref().filter(|_| endpoint.changes_session() && call.order_no.is_none());
        if let Err(error) = changed.map_or(Ok(()), |session| self.check_changing(endpoint, session)) {
            return self.finish_request(command, Err(error), options.intent.clone(), name);
        }
        let mut entry = self.entry_of(call, bought_as, options);
        (entry.record.name, entry.record.last_put) = (Some(name.clone()), Some(self.journal.version(name)));
        let id = self.begin(entry, command);
        self.journal.give(name, Some(User::Job(id)));
        let session = call.session_id.as_deref().filter(|_| endpoint.changes_session());
        let now = self.now();
        session.into_iter().for_each(|session| self.sessions.change(session.into(), id, endpoint.name, now));
        self.jobs.clear_timer(id, &mut self.timers);
        self.advance_job(id, |job, cx| job.resume(cx));
    }

    /// The job of a call that may have been sent.
    fn entry_of(&self, call: &SavedCall, bought_as: Option<RequestIdentity>, options: &CallOptions) -> Entry {
        let endpoint = call.endpoint(self.api()).unwrap_or(CreateSession::ENDPOINT);
        let built = Built {
            body: call.body.clone(),
            secret: call.secret,
            session_id: call.session_id.clone(),
            credentials: call.credentials,
            match_fields: call.match_fields.clone(),
            ..Built::at(&call.target)
        };
        let mut ledger = Ledger::restored(call.key.clone(), call.given, call.may_have_sold);
        if !self.holds(Rule::RestoredIsUnanswered) {
            ledger.unanswered = call.unanswered;
        }
        let mut terms = Terms::new(endpoint, &built, None, None);
        // The entries of the key itself are counted anew before it is sent again, at its quote.
        let own = call.key.as_deref().unwrap_or_default();
        terms.quote = call.counted.iter().filter(|counted| counted.is_of(own)).map(|counted| counted.usd).next_back();
        terms.counted.clone_from(&call.counted);
        terms.choice = call.choice.clone().map(|saved| Box::new(Choice::restored(saved)));
        if !self.holds(Rule::ChoiceStays) {
            terms.choice.iter_mut().for_each(|choice| choice.is_made = false);
        }
        let exchange = Exchange::new(endpoint, built, Vec::new(), self.retry().timeout_ms);
        let mut write = Write::new(exchange, self.retry(), ledger, terms);
        (write.key.age, write.key.settled, write.restored) = (Age::Saved(call.age), call.key_settled, true);
        let mut job = Job::write_then(write, if call.follows { Then::Follow } else { Then::End });
        let subject = Subject {
            operation: endpoint.name,
            intent: bought_as.as_ref().and_then(|known| known.intent.clone()),
            named: bought_as.is_some(),
            session_id: call.session_id.as_deref().map(ArcStr::from),
            order_no: call.order_no.as_deref().map(ArcStr::from),
            key: call.key.as_deref().map(ArcStr::from),
            ..Subject::default()
        };
        let mut record = JobRecord::default();
        let rare = record.rare.get_or_insert_default();
        (rare.doubt_since, rare.session_over) = (call.doubt_since.or(Some(call.age.at.unix)), call.session_over);
        if let (Job::PlaceOrder(job), Some(order_no)) = (&mut job, call.order_no.clone()) {
            let order = job.become_order(order_no, None, bought_as.is_none() || call.unanswered);
            order.unconfirmed = call.unanswered;
            record.rare.get_or_insert_default().placed = Some(call.clone());
        }
        record.bought_as = bought_as.map(Arc::new);
        let mut options = options.clone();
        let more = std::mem::replace(&mut options.ends, call.ends.clone());
        options.ends.extend(more.into_iter().filter(|end| !call.ends.contains(end)));
        options.credentials = if call.credentials { Some(true) } else { options.credentials };
        options.auto_rotate |= call.auto_rotate;
        let mut entry = Entry::new(job, subject, &options);
        entry.record = record;
        entry.continue_for(&options, self.policy(&options));
        entry
    }

    /// Gives what was accepted once more: an order is waited for, anything else comes back as it is remembered. Of what was settled by
    /// hand there is no answer, so a typed one is an error.
    fn recall(&mut self, name: &Name, command: CommandId, done: &Done, options: &CallOptions) {
        let operation = endpoint(&done.operation).map_or(ANY, |endpoint| endpoint.name);
        match &done.facts {
            Facts { order_no: Some(order_no), .. } if done.follows => {
                return self.begin_order_watch(command, order_no.clone(), true, options);
            }
            // A session that another name has: what it is now, and not what it was when it was bought.
            Facts { session_id: Some(session_id), .. } if done.follows => {
                let status = done.facts.status.as_deref();
                return self.begin_watch(command, CreateSession::ENDPOINT, session_id.as_str().into(), status, options);
            }
            _ => {}
        }
        let facts = done.facts.clone();
        let is_open = endpoint(operation).is_none_or(|endpoint| matches!(endpoint.response, Shape::Json));
        if facts.settled && !is_open {
            let mut error = misfit(operation, Answered::of(facts), "all");
            error.record = self.journal.record_of(name).map(|record| record.0);
            if Made::by(operation).is_some() {
                error.what.push_str(": settle it again with the id of its result");
            }
            return self.finish_request(command, Err(error), options.intent.clone(), name);
        }
        let phase = facts.session_id.as_ref().map(|_| phase_of(facts.status.as_deref(), &options.ends));
        // The stored answer has the documented members; if it was too long there are the facts, which have the same names.
        let of_facts = || (!facts.settled).then(|| Json::checked(json_of(&facts)));
        let raw = done.answer.clone().or_else(of_facts).unwrap_or_default();
        let shape = endpoint(operation).map_or(&Shape::Json, |endpoint| &endpoint.response);
        self.finish_request(command, Ok(Answered { raw, shape, phase, ..Answered::of(facts) }), options.intent.clone(), name);
    }
}

/// The caller's names for a purchase, from its record.
pub(crate) fn bought_as_of(name: &Name, data: &Data) -> Option<RequestIdentity> {
    let fingerprint = data.fingerprint?;
    Some(RequestIdentity {
        name: name.clone(),
        intent: data.intent.as_deref().map(ArcStr::from),
        key: data.key.as_deref().map(ArcStr::from),
        fingerprint,
        members: data.members.clone().unwrap_or_default(),
        later: data.later.clone().map(Box::new),
    })
}

/// The operation of a record, what comes after it, and the type of its session where that is known.
fn what_of(data: &Data) -> (&'static str, Then, Option<String>) {
    let name = |operation: &str| endpoint(operation).map_or(ANY, |endpoint| endpoint.name);
    match (&data.session, &data.call, &data.done) {
        (Some(session), ..) => (CreateSession::ENDPOINT.name, Then::Follow, session.session_type.clone()),
        (_, Some(call), _) => {
            let built = Built { body: call.body.clone(), ..Built::at(&call.target) };
            (name(&call.operation), if call.follows { Then::Follow } else { Then::End }, requested_type(&built))
        }
        (_, _, Some(done)) => (name(&done.operation), if done.follows { Then::Follow } else { Then::End }, None),
        _ => (ANY, Then::End, None),
    }
}
