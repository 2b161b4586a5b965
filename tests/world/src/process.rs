//! A program with a client: what it starts, and what its client says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::Hash;

use hopline::client::{
    Answered, CallOptions, Client, ClientOptions, CommandId, Description, EventKind, Millis, Name, Now, Outcome, RecordId, RecordKind,
    Saved, Step, StepId, StoreCall, describe,
};
use hopline::contract::{Api, Decimal, Method, Secret};
use hopline::wire::Request;
use hopline_sandbox::{BACKEND_PATH, Service};

use crate::checker::{About, CROWDED, PUT_OFF, RECHARGED, Sending, UNSAVED, is_put_off};
use crate::job::{Job, Manner, Name as JobName, Task};
use crate::service::{API_KEY, is_login};
use crate::world::{Admitted, Out, Process, World, Wrong};

impl World {
    /// Where the service is.
    pub(crate) fn base_url(&self) -> String {
        format!("https://api.example{}", if self.scope.api == Api::Reseller { BACKEND_PATH } else { "/v1" })
    }

    /// A new process on the store.
    pub(crate) fn restart(&mut self, skew: Millis) -> Result<(), Wrong> {
        self.clients = self.clients.wrapping_add(1);
        let reseller = self.scope.api == Api::Reseller;
        let (username, password) = self.remote.login();
        let options = ClientOptions {
            api: self.scope.api,
            base_url: self.base_url(),
            api_key: (!reseller && !self.scope.relayed).then(|| Secret::new(API_KEY)),
            username: reseller.then(|| Secret::new(username)),
            password: reseller.then(|| Secret::new(password)),
            token: self.remote.token.clone().map(Secret::new),
            daily_cap_usd: self.scope.cap.map(|cap| Decimal(rust_decimal::Decimal::new(cap, 3))),
            store: true,
            late_calls: self.scope.late_calls,
            max_in_flight: self.scope.places.unwrap_or(ClientOptions::default().max_in_flight),
            without: self.without,
            ..ClientOptions::default()
        };
        let client = Client::new(options, [self.clients; 16]).map_err(|error| error.to_string())?;
        let (began, out, commands) = (self.now, VecDeque::new(), BTreeMap::new());
        if let Some(before) = &self.process {
            self.store.ends_claims(before.number);
        }
        let process = self.process.insert(Process {
            client,
            out,
            commands,
            completed: VecDeque::new(),
            number: self.clients,
            kept: BTreeMap::new(),
            admitted: BTreeMap::new(),
            ended: BTreeSet::new(),
            has: BTreeSet::new(),
            released: BTreeMap::new(),
            began,
            skew,
            is_right: skew == 0,
            has_store: false,
            answers: BTreeMap::new(),
            untold: false,
            wakes: None,
        });
        // Time is known before anything else, as in a host that polls first.
        process.client.poll(Now { unix: self.now + skew, monotonic: 0 });
        self.checker.restarted(self.remote.token.as_ref());
        let records = self.store.len();
        self.tell(|| format!("a program starts with {records} records"));
        self.drain()
    }

    /// Starts a job.
    pub(crate) fn start(&mut self, job: Job, manner: Manner) -> Result<(), Wrong> {
        // A caller ends or changes only sessions that it has, unless by a name that it gave before.
        let is_change = matches!(job.task, Task::Terminate | Task::Rotate | Task::Renew) && job.name == JobName::None;
        if is_change && job.session() >= self.remote.sessions.len() {
            return Ok(());
        }
        let at = self.jobs.iter().position(|known| *known == job).unwrap_or_else(|| {
            self.jobs.push(job);
            self.jobs.len() - 1
        });
        if job.task == Task::Next && self.session_is_over(at) {
            self.checker.gives_way(at);
        }
        let about = self.checker.begun(at, job);
        let is_own = job.name == JobName::None && job.is_change();
        let about = self.at_work(at).filter(|_| !is_own).unwrap_or(about);
        let (operation, params, mut options) = job.start(&self.remote.sessions, manner);
        if self.scope.cap.is_some() {
            options.max_unit_price = Some(Decimal::from(12));
        }
        options.retry_paid = self.scope.retry_paid.then_some(true);
        let Some(process) = &mut self.process else { return Ok(()) };
        let command = process.client.start_json(operation, &params, options);
        process.commands.insert(command, Some(about));
        self.tell(|| format!("command {} starts {job:?}{}", command.0, if manner == Manner::Hasty { ", hastily" } else { "" }));
        self.drain()
    }

    /// True if the session of a job's last purchase has ended.
    fn session_is_over(&mut self, job: usize) -> bool {
        let last = self.checker.current(job).and_then(|about| self.checker.found(about)?.id.clone());
        last.is_some_and(|session| self.remote.has_ended(&session, self.now))
    }

    /// The purchase that this program works on for a job, where several programs share a store: a start here joins that purchase, unless it
    /// has ended and only the command that resumes its record does not know yet.
    pub(crate) fn at_work(&self, job: usize) -> Option<About> {
        let process = self.process.as_ref().filter(|_| self.shares())?;
        let pending = process.commands.iter().rev().filter(|(command, _)| process.client.is_pending(**command));
        pending.filter_map(|(_, about)| *about).find(|about| about.job == job && !self.checker.has_ended(*about))
    }

    /// Starts a command that is about no job.
    pub(crate) fn ask(&mut self, operation: &str, params: &str) -> Result<(), Wrong> {
        let Some(process) = &mut self.process else { return Ok(()) };
        let command = process.client.start_json(operation, params, Default::default());
        process.commands.insert(command, None);
        self.drain()
    }

    /// Goes on with a record.
    pub(crate) fn resume(&mut self, record: &RecordId) -> Result<(), Wrong> {
        let about = self.about_of(record);
        self.tell(|| format!("resume {record}"));
        about.into_iter().for_each(|about| self.checker.resumed(about));
        let Some(process) = &mut self.process else { return Ok(()) };
        let command = process.client.resume(record, CallOptions::default());
        process.commands.insert(command, about);
        self.drain()
    }

    /// The purchase of a record, by the key that the store has in it; the present one of its job where there is none.
    pub(crate) fn about_of(&self, record: &RecordId) -> Option<About> {
        let name = name_of(record)?;
        let job = self.job_of(&name)?;
        let key = self.store.data(&name).and_then(|data| describe(data)?.key);
        self.checker.of_key(job, key.as_deref())
    }

    /// The job of a name.
    pub(crate) fn job_of(&self, name: &Name) -> Option<usize> {
        self.named.get(name).copied()
    }

    /// The job that a step of a name is for: of a claim that of its command; of what is put that of its intent or else of its key, since a
    /// command may send for another one first, or else that of its command.
    fn job_of_step(&self, command: Option<CommandId>, call: &StoreCall, put: Option<&Description>) -> Option<usize> {
        let about = || self.process.as_ref()?.commands.get(&command?).copied().flatten();
        match call {
            StoreCall::Claim { .. } => Some(about()?.job),
            StoreCall::Put { .. } => {
                let told = put?;
                let of_intent =
                    told.intent.as_ref().and_then(|intent| self.jobs.iter().position(|job| job.intent().as_ref() == Some(intent)));
                let of_key = || self.checker.job_of_key(&self.jobs, told.key.as_deref()?);
                let of_command = || told.operation.as_ref().and_then(|_| Some(about()?.job));
                let of_moved = || self.job_of_moved(call, told.session_id.as_ref()?);
                of_intent.or_else(of_key).or_else(of_command).or_else(of_moved).or_else(|| self.abandoned.filter(|_| command.is_none()))
            }
            _ => None,
        }
    }

    /// The job of a result that a renewal puts under another name, since its own record will be where that is: another renewal of the
    /// session, whose record this program has. Of several it is that with the same data.
    fn job_of_moved(&self, call: &StoreCall, session: &String) -> Option<usize> {
        let StoreCall::Put { new: true, data, .. } = call else { return None };
        let is_it =
            |job: &Job| job.task == Task::Renew && job.name == JobName::None && self.remote.sessions.get(job.session()) == Some(session);
        let owned = self.store.owned_by(self.process.as_ref()?.number);
        let records = owned.filter_map(|name| Some((self.job_of(name)?, self.store.data(name)? == data)));
        records.filter(|(job, _)| self.jobs.get(*job).is_some_and(is_it)).max_by_key(|(_, is_same)| *is_same).map(|(job, _)| job)
    }

    /// Lets the client say all that it has to say.
    pub(crate) fn drain(&mut self) -> Result<(), Wrong> {
        let (now, clocks) = (self.clock(), self.clocks());
        for _ in 0..1000 {
            let Some(process) = &mut self.process else { return Ok(()) };
            self.steps += 1;
            let step = process.client.poll(now);
            if let Some(transcript) = &mut self.transcript {
                (now.monotonic, &step).hash(transcript);
            }
            match step {
                Step::Store { id, command, call } => self.asks(id, command, call)?,
                Step::Send { id, command, request } => self.sends(id, command, request)?,
                Step::Completed { command } => {
                    if process.completed.contains(&command) {
                        return Err("a command completed twice".into());
                    }
                    process.completed.push_back(command);
                    let about = process.commands.get(&command).copied().flatten();
                    let result = process.client.result(command).filter(|result| !is_nothing(result));
                    if result.is_some_and(|result| is_put_off(result, clocks)) {
                        return Err(PUT_OFF.into());
                    }
                    if let (Some(story), Some(about), Some(result)) = (&mut self.story, about, result) {
                        let said =
                            result.as_ref().map_or_else(|error| format!("{:?}, effect {:?}", error.kind, error.effect), |_| "done".into());
                        story.push(format!(
                            "command {} ends for purchase {} of {:?}: {said}",
                            command.0, about.purchase, self.jobs[about.job]
                        ));
                    }
                    if let (Some(about), Some(result)) = (about, result) {
                        // Another call sends the same end of a session, which has lost its claim since: what this one is told is of itself.
                        let is_same = |out: &Out| matches!(out, Out::Send { about: Some(other), .. } if *other == about);
                        let goes_on = self.jobs[about.job].task == Task::Terminate && result.is_err() && process.out.iter().any(is_same);
                        if !goes_on {
                            self.checker.ends(about, self.jobs[about.job], result)?;
                        }
                    }
                }
                Step::Notify(event) => {
                    if let (EventKind::Ordered { order_no }, Some(command)) = (&event.what, event.command) {
                        let job = process.commands.get(&command).copied().flatten().map(|about| about.job);
                        self.checker.ordered(job, order_no.clone());
                    }
                    if let EventKind::Charged { idempotency_key: Some(key), charged_usd, .. } = &event.what {
                        let (number, command) = (process.number, event.command);
                        let about = command.and_then(|command| process.commands.get(&command).copied().flatten());
                        // A person who drops a record may have its key sent once more.
                        let is_excused = about.is_none_or(|about| self.checker.is_excused(about.job));
                        if self.charged.insert((number, key.clone()), charged_usd.clone()).is_some() && !is_excused {
                            return Err(format!("{RECHARGED}: {key}"));
                        }
                    }
                    if shows(&self.secrets, &format!("{event:?}")) {
                        return Err(format!("{SHOWN} by an event"));
                    }
                }
                Step::Wait { until } => {
                    process.wakes = until;
                    return Ok(());
                }
            }
        }
        Err("the client never waits".into())
    }

    /// A request goes out.
    fn sends(&mut self, id: StepId, command: CommandId, request: Request) -> Result<(), Wrong> {
        let Some(process) = &self.process else { return Ok(()) };
        if process.untold {
            return self.comes_late(id);
        }
        let operation = http::Request::try_from(&request).ok().and_then(|request| Service::operation(&request)).unwrap_or_default();
        let body = serde_json::from_slice(&request.body).unwrap_or_default();
        let is_of = |job: &Job| job.sends(operation, &request.url, &body, &self.remote.sessions);
        let jobs: Vec<usize> = (0..self.jobs.len()).filter(|at| is_of(&self.jobs[*at])).collect();
        // A read is one of its command's.
        let is_read = request.method == Method::Get;
        let asked = process.commands.get(&command).copied().flatten();
        let own = asked.filter(|about| is_read || jobs.is_empty() || jobs.contains(&about.job));
        let key = request.header("idempotency-key");
        let mut by_key = jobs.iter().filter(|job| self.jobs[**job].name != JobName::Key);
        // A new start of a purchase that an app's own backend refused sends its key again.
        let is_open = |about: &About| !self.scope.relayed || !self.checker.is_denied(*about);
        let by_key = by_key.find_map(|job| self.checker.of_sent_key(*job, key?).filter(is_open));
        let about = by_key.or(own).or_else(|| self.checker.current(*jobs.first()?));
        let about = match about.filter(|about| !is_read && !is_open(about)) {
            // A new start of a purchase that an app's own backend refused begins a purchase of its own.
            Some(refused) => {
                let current = self.checker.current(refused.job).filter(|current| !self.checker.is_denied(*current));
                let about = current.or_else(|| self.checker.begins_anew(refused.job, false));
                // And so does everybody who waits with them.
                let commands = self.process.iter_mut().flat_map(|process| process.commands.values_mut());
                commands.filter(|known| **known == Some(refused)).for_each(|known| *known = about);
                about
            }
            None => about,
        };
        let Some(process) = &self.process else { return Ok(()) };
        let is_login_out = |out: &Out| matches!(out, Out::Send { request, .. } if is_login(request));
        let beside_login = process.out.iter().any(is_login_out);
        let store_is_idle = !process.out.iter().any(|out| matches!(out, Out::Store { .. }));
        if !self.is_kept(process, &request, about) {
            return Err(UNSAVED.into());
        }
        let whose = about.map(|about| (about, self.jobs[about.job]));
        if let Some((about, job)) = whose.filter(|_| !is_read) {
            self.tell(|| format!("command {} is to send for purchase {} of {job:?}, {key:?}", command.0, about.purchase));
        }
        let (total, clocks) = (self.scope.cap.map(|_| self.store.total()), self.clocks());
        self.checker.sends(&Sending {
            command,
            about: whose,
            request: &request,
            beside_login,
            store_is_idle,
            total,
            clocks,
            now: self.now,
        })?;
        if let Some(process) = &mut self.process {
            process.out.push_back(Out::Send { id, command, request, about });
        }
        self.has_places()
    }

    /// A purchase or a change takes a place from before its record is put until its answer, and the number of places is limited. A
    /// termination needs none.
    fn has_places(&self) -> Result<(), Wrong> {
        let Some((process, places)) = self.process.as_ref().zip(self.scope.places) else { return Ok(()) };
        let takes = |out: &&Out| match out {
            Out::Send { request, .. } => !matches!(request.method, Method::Get | Method::Delete) && !is_login(request),
            Out::Store { call: StoreCall::Put { new: true, data, .. }, .. } => {
                describe(data).and_then(|told| told.operation).is_some_and(|operation| operation != "terminate_session")
            }
            Out::Store { .. } => false,
        };
        // Reads have one of eight, or what is left.
        let most = (places as usize * 7 / 8).max(1);
        if process.out.iter().filter(takes).count() > most { Err(CROWDED.into()) } else { Ok(()) }
    }

    /// The client asks its store.
    fn asks(&mut self, id: StepId, command: Option<CommandId>, call: StoreCall) -> Result<(), Wrong> {
        let Some(process) = &mut self.process else { return Ok(()) };
        let about = |call: &StoreCall| match call {
            StoreCall::Claim { names, .. } => names.clone(),
            StoreCall::Put { name, .. } | StoreCall::Delete { name } => vec![name.clone()],
            StoreCall::Release { names } => names.clone().unwrap_or_default(),
            StoreCall::List { .. } | StoreCall::Spend { .. } => Vec::new(),
        };
        let names = about(&call);
        let is_same = |out: &Out| matches!(out, Out::Store { call, .. } if about(call).iter().any(|name| names.contains(name)));
        if process.out.iter().any(is_same) {
            return Err(format!("two steps of {names:?} overlap"));
        }
        if let StoreCall::Put { data, .. } = &call
            && shows(&self.secrets, &String::from_utf8_lossy(data))
        {
            return Err(format!("{SHOWN} by a record"));
        }
        if let (StoreCall::Spend { entry, .. }, Some(about)) = (&call, command.and_then(|command| process.commands.get(&command).copied()?))
        {
            self.checker.counts(about, entry);
        }
        let put = if let StoreCall::Put { data, .. } = &call { describe(data) } else { None };
        if let Some(key) = put.as_ref().and_then(|told| told.key.as_ref()).filter(|_| self.scope.may_mix_up()) {
            self.made_by.entry(key.clone()).or_insert(process.number);
        }
        // A command that makes a name is admitted to it, and waits for no later claim of it.
        if let (StoreCall::Put { name, new: true, .. }, false) = (&call, self.others.is_empty()) {
            let admitted = Admitted { next: process.next_command(), was_left: false };
            process.admitted.entry(name.clone()).or_insert(admitted);
        }
        process.out.push_back(Out::Store { id, command, call: call.clone() });
        if !matches!(call, StoreCall::Claim { .. } | StoreCall::Put { release: false, .. }) {
            let left = Admitted { next: process.next_command(), was_left: true };
            for name in &names {
                if process.admitted.get(name).is_none_or(|admitted| !admitted.was_left) {
                    process.admitted.insert(name.clone(), left);
                }
            }
        }
        if let Some(job) = self.job_of_step(command, &call, put.as_ref()) {
            let puts = matches!(call, StoreCall::Put { .. });
            for name in &names {
                // The renewals of a session follow one another under one name.
                if puts || !self.named.contains_key(name) {
                    self.named.insert(name.clone(), job);
                }
            }
        }
        if let StoreCall::Put { name, .. } = &call
            && let Some(job) = self.job_of(name)
        {
            self.checker.puts(job);
            let is_change = self.jobs[job].name == JobName::None && self.jobs[job].is_change();
            let own = || self.process.as_ref()?.commands.get(&command?).copied().flatten().filter(|about| about.job == job);
            if let (true, Some(about), Some(key)) = (is_change, own(), put.and_then(|told| told.key)) {
                self.checker.keeps(about, key);
            }
        }
        self.has_places()
    }

    /// The entries of the store, as the running program lists them.
    pub(crate) fn saved(&self) -> Vec<Saved> {
        let Some(process) = &self.process else { return Vec::new() };
        let (mut client, mut store, now) = (process.client.clone(), self.store.clone(), self.clock());
        let ticket = client.saved(None);
        for _ in 0..100 {
            match client.poll(now) {
                Step::Store { id, call: call @ StoreCall::List { .. }, .. } => {
                    let answer = store.call(&call, process.number, self.now);
                    if client.resolve(id, Outcome::Store(answer), now).is_err() {
                        return Vec::new();
                    }
                }
                Step::Completed { command } if command == ticket.command => break,
                Step::Wait { .. } => break,
                _ => {}
            }
        }
        client.take(ticket).and_then(Result::ok).map(|page| page.entries).unwrap_or_default()
    }

    /// The jobs of what is shown to hold one of these.
    pub(crate) fn jobs_that_hold(&self, holds: &[RecordKind]) -> impl Iterator<Item = usize> {
        let shown = self.saved().into_iter().filter(|saved| holds.contains(&saved.holds));
        shown.filter_map(|saved| self.job_of(&name_of(&saved.record)?))
    }

    /// The jobs that a person can find an open doubt about.
    pub(crate) fn doubts(&self) -> BTreeSet<usize> {
        let open = self.jobs_that_hold(&[RecordKind::InDoubt, RecordKind::InDoubtForGood, RecordKind::UnderWay]);
        open.chain(self.damaged_jobs()).collect()
    }

    /// The jobs of what was cut short.
    pub(crate) fn damaged_jobs(&self) -> impl Iterator<Item = usize> {
        self.damaged.iter().filter_map(|name| self.job_of(name))
    }
}

/// True if the intent that was resumed has no record.
pub(crate) fn is_nothing(result: &Result<Answered, hopline::Error>) -> bool {
    result.as_ref().is_ok_and(|answered| answered.facts.nothing)
}

/// The name of a record that somebody was shown.
pub(crate) fn name_of(record: &RecordId) -> Option<Name> {
    let mut parts = record.0.splitn(3, '.');
    Some(Name::from(format!("{}.{}", parts.next()?, parts.next()?)))
}

/// A secret is shown.
pub(crate) const SHOWN: &str = "a secret is shown";

/// True if a text shows a secret.
pub(crate) fn shows(secrets: &BTreeSet<String>, text: &str) -> bool {
    secrets.iter().any(|secret| text.contains(secret.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::act::{Act, Leaves};
    use crate::delivery::{Delivery, StoreResult};
    use crate::time::HOUR;

    #[test]
    fn a_rotation_in_doubt_that_another_command_sends_once_more_first_stays_what_it_is() {
        let mut world = World::new(Kind::Agent.scope(), None, false).unwrap();
        world.start(Job::unnamed(Task::Create, 100), Manner::Usual).unwrap();
        world.settle_all().unwrap();
        // By then the session is active.
        world.pass(HOUR).unwrap();
        let (rotation, later) = (Job::unnamed(Task::Rotate, 0), Job::named(Task::Rotate, 0));
        world.start(rotation, Manner::Usual).unwrap();
        world.keep(0, StoreResult::Done).unwrap();
        world.deliver(0, Delivery::PageAfter).unwrap();
        let command = *world.process.as_ref().unwrap().commands.first_key_value().unwrap().0;
        world.act(&Act::Cancel(command)).unwrap();
        world.settle_all().unwrap();
        world.start(later, Manner::Usual).unwrap();
        let puts =
            |world: &World| matches!(world.process.as_ref().unwrap().out.front(), Some(Out::Store { call: StoreCall::Put { .. }, .. }));
        while !puts(&world) {
            world.keep(0, StoreResult::Done).unwrap();
        }
        world.act(&Act::Crash { leaves: Leaves::All }).unwrap();
        world.restart(0).unwrap();
        let [saved] = &world.saved()[..] else { panic!("one rotation is in doubt") };
        let about = world.about_of(&saved.record).unwrap();
        assert_eq!((world.jobs[about.job], world.checker.found(about).is_some()), (rotation, true));
        world.resume_all().unwrap();
        world.settle_all().unwrap();
    }
}
