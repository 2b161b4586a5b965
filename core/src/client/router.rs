//! All that a client knows, and the only place that sees all of it: what is due and what is still to be done goes from here to whoever
//! does it.

use std::collections::VecDeque;

use crate::client::account::Owner;
use crate::client::deferred::{Deferred, DeferredCalls};
use crate::client::end::commands::{Commands, PendingWrite};
use crate::client::jobs::entries::Jobs;
use crate::client::jobs::spending::Spending;
use crate::client::names::name_requests::NameRequests;
use crate::client::news::PoolEvent;
use crate::client::outbox::{Outbox, Pending};
use crate::client::requests::{Listing, SettingInDoubt, StoredRecord, Timer};
use crate::client::timers::Timers;
use crate::client::types::Step;
use crate::collections::{IdMap, Map};
use crate::contract::Secret;
use crate::engine::{Gate, Service, Shared, Tokens};
use crate::entropy::Entropy;
use crate::options::ClientOptions;
use crate::policy::{Codes, Error, Quota, Rule, Rules};
use crate::state::{CommandId, Journal, Name, Sessions, SharedRequest, Space, StepId, User};
use crate::time::{Clock, Now};
use crate::wire::BaseUrl;

/// The response headers that the client reads. A host passes these and no others.
pub const RESPONSE_HEADERS: [&str; 3] = ["content-type", "date", "retry-after"];

/// All that a client knows and has under way.
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(super) struct Router {
    pub(super) service: Service,
    pub(super) shared: Shared,
    pub(super) account: Owner,
    pub(super) spending: Spending,
    pub(super) jobs: Jobs,
    pub(super) commands: Commands,
    pub(super) sessions: Sessions,
    /// The names that it owns or is about to.
    pub(super) journal: Journal,
    pub(super) name_requests: NameRequests,
    /// The content of the slots that pools have claimed and not used yet.
    pub(super) slots: Map<Name, StoredRecord>,
    /// Settings without a name of their caller's that are in doubt.
    pub(super) settings_in_doubt: VecDeque<SettingInDoubt>,
    /// The lists that are read.
    pub(super) listings: IdMap<u32, Listing>,
    pub(super) shared_requests: SharedRequests,
    pub(super) timers: Timers,
    pub(super) outbox: Outbox,
    pub(super) deferred: DeferredCalls,
    /// The events for pools.
    pub(super) news: VecDeque<PoolEvent>,
}

/// The requests of the client's own.
#[derive(Debug)]
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(super) struct SharedRequests {
    pub(super) login: SharedRequest,
    /// The service's time.
    pub(super) time: SharedRequest,
}

impl Router {
    /// A client.
    pub(super) fn new(options: ClientOptions, entropy: [u8; 16]) -> Result<Router, Error> {
        let refuse = |field: &str, rule: &str| Error::invalid("client", field, rule);
        let base = BaseUrl::new(&options.base_url, options.allow_http)
            .map_err(|error| refuse("base_url", "is refused").with(|new| new.what = error.to_string()))?;
        if let Some((field, rule)) = options.refusal() {
            return Err(refuse(field, rule));
        }
        let has_login = options.username.is_some() || options.password.is_some() || options.token.is_some();
        let backend_refuses = options.backend_refuses.unwrap_or(options.api_key.is_none() && !has_login);
        let rng = Entropy::new(entropy);
        let owner = options.api_key.as_ref().or(options.username.as_ref());
        let named = options.account.is_some();
        let name = options.account.or_else(|| owner.map(|owner| owner.reveal().to_owned())).unwrap_or_default();
        #[cfg(feature = "ablation")]
        let rules = Rules { without: options.without };
        #[cfg(not(feature = "ablation"))]
        let rules = Rules::default();
        let space = Space::of(options.api, if named { &name } else { "" });
        let at = (options.api, base.as_str());
        Ok(Router {
            spending: Spending::new(space.clone(), options.daily_cap_usd),
            account: Owner::new(Secret::new(name), rng.salt(), space, at, options.same_account, options.backend_ready),
            service: Service {
                api: options.api,
                base,
                key: options.api_key,
                codes: Codes {
                    token: options.token_codes.unwrap_or_else(|| vec!["401".to_owned()]),
                    doubt: options.doubt_codes.unwrap_or_default(),
                    refusal: options.refusal_codes.unwrap_or_default(),
                },
                backend_refuses,
                retry: options.retry,
                max_body: options.max_body,
            },
            shared: Shared {
                clock: Clock::of(rng.client()),
                rules,
                gate: Gate::default(),
                quota: Quota::new(),
                tokens: Tokens::new(options.username.zip(options.password), options.token),
                rng,
            },
            jobs: Jobs::new(if rules.holds(Rule::FewAreOut) { options.max_in_flight } else { u32::MAX }),
            commands: Commands::default(),
            sessions: Sessions::default(),
            journal: Journal::new(options.late_calls),
            name_requests: NameRequests::default(),
            slots: Map::default(),
            settings_in_doubt: VecDeque::new(),
            listings: IdMap::default(),
            shared_requests: SharedRequests { login: SharedRequest::new(options.retry), time: SharedRequest::new(options.retry) },
            timers: Timers::default(),
            outbox: Outbox::new(options.store),
            deferred: DeferredCalls::default(),
            news: VecDeque::new(),
        })
    }

    /// Returns the next step, after the work that is due.
    pub(super) fn poll(&mut self, now: Now) -> Step {
        debug_assert!(self.deferred.is_empty(), "each entry carries out what it leads to");
        self.tick(now);
        while self.outbox.is_empty() && self.take_due(now) {
            self.carry_out_all();
        }
        let mut step = self.outbox.pop().unwrap_or(Step::Wait { until: self.timers.next() });
        if let Step::Store { id, command, .. } = &mut step {
            *command = command.or_else(|| self.command_of(*id));
        }
        step
    }

    /// Takes an answer of the client's own memory, wakes a due timer, or gives a place to a send. Returns true if there was any.
    fn take_due(&mut self, now: Now) -> bool {
        if let Some((id, answer)) = self.outbox.own_answer() {
            self.on_store(id, answer);
            return true;
        }
        // A due job is in the queue before the next place is given.
        let Some((at, timer)) = self.timers.pop_due(now.monotonic) else { return self.give_place() };
        match timer {
            Timer::Job(id) => self.advance(id, at),
            Timer::Name(name) => self.wake_name(&name),
            Timer::Spend(number) => self.spend(|spending, actions| spending.push(number, actions)),
            Timer::Reclaim(asked) => {
                let (name, session, failures) = *asked;
                self.reclaim(&name, session, failures);
            }
        }
        true
    }

    /// Carries out deferred calls in the order in which they were pushed. Those that one of them pushes come before the rest, as if each were
    /// a call.
    pub(super) fn carry_out_all(&mut self) {
        self.deferred.reverse_from(0);
        while let Some(call) = self.deferred.pop() {
            let from = self.deferred.len();
            self.carry_out_deferred(call);
            self.deferred.reverse_from(from);
        }
    }

    fn carry_out_deferred(&mut self, call: Deferred) {
        match call {
            Deferred::Tell(id, input) => self.tell(id, input),
            Deferred::Act(id, action) => self.carry_out(id, action),
            Deferred::Stored(id, written) => self.stored(id, written),
            Deferred::Attend(name) => self.attend(&name),
            Deferred::LetIn(name, found) => self.let_in(name, found),
            Deferred::WasLetIn(name, found) => self.was_let_in(name, found),
            Deferred::Next(name) => self.push_next(&name),
            Deferred::AfterRetry(command, after) => self.begin_after_retry(command, after),
            Deferred::BuyNext(command, start) => self.buy_next(command, *start),
            Deferred::PartEnded(number, command) => self.part_ended(number, command),
            Deferred::ResumeMore(number) => self.resume_more(number),
            Deferred::Abandon(command) => self.abandon(command),
            Deferred::Cancel(command) => _ = self.cancel(command),
            Deferred::Fail(command, error) => self.complete(command, Err(*error)),
            Deferred::Count(id, entry, usd) => self.count_again(id, entry, usd),
            Deferred::Answered(after) => self.answered(&after, None),
        }
    }

    /// The command that waits for what the store is asked.
    pub(super) fn command_of(&self, step: StepId) -> Option<CommandId> {
        match self.outbox.purpose(step)? {
            Pending::Write(name) => {
                let user = match self.journal.user(name) {
                    Some(User::Job(id) | User::Marker(id)) => self.jobs.command(*id),
                    _ => None,
                };
                user.or_else(|| self.commands.waiting_for(&PendingWrite::Name(name.clone())))
            }
            Pending::Spend(number) => self.spending.command(*number),
            _ => None,
        }
    }
}
