//! How a command begins: checked, and let in by its name, where its caller gave it one. Nothing is sent here.

use std::sync::Arc;

use arcstr::ArcStr;

use crate::client::begin::check::check_rotation;
use crate::client::begin::same_request::{digests, fingerprint};
use crate::client::jobs::job::{Entry, JobRecord, headers};
use crate::client::requests::{NameRequest, RequestKind, Start};
use crate::client::router::Router;
use crate::contract::agent::{CreateSession, GetSession, RotateSession};
use crate::contract::pools::SlotPurchase;
use crate::contract::reseller::{CreateStaticOrder, ListStaticOrders};
use crate::contract::{ANY, Endpoint, Operation, ReconcileRecord, Safety, WaitOrder, WaitSession, endpoint};
use crate::engine::{Exchange, Job, RecordId, Subject, Terms, Then, Write, requested_type};
use crate::options::CallOptions;
use crate::policy::{Error, Kind, Ledger, Rule};
use crate::state::{CommandId, Fingerprint, Name, RequestIdentity, User};
use crate::wire::{Built, Refusal, build, build_any, params_of};

impl Router {
    /// Starts an operation by its name, with its parameters as a JSON object.
    pub(crate) fn start_json(&mut self, operation: &str, params: &str, options: CallOptions) -> CommandId {
        match (operation, endpoint(operation)) {
            ("open_session", _) => self.start(CreateSession::ENDPOINT, params, Then::Follow, options),
            ("wait_session", _) => match params_of::<WaitSession>(params) {
                Ok(wait) => self.watch(&wait.session_id, options),
                Err(refusal) => self.refuse_params(GetSession::ENDPOINT.name, &refusal, options),
            },
            ("place_order", _) => self.start(CreateStaticOrder::ENDPOINT, params, Then::Follow, options),
            ("wait_order", _) => match params_of::<WaitOrder>(params) {
                Ok(wait) => self.watch_order(&wait.order_no, options),
                Err(refusal) => self.refuse_params(ListStaticOrders::ENDPOINT.name, &refusal, options),
            },
            ("reconcile", _) => match params_of::<ReconcileRecord>(params) {
                Ok(look) => self.look_up(&RecordId(look.record), options),
                Err(refusal) => self.refuse_params("reconcile", &refusal, options),
            },
            (ANY, _) => self.start_any(params, options),
            (_, Some(endpoint)) => self.start(endpoint, params, Then::End, options),
            (_, None) => {
                let mut error = Error::invalid("start", "operation", "is not the name of an operation");
                error.kind = Kind::Misuse;
                self.reject(error, options.intent)
            }
        }
    }

    pub(crate) fn start_any(&mut self, params: &str, options: CallOptions) -> CommandId {
        match (options.refusal(), build_any(self.api(), params)) {
            (None, Ok((endpoint, built))) => self.start_built(endpoint, built, Then::End, options),
            (Some((field, rule)), _) => self.reject(Error::invalid(ANY, field, rule), options.intent),
            (_, Err(refusal)) => self.refuse_params(ANY, &refusal, options),
        }
    }

    fn refuse_params(&mut self, operation: &'static str, refusal: &Refusal, options: CallOptions) -> CommandId {
        self.reject(Error::invalid(operation, &refusal.field, &refusal.rule), options.intent)
    }

    /// Checks a request and queues it.
    pub(crate) fn start(&mut self, endpoint: &'static Endpoint, params: &str, then: Then, options: CallOptions) -> CommandId {
        match (options.refusal(), build(endpoint, params)) {
            (Some((field, rule)), _) => self.reject(Error::invalid(endpoint.name, field, rule), options.intent),
            (None, Err(refusal)) => self.refuse_params(endpoint.name, &refusal, options),
            (None, Ok(built)) => self.start_built(endpoint, built, then, options),
        }
    }

    /// Queues a request whose parameters are sound.
    pub(crate) fn start_built(&mut self, endpoint: &'static Endpoint, built: Built, then: Then, options: CallOptions) -> CommandId {
        // The body is read again only where its type matters.
        let requested = || options.auto_rotate.then(|| requested_type(&built)).flatten();
        let rotates = || check_rotation(endpoint.name, then, requested().as_deref(), &options);
        let terms = || Terms::new(endpoint, &built, options.max_unit_price, options.expected_charge_usd);
        let priced = || terms().refusal(endpoint).filter(|_| self.spending.has_cap()).map_or(Ok(()), Err);
        let ends = || self.check_if_ended(endpoint, then, &options);
        if let Err(error) = self.check_use(endpoint, &options).and_then(|()| rotates()).and_then(|()| ends()).and_then(|()| priced()) {
            return self.reject(error, options.intent);
        }
        let name = match (&options.intent, &options.idempotency_key) {
            (Some(intent), _) => Some(self.account.space().intent(intent)),
            (_, Some(key)) if endpoint.safety == Safety::Keyed => Some(self.account.space().key(key)),
            _ => None,
        };
        let bought_as = name.map(|name| RequestIdentity {
            name,
            intent: options.intent.as_deref().map(ArcStr::from),
            key: options.idempotency_key.as_deref().map(ArcStr::from),
            fingerprint: match options.idempotency_key {
                Some(_) if !self.holds(Rule::GivenKeyHasOneRequest) => Fingerprint::default(),
                _ => fingerprint(endpoint, &built, then),
            },
            members: digests(endpoint, &built, then),
            later: None,
        });
        let command = self.command(endpoint);
        let start = Start { endpoint, built, then, options, bought_as, patience: None, over: None };
        self.enter_change(command, start);
        command
    }

    /// A write goes to its name; what has none begins.
    pub(crate) fn enter(&mut self, command: CommandId, start: Start) {
        match start.bought_as.as_ref().map(|known| known.name.clone()) {
            Some(name) => self.request_name(&name, NameRequest::new(Some(command), RequestKind::Start(Box::new(start)))),
            None => self.begin_write(None, command, start),
        }
    }

    /// A write begins, under a name that is this client's and holds nothing.
    pub(crate) fn begin_write(&mut self, name: Option<Name>, command: CommandId, start: Start) {
        if self.join_termination(command, &start) {
            return;
        }
        let Start { endpoint, built, then, options, bought_as, .. } = start;
        let session = self.check_session(endpoint, built.session_id.as_deref());
        if let Err(error) = session.and_then(|()| self.check_key(endpoint, &built, &options)) {
            let after = name.as_ref().map(|name| (name, options.intent.clone()));
            return match after {
                Some((name, intent)) => self.finish_request(command, Err(error), intent, name),
                None => self.complete(command, Err(error)),
            };
        }
        let entry = self.new_entry(endpoint, built, then, &options, bought_as);
        let session = entry.subject.session_id.clone().filter(|_| endpoint.changes_session());
        let record = JobRecord { name: name.clone(), ..entry.record };
        let id = self.begin(Entry { record, ..entry }, command);
        name.iter().for_each(|name| self.journal.give(name, Some(User::Job(id))));
        let now = self.now();
        session.into_iter().for_each(|session| self.sessions.change(session, id, endpoint.name, now));
    }

    /// A job of its own for a request.
    fn new_entry(
        &mut self,
        endpoint: &'static Endpoint,
        built: Built,
        then: Then,
        options: &CallOptions,
        bought_as: Option<RequestIdentity>,
    ) -> Entry {
        let policy = self.policy(options);
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
                let key = options.idempotency_key.clone().unwrap_or_else(|| self.new_key(options.intent.as_deref()));
                subject.key = Some(key.as_str().into());
                ledger = Ledger::new(Some(key), options.idempotency_key.is_some());
                ledger.unanswered &= self.holds(Rule::GivenIsUnanswered);
            }
            Job::write_then(Write::new(exchange, policy, ledger, terms), then)
        };
        let mut entry = Entry::new(job, subject, options);
        entry.wants.session_options.credentials |= credentials;
        entry.record.bought_as = bought_as.map(Arc::new);
        entry
    }

    /// A write that may be a change of a session is let in: by its name, if it has one. A rotation first has an earlier one, which is in
    /// doubt, sent once more.
    pub(crate) fn enter_change(&mut self, command: CommandId, start: Start) {
        match self.rotation_in_doubt(&start) {
            Some(name) => self.request_name(&name, NameRequest::new(Some(command), RequestKind::Retry(Box::new(start)))),
            None => self.enter(command, start),
        }
    }

    /// The name of a rotation of the same session that is in doubt, unless it is this very one.
    pub(crate) fn rotation_in_doubt(&self, start: &Start) -> Option<Name> {
        let session = start.built.session_id.as_deref().filter(|_| start.endpoint.name == RotateSession::ENDPOINT.name)?;
        let name = self.sessions.rotation_in_doubt(session)?;
        let own = start.bought_as.as_ref().map(|known| &known.name);
        (own != Some(name)).then(|| name.clone())
    }

    /// Goes on with what is under a slot; where that is over, or nothing, this is bought.
    pub(crate) fn open_slot(&mut self, slot: &str, params: &str, options: CallOptions) -> Result<CommandId, Error> {
        let endpoint = CreateSession::ENDPOINT;
        let built = build(endpoint, params).map_err(|refusal| Error::invalid(endpoint.name, &refusal.field, &refusal.rule))?;
        let intent = Some(SlotPurchase { slot, number: 1 }.to_string());
        Ok(self.start_built(endpoint, built, Then::Follow, CallOptions { intent, ..options }))
    }
}
