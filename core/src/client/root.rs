//! The client's own state, the commands in it, and the timers.

use std::collections::VecDeque;

use arcstr::ArcStr;

use super::account::Owner;
use super::job::Entry;
use super::news::{News, NewsOf, PoolNo};
use super::options::ClientOptions;
use super::outbox::Outbox;
use super::places::{MAX_IN_FLIGHT, Places};
use super::timers::Timers;
use super::types::{Outputs, Step, Taken, Ticket};
use super::waiting::{Left, Spending, Timer, Waiting};
use crate::collections::{IdMap, Map};
use crate::contract::{Decimal, Secret};
use crate::engine::{Answered, Gate, Means, Service, Tokens};
use crate::entropy::Entropy;
use crate::policy::{Codes, Error, ErrorFields, Quota, Rule, Rules};
use crate::state::{Account, CommandId, Errand, JobId, Journal, Name, Space, Tracked, User};
use crate::time::{Clock, Now};
use crate::wire::BaseUrl;

/// The response headers that the client reads. A host passes these and no others.
pub const RESPONSE_HEADERS: [&str; 3] = ["content-type", "date", "retry-after"];
/// The longest body that is read, unless the caller says otherwise.
const MAX_BODY: u32 = 8 << 20;

/// The client of one account. The proof branches it; nobody else copies one, since each step is to be answered once.
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub struct Client {
    pub(super) service: Service,
    pub(super) means: Means,
    pub(super) account: Owner,
    pub(super) spending: Spending,
    // Boxed, as a map's nodes have room for more than they hold.
    pub(super) jobs: IdMap<JobId, Box<Entry>>,
    pub(super) commands: IdMap<CommandId, Box<Command>>,
    pub(super) sessions: Map<ArcStr, Box<Tracked>>,
    /// The names that it owns or is about to.
    pub(super) journal: Journal,
    pub(super) waiting: Waiting,
    pub(super) errands: Errands,
    pub(super) timers: Timers,
    pub(super) places: Places,
    pub(super) outbox: Outbox,
    /// What pools are to hear.
    pub(crate) news: VecDeque<News>,
}

/// The requests of the client's own.
#[derive(Debug)]
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(super) struct Errands {
    pub(super) login: Errand,
    /// The service's time.
    pub(super) time: Errand,
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
    pub(super) asker: Asker,
    /// The session that it ended with.
    pub(super) session: Option<ArcStr>,
    pub(super) operation: &'static str,
    pub(super) ended: Option<Box<Ended>>,
}

/// Who is told what a command ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Asker {
    Caller,
    /// The list whose records are resumed together, of which it is one.
    List(u32),
    Pool(PoolNo),
}

/// What a command ended with.
#[derive(Debug, Clone, Hash)]
pub(super) struct Ended {
    pub(super) result: Result<Answered, Error>,
    pub(super) left: Left,
}

impl Client {
    /// A client. `entropy` is 16 bytes from the host's own generator, new ones for each client: keys are made from them.
    pub fn new(options: ClientOptions, entropy: [u8; 16]) -> Result<Client, Error> {
        let refuse = |field: &str, rule: &str| Error::invalid("client", field, rule);
        let base = BaseUrl::new(&options.base_url, options.allow_http)
            .map_err(|error| Error::from(ErrorFields { what: error.to_string(), ..refuse("base_url", "is refused").into_fields() }))?;
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
        if options.max_in_flight == Some(0) {
            return Err(refuse("max_in_flight", "must be at least 1"));
        }
        let has_login = options.username.is_some() || options.password.is_some() || options.token.is_some();
        let backend_refuses = options.backend_refuses.unwrap_or(options.api_key.is_none() && !has_login);
        let dice = Entropy::new(entropy);
        let owner = options.api_key.as_ref().or(options.username.as_ref());
        let named = options.account.is_some();
        let name = options.account.or_else(|| owner.map(|owner| owner.reveal().to_owned())).unwrap_or_default();
        let (name, salt) = (Secret::new(name), dice.salt());
        #[cfg(feature = "ablation")]
        let rules = Rules { without: options.without };
        #[cfg(not(feature = "ablation"))]
        let rules = Rules::default();
        Ok(Client {
            account: Owner {
                space: Space::of(options.api, if named { name.reveal() } else { "" }),
                same: options.same_account,
                digest: Account { digest: crate::entropy::digest(&salt, &[name.reveal()]), salt },
                name,
                backend_ready: options.backend_ready,
            },
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
                max_body: if options.max_body == 0 { MAX_BODY } else { options.max_body },
            },
            means: Means {
                clock: Clock::of(dice.client()),
                rules,
                gate: Gate::default(),
                quota: Quota::new(),
                tokens: Tokens::new(options.username.zip(options.password), options.token),
                dice,
            },
            spending: Spending { cap: options.daily_cap_usd, ..Spending::default() },
            jobs: IdMap::default(),
            commands: IdMap::default(),
            sessions: Map::default(),
            journal: Journal::new(options.late_calls),
            waiting: Waiting::default(),
            errands: Errands { login: Errand::new(options.retry), time: Errand::new(options.retry) },
            timers: Timers::default(),
            places: Places::new(if rules.holds(Rule::FewAreOut) { options.max_in_flight.unwrap_or(MAX_IN_FLIGHT) } else { u32::MAX }),
            outbox: Outbox::new(options.store),
            news: VecDeque::new(),
        })
    }

    /// What to do next. Drain it until [`Step::Wait`].
    pub fn poll(&mut self, now: Now) -> Step {
        self.means.clock.tick(now);
        while self.outbox.steps.is_empty() {
            if let Some((id, answer)) = self.outbox.own_answer() {
                self.on_store(id, answer);
                continue;
            }
            // Whoever is due is in the queue before the next one is given a place.
            let Some((at, timer)) = self.timers.pop_due(now.monotonic) else { if self.give_place() { continue } else { break } };
            match timer {
                Timer::Job(id) => self.advance(id, at),
                Timer::Name(name) => self.wake_name(&name),
                Timer::Spend(number) => self.push_spend(number),
                Timer::Reclaim(asked) => {
                    let (name, session, failures) = *asked;
                    self.reclaim(&name, session, failures);
                }
            }
        }
        let mut step = self.outbox.pop().unwrap_or(Step::Wait { until: self.timers.next() });
        if let Step::Store { id, command, .. } = &mut step {
            *command = command.or_else(|| self.command_of(*id));
        }
        step
    }

    /// The typed result of a command that completed, once.
    pub fn take<O: Outputs>(&mut self, ticket: Ticket<O>) -> Option<Result<O::Output, Error>> {
        let result = self.take_to_read(ticket.command)?;
        Some(result.and_then(|taken| {
            let operation = taken.operation;
            let ((), answered) = taken.read(&mut ())?;
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
        ended.left.names().for_each(|name| self.delete_result(name));
        Some(ended.result)
    }

    /// The record of a result goes, unless something else is under its name by now.
    pub(super) fn delete_result(&mut self, name: &Name) {
        if self.journal.user(name) == Some(&User::Result) {
            self.delete(name, true);
        }
    }

    /// The same, to be read as what it is.
    pub fn take_to_read(&mut self, command: CommandId) -> Option<Result<Taken, Error>> {
        let operation = self.commands.get(&command)?.operation;
        Some(self.take_answer(command)?.map(|answered| Taken { operation, answered }))
    }

    /// The same, and the result stays until it is taken or abandoned.
    pub fn result_to_read(&self, command: CommandId) -> Option<Result<Taken, Error>> {
        let operation = self.commands.get(&command)?.operation;
        Some(self.result(command)?.clone().map(|answered| Taken { operation, answered }))
    }

    /// What a command is a call of.
    pub(crate) fn command_operation(&self, command: CommandId) -> Option<&'static str> {
        self.commands.get(&command).map(|command| command.operation)
    }

    /// Whether a command is known and has not completed.
    pub fn is_pending(&self, command: CommandId) -> bool {
        self.commands.get(&command).is_some_and(|command| command.ended.is_none())
    }

    /// Gives a command its result.
    pub(crate) fn complete(&mut self, command: CommandId, result: Result<Answered, Error>) {
        self.complete_with(command, result, Left::default());
    }

    /// The same where records go once it was taken.
    pub(super) fn complete_with(&mut self, command: CommandId, result: Result<Answered, Error>, left: Left) {
        if self.begin_after_retry(command) {
            return;
        }
        let unix = self.means.clock.unix();
        let result = result.map_err(|error| error.said_at(unix));
        if let Some(entry) = self.commands.get_mut(&command) {
            for name in left.names() {
                if self.journal.user(name).is_none() {
                    self.journal.give(name, Some(User::Result));
                }
            }
            entry.ended = Some(Box::new(Ended { result, left }));
            match entry.asker {
                Asker::Caller => self.outbox.steps.push_back(Step::Completed { command }),
                Asker::List(number) => self.part_ended(number, command),
                Asker::Pool(pool) => self.news.push_back(News { pool, what: NewsOf::Ended(command) }),
            }
        }
    }
}
