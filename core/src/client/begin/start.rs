//! How a command begins: checked, and let in by its name, where its caller gave it one. Then it begins anew, goes on with what is found
//! under the name, or ends. Nothing is sent here.

use std::sync::Arc;

use arcstr::ArcStr;

use crate::client::begin::check::check_rotation;
use crate::client::begin::next_purchase::{before_missing, is_nothing_again};
use crate::client::begin::same_request::{digests, fingerprint, other_than_record};
use crate::client::begin::terms::terms_of;
use crate::client::jobs::job::{Entry, headers};
use crate::client::news::SlotState;
use crate::client::requests::{NameRequest, RequestKind, Start, StoredRecord};
use crate::client::router::Router;
use crate::client::sessions::pool_slots::slot_of;
use crate::client::sessions::session::ended;
use crate::contract::agent::{CreateSession, GetSession, RotateSession};
use crate::contract::pools::SlotPurchase;
use crate::contract::reseller::{CreateStaticOrder, ListStaticOrders};
use crate::contract::{ANY, Endpoint, Operation, ReconcileRecord, Safety, WaitOrder, WaitSession, endpoint};
use crate::engine::{Exchange, Job, RecordId, Subject, Then, Write, requested_protocol, requested_type};
use crate::json::{pick, text_of};
use crate::options::CallOptions;
use crate::policy::{Advice, CHOSEN_PROTOCOL, Effect, Error, HttpClient, KEY_WINDOW, Kind, Ledger, Rule, protocol_of};
use crate::state::{BadRecord, CommandId, Data, Fingerprint, LaterPurchase, Name, RequestIdentity, SavedCall, User};
use crate::time::Millis;
use crate::wire::{Built, Facts, Refusal, build, build_any, params_of, unknown_word};

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
        let chosen = options.product.as_ref().filter(|_| endpoint.name == CreateSession::ENDPOINT.name);
        let params = match chosen.map_or(Ok(None), |product| product.lay_over(params).map(Some)) {
            Ok(laid) => laid.unwrap_or_else(|| params.to_owned()),
            Err(rule) => return self.reject(Error::invalid(endpoint.name, "product", rule), options.intent),
        };
        match (options.refusal(), build(endpoint, &params)) {
            (Some((field, rule)), _) => self.reject(Error::invalid(endpoint.name, field, rule), options.intent),
            (None, Err(refusal)) => self.refuse_params(endpoint.name, &refusal.naming_product(&params), options),
            (None, Ok(built)) => self.start_built(endpoint, built, then, options),
        }
    }

    /// Queues a request whose parameters are sound.
    pub(crate) fn start_built(&mut self, endpoint: &'static Endpoint, mut built: Built, then: Then, mut options: CallOptions) -> CommandId {
        // The smaller one of two limits holds.
        let limits = [options.max_unit_price, options.product.as_ref().and_then(|product| product.max_unit_price)];
        options.max_unit_price = limits.into_iter().flatten().min();
        // The body is read again only where its type matters.
        let requested = || options.auto_rotate.then(|| requested_type(&built)).flatten();
        let rotates = || check_rotation(endpoint.name, then, requested().as_deref(), &options);
        let terms = || terms_of(endpoint, &built, &options);
        let priced = || terms().refusal(endpoint).filter(|_| self.spending.has_cap()).map_or(Ok(()), Err);
        let ends = || self.check_if_ended(endpoint, then, &options);
        if let Err(error) = self.check_use(endpoint, &options).and_then(|()| rotates()).and_then(|()| ends()).and_then(|()| priced()) {
            return self.reject(error, options.intent);
        }
        let with_protocol = match protocol_for(endpoint, &built, then, &options) {
            Ok(body) => body,
            Err(error) => return self.reject(error, options.intent),
        };
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
        built.body = with_protocol.or(built.body);
        let command = self.command(endpoint);
        self.commands.need_ready(command, options.allow_pending);
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
        let mut entry = self.new_entry(endpoint, built, then, &options, bought_as);
        let session = entry.subject.session_id.clone().filter(|_| endpoint.changes_session());
        entry.record.name.clone_from(&name);
        let id = self.begin(entry, command);
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
        let terms = terms_of(endpoint, &built, options);
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

impl Router {
    /// A write begins, or what is under its name goes on.
    pub(crate) fn admit_start(&mut self, name: &Name, command: CommandId, start: Start, found: &StoredRecord) {
        let before = if let StoredRecord::Readable(data) = found { before_missing(&start, data) } else { None };
        // Its record says so before it is read.
        let put_first = before.as_ref().filter(|_| matches!(found, StoredRecord::Readable(data) if data.session.is_none()));
        let put_first = put_first.and_then(|before| before.session.as_ref()).map(|session| session.id.clone());
        let before = before.map(|before| StoredRecord::Readable(Box::new(before)));
        let found = before.as_ref().unwrap_or(found);
        let error = match found {
            StoredRecord::Empty => return self.begin_write(Some(name.clone()), command, start),
            StoredRecord::Readable(data) if let Some(error) = unusable_record(&start, data) => {
                error.with(|new| new.record = self.journal.record_of(name).map(|record| record.0))
            }
            StoredRecord::Readable(data) if data.refused().is_some() => return self.begin_refused(name, command, start, data),
            StoredRecord::Readable(data) if name.is_of_a_pool() => return self.admit_purchase(name, command, start, data),
            StoredRecord::Readable(data) if let Some(later) = self.next_purchase(&start, data) => {
                return self.begin_next(name, command, start, later);
            }
            StoredRecord::Readable(data) if is_nothing_again(data) => self.ended_again(name, data),
            StoredRecord::Readable(data) if data.fingerprint == start.bought_as.as_ref().map(|known| known.fingerprint) => {
                // A start looks once: what another one has bought meanwhile is the purchase that it gets.
                if start.options.buys_if_ended() && start.patience.is_none() && start.over.is_none() {
                    self.commands.may_buy_next(command, start.clone());
                }
                self.go_on(name, command, data, &start.options, start.options.intent.as_deref());
                return put_first.iter().for_each(|session| self.put_session(session));
            }
            StoredRecord::Readable(data) => other_than_record(&start, data, self.journal.record_of(name)),
            StoredRecord::Unreadable(bad, _) => {
                let field = if start.options.intent.is_some() { "intent" } else { "idempotency_key" };
                // The record may be of this very write.
                let record = self.journal.record_of(name).map(|record| record.0);
                let error = unreadable(start.endpoint.name, bad, Effect::Unknown, self.lacks_key());
                error.with(|new| {
                    new.field = Some(field.to_owned());
                    new.record = record;
                })
            }
        };
        self.finish_request(command, Err(error), start.options.intent.clone(), name);
    }

    /// A write begins where an app's own backend refused the last one: with its key and bytes, unless it is another request or the key is
    /// known to be too old. A key of unknown age is sent, since a new key would buy again for sure if the backend had passed the last one on.
    pub(crate) fn begin_refused(&mut self, name: &Name, command: CommandId, mut start: Start, data: &Data) {
        let is_same = data.fingerprint == start.bought_as.as_ref().map(|known| known.fingerprint);
        let young = |call: &&SavedCall| is_same && self.age_of(call).is_none_or(|age| age < KEY_WINDOW);
        let call = data.refused().filter(young).cloned();
        if name.is_of_a_pool() {
            start.take_number(data, call.is_some());
        }
        // A later purchase of its intent: with another key, only a start that may buy again begins it.
        if let Some(later) = &data.later {
            if call.is_none() && !start.options.buys_if_ended() {
                let facts =
                    Facts { session_id: Some(later.last_session_id.clone()), status: later.last_status.clone(), ..Facts::default() };
                let error = ended(&facts, start.options.intent.clone(), self.journal.record_of(name));
                return self.finish_request(command, Err(error), None, name);
            }
            start.bought_as.iter_mut().for_each(|known| known.later = Some(Box::new(later.clone())));
        }
        self.begin_write(Some(name.clone()), command, start);
        let job = self.commands.job(command);
        let (Some(call), Some(job)) = (call, job) else { return };
        let age = self.age_of(&call).unwrap_or_default();
        let clock = self.clock();
        self.jobs.begin_refused(job, call, age, &clock);
    }

    /// The age of its key by this client's clock, and by the service's if that is known. The service's time is not requested: the backend
    /// may refuse that, too.
    pub(crate) fn age_of(&self, call: &SavedCall) -> Option<Millis> {
        self.clock().about_since(call.age.at).map(|gap| call.age.ms.saturating_add(gap))
    }

    /// Begins the next purchase of an intent, under the name of the last one.
    pub(crate) fn begin_next(&mut self, name: &Name, command: CommandId, mut start: Start, later: LaterPurchase) {
        // A caller may have a handle of the last one still.
        self.give_up_session(&later.last_session_id, name);
        start.bought_as.iter_mut().for_each(|known| known.later = Some(Box::new(later.clone())));
        self.begin_write(Some(name.clone()), command, start);
    }

    /// A start has found the session of its intent to be over: it begins anew, with what is under the name by now.
    pub(crate) fn buy_next(&mut self, command: CommandId, start: Start) {
        self.commands.set_job(command, None);
        self.enter(command, start);
    }

    /// Goes on with what a slot holds, or buys the next one.
    pub(crate) fn admit_purchase(&mut self, name: &Name, command: CommandId, mut start: Start, data: &Data) {
        if !matches!(slot_of(data), SlotState::Free | SlotState::Over | SlotState::Expired) {
            return self.go_on(name, command, data, &start.options, data.intent.as_deref());
        }
        start.take_number(data, false);
        self.begin_write(Some(name.clone()), command, start);
    }
}

/// Why nothing is sent before it is known what a record says.
pub(crate) fn unreadable(operation: &'static str, bad: &BadRecord, effect: Effect, lacks_key: &str) -> Error {
    let (kind, effect, what, advice) = match bad {
        BadRecord::OtherApi(_) | BadRecord::OtherAccount => {
            let what = format!(
                "was not sent, because its record has another API key or base URL{lacks_key}; check both: set `same_account` if they have \
                 changed for the same account; for another one, name each account with `account` or use another store"
            );
            (Kind::Invalid, Effect::None, what, Advice::ChangeRequest)
        }
        bad => {
            (Kind::Store, effect, format!("was not sent, because {bad}; forget it once you have checked the account"), Advice::CheckAccount)
        }
    };
    Error::new(kind, effect, operation, what, advice)
}

/// The body with the protocol that is chosen for the HTTP client that the caller names, unless they name a protocol, too.
fn protocol_for(endpoint: &Endpoint, built: &Built, then: Then, options: &CallOptions) -> Result<Option<String>, Error> {
    let Some(client) = options.use_with.as_deref() else { return Ok(None) };
    let refuse = |field: &str, rule: &str| Err(Error::invalid(endpoint.name, field, rule));
    if endpoint.name != CreateSession::ENDPOINT.name || then != Then::Follow {
        return refuse("use_with", "belongs to `open_session`, which may buy");
    }
    let Some(client) = HttpClient::named(client) else { return refuse("use_with", &unknown_word(client, &HttpClient::names())) };
    let body = built.body.as_deref().unwrap_or("{}");
    match pick(body, ["protocol"]).and_then(|[protocol]| text_of(protocol?)) {
        Some(named) => match protocol_of(&named).map_or(Ok(""), |protocol| client.speaks(protocol)) {
            Ok(_) => Ok(None),
            Err(rule) => refuse("protocol", &rule),
        },
        None => Ok(body.strip_suffix('}').map(|rest| format!("{rest},\"protocol\":\"{CHOSEN_PROTOCOL}\"}}"))),
    }
}

/// The refusal of a start whose HTTP client can't use what its intent stands for, which has that protocol.
fn unusable(start: &Start, session: Option<&str>, protocol: Option<&str>) -> Option<Error> {
    let client = HttpClient::named(start.options.use_with.as_deref()?)?;
    let why = client.can_not_use(protocol)?;
    let rule = match session {
        Some(id) => {
            format!(
                "can't use its session `{id}`: that is {why}; it is not over: choose another HTTP client for it, or end it by `terminate_session`"
            )
        }
        None => format!("can't use what its intent stands for: that is {why}; choose another HTTP client, or buy under another intent"),
    };
    let error = Error::invalid(start.endpoint.name, "use_with", &rule);
    Some(error.with(|new| {
        new.intent.clone_from(&start.options.intent);
        new.session_id = session.map(str::to_owned);
    }))
}

/// The refusal of a start whose HTTP client can't use what a record says: a session that is not over, or a call that would be sent again.
fn unusable_record(start: &Start, data: &Data) -> Option<Error> {
    let is_same = data.fingerprint == start.bought_as.as_ref().map(|known| known.fingerprint);
    match (&data.session, &data.call) {
        (Some(session), _) if is_same && !session.is_over() && !session.unconfirmed => {
            unusable(start, Some(&session.id), session.protocol.as_deref())
        }
        (None, Some(call)) if is_same => unusable(start, None, requested_protocol(call.body.as_deref()).as_deref()),
        _ => None,
    }
}

impl Router {
    /// The refusal of a start whose HTTP client can't use what a job under its name buys, or has bought.
    pub(crate) fn unusable_job(&self, start: &Start, entry: &Entry) -> Option<Error> {
        let session = entry.subject.session_id.as_deref();
        match entry.job.write() {
            Some(write) => unusable(start, session, requested_protocol(write.call.exchange.built.body.as_deref()).as_deref()),
            None => unusable(start, session, self.sessions.protocol(session?).map(ArcStr::as_str)),
        }
    }
}
