//! The client's own state, the commands in it, and the timers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use arcstr::ArcStr;

use super::job::Entry;
use super::options::ClientOptions;
use super::types::{Outputs, Step, Ticket};
use super::waiting::{Finishing, Left, Listing, Spend, Timer, Visit};
use crate::contract::{Decimal, Secret};
use crate::engine::{Answered, Gate, Service, Tokens};
use crate::entropy::Entropy;
use crate::policy::{Error, Quota, Report, Rules};
use crate::state::{Account, CommandId, Errand, IdAllocator, JobId, Journal, Memory, Name, Space, StepId, StoreAnswer, Tracked, User};
use crate::time::{Clock, Millis, Now};
use crate::wire::BaseUrl;

/// The response headers that the client reads. A host passes these and no others.
pub const RESPONSE_HEADERS: [&str; 3] = ["content-type", "date", "retry-after"];
/// The longest body that is read, unless the caller says otherwise.
const MAX_BODY: u32 = 8 << 20;
/// There is room for so many steps all the time.
const STEPS: usize = 16;

/// The client of one account. The proof branches it; nobody else copies one, since each step is to be answered once.
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub struct Client {
    pub(super) service: Service,
    pub(super) tokens: Tokens,
    pub(super) account_name: Secret,
    pub(super) account: Account,
    /// Whether the caller says that records of another key or base URL are this account's.
    pub(super) same_account: bool,
    /// Where its names are.
    pub(super) space: Space,
    pub(super) rules: Rules,
    pub(super) entropy: Entropy,
    pub(super) clock: Clock,
    pub(super) quota: Quota,
    /// The caller's cap on what is bought in a day, and the last day that a store has said.
    pub(super) cap: Option<Decimal>,
    pub(super) day: i64,
    /// Whether the account can buy, as far as is known.
    pub(super) backend_ready: Option<bool>,
    pub(super) gate: Gate,
    /// Boxed, as a map's nodes have room for more than they hold.
    pub(super) jobs: BTreeMap<JobId, Box<Entry>>,
    pub(super) commands: BTreeMap<CommandId, Command>,
    pub(super) sessions: BTreeMap<ArcStr, Box<Tracked>>,
    /// The names that it owns or is about to, and who waits for them.
    pub(super) journal: Journal,
    pub(super) visits: BTreeMap<Name, VecDeque<Visit>>,
    pub(super) finishing: Finishing,
    pub(super) spends: BTreeMap<u32, Spend>,
    pub(super) listings: BTreeMap<u32, Listing>,
    /// The names of a client without a store, and what is answered of them.
    pub(super) memory: Option<Memory>,
    pub(super) answers: VecDeque<(StepId, StoreAnswer)>,
    pub(super) pending: BTreeMap<StepId, Pending>,
    pub(super) login: Errand,
    pub(super) asking: Errand,
    pub(super) timers: BTreeSet<(Millis, Timer)>,
    /// The one timer of a name.
    pub(super) name_timers: BTreeMap<Name, Millis>,
    /// How often a timer was set, for the tests that count work.
    #[cfg(test)]
    pub(super) timers_set: usize,
    pub(super) steps: VecDeque<Step>,
    pub(super) next_job: IdAllocator,
    pub(super) next_command: IdAllocator,
    pub(super) next_step: IdAllocator,
    pub(super) next_spend: IdAllocator,
    pub(super) next_listing: IdAllocator,
}

/// Says how much there is, and nothing of what it is.
impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("base_url", &self.service.base.as_str())
            .field("commands", &self.commands.len())
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}

/// A command, until its result is taken.
#[derive(Debug, Clone, Hash)]
pub(super) struct Command {
    pub(super) job: Option<JobId>,
    /// The name that it waits for, before there is a job.
    pub(super) waits_for: Option<Name>,
    /// The list whose records are resumed together, of which it is one.
    pub(super) part_of: Option<u32>,
    /// The session that it ended with.
    pub(super) session: Option<ArcStr>,
    pub(super) operation: &'static str,
    pub(super) ended: Option<Box<Ended>>,
}

/// What a command ended with.
#[derive(Debug, Clone, Hash)]
pub(super) struct Ended {
    pub(super) result: Result<Answered, Error>,
    pub(super) left: Left,
}

/// Which answer is awaited.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Pending {
    Claim(Name),
    Write(Name),
    List(u32),
    /// Before a send, which may be charged so much.
    Count(JobId, Decimal),
    Spend(u32),
    Send(JobId),
    Ask,
    Login,
}

impl Pending {
    pub(super) fn spend(&self) -> Option<u32> {
        if let Pending::Spend(number) = self { Some(*number) } else { None }
    }
}

impl Client {
    /// A client. `entropy` is 16 bytes from the host's own generator, new ones for each client: keys are made from them.
    pub fn new(options: ClientOptions, entropy: [u8; 16]) -> Result<Client, Error> {
        let refuse = |field: &str, rule: &str| Error::invalid("client", field, rule);
        let base = BaseUrl::new(&options.base_url, options.allow_http)
            .map_err(|error| Error::from(Report { what: error.to_string(), ..refuse("base_url", "is refused").into_report() }))?;
        let visible = |key: &Secret| !key.reveal().is_empty() && key.reveal().bytes().all(|byte| byte.is_ascii_graphic());
        for (field, secret) in [("api_key", &options.api_key), ("token", &options.token)] {
            if secret.as_ref().is_some_and(|secret| !visible(secret)) {
                return Err(refuse(field, "must be visible ASCII characters"));
            }
        }
        if let Some((field, rule)) = options.misplaced() {
            return Err(refuse(field, rule));
        }
        if let Some((field, rule)) = options.retry.refusal() {
            return Err(refuse(field, rule));
        }
        if options.daily_cap_usd.is_some_and(|cap| cap < Decimal::from(0)) {
            return Err(refuse("daily_cap_usd", "must not be negative"));
        }
        let entropy = Entropy::new(entropy);
        let owner = options.api_key.as_ref().or(options.username.as_ref());
        let named = options.account.is_some();
        let name = options.account.or_else(|| owner.map(|owner| owner.reveal().to_owned())).unwrap_or_default();
        let (name, salt) = (Secret::new(name), entropy.salt());
        Ok(Client {
            space: Space::of(options.api, if named { name.reveal() } else { "" }),
            same_account: options.same_account,
            account: Account { digest: crate::entropy::digest(&salt, &[name.reveal()]), salt },
            account_name: name,
            service: Service {
                api: options.api,
                base,
                key: options.api_key,
                token_codes: options.token_codes.unwrap_or_else(|| vec!["401".to_owned()]),
                retry: options.retry,
                max_body: if options.max_body == 0 { MAX_BODY } else { options.max_body },
            },
            tokens: Tokens::new(options.username.zip(options.password), options.token),
            #[cfg(feature = "ablation")]
            rules: Rules { without: options.without },
            #[cfg(not(feature = "ablation"))]
            rules: Rules::default(),
            clock: Clock::of(entropy.client()),
            entropy,
            quota: Quota::new(),
            cap: options.daily_cap_usd,
            day: 0,
            backend_ready: options.backend_ready,
            gate: Gate::default(),
            jobs: BTreeMap::new(),
            commands: BTreeMap::new(),
            sessions: BTreeMap::new(),
            journal: Journal::default(),
            visits: BTreeMap::new(),
            finishing: Finishing::default(),
            spends: BTreeMap::new(),
            listings: BTreeMap::new(),
            memory: (!options.store).then(Memory::default),
            answers: VecDeque::new(),
            pending: BTreeMap::new(),
            login: Errand::new(options.retry),
            asking: Errand::new(options.retry),
            timers: BTreeSet::new(),
            name_timers: BTreeMap::new(),
            #[cfg(test)]
            timers_set: 0,
            steps: VecDeque::new(),
            next_job: IdAllocator::default(),
            next_command: IdAllocator::default(),
            next_step: IdAllocator::default(),
            next_spend: IdAllocator::default(),
            next_listing: IdAllocator::default(),
        })
    }

    /// What to do next. Drain it until [`Step::Wait`].
    pub fn poll(&mut self, now: Now) -> Step {
        self.clock.tick(now);
        while self.steps.is_empty() {
            if let Some((id, answer)) = self.answers.pop_front() {
                self.on_store(id, answer);
                continue;
            }
            let due = self.timers.first().filter(|(at, _)| *at <= now.monotonic).cloned();
            let Some((at, timer)) = due else { break };
            self.timers.pop_first();
            match timer {
                Timer::Job(id) => self.advance(id, at),
                Timer::Name(name) => self.wake_name(&name),
                Timer::Spend(number) => self.push_spend(number),
                Timer::TakeBack(asked) => {
                    let (name, session, failures) = *asked;
                    self.ask_back(&name, session, failures);
                }
            }
        }
        if self.steps.is_empty() {
            // After a burst its room is given back.
            self.steps.shrink_to(STEPS);
        }
        let mut step = self.steps.pop_front().unwrap_or(Step::Wait { until: self.timers.first().map(|(at, _)| *at) });
        if let Step::Store { id, command, .. } = &mut step {
            *command = command.or_else(|| self.command_of(*id));
        }
        step
    }

    /// The typed result of a command that completed, once.
    pub fn take<O: Outputs>(&mut self, ticket: Ticket<O>) -> Option<Result<O::Output, Error>> {
        let operation = self.commands.get(&ticket.command)?.operation;
        let result = self.take_answer(ticket.command)?;
        Some(result.and_then(|answered| {
            O::read(answered).map_err(|misfit| {
                let (answered, error) = *misfit;
                super::types::misfit(operation, answered, &format!("line {} column {}", error.line(), error.column()))
            })
        }))
    }

    /// The untyped result of a command that completed, once.
    pub fn take_answer(&mut self, command: CommandId) -> Option<Result<Answered, Error>> {
        self.commands.get(&command)?.ended.as_ref()?;
        let taken = self.commands.remove(&command)?;
        taken.session.iter().for_each(|session| self.give_session(session, command, true));
        let ended = *taken.ended?;
        ended.left.names().for_each(|name| self.delete(name, true));
        Some(ended.result)
    }

    /// Whether a command is known and has not completed.
    pub fn is_pending(&self, command: CommandId) -> bool {
        self.commands.get(&command).is_some_and(|command| command.ended.is_none())
    }

    pub(super) fn step_id(&mut self) -> StepId {
        let id = self.next_step.next(|id| self.pending.contains_key(&StepId(id)));
        StepId(id)
    }

    pub(super) fn command_id(&mut self) -> CommandId {
        let id = self.next_command.next(|id| self.commands.contains_key(&CommandId(id)));
        CommandId(id)
    }

    pub(super) fn job_id(&mut self) -> JobId {
        self.next_job.next(|id| self.jobs.contains_key(&id))
    }

    /// Gives a command its result.
    pub(super) fn complete(&mut self, command: CommandId, result: Result<Answered, Error>) {
        self.complete_with(command, result, Left::default());
    }

    /// The same where records go once it was taken.
    pub(super) fn complete_with(&mut self, command: CommandId, result: Result<Answered, Error>, left: Left) {
        if let Some(entry) = self.commands.get_mut(&command) {
            left.names().for_each(|name| self.journal.give(name, Some(User::Result)));
            entry.ended = Some(Box::new(Ended { result, left }));
            match entry.part_of {
                Some(number) => self.part_ended(number, command),
                None => self.steps.push_back(Step::Completed { command }),
            }
        }
    }
}
