//! How a command begins: checked, and let in by its name, where its caller gave it one. Nothing is sent here.

use std::sync::Arc;

use arcstr::ArcStr;

use super::check::check_rotation;
use super::job::{Custody, Entry, headers};
use super::options::CallOptions;
use super::router::{Asker, Command, Router};
use super::same_request::{digests, fingerprint};
use super::waiting::{Purpose, Start, Visit};
use crate::collections::SmallSet;
use crate::contract::agent::{CreateSession, GetSession, RotateSession};
use crate::contract::reseller::{CreateStaticOrder, ListStaticOrders};
use crate::contract::{ANY, Endpoint, Operation, ReconcileRecord, Safety, WaitOrder, WaitSession, endpoint};
use crate::engine::{Exchange, Job, RecordId, Subject, Terms, Then, Write, requested_type};
use crate::policy::{Error, ErrorFields, Kind, Ledger, Rule};
use crate::state::{BoughtAs, CommandId, Fingerprint, JobId, Name, User};
use crate::time::Millis;
use crate::wire::{Built, Refusal, build, build_any, params_of};

/// Due at once.
const NOW: Millis = Millis::MIN;

impl Router {
    /// Starts an operation by its name, with its parameters as a JSON object:
    pub(super) fn start_json(&mut self, operation: &str, params: &str, options: CallOptions) -> CommandId {
        match (operation, endpoint(operation)) {
            ("open_session", _) => self.admit(CreateSession::ENDPOINT, params, Then::Follow, options),
            ("wait_session", _) => match params_of::<WaitSession>(params) {
                Ok(wait) => self.watch(&wait.session_id, options),
                Err(refusal) => self.refuse_params(GetSession::ENDPOINT.name, &refusal, options),
            },
            ("place_order", _) => self.admit(CreateStaticOrder::ENDPOINT, params, Then::Follow, options),
            ("wait_order", _) => match params_of::<WaitOrder>(params) {
                Ok(wait) => self.watch_order(&wait.order_no, options),
                Err(refusal) => self.refuse_params(ListStaticOrders::ENDPOINT.name, &refusal, options),
            },
            ("reconcile", _) => match params_of::<ReconcileRecord>(params) {
                Ok(look) => self.look_up(&RecordId(look.record), options),
                Err(refusal) => self.refuse_params("reconcile", &refusal, options),
            },
            (ANY, _) => self.admit_any(params, options),
            (_, Some(endpoint)) => self.admit(endpoint, params, Then::End, options),
            (_, None) => {
                let mut error = Error::invalid("start", "operation", "is not the name of an operation");
                error.kind = Kind::Misuse;
                self.reject(error, options.intent)
            }
        }
    }

    pub(super) fn admit_any(&mut self, params: &str, options: CallOptions) -> CommandId {
        match (options.refusal(), build_any(self.service.api, params)) {
            (None, Ok((endpoint, built))) => self.admit_built(endpoint, built, Then::End, options),
            (Some((field, rule)), _) => self.reject(Error::invalid(ANY, field, rule), options.intent),
            (_, Err(refusal)) => self.refuse_params(ANY, &refusal, options),
        }
    }

    fn refuse_params(&mut self, operation: &'static str, refusal: &Refusal, options: CallOptions) -> CommandId {
        self.reject(Error::invalid(operation, &refusal.field, &refusal.rule), options.intent)
    }

    /// Queues a job.
    pub(super) fn begin(&mut self, mut entry: Entry, command: CommandId) -> JobId {
        entry.waiting = SmallSet::one(command);
        let session = entry.subject.session_id.clone();
        let id = self.jobs.insert(Box::new(entry));
        if let Some(known) = self.commands.get_mut(&command) {
            known.job = Some(id);
        }
        if let Some(tracked) = session.as_ref().and_then(|session| self.sessions.get_mut(session)) {
            tracked.jobs.insert(id);
        }
        self.set_timer(id, NOW);
        id
    }

    /// Checks a request and queues it.
    pub(super) fn admit(&mut self, endpoint: &'static Endpoint, params: &str, then: Then, options: CallOptions) -> CommandId {
        match (options.refusal(), build(endpoint, params)) {
            (Some((field, rule)), _) => self.reject(Error::invalid(endpoint.name, field, rule), options.intent),
            (None, Err(refusal)) => self.refuse_params(endpoint.name, &refusal, options),
            (None, Ok(built)) => self.admit_built(endpoint, built, then, options),
        }
    }

    /// Queues a request whose parameters are sound.
    pub(super) fn admit_built(&mut self, endpoint: &'static Endpoint, built: Built, then: Then, options: CallOptions) -> CommandId {
        // The body is read again only where its type matters.
        let requested = || options.auto_rotate.then(|| requested_type(&built)).flatten();
        let rotates = || check_rotation(endpoint.name, then, requested().as_deref(), &options);
        let terms = || Terms::new(endpoint, &built, options.max_unit_price, options.expected_charge_usd);
        let priced = || terms().refusal(endpoint).filter(|_| self.spending.cap.is_some()).map_or(Ok(()), Err);
        if let Err(error) = self.check_use(endpoint, &options).and_then(|()| rotates()).and_then(|()| priced()) {
            return self.reject(error, options.intent);
        }
        let name = match (&options.intent, &options.idempotency_key) {
            (Some(intent), _) => Some(self.account.space.intent(intent)),
            (_, Some(key)) if endpoint.safety == Safety::Keyed => Some(self.account.space.key(key)),
            _ => None,
        };
        let bought_as = name.map(|name| BoughtAs {
            name,
            intent: options.intent.as_deref().map(ArcStr::from),
            key: options.idempotency_key.as_deref().map(ArcStr::from),
            fingerprint: match options.idempotency_key {
                Some(_) if !self.means.rules.holds(Rule::GivenKeyHasOneRequest) => Fingerprint::default(),
                _ => fingerprint(endpoint, &built, then),
            },
            members: digests(endpoint, &built, then),
        });
        let command = self.command(endpoint);
        let start = Start { endpoint, built, then, options, bought_as, patience: None };
        self.enter_change(command, start);
        command
    }

    /// A write goes to its name; what has none begins.
    pub(super) fn enter(&mut self, command: CommandId, start: Start) {
        match start.bought_as.as_ref().map(|known| known.name.clone()) {
            Some(name) => self.visit(&name, Visit::new(Some(command), Purpose::Start(Box::new(start)))),
            None => self.begin_write(None, command, start),
        }
    }

    /// A write begins, under a name that is this client's and holds nothing.
    pub(super) fn begin_write(&mut self, name: Option<Name>, command: CommandId, start: Start) {
        if self.join_termination(command, &start) {
            return;
        }
        let Start { endpoint, built, then, options, bought_as, .. } = start;
        let session = self.check_session(endpoint, built.session_id.as_deref());
        if let Err(error) = session.and_then(|()| self.check_key(endpoint, &built, &options)) {
            let after = name.as_ref().map(|name| (name, options.intent.clone()));
            return match after {
                Some((name, intent)) => self.finish_visit(command, Err(error), intent, name),
                None => self.complete(command, Err(error)),
            };
        }
        let entry = self.new_entry(endpoint, built, then, &options, bought_as);
        let session = entry.subject.session_id.clone().filter(|_| endpoint.changes_session());
        let custody = Custody { name: name.clone(), ..entry.custody };
        let id = self.begin(Entry { custody, ..entry }, command);
        name.iter().for_each(|name| self.journal.give(name, Some(User::Job(id))));
        self.changes(id, session, endpoint);
    }

    /// A job changes a session.
    pub(super) fn changes(&mut self, id: JobId, session: Option<ArcStr>, endpoint: &Endpoint) {
        let Some(session) = session else { return };
        let now = self.means.clock.monotonic();
        let tracked = self.sessions.get_or_insert_with(session, Box::default);
        tracked.jobs.insert(id);
        tracked.changing.insert(id);
        if endpoint.name == RotateSession::ENDPOINT.name {
            tracked.observed.asked(now);
        }
    }

    /// A job of its own for a request.
    fn new_entry(
        &mut self,
        endpoint: &'static Endpoint,
        built: Built,
        then: Then,
        options: &CallOptions,
        bought_as: Option<BoughtAs>,
    ) -> Entry {
        let policy = options.policy(&self.service.retry);
        let (session_id, credentials) = (built.session_id.as_deref().map(ArcStr::from), built.credentials);
        let terms = Terms::new(endpoint, &built, options.max_unit_price, options.expected_charge_usd);
        let exchange = Exchange::new(endpoint, built, headers(options), policy.timeout_ms);
        let (intent, named) = (bought_as.as_ref().and_then(|known| known.intent.clone()), bought_as.is_some());
        let mut subject = Subject { operation: endpoint.name, intent, named, session_id, ..Subject::default() };
        let job = if endpoint.safety == Safety::Safe {
            Job::read(exchange, policy, options.until.clone())
        } else {
            let mut ledger = Ledger::new(None, false);
            if endpoint.safety == Safety::Keyed {
                let key = options.idempotency_key.clone().unwrap_or_else(|| self.means.dice.key(options.intent.as_deref()));
                subject.key = Some(key.as_str().into());
                ledger = Ledger::new(Some(key), options.idempotency_key.is_some());
                ledger.unanswered &= self.means.rules.holds(Rule::GivenIsUnanswered);
            }
            Job::write_then(Write::new(exchange, policy, ledger, terms), then)
        };
        let mut entry = Entry::new(job, subject, options);
        entry.wants.wishes.credentials |= credentials;
        entry.custody.bought_as = bought_as.map(Arc::new);
        entry
    }

    /// A command that ended before it began.
    pub(super) fn reject(&mut self, error: Error, intent: Option<String>) -> CommandId {
        let command = self.command_for(error.operation);
        let error = Error::from(ErrorFields { intent: intent.clone(), ..error.into_fields() });
        self.complete(command, Err(error));
        command
    }

    pub(super) fn command(&mut self, endpoint: &'static Endpoint) -> CommandId {
        self.command_for(endpoint.name)
    }

    pub(super) fn command_for(&mut self, operation: &'static str) -> CommandId {
        let command = Command { job: None, waits_for: None, asker: Asker::Caller, session: None, operation, ended: None };
        self.commands.insert(Box::new(command))
    }
}
