//! Runs one case: each step of its script says what is done to the client, or what the client must do next.

use hopline::Error;
use hopline::client::{Answered, CallOptions, CommandId, Name, RecordId, Step, StepId, StoreCall, host_text};
use serde_json::{Map, Value, json};

use super::format::{Case, Verb};
use super::matching::{equals, matches};
use super::steps::{Ask, Bounds, Either, ListKind, Observe, Put, Shift, Spend, Start, Success, Take, Word};
use super::world::{World, answers_itself, heard, no_secret, show, told};

/// Reads the steps of a case.
fn read(case: &Case) -> Result<Vec<(&'static str, Verb)>, String> {
    let steps = case.script.iter().enumerate();
    steps.map(|(n, step)| Verb::read(step).map_err(|error| format!("step {}: {error}", n + 1))).collect()
}

/// Runs a case. The error says at which step it failed, what was expected and what came.
pub(super) fn run(case: &Case) -> Result<(), String> {
    let steps = read(case)?;
    let mut world = match (World::new(case)?, &case.refused) {
        (Err(error), Some(expected)) if steps.is_empty() => {
            heard(&error)?;
            return matches(expected, &error, "refused");
        }
        (Err(error), _) => return Err(format!("the client was refused: {error}")),
        (Ok(_), Some(_)) => return Err("expected the client to be refused, and it was not".to_owned()),
        (Ok(_), None) if steps.is_empty() => return Err("the script is empty".to_owned()),
        (Ok(world), None) => world,
    };
    for (n, (verb, step)) in steps.into_iter().enumerate() {
        world.step(step).map_err(|error| format!("step {} ({verb}): {error}", n + 1))?;
    }
    world.drained().map_err(|error| format!("at the end: {error}"))?;
    match world.out.len() {
        0 => Ok(()),
        out => Err(format!("at the end: {out} steps were never answered")),
    }
}

impl World {
    fn step(&mut self, step: Verb) -> Result<(), String> {
        match step {
            Verb::Start(start) => self.start(start),
            Verb::Put(put) => self.expect_put(put),
            Verb::Delete(delete) => match self.next()? {
                Step::Store { id, call: StoreCall::Delete { name }, .. } => {
                    self.records.bind(&delete.delete, name.as_str())?;
                    self.given(id, StoreCall::Delete { name }, delete.r#as, delete.answer)
                }
                step => Err(format!("expected a delete of `{}`, came {}", delete.delete, show(&step))),
            },
            Verb::Claim(claim) => match self.next_call(|call| matches!(call, StoreCall::Claim { .. }))? {
                Step::Store { id, call: StoreCall::Claim { names, most }, .. } if names.len() == 1 => {
                    self.records.bind(&claim.claim, names[0].as_str())?;
                    self.given(id, StoreCall::Claim { names, most }, claim.r#as, claim.answer)
                }
                step => Err(format!("expected a claim of `{}`, came {}", claim.claim, show(&step))),
            },
            Verb::Release(release) => match self.next_call(|call| matches!(call, StoreCall::Release { .. }))? {
                Step::Store { id, call: StoreCall::Release { names: Some(names) }, .. } if names.len() == 1 => {
                    self.records.bind(&release.release, names[0].as_str())?;
                    self.given(id, StoreCall::Release { names: Some(names) }, release.r#as, release.answer)
                }
                step => Err(format!("expected a release of `{}`, came {}", release.release, show(&step))),
            },
            Verb::List(list) => match self.next_call(|call| matches!(call, StoreCall::List { .. }))? {
                Step::Store { id, call: call @ StoreCall::List { open, .. }, .. } if open == (list.list == ListKind::Open) => {
                    self.given(id, call, list.r#as, list.answer)
                }
                step => Err(format!("expected a list of {:?}, came {}", list.list, show(&step))),
            },
            Verb::Spend(spend) => self.expect_spend(spend),
            Verb::Send(send) => self.send(*send),
            Verb::Resolve(resolve) => {
                // A name that was never given stands for a step that never was.
                let id = self.steps.get(&resolve.resolve).copied().unwrap_or(StepId(u32::MAX));
                let answered = match resolve.answer {
                    Either::Store(word) => self.store_answered(id, word),
                    Either::Http(answer) => self.answer(id, &answer),
                };
                match (answered, resolve.misuse) {
                    (Err(_), true) => Ok(()),
                    (Ok(()), true) => Err("expected the answer to be refused, and it was taken".to_owned()),
                    (answered, false) => answered,
                }
            }
            Verb::Wait(range) => self.wait(range).map(drop),
            Verb::Sleep(range) => {
                let until = self.wait(range)?.ok_or("`sleep` needs a time")?;
                self.advance(Shift::Both(until - self.now.monotonic));
                Ok(())
            }
            Verb::Advance(shift) => {
                self.drained()?;
                self.advance(shift);
                Ok(())
            }
            Verb::Completed(name) => self.completed(&name),
            Verb::Complete(complete) => {
                self.completed(&complete.complete)?;
                self.name_parts(&complete.complete, complete.parts)?;
                self.take(Take { take: complete.complete, ok: complete.ok, error: complete.error, nothing: false })
            }
            Verb::Take(take) => self.take(take),
            Verb::Notify(expected) => loop {
                match self.client.poll(self.now) {
                    Step::Store { id, call, .. } if answers_itself(&call) => self.answer_itself(id, call)?,
                    Step::Notify(event) => {
                        let event = told(&event);
                        no_secret("an event", &event.to_string())?;
                        if matches(&expected, &self.named(event), "notify").is_ok() {
                            break Ok(());
                        }
                    }
                    step => break Err(format!("expected an event like {expected}, came {}", show(&step))),
                }
            },
            Verb::Cancel(name) => {
                self.client.cancel(self.command(&name)?, self.now);
                Ok(())
            }
            Verb::Crash(crash) => self.crash(&crash),
            Verb::Plant(plant) => {
                if let Some(name) = &plant.name {
                    self.records.bind(&plant.plant, name)?;
                }
                self.plant(&plant.plant, plant.text.as_deref(), plant.change.as_ref())
            }
            Verb::Lost(names) => {
                let names: Result<Vec<Name>, String> =
                    names.iter().map(|name| Ok(Name::from(self.records.value(name)?.to_owned()))).collect();
                let names = names?;
                self.store.take_away(&names);
                self.client.lost(Some(&names), self.now);
                Ok(())
            }
            Verb::Resume(resume) => {
                let record = self.record(&resume.resume)?;
                let command = self.client.resume(&record, call_options(resume.options)?);
                self.name_command(resume.r#as, command)
            }
            Verb::ResumeIntent(resume) => {
                let command = self.client.resume_intent(&resume.resume_intent, call_options(resume.options)?);
                self.name_command(resume.r#as, command)
            }
            Verb::Reconcile(reconcile) => {
                let params = serde_json::json!({ "record": self.record(&reconcile.reconcile)?.0 }).to_string();
                let command = self.client.start_json("reconcile", &params, Default::default());
                self.name_command(reconcile.r#as, command)
            }
            Verb::ResumeAll(resume) => {
                let command = self.client.resume_all(call_options(resume.options)?).command;
                self.name_command(resume.resume_all, command)
            }
            Verb::Settle(settle) => {
                let record = self.record(&settle.settle)?;
                let command = self.client.settle_text(record.0, settle.happened, settle.became, settle.early);
                self.name_command(settle.r#as, command)
            }
            Verb::Forget(forget) => {
                let record = self.record(&forget.forget)?;
                let command = self.client.forget(&record).command;
                self.name_command(forget.r#as, command)
            }
            Verb::ReleaseSession(release) => {
                let done = self.client.release_session(&release.release_session);
                expect("released", Some(release.done.unwrap_or(true)), done)
            }
            Verb::Saved(expected) => self.saved(expected),
            Verb::Observe(observe) => self.observe_session(observe),
            Verb::Walk(walk) => self.walk(walk),
            Verb::Ask(asked) => ask(&asked),
        }
    }

    fn start(&mut self, start: Start) -> Result<(), String> {
        let params = match (start.params, start.params_text) {
            (Some(params), None) => params.to_string(),
            (None, Some(text)) => text,
            (None, None) => "{}".to_owned(),
            _ => return Err("`params` and `params_text` are one too many".to_owned()),
        };
        let options = match start.operation.as_str() {
            "open_session" | "wait_session" => whole(start.options),
            _ => Value::from(start.options).to_string(),
        };
        // A value that does not fit is the case's own; an option that there is not is a mistake of its author.
        if let Err(error) = options.parse::<CallOptions>()
            && error.field.as_deref() == Some("options")
        {
            return Err(format!("`options`: {error}"));
        }
        let command = self.client.start_text(&start.operation, &params, &options);
        self.name_command(start.start, command)
    }

    fn name_command(&mut self, name: String, command: CommandId) -> Result<(), String> {
        match self.commands.insert(name.clone(), command) {
            None => Ok(()),
            Some(_) => Err(format!("a command is named `{name}` already")),
        }
    }

    pub(super) fn name_step(&mut self, name: Option<String>, id: StepId) -> Result<(), String> {
        match name {
            Some(name) if self.steps.contains_key(&name) => Err(format!("a step is named `{name}` already")),
            Some(name) => {
                self.steps.insert(name, id);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The record of a name, as people were shown it last, or as its name alone.
    fn record(&self, name: &str) -> Result<RecordId, String> {
        Ok(RecordId(self.records.value(name)?.to_owned()))
    }

    fn given(&mut self, id: StepId, call: StoreCall, name: Option<String>, answer: Option<Word>) -> Result<(), String> {
        self.called(id, call)?;
        self.name_step(name, id)?;
        answer.map_or(Ok(()), |word| self.store_answered(id, word))
    }

    fn expect_put(&mut self, put: Put) -> Result<(), String> {
        let (id, call) = match self.next()? {
            Step::Store { id, call: call @ StoreCall::Put { .. }, .. } => (id, call),
            step => return Err(format!("expected a put of `{}`, came {}", put.put, show(&step))),
        };
        if let StoreCall::Put { name, data, new, keep_for, release } = &call {
            self.records.bind(&put.put, name.as_str())?;
            expect("new", put.new, *new)?;
            expect("releases", put.releases, *release)?;
            expect("keep_for", put.keep_for, *keep_for)?;
            if let Some(has) = &put.has {
                let record = serde_json::from_slice(data).map_err(|error| error.to_string())?;
                matches(has, &self.named(record), "has")?;
            }
        }
        self.given(id, call, put.r#as, put.answer)
    }

    fn expect_spend(&mut self, spend: Spend) -> Result<(), String> {
        let (id, call) = match self.next_call(|call| matches!(call, StoreCall::Spend { .. }))? {
            Step::Store { id, call: call @ StoreCall::Spend { .. }, .. } => (id, call),
            step => return Err(format!("expected a spend of `{}`, came {}", spend.spend, show(&step))),
        };
        if let StoreCall::Spend { day, entry, amount, cap, .. } = &call {
            self.entries.bind(&spend.spend, entry)?;
            expect("usd", spend.usd, amount.to_string())?;
            expect("day", spend.day, *day)?;
            expect("cap", spend.cap, cap.map(|cap| cap.to_string()))?;
        }
        self.given(id, call, spend.r#as, spend.answer)
    }

    /// The pages of what the store holds.
    fn saved(&mut self, expected: Vec<Value>) -> Result<(), String> {
        let (mut after, mut entries) = (None, Vec::new());
        loop {
            let command = self.client.saved(after).command;
            match self.next()? {
                Step::Completed { command: ended } if ended == command => {}
                step => return Err(format!("expected the end of `saved`, came {}", show(&step))),
            }
            let page = self.client.take_answer(command).ok_or("no page came")?.map_err(|error| error.to_string())?;
            let page: Value = serde_json::from_str(page.raw.text()).map_err(|error| error.to_string())?;
            entries.extend(page["entries"].as_array().cloned().unwrap_or_default());
            match page["after"].as_str() {
                Some(name) => after = Some(Name::from(name.to_owned())),
                None => break,
            }
        }
        let mut saved = self.named(Value::from(entries));
        no_secret("the list of what is saved", &saved.to_string())?;
        if let Value::Array(entries) = &mut saved {
            entries.sort_by_key(|entry| self.records.place(entry["record"].as_str().unwrap_or_default()));
        }
        matches(&Value::Array(expected), &saved, "saved")
    }

    /// Names the commands that one which resumed them all is answered with.
    fn name_parts(&mut self, name: &str, parts: Vec<String>) -> Result<(), String> {
        if parts.is_empty() {
            return Ok(());
        }
        let raw =
            self.client.result(self.command(name)?).and_then(|result| result.as_ref().ok()).map(|answered| answered.raw.text().to_owned());
        let ids: Vec<u32> = serde_json::from_str(&raw.unwrap_or_default()).map_err(|error| error.to_string())?;
        expect("parts", Some(parts.len()), ids.len())?;
        parts.into_iter().zip(ids).try_for_each(|(name, id)| self.name_command(name, CommandId(id)))
    }

    fn wait(&mut self, range: Bounds) -> Result<Option<i64>, String> {
        let until = self.drained()?;
        let found = until.map(|until| until - self.now.monotonic);
        match (range, found) {
            (None, None) => Ok(None),
            (Some(range), Some(found)) if range.holds(found) => Ok(until),
            (expected, found) => Err(format!("expected a wait of {expected:?}, came {found:?}")),
        }
    }

    fn completed(&mut self, name: &str) -> Result<(), String> {
        let expected = self.command(name)?;
        match self.next()? {
            Step::Completed { command } if command == expected => Ok(()),
            step => Err(format!("expected the end of `{name}` (command {}), came {}", expected.0, show(&step))),
        }
    }

    /// The result of a command, if it fits its type.
    pub(super) fn taken(&mut self, command: CommandId) -> Option<Result<Answered, Error>> {
        self.client.take_to_read(command).map(|taken| taken.and_then(|taken| Ok(taken.read(&mut ())?.1)))
    }

    fn take(&mut self, take: Take) -> Result<(), String> {
        let command = self.command(&take.take)?;
        let taken = self.taken(command);
        match (taken, take.ok, take.error, take.nothing) {
            (None, None, None, true) => Ok(()),
            (Some(Ok(answered)), Some(expected), None, false) => {
                let facts = told(&answered.facts);
                let phase = serde_json::to_value(answered.phase).map_err(|error| error.to_string())?;
                success(&expected, &facts, answered.raw.text(), &phase)
            }
            (Some(Err(error)), None, Some(expected), false) => {
                let error = told(&error);
                heard(&error)?;
                matches(&expected, &self.named(error), "error")
            }
            (Some(Ok(answered)), None, Some(error), false) => Err(format!("expected the error {error}, came {}", answered.raw.text())),
            (Some(Err(error)), Some(_), None, false) => Err(format!("expected success, came {}", told(&error))),
            (Some(taken), None, None, true) => Err(format!("expected nothing to take, came {taken:?}")),
            (None, _, _, false) => Err("expected a result to take, came nothing".to_owned()),
            _ => Err("a result is one of `ok` and `error`".to_owned()),
        }
    }

    fn observe_session(&mut self, observe: Observe) -> Result<(), String> {
        let told = self.client.observe_text(&observe.observe, &json!(observe.seen).to_string(), self.now);
        let told = told.map_err(|error| error.to_string())?.as_ref().map(hopline::contract::json_of);
        let found: Value = told.map_or(Ok(Value::Null), |told| serde_json::from_str(&told)).map_err(|error| error.to_string())?;
        let why = observe.why.as_ref().map(|part| json!({ "contains": part }));
        let (verdict, reason) = (json!(observe.verdict), json!(observe.reason));
        let same = found["verdict"] == verdict && found["reason"] == reason;
        if !same || why.is_some_and(|why| matches(&why, &found["why"], "why").is_err()) {
            return Err(format!("expected {:?} {:?} {:?}, came {found}", observe.verdict, observe.reason, observe.why));
        }
        match (observe.r#as, found["command"].as_u64()) {
            (Some(name), Some(command)) => self.name_command(name, CommandId(command as u32)),
            (None, None) => Ok(()),
            (name, _) => Err(format!("expected a command for {name:?}, came {found}")),
        }
    }
}

/// Asks what needs no client.
fn ask(asked: &Ask) -> Result<(), String> {
    match (host_text(&asked.ask, &asked.given.to_string()), &asked.ok, &asked.error) {
        (Ok(answer), Some(expected), None) => equals(expected, &serde_json::from_str(&answer).map_err(|error| error.to_string())?, "ok"),
        (Err(error), None, Some(expected)) => {
            let error = told(&error);
            heard(&error)?;
            matches(expected, &error, "error")
        }
        (_, Some(_), Some(_)) | (_, None, None) => Err("an answer is one of `ok` and `error`".to_owned()),
        (Ok(answer), None, _) => Err(format!("expected the error {:?}, came {answer}", asked.error)),
        (Err(error), ..) => Err(format!("expected {:?}, came {error}", asked.ok)),
    }
}

/// Options of what gives a session to its caller: a case says where it wants credentials.
fn whole(mut options: Map<String, Value>) -> String {
    options.entry("credentials").or_insert(false.into());
    Value::from(options).to_string()
}

fn call_options(options: Map<String, Value>) -> Result<CallOptions, String> {
    whole(options).parse().map_err(|error| format!("`options`: {error}"))
}

fn success(expected: &Success, facts: &Value, raw: &str, phase: &Value) -> Result<(), String> {
    if let Some(expected) = &expected.facts {
        matches(expected, facts, "facts")?;
    }
    if let Some(expected) = &expected.raw {
        let raw = serde_json::from_str(raw).map_err(|error| error.to_string())?;
        matches(expected, &raw, "raw")?;
    }
    expect("phase", expected.phase.as_deref(), phase.as_str().unwrap_or_default())?;
    expect("raw_text", expected.raw_text.as_deref(), raw)
}

pub(super) fn expect<T: PartialEq + std::fmt::Debug>(what: &str, expected: Option<T>, found: T) -> Result<(), String> {
    match expected {
        Some(expected) if expected != found => Err(format!("expected {what} {expected:?}, came {found:?}")),
        _ => Ok(()),
    }
}
