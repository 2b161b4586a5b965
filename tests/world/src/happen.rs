//! The effect of an act on a world.

use hopline::client::{CommandId, Millis, Name, Outcome, Sent, StepId, StoreAnswer, StoreCall, describe};

use crate::act::{Act, Leaves};
use crate::checker::{About, UNTOLD};
use crate::claims::OUTLASTS;
use crate::delivery::{Delivery, StoreResult};
use crate::job::{Job, Manner, Task};
use crate::process::{SHOWN, is_nothing, shows};
use crate::scope::Plan;
use crate::service::{Arrival, Effects, ExchangeResult, Response};
use crate::time::HOUR;
use crate::world::{Message, Out, Process, World, Wrong};
use hopline::wire::Request;
use hopline_sandbox::Service;

/// Longer than anybody waits for a session or an order.
const LATE: Millis = HOUR / 10;

impl World {
    /// Takes the step at an index, if it is of the expected kind: a life that was shortened may have another step there.
    fn answer(&mut self, at: usize, is_it: impl Fn(&Out) -> bool) -> Option<Out> {
        let process = self.process.as_mut()?;
        process.out.get(at).filter(|out| is_it(out))?;
        process.out.remove(at)
    }

    /// Answers a call of the store.
    pub(crate) fn keep(&mut self, at: usize, result: StoreResult) -> Result<(), Wrong> {
        let is_it = |out: &Out| matches!(out, Out::Store { .. });
        // A step that gives a program names shows that it has lost the earlier ones, so the program is told first.
        let gives = |out: &Out| matches!(out, Out::Store { call: StoreCall::Claim { .. } | StoreCall::Put { new: true, .. }, .. });
        if self.process.as_ref().is_some_and(|process| process.out.get(at).is_some_and(gives)) {
            self.told()?;
        }
        let Some(Out::Store { id, command, call }) = self.answer(at, is_it) else { return Ok(()) };
        let mut answer = match result {
            StoreResult::Failed | StoreResult::FailedThenDone => StoreAnswer::Failed,
            StoreResult::Never => StoreAnswer::Never,
            _ => self.store_does(command, &call),
        };
        let is_done = !matches!(answer, StoreAnswer::Failed | StoreAnswer::Never);
        let fails = !is_done || matches!(result, StoreResult::FailedButDone | StoreResult::Unfit);
        if let (StoreResult::FailedThenDone, Some(process)) = (result, &self.process) {
            self.late_calls.push_back((process.number, call.clone()));
        }
        let refused = match answer {
            StoreAnswer::Lost | StoreAnswer::Busy(_) => ", and it is another program's",
            _ => "",
        };
        self.tell(|| format!("{}: {result:?}{refused}", said(&call)));
        if let (Some(process), StoreCall::Put { name, .. } | StoreCall::Delete { name }) = (&mut self.process, &call) {
            // Its client was told that this session may be another's by now.
            if let Some(session) = self.store.data(name).filter(|_| answer == StoreAnswer::Lost).and_then(|data| describe(data)?.session_id)
            {
                process.has.remove(&session);
            }
            let is_put = matches!((&call, &answer), (StoreCall::Put { release: false, .. }, StoreAnswer::Done)) && !fails;
            process.kept.remove(name);
            if is_put {
                process.kept.insert(name.clone(), self.now);
            }
        }
        if fails {
            self.checker.store_failed();
            answer = match result {
                StoreResult::Never => StoreAnswer::Never,
                StoreResult::Unfit => StoreAnswer::Claimed(vec![(Name::from("of.another".to_owned()), None)]),
                _ => StoreAnswer::Failed,
            };
        }
        if let Some(process) = self.process.as_mut().filter(|_| answer != StoreAnswer::Never) {
            process.has_store = true;
        }
        let has_ended = self.process.as_mut().is_some_and(|process| process.ended.remove(&id));
        if let (StoreCall::Claim { names, .. }, None, false) = (&call, command, !fails && matches!(answer, StoreAnswer::Claimed(_))) {
            // A name that could not be claimed again is given up.
            let sessions = names.iter().filter_map(|name| describe(self.store.data(name)?)?.session_id);
            let has = self.process.as_mut().map(|process| &mut process.has);
            has.into_iter().zip([sessions]).for_each(|(has, sessions)| sessions.for_each(|session| _ = has.remove(&session)));
        }
        // A key that comes out of a record may have been sent before, for all that its client knows.
        if let StoreAnswer::Claimed(names) = &answer
            && self.scope.may_mix_up()
        {
            let keys = names.iter().filter_map(|(_, data)| describe(data.as_ref()?)?.key);
            self.sent.extend(keys);
        }
        if let (StoreAnswer::Claimed(names), false) = (&answer, has_ended || fails) {
            names.iter().try_for_each(|(name, data)| self.claimed(name, data.as_deref()))?;
        }
        match result {
            StoreResult::DoneAfterEnd => {
                self.pass(OUTLASTS)?;
                self.ends_claims();
            }
            StoreResult::DoneAfterSleep => self.pass(self.scope.night)?,
            _ => {}
        }
        // A record that the client was told of only now counts as kept from now on.
        if matches!(result, StoreResult::DoneAfterSleep | StoreResult::DoneAfterEnd)
            && let (Some(process), StoreCall::Put { name, .. }) = (&mut self.process, &call)
            && let Some(kept) = process.kept.get_mut(name)
        {
            *kept = self.now;
        }
        self.resolve(id, Outcome::Store(answer))
    }

    /// The store does what it has said to have failed at.
    pub(crate) fn comes_true(&mut self) {
        let Some((client, call)) = self.late_calls.pop_front() else { return };
        self.store.call(&call, client, self.now);
        let lives = self.living().any(|process| process.number == client && !process.untold);
        if !lives {
            self.store.ends_claims(client);
        }
    }

    /// The store does what it was asked.
    fn store_does(&mut self, command: Option<CommandId>, call: &StoreCall) -> StoreAnswer {
        let client = self.process.as_ref().map_or(self.clients, |process| process.number);
        // The result of a record that a person has deleted belongs to that person.
        let is_persons = self.process.as_ref().zip(command).is_some_and(|(process, command)| process.commands.get(&command) == Some(&None));
        let before = if let (StoreCall::Delete { name }, false) = (call, is_persons) { self.job_of_call(name) } else { None };
        let answer = self.store.call(call, client, self.now);
        match call {
            StoreCall::Delete { name } if answer == StoreAnswer::Done => {
                self.damaged.remove(name);
                if let Some(job) = before {
                    self.checker.erased(job, self.jobs[job]);
                }
            }
            StoreCall::Put { name, .. } if answer == StoreAnswer::Done => _ = self.damaged.remove(name),
            _ => {}
        }
        answer
    }

    /// The job of a call whose record is under a name.
    fn job_of_call(&self, name: &Name) -> Option<usize> {
        let told = self.store.data(name).and_then(|data| describe(data))?;
        told.operation.and_then(|_| self.job_of(name))
    }

    /// A record is cut short on its way into the store.
    fn cut(&mut self, name: Name, mut data: Vec<u8>) {
        data.truncate(data.len() / 2);
        self.store.plant(name.clone(), data);
        self.damaged.insert(name);
    }

    /// Lets a request be delivered, or not.
    pub(crate) fn deliver(&mut self, at: usize, delivery: Delivery) -> Result<(), Wrong> {
        let is_it = |out: &Out| matches!(out, Out::Send { .. });
        let Some(Out::Send { id, command, request, about }) = self.answer(at, is_it) else { return Ok(()) };
        if self.process.as_ref().is_some_and(|process| self.is_late(process, &request)) {
            if let Some(about) = about {
                self.checker.never_left(about, request.header("idempotency-key"));
            }
            self.comes_late(id)?;
            return self.drain();
        }
        self.leaves(&request, about)?;
        let is_shifted = self.is_first_send(&request) && delivery == Delivery::Shifted;
        let (method, url, key) = (request.method.as_str(), &request.url, request.header("idempotency-key"));
        self.tell(|| format!("{method} {url} with {key:?}, of command {}: {delivery:?}", command.0));
        self.pass(if delivery == Delivery::Late { LATE } else { 50 })?;
        if matches!(delivery, Delivery::Delayed | Delivery::CopyLater) {
            self.network.push_back(Message { request: request.clone(), about });
        }
        let whole = http::Request::try_from(&request).map_err(|error| error.to_string())?;
        let mut effects = Effects::new();
        let arrival = Arrival { request: &whole, job: about.map(|about| about.job), now: self.now };
        let result = self.remote.meet(delivery, arrival, &mut effects);
        self.note(effects, about)?;
        let response = match result {
            ExchangeResult::Response(response) => response,
            ExchangeResult::Lost(kind, sent) => {
                if let Some(about) = about.filter(|_| sent == Sent::Never) {
                    self.checker.never_left(about, request.header("idempotency-key"));
                }
                return self.resolve(id, Outcome::Failed { kind, sent });
            }
        };
        let operation = Service::operation(&whole).filter(|_| self.scope.may_mix_up());
        if let Some(earlier) = operation.and_then(|operation| self.earlier(operation, &request, &response, is_shifted)) {
            let Response { status, ref headers, ref body, truncated } = earlier;
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            self.tell(|| format!("    it is answered with {}", String::from_utf8_lossy(body)));
            return self.resolve(id, Outcome::Response { status, headers: &headers, body, truncated });
        }
        self.secrets.extend(passwords(&response));
        self.checker.hears((command, about), &request, &response, (self.remote.price, self.now), self.clocks());
        let headers: Vec<(&str, &str)> = response.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let Response { status, ref body, truncated, .. } = response;
        let told = self.process.as_ref().zip(request.header("idempotency-key")).map(|(process, key)| (process.number, key.to_owned()));
        self.resolve(id, Outcome::Response { status, headers: &headers, body, truncated })?;
        let spends = about.is_some_and(|about| self.jobs[about.job].is_charged());
        match told.filter(|_| spends && response.is_success()) {
            Some(told) if self.charged.get(&told) != Some(&response.charge()) => Err(format!("{UNTOLD}: {}", told.1)),
            _ => Ok(()),
        }
    }

    /// True if the request is the first send of its key; the key counts as sent from here on.
    fn is_first_send(&mut self, request: &Request) -> bool {
        let Some(key) = request.header("idempotency-key").filter(|_| self.scope.may_mix_up()) else { return true };
        let is_own = self.process.as_ref().is_some_and(|process| self.made_by.get(key) == Some(&process.number));
        self.sent.insert(key.to_owned()) && is_own
    }

    /// Returns the earlier answer that a network which mixes up answers gives, and stores the present one. The answer is about a session
    /// that the client did not ask about or, for a purchase, about a session that it already has.
    fn earlier(&mut self, operation: &'static str, request: &Request, response: &Response, is_shifted: bool) -> Option<Response> {
        let session = |response: &Response| response.json()["data"]["session_id"].as_str().map(str::to_owned);
        let key = request.header("idempotency-key");
        let own = session(response).filter(|_| response.is_success())?;
        let process = self.process.as_mut()?;
        let known = process.answers.get(operation).filter(|_| is_shifted);
        let earlier = known.filter(|known| session(known).is_some_and(|other| other != own && process.client.follows(&other))).cloned();
        // The caller knows the earlier purchases of its own key, so an answer to it may name any session.
        match earlier.filter(|_| key.is_none_or(|key| !key.starts_with("mine-"))) {
            Some(earlier) => Some(earlier),
            None => {
                process.answers.insert(operation, response.clone());
                None
            }
        }
    }

    fn resolve(&mut self, id: StepId, outcome: Outcome<'_>) -> Result<(), Wrong> {
        let now = self.clock();
        let Some(process) = &mut self.process else { return Ok(()) };
        process.client.resolve(id, outcome, now).map_err(|misuse| misuse.to_string())?;
        if process.client.resolve(id, Outcome::Store(StoreAnswer::Failed), now).is_ok() {
            return Err("a step was answered twice".into());
        }
        self.drain()
    }

    /// Takes a result.
    pub(crate) fn take(&mut self) -> Result<(), Wrong> {
        let Some(process) = &mut self.process else { return Ok(()) };
        let Some(command) = process.completed.pop_front() else { return Ok(()) };
        let result = process.client.take_answer(command).ok_or("a completed command must have a result")?;
        let about = process.commands.remove(&command).ok_or("a command completed twice, or unasked")?;
        if process.client.take_answer(command).is_some() {
            return Err("a result was taken twice".into());
        }
        if let Err(error) = &result
            && shows(&self.secrets, &format!("{error} {error:?}"))
        {
            return Err(format!("{SHOWN} by an error"));
        }
        let opened = |about: &About| self.jobs[about.job].opens();
        if let (Ok(answered), Some(_)) = (&result, about.as_ref().filter(|about| opened(about))) {
            let is_given = |session: &String| process.released.get(session).is_none_or(|next| command >= *next);
            process.has.extend(answered.facts.session_id.clone().filter(is_given));
        }
        let number = command.0;
        self.tell(|| match &result {
            Ok(answered) => format!("command {number} is taken: {:?} {:?}", answered.facts.session_id, answered.facts.order_no),
            Err(error) => format!("command {number} is taken: {:?}, effect {:?}: {error}", error.kind, error.effect),
        });
        match about {
            Some(_) if is_nothing(&result) => {}
            Some(about) => self.checker.taken(about, self.jobs[about.job], &result),
            None => self.shown = Some(result.map(|answered| answered.raw.text().to_owned())),
        }
        self.drain()
    }

    /// Does what was chosen.
    pub(crate) fn act(&mut self, act: &Act) -> Result<(), Wrong> {
        match act {
            Act::Keep { at, result } => {
                self.budget.troubles = self.budget.troubles.saturating_sub(u8::from(*result != StoreResult::Done));
                self.keep(*at, *result)
            }
            Act::Deliver { at, delivery } => {
                self.budget.faults = self.budget.faults.saturating_sub(u8::from(*delivery != Delivery::Answered));
                self.deliver(*at, *delivery)
            }
            Act::Arrive { at } => {
                self.tell(|| "a late message arrives".into());
                self.network.remove(*at).map_or(Ok(()), |message| self.arrive(message))
            }
            Act::ComesTrue => {
                self.tell(|| "the store does what it said to have failed at".into());
                self.comes_true();
                Ok(())
            }
            Act::Take => self.take(),
            Act::Pass => {
                let left = |process: &Process| Some(process.wakes? - (self.now - process.began));
                let left = self.living().filter(|process| !process.is_busy()).filter_map(left).min().unwrap_or_default();
                self.pass(left.max(1))?;
                self.each(World::drain)
            }
            Act::Crash { leaves } => {
                self.budget.troubles = self.budget.troubles.saturating_sub(1);
                self.crash(*leaves)
            }
            Act::Restart { after, skew, plan } => {
                self.tell(|| format!("after {} h, with a wall clock that is {} h off:", after / HOUR, skew / HOUR));
                self.budget.troubles = self.budget.troubles.saturating_sub(u8::from(*after > 0) + u8::from(*skew != 0));
                self.pass(*after)?;
                self.restart(*skew)?;
                self.follow(*plan)
            }
            Act::Plan(plan) => {
                self.budget.acts = self.budget.acts.saturating_sub(1);
                self.follow(*plan)
            }
            // A request that is under way would be as old as the night is long: so it is in a life that is shortened.
            Act::Sleep if self.sends_are_out() => Ok(()),
            Act::Sleep => {
                self.budget.troubles = self.budget.troubles.saturating_sub(1);
                self.tell(|| "the machine sleeps for a night".into());
                self.pass(self.scope.night)?;
                self.each(World::drain)
            }
            Act::Clock(by) => {
                self.budget.troubles = self.budget.troubles.saturating_sub(1);
                self.tell(|| format!("the wall clock is set by {} h", by / HOUR));
                if let Some(process) = &mut self.process {
                    process.skew += by;
                    process.is_right = false;
                }
                self.drain()
            }
            Act::Cancel(command) => {
                self.budget.acts = self.budget.acts.saturating_sub(1);
                self.tell(|| format!("cancel command {}", command.0));
                let now = self.clock();
                if let Some(process) = &mut self.process {
                    process.client.cancel(*command, now);
                }
                self.drain()
            }
            Act::Of { program, act } => {
                self.tell(|| format!("program in place {program}:"));
                self.turn(*program, |world| world.act(act))
            }
            Act::Lose { is_told } => {
                self.budget.troubles = self.budget.troubles.saturating_sub(1);
                self.lose(*is_told)
            }
            Act::Told => self.told(),
            Act::Start(job, manner) => self.start(*job, *manner),
            Act::Resume(job) => self.resume_intent(*job),
            Act::Abandon(command) => self.abandon(*command),
            Act::Guess { at, happened } => self.guess(*at, *happened),
            Act::Forget { at } => self.forget(*at),
            Act::End => self.end(),
        }
    }

    /// The program dies. The step that it waited for first is done, not done, or done in part; the others are lost.
    fn crash(&mut self, leaves: Leaves) -> Result<(), Wrong> {
        self.checker.crashed();
        let Some(process) = &mut self.process else { return Ok(()) };
        let (first, number) = (process.out.pop_front(), process.number);
        self.tell(|| {
            let waited = match &first {
                Some(Out::Store { call, .. }) => said(call),
                Some(Out::Send { request, .. }) => format!("{} {}", request.method.as_str(), request.url),
                None => "nothing".into(),
            };
            format!("the program dies, of what it waited for first, {waited}: {leaves:?}")
        });
        let now = self.clock().monotonic;
        match (first, leaves) {
            (_, Leaves::Nothing) | (None, _) => {}
            (Some(Out::Send { request, .. }), _) if now > request.send_before => {}
            (Some(Out::Store { call, .. }), Leaves::Part) => {
                // A crash truncates only records of the program that died.
                let is_its = self.store.clone().call(&call, number, self.now) == StoreAnswer::Done;
                if let (StoreCall::Put { name, data, .. }, true) = (call, is_its) {
                    self.cut(name, data);
                }
            }
            (Some(Out::Store { command, call, .. }), _) => _ = self.store_does(command, &call),
            (Some(Out::Send { request, about, .. }), _) => {
                self.leaves(&request, about)?;
                self.is_first_send(&request);
                self.arrive(Message { request, about })?;
            }
        }
        self.process = None;
        self.store.ends_claims(number);
        Ok(())
    }

    /// Does the next act of a program's plan.
    fn follow(&mut self, plan: Plan) -> Result<(), Wrong> {
        match plan {
            Plan::Nothing => Ok(()),
            Plan::Again => self.start_all(Manner::Usual),
            Plan::Hurry => self.start_all(Manner::Hasty),
            Plan::ResumeAll => self.resume_all(),
            Plan::Look => self.look(),
            Plan::Glance => self.note_doubts(false),
            Plan::Note => self.note_doubts(true),
            Plan::SettleNoted => {
                self.pass(HOUR + 2_000)?;
                self.arrive_all()?;
                self.settle_noted()
            }
            Plan::Misuse => self.misuse(),
            Plan::Forget => self.forget(0),
            Plan::Intrude => self.intrude(),
            Plan::Reset => self.start(Job::unnamed(Task::Budget, 2), Manner::Usual),
            Plan::Read => {
                self.pass(3 * HOUR)?;
                self.start(Job::unnamed(Task::Balance, 0), Manner::Usual)
            }
        }
    }

    pub(crate) fn start_all(&mut self, manner: Manner) -> Result<(), Wrong> {
        let named: Vec<Job> = self.jobs.iter().copied().filter(|job| job.intent().is_some()).collect();
        named.into_iter().try_for_each(|job| self.start(job, manner))
    }
}

/// A call of the store in a story.
fn said(call: &StoreCall) -> String {
    match call {
        StoreCall::Claim { names, .. } => format!("claim {names:?}"),
        StoreCall::Put { name, new, release, .. } => {
            format!("put {name}{}{}", if *new { ", new" } else { "" }, if *release { ", and let go" } else { "" })
        }
        StoreCall::Delete { name } => format!("delete {name}"),
        StoreCall::Release { names } => format!("release {names:?}"),
        StoreCall::List { .. } => "list".to_owned(),
        StoreCall::Spend { entry, amount, day, .. } => format!("spend {amount} by {entry} on {day:?}"),
    }
}

/// The secrets of a response, which must not appear elsewhere: passwords, tokens, and the login of a proxy.
fn passwords(response: &Response) -> Vec<String> {
    let data = &response.json()["data"];
    let of_proxy = ["username", "password", "full_url"].map(|member| &data["proxy"][member]);
    let secrets = [&data["token"], &data["password"]].into_iter().chain(of_proxy);
    secrets.filter_map(|secret| secret.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::SCOPES;

    #[test]
    fn how_to_log_in_to_the_proxy_of_a_session_that_is_opened_is_a_secret() {
        let scope = SCOPES.iter().find(|known| known.name == "a session is opened").unwrap();
        let mut world = World::new(scope, None, false).unwrap();
        world.settle_all().unwrap();
        let url = world.secrets.iter().find(|secret| secret.contains("://")).unwrap();
        let (username, rest) = url.split_once("://").and_then(|(_, rest)| rest.split_once(':')).unwrap();
        let (password, _) = rest.split_once('@').unwrap();
        assert!([username, password].iter().all(|secret| world.secrets.contains(*secret)), "{:?}", world.secrets);
    }
}
