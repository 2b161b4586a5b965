//! How a command begins: checked, matched with what is under way, and queued. Nothing is sent here.

use super::entropy::digest;
use super::job::{Follow, Job, On, State};
use super::options::CallOptions;
use super::session::{FIRST_INTERVAL, OpenSession, forbidden};
use super::store::JobId;
use super::types::{CommandId, Millis, RecordId, Ticket};
use super::watch::requested_type;
use super::{Client, Command, Intent, Left};
use crate::contract::agent::{CreateSession, GetSession, RotateSession};
use crate::contract::reseller::{CreateStaticOrder, ListStaticOrders};
use crate::contract::{ANY, AnyRequest, Endpoint, Operation, ReconcileRecord, Safety, WaitOrder, WaitSession, endpoint};
use crate::policy::{Advice, Effect, Error, Kind, Ledger, Report, Rule, look_advice};
use crate::wire::{Built, Refusal, build, build_any, params_of};

/// Due at once.
const NOW: Millis = Millis::MIN;

impl Client {
    /// Starts an operation. Whatever is wrong with it comes back as its result.
    pub fn start<O: Operation>(&mut self, operation: O, options: CallOptions) -> Ticket<O> {
        Ticket::of(match serde_json::to_string(&operation) {
            Ok(params) => self.admit(O::ENDPOINT, &params, Follow::Nothing, options),
            Err(error) => self.reject(Error::invalid(O::ENDPOINT.name, "parameters", &error.to_string()), None),
        })
    }

    /// Buys a session and waits until it is usable, over, or the deadline has come. The session lives on in the client.
    pub fn open_session(&mut self, request: CreateSession, options: CallOptions) -> Ticket<OpenSession> {
        Ticket::of(match serde_json::to_string(&request) {
            Ok(params) => self.admit(CreateSession::ENDPOINT, &params, Follow::UntilReady, options),
            Err(error) => self.reject(Error::invalid("create_session", "parameters", &error.to_string()), None),
        })
    }

    /// Waits for a session that is known by its id, as `open_session` does after its purchase. With
    /// [`CallOptions::credentials`] it also reads the username and the password.
    pub fn wait_session(&mut self, session_id: &str, options: CallOptions) -> Ticket<OpenSession> {
        Ticket::of(self.watch(session_id, options))
    }

    /// Starts a request that the table does not have.
    pub fn request(&mut self, request: AnyRequest, options: CallOptions) -> Ticket<AnyRequest> {
        let params = serde_json::to_string(&request).unwrap_or_default();
        Ticket::of(self.admit_any(&params, options))
    }

    /// Starts an operation by its name, with its parameters as a JSON object: what every binding calls. Beside the
    /// operations of the table there are `open_session` (the parameters of `create_session`), `wait_session`
    /// (`session_id`), `place_order` (those of `create_static_order`), `wait_order` (`order_no`), `reconcile` (`record`) and
    /// `request` ([`AnyRequest`]).
    pub fn start_json(&mut self, operation: &str, params: &str, options: CallOptions) -> CommandId {
        match (operation, endpoint(operation)) {
            ("open_session", _) => self.admit(CreateSession::ENDPOINT, params, Follow::UntilReady, options),
            ("wait_session", _) => match params_of::<WaitSession>(params) {
                Ok(wait) => self.watch(&wait.session_id, options),
                Err(refusal) => self.refuse_params(GetSession::ENDPOINT.name, &refusal, options),
            },
            ("place_order", _) => self.admit(CreateStaticOrder::ENDPOINT, params, Follow::UntilReady, options),
            ("wait_order", _) => match params_of::<WaitOrder>(params) {
                Ok(wait) => self.watch_order(&wait.order_no, options),
                Err(refusal) => self.refuse_params(ListStaticOrders::ENDPOINT.name, &refusal, options),
            },
            ("reconcile", _) => match params_of::<ReconcileRecord>(params) {
                Ok(look) => self.look_up(&RecordId(look.record), options),
                Err(refusal) => self.refuse_params("reconcile", &refusal, options),
            },
            (ANY, _) => self.admit_any(params, options),
            (_, Some(endpoint)) => self.admit(endpoint, params, Follow::Nothing, options),
            (_, None) => {
                let mut error = Error::invalid("start", "operation", "is not the name of an operation");
                error.kind = Kind::Misuse;
                self.reject(error, options.intent)
            }
        }
    }

    fn admit_any(&mut self, params: &str, options: CallOptions) -> CommandId {
        match (options.refusal(), build_any(self.api, params)) {
            (None, Ok((endpoint, built))) => self.admit_built(endpoint, built, Follow::Nothing, options),
            (Some((field, rule)), _) => self.reject(Error::invalid(ANY, field, rule), options.intent),
            (_, Err(refusal)) => self.refuse_params(ANY, &refusal, options),
        }
    }

    fn refuse_params(&mut self, operation: &'static str, refusal: &Refusal, options: CallOptions) -> CommandId {
        self.reject(Error::invalid(operation, &refusal.field, &refusal.rule), options.intent)
    }

    /// Queues a job that only reads.
    pub(super) fn begin(&mut self, mut job: Job, command: CommandId) {
        let id = job.id;
        self.join(&mut job, command);
        self.jobs.insert(id, job);
        self.set_timer(id, NOW);
    }

    fn watch(&mut self, session_id: &str, options: CallOptions) -> CommandId {
        let params =
            serde_json::to_string(&GetSession { session_id: session_id.to_owned(), include_credentials: None }).unwrap_or_default();
        let refusal = build(GetSession::ENDPOINT, &params).err().map(|refusal| (refusal.field, refusal.rule));
        let refusal = refusal.or_else(|| options.refusal().map(|(field, rule)| (field.to_owned(), rule.to_owned())));
        if let Some((field, rule)) = refusal {
            return self.reject(Error::invalid("get_session", &field, &rule), options.intent);
        }
        if let Err(error) = self.check_use(GetSession::ENDPOINT, &options) {
            return self.reject(error, options.intent);
        }
        let known = self.sessions.get(session_id).and_then(|tracked| tracked.session_type.as_deref());
        if let Err(error) = check_rotation(GetSession::ENDPOINT, Follow::UntilReady, known, &options) {
            return self.reject(error, options.intent);
        }
        let command = self.command(GetSession::ENDPOINT);
        self.begin_watch(command, GetSession::ENDPOINT, session_id.to_owned(), &options);
        command
    }

    /// Queues a job that reads a session it knows.
    pub(super) fn begin_watch(&mut self, command: CommandId, endpoint: &'static Endpoint, session_id: String, options: &CallOptions) {
        if options.auto_rotate {
            self.rotate_when_seen(&session_id);
        }
        let id = self.job_id();
        let mut job = Job::new(id, endpoint, None, options, options.policy(&self.retry));
        let ends = self.sessions.get(&session_id).map(|tracked| tracked.ends.clone()).unwrap_or_default();
        job.watch.ends.extend(ends);
        job.session = Some(session_id);
        job.recalls = true;
        job.watch.follow = Follow::UntilReady;
        job.state = State::Watching;
        self.begin(job, command);
    }

    /// Checks a request and queues it.
    fn admit(&mut self, endpoint: &'static Endpoint, params: &str, follow: Follow, options: CallOptions) -> CommandId {
        match (options.refusal(), build(endpoint, params)) {
            (Some((field, rule)), _) => self.reject(Error::invalid(endpoint.name, field, rule), options.intent),
            (None, Err(refusal)) => self.refuse_params(endpoint.name, &refusal, options),
            (None, Ok(built)) => self.admit_built(endpoint, built, follow, options),
        }
    }

    /// Queues a request whose parameters are sound.
    fn admit_built(&mut self, endpoint: &'static Endpoint, built: Built, follow: Follow, options: CallOptions) -> CommandId {
        // The body is read again only where its type matters.
        let requested = || options.auto_rotate.then(|| requested_type(&built)).flatten();
        let rotates = || check_rotation(endpoint, follow, requested().as_deref(), &options);
        if let Err(error) = self.check_use(endpoint, &options).and_then(|()| rotates()) {
            return self.reject(error, options.intent);
        }
        let fingerprint = Self::fingerprint(endpoint, &built, follow);
        let known = options.intent.as_ref().and_then(|name| self.join_intent(name, endpoint, &fingerprint, &options));
        if let Some(command) = known {
            return command;
        }
        let session = self.check_session(endpoint, built.session_id.as_deref());
        if let Err(error) = session.and_then(|()| self.check_key(endpoint, &built, &options)) {
            return self.reject(error, options.intent);
        }
        let id = self.job_id();
        let mut job = Job::new(id, endpoint, Some(built), &options, options.policy(&self.retry));
        if let Err(error) = self.check_cost(&job) {
            return self.reject(error, job.intent);
        }
        job.watch.follow = follow;
        job.fingerprint = fingerprint;
        if endpoint.safety == Safety::Keyed {
            let given = options.idempotency_key.is_some();
            let key = options.idempotency_key.unwrap_or_else(|| self.entropy.key());
            job.ledger = Ledger::new(Some(key), given);
            job.ledger.unanswered &= self.rules.holds(Rule::GivenIsUnanswered);
        }
        let command = self.command(endpoint);
        self.join(&mut job, command);
        if let (Some(session), true) = (&job.session, endpoint.changes_session()) {
            let tracked = self.sessions.entry(session.clone()).or_default();
            tracked.changing.insert(id);
            if endpoint.name == RotateSession::ENDPOINT.name {
                tracked.observed.asked(self.clock.monotonic());
            }
        }
        if let Some(name) = &job.intent {
            self.intents.insert(name.clone(), Intent::Active(id));
        }
        self.jobs.insert(id, job);
        self.set_timer(id, NOW);
        command
    }

    /// Options that have no meaning for this operation, and a key that is missing.
    pub(super) fn check_use(&self, endpoint: &Endpoint, options: &CallOptions) -> Result<(), Error> {
        let refuse = |field, rule| Err(Error::invalid(endpoint.name, field, rule));
        if endpoint.api != self.api {
            let what = format!("belongs to the {} API, and this client speaks the {} API", endpoint.api.as_str(), self.api.as_str());
            return Err(Error::new(Kind::Misuse, Effect::None, endpoint.name, what, Advice::Nothing));
        }
        if options.intent.is_some() && endpoint.safety == Safety::Safe {
            return refuse("intent", "names a write, and this operation only reads");
        }
        if self.backend_ready == Some(false) && endpoint.name == "create_session" {
            let what = "was not sent, because the account's backend is not ready, and without it no session can be created";
            return Err(Error::new(Kind::Refused, Effect::None, endpoint.name, what, Advice::RetryLater));
        }
        if options.until.is_some() && endpoint.safety != Safety::Safe {
            return refuse("until", "belongs to an operation that only reads");
        }
        if options.idempotency_key.is_some() && endpoint.safety != Safety::Keyed {
            return refuse("idempotency_key", "is not taken by this operation");
        }
        Ok(())
    }

    /// One change of a session at a time, and only one that its state allows.
    fn check_session(&self, endpoint: &'static Endpoint, session_id: Option<&str>) -> Result<(), Error> {
        let Some((id, tracked)) = session_id.and_then(|id| self.sessions.get(id).map(|tracked| (id, tracked))) else { return Ok(()) };
        if !endpoint.changes_session() {
            return Ok(());
        }
        if let Some(other) = tracked.changing.first().and_then(|job| self.jobs.get(job)) {
            let doubt = other.state == State::Held;
            let what = format!("the session's {} is {}", other.endpoint.name, if doubt { "in doubt" } else { "under way" });
            let advice = if doubt { Advice::Resume } else { Advice::WaitForOther };
            let record = other.record.as_ref().filter(|_| doubt).map(|record| record.0.clone());
            return Err(Error::from(Report {
                session_id: Some(id.to_owned()),
                record,
                ..Error::new(Kind::Busy, Effect::None, endpoint.name, what, advice).into_report()
            }));
        }
        match forbidden(endpoint.name, tracked) {
            Some(rule) => Err(Error::from(Report {
                session_id: Some(id.to_owned()),
                advice: Advice::ReadSession,
                ..Error::invalid(endpoint.name, "session_id", &rule).into_report()
            })),
            None => Ok(()),
        }
    }

    /// A key that the caller gives belongs to one request for as long as that is under way or in doubt.
    fn check_key(&self, endpoint: &Endpoint, built: &Built, options: &CallOptions) -> Result<(), Error> {
        let Some(key) = options.idempotency_key.as_ref().filter(|_| self.rules.holds(Rule::GivenKeyHasOneRequest)) else { return Ok(()) };
        let same = |known: &Built| known.target == built.target && known.body == built.body;
        let other = |job: &Job| job.endpoint.method != endpoint.method || !job.built.as_ref().is_some_and(same);
        match self.jobs.values().any(|job| job.ledger.key.as_ref() == Some(key) && other(job)) {
            true => Err(Error::invalid(endpoint.name, "idempotency_key", "belongs to another request that is under way or in doubt")),
            false => Ok(()),
        }
    }

    /// What tells the request of an intent from another one.
    fn fingerprint(endpoint: &Endpoint, built: &Built, follow: Follow) -> String {
        let opens = if follow == Follow::UntilReady { "open" } else { "call" };
        // Without the account, whose key may change; and without a secret, which a digest of a short text would give away.
        let clues = || serde_json::to_string(&built.clues).ok().filter(|_| !built.clues.is_empty());
        let plain = if built.secret { clues() } else { built.body.clone() };
        let name = if endpoint.name == ANY { endpoint.method.as_str() } else { endpoint.name };
        digest("request", &[name, opens, &built.target, plain.as_deref().unwrap_or_default()])
    }

    /// A command that ended before it began.
    pub(super) fn reject(&mut self, error: Error, intent: Option<String>) -> CommandId {
        let command = self.command_id();
        let error = Error::from(Report { intent: intent.clone(), ..error.into_report() });
        self.commands.insert(command, Command { job: None, operation: error.operation, result: None, left: Left::default() });
        self.complete(command, Err(error));
        command
    }

    pub(super) fn command(&mut self, endpoint: &'static Endpoint) -> CommandId {
        self.command_for(endpoint.name)
    }

    pub(super) fn command_for(&mut self, operation: &'static str) -> CommandId {
        let command = self.command_id();
        self.commands.insert(command, Command { job: None, operation, result: None, left: Left::default() });
        command
    }

    fn join(&mut self, job: &mut Job, command: CommandId) {
        job.waiting.push(command);
        if let Some(entry) = self.commands.get_mut(&command) {
            entry.job = Some(job.id);
        }
    }

    /// Moves a held job on: a restored key first needs its age.
    pub(super) fn revive(&mut self, id: JobId) {
        let now = self.clock.monotonic();
        let (knows_server, rules) = (self.clock.knows_server(), self.rules);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.tally = Default::default();
        job.last = None;
        job.cause = None;
        job.renewed = false;
        job.cancelled = false;
        (job.watch.since, job.watch.interval) = (None, FIRST_INTERVAL);
        if !job.can_resume(rules) {
            let what = "may have been done, and nothing more can be sent to find out";
            let error = Error::from(Report {
                record: job.record.as_ref().map(|record| record.0.clone()),
                ..job.error(Kind::InDoubt, Effect::Unknown, what, look_advice(job.endpoint).unwrap_or(Advice::CheckAccount)).into_report()
            });
            for command in std::mem::take(&mut job.waiting) {
                self.complete(command, Err(error.clone()));
            }
            return;
        }
        let restored = matches!(job.age, super::job::Age::Saved { .. });
        if restored && job.endpoint.safety == Safety::Keyed {
            job.go(On::Ask);
            return if knows_server { self.take_age(id) } else { self.set_timer(id, now) };
        }
        job.go(On::Again);
        self.set_timer(id, now);
    }
}

/// Only a session that is opened or waited for can rotate by itself, and none that is known not to be dynamic.
pub(super) fn check_rotation(endpoint: &Endpoint, follow: Follow, session_type: Option<&str>, options: &CallOptions) -> Result<(), Error> {
    let rule = match session_type {
        _ if !options.auto_rotate => return Ok(()),
        _ if follow != Follow::UntilReady => "belongs to a session that is opened or waited for".to_owned(),
        Some(kind) if kind != "dynamic" => format!("is for a dynamic session, and this one is {kind}"),
        _ => return Ok(()),
    };
    Err(Error::invalid(endpoint.name, "auto_rotate", &rule))
}
