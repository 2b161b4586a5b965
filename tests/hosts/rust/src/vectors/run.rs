//! Runs one case: each step of its script says what is done to the client, or what the client must do next.

use hopline::client::{CallOptions, CommandId, RecordId, Step, StepId, host_text, verdict_text};
use serde_json::{Map, Value, json};

use super::format::{Case, Verb};
use super::matching::{equals, matches};
use super::steps::{Ask, Bounds, Either, Observe, Restore, Shift, Start, Success, Take};
use super::world::{World, no_secret, show};

/// Reads the steps of a case.
pub(super) fn read(case: &Case) -> Result<Vec<(&'static str, Verb)>, String> {
    let steps = case.script.iter().enumerate();
    steps.map(|(n, step)| Verb::read(step).map_err(|error| format!("step {}: {error}", n + 1))).collect()
}

/// Runs a case. The error says at which step it failed, what was expected and what came.
pub(super) fn run(case: &Case) -> Result<(), String> {
    let steps = read(case)?;
    let mut world = match (World::new(case)?, &case.refused) {
        (Err(error), Some(expected)) if steps.is_empty() => {
            no_secret("an error", &error.to_string())?;
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
    if !world.out.is_empty() {
        return Err(format!("at the end: {} steps were never answered", world.out.len()));
    }
    Ok(())
}

impl World {
    fn step(&mut self, step: Verb) -> Result<(), String> {
        match step {
            Verb::Start(start) => self.start(start),
            Verb::Save(save) => {
                let (id, data) = self.expect_save(&save.save)?;
                let data = data.ok_or("expected a save, came a delete")?;
                self.save_given(id, &RecordId(self.records.value(&save.save)?.to_owned()), Some(data.clone()))?;
                if let Some(has) = &save.has {
                    let record = serde_json::from_slice(&data).map_err(|error| error.to_string())?;
                    matches(has, &self.named(record), "has")?;
                }
                self.name_step(save.r#as, id)?;
                save.answer.map_or(Ok(()), |word| self.save_answered(id, word))
            }
            Verb::Delete(delete) => {
                let (id, data) = self.expect_save(&delete.delete)?;
                if let Some(data) = data {
                    return Err(format!("expected a delete, came a save: {}", String::from_utf8_lossy(&data)));
                }
                self.save_given(id, &RecordId(self.records.value(&delete.delete)?.to_owned()), None)?;
                self.name_step(delete.r#as, id)?;
                delete.answer.map_or(Ok(()), |word| self.save_answered(id, word))
            }
            Verb::Send(send) => self.send(*send),
            Verb::Resolve(resolve) => {
                // A name that was never given stands for a step that never was.
                let id = self.steps.get(&resolve.resolve).copied().unwrap_or(StepId(u32::MAX));
                let answered = match resolve.answer {
                    Either::Store(word) => self.save_answered(id, word),
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
                self.take(Take { take: complete.complete, ok: complete.ok, error: complete.error, nothing: false })
            }
            Verb::Take(take) => self.take(take),
            Verb::Notify(expected) => loop {
                match self.client.poll(self.now) {
                    Step::Notify(event) => {
                        let event = serde_json::to_value(event).map_err(|error| error.to_string())?;
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
            Verb::Put(put) => self.put_by_hand(&put.put, put.text.as_deref(), put.change.as_ref()),
            Verb::Restore(restore) => self.restore(&restore),
            Verb::Resume(resume) => {
                let record = RecordId(self.records.value(&resume.resume)?.to_owned());
                let command = self.client.resume(&record, call_options(resume.options)?);
                self.name_command(resume.r#as, command)
            }
            Verb::ResumeIntent(resume) => {
                let command = self.client.resume_intent(&resume.resume_intent, call_options(resume.options)?);
                match (command, resume.r#as, resume.nothing) {
                    (Some(command), Some(name), false) => self.name_command(name, command),
                    (None, None, true) => Ok(()),
                    (Some(_), None, true) => Err("expected nothing to resume, and there was something".to_owned()),
                    (None, Some(_), false) => Err(format!("expected `{}` to stand for something", resume.resume_intent)),
                    _ => Err("it needs one of `as` and `nothing`".to_owned()),
                }
            }
            Verb::Reconcile(reconcile) => {
                let record = self.records.value(&reconcile.reconcile)?;
                let params = serde_json::json!({ "record": record }).to_string();
                let command = self.client.start_json("reconcile", &params, Default::default());
                self.name_command(reconcile.r#as, command)
            }
            Verb::ResumeAll(names) => {
                let commands = self.client.resume_all();
                if commands.len() != names.len() {
                    return Err(format!("expected {} commands, came {}", names.len(), commands.len()));
                }
                names.into_iter().zip(commands).try_for_each(|(name, command)| self.name_command(name, command))
            }
            Verb::Settle(settle) => {
                let record = RecordId(self.records.value(&settle.settle)?.to_owned());
                let done = match &settle.became {
                    Some(became) => self.client.settle_as(&record, became).map_err(|error| error.to_string())?,
                    None => self.client.settle(&record, settle.r#as),
                };
                expect_flag("settled", settle.done, done)
            }
            Verb::Forget(forget) => {
                let record = RecordId(self.records.value(&forget.forget)?.to_owned());
                let done = self.client.forget(&record);
                expect_flag("forgotten", forget.done, done)
            }
            Verb::Saved(expected) => {
                let saved = serde_json::to_value(self.client.saved()).map_err(|error| error.to_string())?;
                no_secret("the list of what is saved", &saved.to_string())?;
                matches(&Value::Array(expected), &self.named(saved), "saved")
            }
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
        let command = self.client.start_json(&start.operation, &params, call_options(start.options)?);
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

    fn expect_save(&mut self, name: &str) -> Result<(StepId, Option<Vec<u8>>), String> {
        match self.next()? {
            Step::Save { id, record, data } => {
                self.records.bind(name, &record.0)?;
                Ok((id, data))
            }
            step => Err(format!("expected a save or delete of `{name}`, came {}", show(&step))),
        }
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

    fn take(&mut self, take: Take) -> Result<(), String> {
        let command = self.command(&take.take)?;
        let taken = self.client.take_answer(command);
        match (taken, take.ok, take.error, take.nothing) {
            (None, None, None, true) => Ok(()),
            (Some(Ok(answered)), Some(expected), None, false) => {
                let facts = serde_json::to_value(&answered.facts).map_err(|error| error.to_string())?;
                let phase = serde_json::to_value(answered.phase).map_err(|error| error.to_string())?;
                success(&expected, &facts, answered.raw.text(), &phase)
            }
            (Some(Err(error)), None, Some(expected), false) => {
                let error = serde_json::to_value(error).map_err(|error| error.to_string())?;
                no_secret("an error", &error.to_string())?;
                matches(&expected, &self.named(error), "error")
            }
            (Some(Ok(answered)), None, Some(error), false) => Err(format!("expected the error {error}, came {}", answered.raw.text())),
            (Some(Err(error)), Some(_), None, false) => Err(format!("expected success, came {}", json!(error))),
            (Some(taken), None, None, true) => Err(format!("expected nothing to take, came {taken:?}")),
            (None, _, _, false) => Err("expected a result to take, came nothing".to_owned()),
            _ => Err("a result is one of `ok` and `error`".to_owned()),
        }
    }

    fn restore(&mut self, restore: &Restore) -> Result<(), String> {
        let mut records = Vec::new();
        for name in restore.restore.iter().chain(restore.refused.keys()) {
            let (id, data) = self.stored(name)?;
            records.push(hopline::client::Record { id, data: data.to_vec() });
        }
        let restored = match restore.same_account {
            true => self.client.restore_same_account(records),
            false => self.client.restore(records),
        };
        let held: Vec<Value> = restored.held.iter().map(|record| json!(record)).collect();
        equals(&json!(restore.restore), &self.named(held.into()), "held")?;
        let reasons = restored.refused.iter().map(|(record, bad)| (self.named(json!(record)), bad.to_string()));
        let reasons: Vec<(Value, String)> = reasons.collect();
        if reasons.len() != restore.refused.len() {
            return Err(format!("expected {} records to be refused, came {reasons:?}", restore.refused.len()));
        }
        for ((record, reason), (name, part)) in reasons.iter().zip(&restore.refused) {
            if record != name || !reason.contains(part) {
                return Err(format!("expected `{name}` to be refused with `{part}`, came {record}: {reason}"));
            }
        }
        Ok(())
    }

    fn observe_session(&mut self, observe: Observe) -> Result<(), String> {
        let told = self.client.observe_text(&observe.observe, &json!(observe.seen).to_string(), self.now);
        let told = told.map_err(|error| error.to_string())?.as_ref().map(verdict_text);
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
            let error = json!(error);
            no_secret("an error", &error.to_string())?;
            matches(expected, &error, "error")
        }
        (_, Some(_), Some(_)) | (_, None, None) => Err("an answer is one of `ok` and `error`".to_owned()),
        (Ok(answer), None, _) => Err(format!("expected the error {:?}, came {answer}", asked.error)),
        (Err(error), ..) => Err(format!("expected {:?}, came {error}", asked.ok)),
    }
}

fn call_options(options: Map<String, Value>) -> Result<CallOptions, String> {
    serde_json::from_str(&Value::from(options).to_string()).map_err(|error| format!("`options`: {error}"))
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

fn expect_flag(what: &str, expected: Option<bool>, found: bool) -> Result<(), String> {
    expect(what, Some(expected.unwrap_or(true)), found)
}
