//! One path: a story told to a client, with whatever the choices do to it.

use hopline::client::{CallOptions, Client, CommandId, FailureKind, Happening, Holds, Outcome, Sent, Step};
use hopline::contract::{Api, Method};
use hopline::policy::Rule;
use hopline::wire::Request;

use crate::choices::Choices;
use crate::fate::Fate;
use crate::invariants::{Told, check};
use crate::story::Story;
use crate::world::{World, is_login};

const HOUR: i64 = 3_600_000;
/// No path needs more steps than this; one that does never ends.
const MAX_STEPS: u32 = 2000;

/// How far to look.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// The story.
    pub story: Story,
    /// Sends whose fate is chosen; those after them are answered.
    pub fates: u8,
    /// The rule that is taken away.
    pub without: Option<Rule>,
}

/// What a walk found.
#[derive(Debug, Clone, Default)]
pub struct Walked {
    /// How many paths were walked.
    pub paths: u64,
    /// The first violation, with the story of its path.
    pub violation: Option<String>,
}

/// Walks every path within the scope, up to the first violation.
pub fn walk(scope: Scope) -> Walked {
    let mut choices = Choices::default();
    let mut walked = Walked::default();
    loop {
        let found = Path::new(scope, &mut choices, false).run();
        walked.paths += 1;
        if let Err(violation) = found {
            // Once more, to tell it.
            choices.again();
            let mut path = Path::new(scope, &mut choices, true);
            let _ = path.run();
            walked.violation = Some(format!("{violation}\n  {}", path.log.join("\n  ")));
            return walked;
        }
        if !choices.advance() {
            return walked;
        }
    }
}

pub(crate) struct Path<'a> {
    pub(crate) scope: Scope,
    choices: &'a mut Choices,
    pub(crate) world: World,
    pub(crate) client: Client,
    pub(crate) told: Told,
    fates: u8,
    /// One crash, one slow or failed store a path.
    trouble: bool,
    session: String,
    tells: bool,
    log: Vec<String>,
}

pub(crate) enum Stop {
    Crashed,
    Ended,
}

impl<'a> Path<'a> {
    fn new(scope: Scope, choices: &'a mut Choices, tells: bool) -> Self {
        let mut world = World::new(scope.story.api());
        let client = world.client(None);
        let mut path = Path {
            scope,
            choices,
            world,
            client,
            told: Told::default(),
            fates: 0,
            trouble: false,
            session: String::new(),
            tells,
            log: Vec::new(),
        };
        path.prepare();
        path
    }

    /// What came before the story, without faults.
    fn prepare(&mut self) {
        let story = self.scope.story;
        if let Some(wanted) = story.needs() {
            let command = self.client.start_json("open_session", wanted, CallOptions::default());
            self.honest(command);
            let sessions = self.world.service.sessions(self.world.now.unix);
            self.session = sessions.first().map(|session| session.session_id.clone()).unwrap_or_default();
        }
        if story == Story::CreateWithGivenKey {
            // Another process sent it, and died before the answer.
            self.client = self.world.client(None);
            let command = self.start();
            self.honest(command);
            self.world.store.clear();
        }
        self.told = Told { before: story.effects(&mut self.world), ..Told::default() };
        self.client = self.world.client(self.scope.without);
        self.fates = self.scope.fates;
        self.trouble = true;
        self.log.clear();
    }

    fn start(&mut self) -> CommandId {
        self.scope.story.start(&mut self.client, &self.session)
    }

    /// Runs without faults until a command has completed.
    fn honest(&mut self, command: CommandId) {
        (self.fates, self.trouble) = (0, false);
        if let Err(stuck) = self.drain(Some(command)) {
            panic!("an honest world must not stick: {stuck}");
        }
    }

    fn run(&mut self) -> Result<(), String> {
        let first = self.start();
        let stop = self.drain(Some(first))?;
        let (story, reseller) = (self.scope.story, self.scope.story.api() == Api::Reseller);
        match stop {
            Stop::Crashed => {
                self.restart();
                self.misuse_key()?;
                // A job that is run again starts its intent again; a daemon resumes what the store holds.
                let again = story.intent().is_some() && self.choices.choose(2) == 1;
                if again { self.drive_again()? } else { self.resume_all()? }
            }
            // The same in the same process, where more is known than in a record.
            Stop::Ended if reseller => {
                self.trouble = false;
                match self.choices.choose(if story.intent().is_some() { 3 } else { 2 }) {
                    0 => {}
                    1 => self.resume_all()?,
                    _ => self.drive_again()?,
                }
            }
            Stop::Ended => self.misuse_key()?,
        }
        // Whatever is still in doubt is resumed in a new process and an honest world, as often as it says it may.
        (self.fates, self.trouble) = (0, false);
        for _ in 0..if reseller { 1 } else { 3 } {
            self.world.pass(1000);
            self.world.arrive();
            self.restart();
            self.resume_all()?;
        }
        if reseller { self.close() } else { check(self.scope, &self.told, &mut self.world, &self.client) }
    }

    pub(crate) fn drive_again(&mut self) -> Result<(), String> {
        self.told.none = false;
        let command = self.start();
        match self.drain(Some(command))? {
            Stop::Crashed => Err("there is one crash a path".into()),
            Stop::Ended => Ok(()),
        }
    }

    /// While a purchase with a given key is in doubt, somebody gives that key to another one.
    fn misuse_key(&mut self) -> Result<(), String> {
        if self.scope.story != Story::CreateWithGivenKey || !self.client.saved().iter().any(|saved| saved.holds == Holds::InDoubt) {
            return Ok(());
        }
        let (told, fates, trouble) = (self.told.clone(), self.fates, self.trouble);
        (self.fates, self.trouble) = (0, false);
        let command = Story::misuse_key(&mut self.client);
        self.drain(Some(command))?;
        // It is no part of what was told of the purchase.
        (self.told, self.fates, self.trouble) = (told, fates, trouble);
        Ok(())
    }

    fn resume_all(&mut self) -> Result<(), String> {
        let held = self.client.saved().into_iter();
        let held = held.filter(|saved| matches!(saved.holds, Holds::InDoubt | Holds::Session | Holds::Order));
        let records: Vec<_> = held.map(|saved| saved.record).collect();
        for record in records {
            let command = self.client.resume(&record, CallOptions::default());
            self.drain(Some(command))?;
        }
        Ok(())
    }

    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        if self.tells {
            self.log.push(line());
        }
    }

    fn restart(&mut self) {
        self.client = self.world.client(self.scope.without);
        let records = self.world.store.len();
        self.tell(|| format!("restart with {records} records"));
    }

    /// Does what the client asks for until it waits for nothing, or crashes.
    pub(crate) fn drain(&mut self, command: Option<CommandId>) -> Result<Stop, String> {
        for _ in 0..MAX_STEPS {
            match self.client.poll(self.world.now) {
                Step::Save { id, record, data } => {
                    let say = if data.is_some() { "save" } else { "delete" };
                    // Kept; not kept; lost with the process; kept, and then the process is lost; kept after a long sleep.
                    let choice = if self.trouble { self.choices.choose(6) } else { 0 };
                    self.trouble &= choice == 0;
                    self.tell(|| {
                        format!(
                            "{say} {record}: {}",
                            ["kept", "failed", "crash before", "crash after", "crash after, 25 h", "kept after 25 h"][usize::from(choice)]
                        )
                    });
                    if matches!(choice, 0 | 3 | 4 | 5) {
                        match data {
                            Some(data) => self.world.store.insert(record, data),
                            None => self.world.store.remove(&record),
                        };
                    }
                    self.told.unkept |= choice == 1;
                    if matches!(choice, 4 | 5) {
                        self.world.pass(25 * HOUR);
                    }
                    if matches!(choice, 2..=4) {
                        return Ok(Stop::Crashed);
                    }
                    let failed = Outcome::Failed { kind: FailureKind::Store, sent: Sent::Never };
                    let outcome = if choice == 1 { failed } else { Outcome::Saved };
                    self.client.resolve(id, outcome, self.world.now).map_err(|misuse| misuse.to_string())?;
                }
                Step::Send { id, request, .. } => {
                    let fates = if self.fates == 0 { Fate::HONEST } else { self.fates_of(&request) };
                    let fate = match fates {
                        [only] => *only,
                        _ => {
                            self.fates -= 1;
                            fates[usize::from(self.choices.choose(fates.len() as u8))]
                        }
                    };
                    self.tell(|| {
                        format!("{} {} with {:?}: {fate:?}", request.method.as_str(), request.url, request.header("idempotency-key"))
                    });
                    if !self.world.is_the_keys_own(&request) {
                        return Err("a key was sent with two requests".into());
                    }
                    self.told.asks(request.method);
                    let crash = if self.trouble { self.choices.choose(self.crashes_at(request.method)) } else { 0 };
                    self.world.pass(50);
                    let heard = self.world.send(&request, fate);
                    if crash > 0 {
                        self.trouble = false;
                        self.tell(|| format!("crash after the send{}", if crash == 2 { ", 25 h" } else { "" }));
                        self.world.pass(if crash == 2 { 25 * HOUR } else { 0 });
                        return Ok(Stop::Crashed);
                    }
                    let (client, now) = (&mut self.client, self.world.now);
                    let mut told = Ok(());
                    heard.tell(|outcome| told = client.resolve(id, outcome, now));
                    told.map_err(|misuse| misuse.to_string())?;
                }
                Step::Completed { command: done } => {
                    if self.trouble && self.choices.choose(2) == 1 {
                        self.trouble = false;
                        self.tell(|| "crash before the result was taken".into());
                        return Ok(Stop::Crashed);
                    }
                    let result = self.client.take_answer(done).ok_or("a completed command must have a result")?;
                    self.tell(|| match &result {
                        Ok(answered) => format!("ok: {:?}", answered.facts.session_id),
                        Err(error) => format!("error: {:?} {:?}: {error}", error.kind, error.effect),
                    });
                    self.told.hear(&result);
                }
                Step::Notify(event) => {
                    if let Happening::Ordered { order_no } = event.what {
                        self.told.ordered = Some(order_no);
                    }
                }
                Step::Wait { until } => {
                    let done = command.is_none_or(|command| !self.client.is_pending(command));
                    match until {
                        _ if done => return Ok(Stop::Ended),
                        Some(until) => self.world.pass((until - self.world.now.monotonic).max(1)),
                        None => return Err("the client waits for nothing, and the command has not ended".into()),
                    }
                }
            }
        }
        Err("the path does not end".into())
    }

    /// What can come of a request while fates are chosen.
    fn fates_of(&self, request: &Request) -> &'static [Fate] {
        match (self.world.api, request.method) {
            (Api::Reseller, Method::Get) => Fate::READ,
            (Api::Reseller, _) if is_login(request) => Fate::LOGIN,
            (Api::Reseller, _) => Fate::WRITE,
            (Api::Agent, Method::Get | Method::Delete) => Fate::HONEST,
            (Api::Agent, _) if self.scope.story.is_free() => Fate::REPEATABLE,
            (Api::Agent, _) => Fate::ALL,
        }
    }

    /// None, a crash after a request was sent, and one with 25 hours after it, where a key may grow old.
    fn crashes_at(&self, method: Method) -> u8 {
        match (self.world.api, method) {
            (Api::Reseller, _) => 2,
            (Api::Agent, Method::Post | Method::Put) => 3,
            (Api::Agent, _) => 1,
        }
    }
}
