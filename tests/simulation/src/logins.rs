//! Several calls on one login: every order of the answers, and every fate of the login, of a read and of a write.

use std::collections::{BTreeMap, BTreeSet};

use hopline::Effect;
use hopline::client::{CallOptions, Client, CommandId, Millis, Outcome, RecordId, Step, StepId};
use hopline::contract::{Api, Method};
use hopline::policy::Rule;
use hopline::wire::Request;

use crate::choices::Choices;
use crate::fate::Fate;
use crate::path::Walked;
use crate::story::{Story, adjustments};
use crate::world::{Heard, World};

/// How long a token is good, and how long before its end it is renewed.
const LIFETIME: Millis = 2 * 3_600_000;
const EARLY: Millis = 60_000;
/// No path needs more steps than this; one that does never ends.
const MAX_STEPS: u32 = 500;

/// Walks every path of a read and a write at once and a read after them, with the fates of so many sends chosen, up to the
/// first violation.
pub fn logins(fates: u8, without: Option<Rule>) -> Walked {
    let mut choices = Choices::default();
    let mut walked = Walked::default();
    loop {
        let found = Logins::new(fates, without, &mut choices, false).run();
        walked.paths += 1;
        if let Err(violation) = found {
            // Once more, to tell it.
            choices.again();
            let mut path = Logins::new(fates, without, &mut choices, true);
            let _ = path.run();
            walked.violation = Some(format!("{violation}\n  {}", path.log.join("\n  ")));
            return walked;
        }
        if !choices.advance() {
            return walked;
        }
    }
}

enum Out {
    Send(StepId, CommandId, Request),
    Save(StepId, RecordId, Option<Vec<u8>>),
}

struct Logins<'a> {
    choices: &'a mut Choices,
    world: World,
    client: Client,
    fates: u8,
    out: Vec<Out>,
    open: BTreeSet<CommandId>,
    /// The newest token that the client knows and that nobody refused, and when it ends.
    good: Option<(String, Millis)>,
    /// The service has refused the username and the password.
    refused: bool,
    /// How often the token of each call was refused.
    renewals: BTreeMap<CommandId, u32>,
    /// What the write was told.
    told: Option<Option<Effect>>,
    write: Option<CommandId>,
    tells: bool,
    log: Vec<String>,
}

impl<'a> Logins<'a> {
    fn new(fates: u8, without: Option<Rule>, choices: &'a mut Choices, tells: bool) -> Self {
        let mut world = World::new(Api::Reseller);
        if choices.choose(2) == 0 {
            world.token = None;
        }
        let good = world.token.clone().map(|token| (token, Millis::MAX));
        let client = world.client(without);
        Logins {
            choices,
            world,
            client,
            fates,
            out: Vec::new(),
            open: BTreeSet::new(),
            good,
            refused: false,
            renewals: BTreeMap::new(),
            told: None,
            write: None,
            tells,
            log: Vec::new(),
        }
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if self.tells {
            self.log.push(line());
        }
    }

    fn run(&mut self) -> Result<(), String> {
        self.read();
        let write = Story::AdjustUnnamed.start(&mut self.client, "");
        self.write = Some(write);
        self.open.insert(write);
        self.end_all()?;
        // Later, when the token may have ended by its own word.
        if self.choices.choose(2) == 1 {
            self.tell(|| "three hours later".into());
            self.world.pass(LIFETIME + 3_600_000);
        }
        self.read();
        self.end_all()?;
        self.world.arrive();
        match (adjustments(&mut self.world), self.told) {
            (2.., _) => Err("the write was done twice".into()),
            (1, Some(Some(Effect::None))) => Err("it was said that nothing happened, and it did".into()),
            (0, Some(None)) => Err("it was said that it was done, and it was not".into()),
            _ => Ok(()),
        }
    }

    fn read(&mut self) {
        self.open.insert(self.client.start_json("get_current_balance", "{}", CallOptions::default()));
    }

    fn end_all(&mut self) -> Result<(), String> {
        for _ in 0..MAX_STEPS {
            match self.client.poll(self.world.now) {
                Step::Save { id, record, data } => self.out.push(Out::Save(id, record, data)),
                Step::Send { id, command, request } => {
                    self.check_send(&request)?;
                    self.out.push(Out::Send(id, command, request));
                }
                Step::Completed { command } => {
                    let result = self.client.take_answer(command).ok_or("a completed command must have a result")?;
                    self.tell(|| match &result {
                        Ok(_) => "ok".into(),
                        Err(error) => format!("error: {:?} {:?}: {error}", error.kind, error.effect),
                    });
                    self.open.remove(&command);
                    if self.write == Some(command) {
                        self.told = Some(result.err().map(|error| error.effect));
                    }
                }
                Step::Notify(_) => {}
                Step::Wait { .. } if !self.out.is_empty() => self.answer_one()?,
                Step::Wait { .. } if self.open.is_empty() => return Ok(()),
                Step::Wait { until: Some(until) } => self.world.pass((until - self.world.now.monotonic).max(1)),
                Step::Wait { until: None } => return Err("the client waits for nothing, and a call has not ended".into()),
            }
        }
        Err("the path does not end".into())
    }

    fn check_send(&self, request: &Request) -> Result<(), String> {
        let harm = match () {
            () if !is_login(request) => {
                let bare = request.header("authorization").is_none();
                return if bare { Err(format!("{} was sent without a token", request.url)) } else { Ok(()) };
            }
            () if self.out.iter().any(|out| matches!(out, Out::Send(_, _, other) if is_login(other))) => "two logins were under way",
            () if self.refused => "a login was sent again after it was refused",
            () if self.good.as_ref().is_some_and(|(_, ends)| self.world.now.unix < ends - EARLY) => "a good token was thrown away",
            () => return Ok(()),
        };
        Err(harm.into())
    }

    fn answer_one(&mut self) -> Result<(), String> {
        let chosen = match self.out.len() {
            1 => 0,
            several => self.choices.choose(several as u8),
        };
        let now = self.world.now;
        match self.out.remove(usize::from(chosen)) {
            Out::Save(id, record, data) => {
                self.tell(|| "kept".into());
                match data {
                    Some(data) => _ = self.world.store.insert(record, data),
                    None => _ = self.world.store.remove(&record),
                }
                self.client.resolve(id, Outcome::Saved, now).map_err(|misuse| misuse.to_string())
            }
            Out::Send(id, command, request) => {
                let fate = self.fate(&request);
                self.tell(|| format!("{} {}: {fate:?}", request.method.as_str(), request.url));
                self.world.pass(50);
                let heard = self.world.send(&request, fate);
                self.note(command, &request, &heard)?;
                let (client, now) = (&mut self.client, self.world.now);
                let mut told = Ok(());
                heard.tell(|outcome| told = client.resolve(id, outcome, now));
                told.map_err(|misuse| misuse.to_string())
            }
        }
    }

    fn fate(&mut self, request: &Request) -> Fate {
        if self.fates == 0 {
            return Fate::Answered;
        }
        self.fates -= 1;
        let fates = match request.method {
            Method::Get => Fate::READ,
            _ if is_login(request) => Fate::LOGIN,
            _ => Fate::WRITE,
        };
        fates[usize::from(self.choices.choose(fates.len() as u8))]
    }

    /// Notes what an answer says of the token that it was asked with, or of the login.
    fn note(&mut self, command: CommandId, request: &Request, heard: &Heard) -> Result<(), String> {
        let Heard::Response(status, _, body) = heard else { return Ok(()) };
        let data = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
        if is_login(request) {
            self.refused |= *status == 401;
            if let Some(token) = data["data"]["token"].as_str() {
                self.good = Some((token.to_owned(), self.world.now.unix + LIFETIME));
            }
        } else if *status == 401 {
            let used = request.header("authorization").and_then(|given| given.strip_prefix("Bearer "));
            self.good.take_if(|(token, _)| Some(token.as_str()) == used);
            let refused = self.renewals.entry(command).or_default();
            *refused += 1;
            if *refused > 2 {
                return Err("a call renewed its token twice".into());
            }
        }
        Ok(())
    }
}

fn is_login(request: &Request) -> bool {
    request.url.ends_with("/auth/login")
}
