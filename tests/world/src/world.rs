//! The world: one service, one network, one store, the programs and people who use them, and everything that may happen next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};

use hopline::client::{Client, CommandId, Millis, Name, Now, RecordId, StepId, StoreCall};
use hopline::policy::Rule;
use hopline::wire::Request;

use crate::checker::{About, Checker, Clocks, Terms};
use crate::job::{Job, Manner, PASSWORD};
use crate::scope::Scope;
use crate::service::{API_KEY, Arrival, Effects, Remote, Response};
use crate::store::Store;
use crate::time::{HOUR, NIGHT};

/// A step that a client waits for.
#[derive(Clone, Hash)]
pub(crate) enum Out {
    Send { id: StepId, command: CommandId, request: Request, about: Option<About> },
    Store { id: StepId, command: Option<CommandId>, call: StoreCall },
}

/// A request that is under way without anybody waiting for it.
#[derive(Clone, Hash)]
pub(crate) struct Message {
    pub(crate) request: Request,
    pub(crate) about: Option<About>,
}

/// A program with a client.
#[derive(Clone, Hash)]
pub(crate) struct Process {
    pub(crate) client: Client,
    pub(crate) out: VecDeque<Out>,
    /// Commands that have not been taken, and what they are about.
    pub(crate) commands: BTreeMap<CommandId, Option<About>>,
    pub(crate) completed: VecDeque<CommandId>,
    /// Its number, by which the store knows it.
    pub(crate) number: u8,
    /// The names that the store has put something under for it, as far as it was told, and when.
    pub(crate) kept: BTreeMap<Name, Millis>,
    /// The commands that were admitted to each name.
    pub(crate) admitted: BTreeMap<Name, Admitted>,
    /// The claims that have ended before they were answered: they let nobody in.
    pub(crate) ended: BTreeSet<StepId>,
    /// The sessions that somebody in it was given.
    pub(crate) has: BTreeSet<String>,
    /// The sessions that somebody in it let go of: what was started before then gives them to nobody.
    pub(crate) released: BTreeMap<String, CommandId>,
    /// When its monotonic clock was 0, and how far its wall clock is off.
    pub(crate) began: Millis,
    pub(crate) skew: Millis,
    /// True if the wall clock was right all the time.
    pub(crate) is_right: bool,
    /// Its store was opened: it has answered something.
    pub(crate) has_store: bool,
    /// Where the network mixes up its answers, the last answer to each operation that names a session.
    pub(crate) answers: BTreeMap<&'static str, Response>,
    /// Its claims have ended and nobody has told its client, so that it can't vouch for them.
    pub(crate) untold: bool,
    /// When it has something to do by itself, by its own clock.
    pub(crate) wakes: Option<Millis>,
}

/// The commands that were admitted to a name.
#[derive(Clone, Copy, Hash)]
pub(crate) struct Admitted {
    /// The first command that was not.
    pub(crate) next: CommandId,
    /// True if the name was released since.
    pub(crate) was_left: bool,
}

impl Process {
    /// The command that comes next.
    pub(crate) fn next_command(&self) -> CommandId {
        CommandId(self.commands.last_key_value().map_or(0, |(last, _)| last.0 + 1))
    }

    /// True if a request waits to be sent.
    pub(crate) fn sends(&self) -> bool {
        self.out.iter().any(|out| matches!(out, Out::Send { .. }))
    }

    /// True if another party has to act first.
    pub(crate) fn is_busy(&self) -> bool {
        !self.completed.is_empty() || !self.out.is_empty()
    }

    /// True if the program waits for time to pass.
    pub(crate) fn waits(&self) -> bool {
        self.wakes.is_some() && self.is_pending()
    }

    /// True if one of its commands has not ended.
    pub(crate) fn is_pending(&self) -> bool {
        self.commands.keys().any(|command| self.client.is_pending(*command))
    }
}

/// How much may still happen.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct Budget {
    pub(crate) faults: u8,
    pub(crate) troubles: u8,
    pub(crate) acts: u8,
}

/// A world. Its [`Hash`] is its state: what is equal in it goes on equally.
#[derive(Clone)]
pub struct World {
    pub(crate) scope: &'static Scope,
    pub(crate) without: Option<Rule>,
    pub(crate) now: Millis,
    pub(crate) remote: Remote,
    pub(crate) store: Store,
    /// The jobs of names, from the first step of each on.
    pub(crate) named: BTreeMap<Name, usize>,
    /// The names whose records were cut short on their way into the store.
    pub(crate) damaged: BTreeSet<Name>,
    pub(crate) network: VecDeque<Message>,
    /// The calls that the store executes after its answer, each with its client.
    pub(crate) late_calls: VecDeque<(u8, StoreCall)>,
    /// Where the network mixes up its answers, the keys that were sent: only the answer to the first send is taken for none where it names another session.
    pub(crate) sent: BTreeSet<String>,
    /// Where the network mixes up its answers, the program that put each key first: of one that it finds in a record nobody knows whether it was sent before.
    pub(crate) made_by: BTreeMap<String, u8>,
    /// While the result of a command is dropped, the job that it was for: what is put then without a command is of that.
    pub(crate) abandoned: Option<usize>,
    /// The program whose turn it is: between two acts the first one. None while it does not run.
    pub(crate) process: Option<Process>,
    /// The others that share its store.
    pub(crate) others: Vec<Option<Process>>,
    /// Every job that was ever started; what a job's number means elsewhere.
    pub(crate) jobs: Vec<Job>,
    pub(crate) checker: Checker,
    pub(crate) budget: Budget,
    pub(crate) clients: u8,
    /// The charge of each key that a program was told of; no later step depends on it, so it is no part of a state.
    pub(crate) charged: BTreeMap<(u8, String), Option<String>>,
    /// The secrets, which must never be shown.
    pub(crate) secrets: BTreeSet<String>,
    /// The doubts that a person has checked and not settled yet: the record, its job, and true if the job was done.
    pub(crate) noted: Vec<(RecordId, About, bool)>,
    /// The result of a call that is not a job: the text that was shown.
    pub(crate) shown: Option<Result<String, hopline::Error>>,
    pub(crate) steps: u64,
    /// The digest of all steps so far, if it is compared.
    pub(crate) transcript: Option<Transcript>,
    /// The story, if somebody wants to read it.
    pub(crate) story: Option<Vec<String>>,
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (
            self.now,
            &self.remote,
            &self.store,
            &self.named,
            &self.damaged,
            (&self.network, &self.late_calls, &self.sent, &self.made_by),
            (&self.process, &self.others),
            &self.jobs,
            &self.checker,
            &self.noted,
            self.budget,
            self.clients,
        )
            .hash(state);
    }
}

/// Every step of a client in one number (FNV-1a): two of them differ where a step does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transcript(u64);

impl Default for Transcript {
    fn default() -> Self {
        Transcript(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Transcript {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

/// A violation that was found.
pub(crate) type Wrong = String;

impl World {
    /// A world before anything was started.
    pub(crate) fn new(scope: &'static Scope, without: Option<Rule>, tells: bool) -> Result<World, Wrong> {
        let mut world = World {
            scope,
            without: None,
            now: Remote::START,
            remote: Remote::new(scope.api),
            store: Store::default(),
            named: BTreeMap::new(),
            damaged: BTreeSet::new(),
            network: VecDeque::new(),
            late_calls: VecDeque::new(),
            sent: BTreeSet::new(),
            made_by: BTreeMap::new(),
            abandoned: None,
            process: None,
            others: Vec::new(),
            jobs: Vec::new(),
            checker: Checker::new(Terms { cap: scope.cap, retry_paid: scope.retry_paid, relayed: scope.relayed }),
            budget: Budget { faults: 0, troubles: 0, acts: 0 },
            clients: 0,
            charged: BTreeMap::new(),
            secrets: BTreeSet::from([API_KEY.to_owned(), PASSWORD.to_owned()]),
            noted: Vec::new(),
            shown: None,
            steps: 0,
            transcript: None,
            story: None,
        };
        if scope.api == hopline::contract::Api::Reseller {
            world.secrets.insert(world.remote.login().1);
            world.secrets.extend(world.remote.token.clone());
        }
        if !scope.has_token {
            world.remote.token = None;
        }
        world.remote.relayed = scope.relayed;
        world.restart(0)?;
        for job in scope.before {
            world.start(*job, Manner::Usual)?;
            world.settle_all()?;
        }
        if scope.forgets {
            world.store.clear();
        }
        // The jobs before the scope are not explored, and the rules held for them.
        world.without = without;
        world.store.is_open = without == Some(Rule::OnlyOwnersPut);
        world.budget = Budget { faults: scope.faults, troubles: scope.troubles, acts: scope.acts };
        world.story = tells.then(Vec::new);
        world.restart(0)?;
        world.others.resize_with(usize::from(scope.others), || None);
        for at in 1..=world.others.len() {
            world.turn(at, |world| world.restart(0))?;
        }
        world.each(|world| scope.jobs.iter().try_for_each(|job| world.start(*job, scope.manner)))?;
        Ok(world)
    }

    /// Lets a program have its turn; 0 is the first.
    pub(crate) fn turn<T>(&mut self, at: usize, run: impl FnOnce(&mut World) -> T) -> T {
        self.change(at);
        let result = run(self);
        self.change(at);
        result
    }

    fn change(&mut self, at: usize) {
        if let Some(other) = at.checked_sub(1).and_then(|at| self.others.get_mut(at)) {
            std::mem::swap(&mut self.process, other);
            self.checker.change(at);
        }
    }

    /// Runs a closure for every program, one after the other.
    pub(crate) fn each(&mut self, mut run: impl FnMut(&mut World) -> Result<(), Wrong>) -> Result<(), Wrong> {
        (0..=self.others.len()).try_for_each(|at| self.turn(at, &mut run))
    }

    /// The programs that run.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Process> {
        self.process.iter().chain(self.others.iter().flatten())
    }

    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(line());
        }
    }

    /// The clocks of the program that runs.
    pub(crate) fn clock(&self) -> Now {
        let none = Now { unix: self.now, monotonic: 0 };
        self.process.as_ref().map_or(none, |process| self.clock_of(process))
    }

    /// The clocks of a program.
    pub(crate) fn clock_of(&self, process: &Process) -> Now {
        Now { unix: self.now + process.skew, monotonic: self.now - process.began }
    }

    /// The same, and whether the wall clock was right all the time.
    pub(crate) fn clocks(&self) -> Clocks {
        let Now { unix, monotonic } = self.clock();
        Clocks { unix, monotonic, is_right: self.process.as_ref().is_some_and(|process| process.is_right) }
    }

    /// Lets time pass. A message is under way for an hour at most.
    pub(crate) fn pass(&mut self, ms: Millis) -> Result<(), Wrong> {
        if ms > HOUR {
            self.arrive_all()?;
        }
        if ms >= NIGHT {
            self.checker.sleeps(&self.jobs);
        }
        self.now += ms;
        let mut effects = Effects::new();
        self.remote.settle(self.now, &mut effects);
        self.note(effects, None)
    }

    pub(crate) fn arrive_all(&mut self) -> Result<(), Wrong> {
        while !self.late_calls.is_empty() {
            self.comes_true();
        }
        while let Some(message) = self.network.pop_front() {
            self.arrive(message)?;
        }
        Ok(())
    }

    pub(crate) fn arrive(&mut self, message: Message) -> Result<(), Wrong> {
        let request = http::Request::try_from(&message.request).map_err(|error| error.to_string())?;
        let mut effects = Effects::new();
        let job = message.about.map(|about| about.job);
        self.remote.execute(Arrival { request: &request, job, now: self.now }, &mut effects);
        self.note(effects, message.about)
    }

    pub(crate) fn note(&mut self, effects: Effects, about: Option<About>) -> Result<(), Wrong> {
        for (job, effect) in effects {
            let (key, id) = (effect.key.clone(), effect.id.clone());
            self.tell(|| format!("    the service did it: {:?} under {key:?}", id.unwrap_or_default()));
            let about = about.filter(|about| about.job == job).or_else(|| self.checker.of_key(job, effect.key.as_deref()));
            if let Some(about) = about {
                self.checker.did(about, effect)?;
            }
        }
        Ok(())
    }
}
