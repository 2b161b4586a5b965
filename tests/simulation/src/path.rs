//! One path: a story told to a client, with whatever the choices do to it.

use hopline::client::{CallOptions, Client, CommandId, Holds, Step};
use hopline::contract::Method;
use hopline::policy::Rule;

use crate::choices::Choices;
use crate::invariants::{Told, check};
use crate::world::{Fate, World};

const HOUR: i64 = 3_600_000;
/// No path needs more steps than this; one that does never ends.
const MAX_STEPS: u32 = 2000;

/// What is done on each path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// `open_session` under an intent.
    Open,
    /// A plain `create_session`, without an intent.
    Create,
    /// A plain `create_session` with a key that another process may have used before.
    CreateWithGivenKey,
    /// `rotate_session` under an intent.
    Rotate,
    /// `renew_session` under an intent.
    Renew,
    /// `create_recharge` under an intent.
    Recharge,
    /// `update_budget` under an intent.
    Budget,
}

impl Story {
    /// Every story.
    pub const ALL: [Story; 7] =
        [Story::Open, Story::Create, Story::CreateWithGivenKey, Story::Rotate, Story::Renew, Story::Recharge, Story::Budget];

    /// Whether it buys a session.
    pub(crate) fn buys(self) -> bool {
        matches!(self, Story::Open | Story::Create | Story::CreateWithGivenKey)
    }

    /// Whether it costs nothing, so that it may be tried again with a new key.
    fn is_free(self) -> bool {
        matches!(self, Story::Rotate | Story::Budget)
    }

    /// Whether it goes by a name of the caller's own.
    fn has_intent(self) -> bool {
        !matches!(self, Story::Create | Story::CreateWithGivenKey)
    }
}

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

struct Path<'a> {
    scope: Scope,
    choices: &'a mut Choices,
    world: World,
    client: Client,
    told: Told,
    fates: u8,
    /// One crash, one slow or failed store a path.
    trouble: bool,
    session: String,
    tells: bool,
    log: Vec<String>,
}

enum Stop {
    Crashed,
    Ended,
}

impl<'a> Path<'a> {
    fn new(scope: Scope, choices: &'a mut Choices, tells: bool) -> Self {
        let mut world = World::new();
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
        match self.scope.story {
            Story::Rotate | Story::Renew => {
                let wanted = if self.scope.story == Story::Rotate { BUY } else { RENT };
                let command = self.client.start_json("open_session", wanted, CallOptions::default());
                self.honest(command);
                self.session =
                    self.world.service.sessions(self.world.now.unix).first().map(|session| session.session_id.clone()).unwrap_or_default();
            }
            Story::CreateWithGivenKey => {
                // Another process sent it, and died before the answer.
                let mut other = self.world.client(None);
                let command = other.start_json("create_session", BUY, given());
                std::mem::swap(&mut self.client, &mut other);
                self.honest(command);
                self.world.store.clear();
            }
            _ => {}
        }
        self.told = Told { before: effects(self.scope.story, &self.world), ..Told::default() };
        self.client = self.world.client(self.scope.without);
        self.fates = self.scope.fates;
        self.trouble = true;
        self.log.clear();
    }

    fn start(&mut self) -> CommandId {
        match self.scope.story {
            Story::Open => self.client.start_json("open_session", BUY, CallOptions::intent("job-1")),
            Story::Create => self.client.start_json("create_session", BUY, CallOptions::default()),
            Story::CreateWithGivenKey => self.client.start_json("create_session", BUY, given()),
            Story::Rotate => {
                let params = format!("{{\"session_id\":\"{}\"}}", self.session);
                self.client.start_json("rotate_session", &params, CallOptions::intent("turn-1"))
            }
            Story::Renew => {
                let params = format!("{{\"session_id\":\"{}\",\"duration\":1}}", self.session);
                self.client.start_json("renew_session", &params, CallOptions::intent("longer-1"))
            }
            Story::Recharge => self.client.start_json("create_recharge", r#"{"amount_usd":10}"#, CallOptions::intent("pay-1")),
            Story::Budget => self.client.start_json("update_budget", r#"{"daily_limit_usd":50}"#, CallOptions::intent("limit-1")),
        }
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
        self.told.ended |= matches!(stop, Stop::Ended);
        if matches!(stop, Stop::Crashed) {
            self.restart();
            // A job that is run again starts its intent again; a daemon resumes what the store holds.
            let again = self.scope.story.has_intent() && self.choices.choose(2) == 1;
            if again { self.drive_again()? } else { self.resume_all()? }
        }
        // Whatever is still in doubt is resumed in a new process and an honest world, as often as it says it may.
        (self.fates, self.trouble) = (0, false);
        for _ in 0..3 {
            self.world.pass(1000);
            self.world.arrive();
            self.restart();
            self.resume_all()?;
        }
        check(self.scope, &self.told, &self.world, &self.client)
    }

    fn drive_again(&mut self) -> Result<(), String> {
        self.told.none = false;
        let command = self.start();
        match self.drain(Some(command))? {
            Stop::Crashed => Err("there is one crash a path".into()),
            Stop::Ended => Ok(()),
        }
    }

    fn resume_all(&mut self) -> Result<(), String> {
        let held = self.client.saved().into_iter().filter(|saved| matches!(saved.holds, Holds::InDoubt | Holds::Session));
        let records: Vec<_> = held.map(|saved| saved.record).collect();
        for record in records {
            let command = self.client.resume(&record);
            self.drain(Some(command))?;
        }
        Ok(())
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
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
    fn drain(&mut self, command: Option<CommandId>) -> Result<Stop, String> {
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
                    if matches!(choice, 4 | 5) {
                        self.world.pass(25 * HOUR);
                    }
                    if matches!(choice, 2..=4) {
                        return Ok(Stop::Crashed);
                    }
                    let failed =
                        hopline::client::Outcome::Failed { kind: hopline::client::FailureKind::Store, sent: hopline::client::Sent::Never };
                    let outcome = if choice == 1 { failed } else { hopline::client::Outcome::Saved };
                    self.client.resolve(id, outcome, self.world.now).map_err(|misuse| misuse.to_string())?;
                }
                Step::Send { id, request, .. } => {
                    let fates = if self.scope.story.is_free() { Fate::REPEATABLE } else { Fate::ALL };
                    let fate = match request.method {
                        Method::Get | Method::Delete => Fate::Answered,
                        _ if self.fates == 0 => Fate::Answered,
                        _ => {
                            self.fates -= 1;
                            fates[usize::from(self.choices.choose(fates.len() as u8))]
                        }
                    };
                    self.tell(|| {
                        format!("{} {} with {:?}: {fate:?}", request.method.as_str(), request.url, request.header("idempotency-key"))
                    });
                    let crash =
                        if self.trouble && matches!(request.method, Method::Post | Method::Put) { self.choices.choose(3) } else { 0 };
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
                Step::Notify(_) => {}
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
}

const BUY: &str = r#"{"session_type":"dynamic","product_no":"dynamic-world","quantity":1}"#;

const RENT: &str = r#"{"session_type":"static","product_no":"static-us","quantity":1}"#;

/// How often the service did what the story asks for.
pub(crate) fn effects(story: Story, world: &World) -> usize {
    match story {
        Story::Rotate => world.service.sessions(world.now.unix).iter().map(|session| session.rotations as usize).sum(),
        Story::Recharge => world.service.orders().len(),
        Story::Budget => world.service.executions().get("update_budget").map_or(0, |done| *done as usize),
        Story::Open | Story::Create | Story::CreateWithGivenKey | Story::Renew => world.service.charges().len(),
    }
}

fn given() -> CallOptions {
    CallOptions { idempotency_key: Some("mine-1".into()), ..CallOptions::default() }
}
