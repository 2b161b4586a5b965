//! What people do about what the store holds: a doubt is closed, or looked into; what is of no more use is forgotten. Each is a command
//! that has the name for as long as it takes.

use super::admit::Found;
use super::job::{Entry, headers};
use super::keep::kept_for;
use super::options::CallOptions;
use super::root::Client;
use super::types::Ticket;
use super::waiting::{Act, After, Finished, Last, Left, Purpose, Settlement, Visit, What};
use crate::contract::Operation;
use crate::contract::agent::{CreateSession, GetSession, TerminateSession};
use crate::engine::{Answered, Job, Lookup, RecordId, Subject, bad_order_no, requested_type};
use crate::policy::{Advice, Effect, Error, Kind, Report, Rule, lookups};
use crate::state::{CommandId, Data, Done, Name, SavedCall, SavedSession};
use crate::time::Millis;
use crate::wire::{Built, Facts, build};

/// A message may be under way for so long after it was last sent, and its sender may have slept until then.
pub(super) const UNDER_WAY: Millis = 60 * 60 * 1000;

/// Marks the ticket of what answers whether there was something to do: [`Client::settle`], [`Client::forget`].
#[derive(Debug, Clone, Copy)]
pub enum Acted {}

impl super::types::Outputs for Acted {
    type Output = bool;

    fn read(answered: Answered) -> Result<bool, super::types::Misfit> {
        answered.raw.read().map_err(|error| Box::new((answered, error)))
    }
}

/// What there is to settle about a record.
enum Open<'a> {
    Doubt(&'a SavedCall),
    /// A session that only a person named: the service has not shown it yet.
    Session(&'a SavedSession),
    /// Something that a person said has happened, without an answer of the service.
    Said(&'a Done),
}

impl Client {
    /// Closes a doubt by hand. Its answer is whether there was a doubt. A record that has changed since it was looked at is not touched:
    /// that is an error. Of what did not happen the record goes and the intent is free. What happened is what the intent stands for from
    /// then on: a session or static order that was to be waited for is waited for by starting the intent again, or by resuming the
    /// record. What only a person named, and the service has not shown, may be settled once more.
    pub fn settle(&mut self, record: &RecordId, settlement: Settlement) -> Ticket<Acted> {
        let scans = matches!(settlement, Settlement::Became(_));
        Ticket::of(self.act_on(record, What::Settle(settlement), scans))
    }

    /// Forgets a session, an order that nobody waits for, what was accepted, or a record that can't be read: the record goes. What is
    /// under way or in doubt stays. Its answer is whether something was forgotten.
    pub fn forget(&mut self, record: &RecordId) -> Ticket<Acted> {
        Ticket::of(self.act_on(record, What::Forget, false))
    }

    pub(super) fn look_up(&mut self, record: &RecordId, options: CallOptions) -> CommandId {
        let error = match (options.refusal(), &options.intent) {
            (Some((field, rule)), _) => Some((field, rule)),
            (_, Some(_)) => Some(("intent", "names a write, and this operation only reads")),
            _ if options.until.is_some() => Some(("until", "belongs to a read that is repeated")),
            _ if options.idempotency_key.is_some() => Some(("idempotency_key", "is not an option of this operation")),
            _ => None,
        };
        match error {
            Some((field, rule)) => self.reject(Error::invalid("reconcile", field, rule), options.intent),
            None => self.act_on(record, What::Reconcile(Box::new(options)), true),
        }
    }

    fn act_on(&mut self, record: &RecordId, what: What, scans: bool) -> CommandId {
        let Some((name, version)) = Name::of(record) else {
            let act = Act { version: None, what, others: Vec::new() };
            let error = Error::new(Kind::Misuse, Effect::None, act.operation(), "this is not the name of a record", Advice::ChangeRequest);
            return self.reject(error, None);
        };
        let act = Act { version, what, others: Vec::new() };
        let command = self.command_for(act.operation());
        match scans {
            true => self.scan(command, name, act),
            false => self.visit(&name, Visit::new(Some(command), Purpose::Act(Box::new(act)))),
        }
        command
    }

    /// A job is at work under the name: there is no doubt, and nothing to forget.
    pub(super) fn act_on_job(&mut self, command: CommandId, act: Act) {
        let result = match act.what {
            What::Reconcile(_) => Err(no_doubt()),
            What::Settle(_) | What::Forget => Ok(said(false)),
        };
        self.complete(command, result);
    }

    /// Does it.
    pub(super) fn act(&mut self, name: &Name, command: CommandId, act: Act, found: &Found) {
        let version = self.journal.slot(name).map(|slot| slot.version).unwrap_or_default();
        let is_there = !matches!(found, Found::Nothing);
        if is_there
            && act.version.as_ref().is_some_and(|looked_at| *looked_at != version.to_string())
            && self.means.rules.holds(Rule::VersionIsNamed)
        {
            let what = "was not done, because the record has changed since you looked at it; look again";
            let report = Error::new(Kind::Refused, Effect::None, act.operation(), what, Advice::CheckAccount).into_report();
            let error = Error::from(Report { record: Some(name.at(version).0), ..report });
            return self.finish_visit(command, Err(error), None, name);
        }
        let others = act.others;
        match (act.what, found) {
            (What::Forget, _) => self.forget_found(name, command, found),
            (What::Settle(settlement), Found::Data(data)) => self.settle_found(name, command, settlement, data, &others),
            (What::Settle(_), _) => self.finish_visit(command, Ok(said(false)), None, name),
            (What::Reconcile(options), Found::Data(data)) => self.reconcile_found(name, command, &options, data, others),
            (What::Reconcile(_), _) => self.finish_visit(command, Err(no_doubt()), None, name),
        }
    }

    /// A record goes, or is written, and its name is let go of: then that is said.
    fn acted(&mut self, name: &Name, command: CommandId, last: Last, spends: Vec<u32>) {
        let mut after: Vec<After> = spends.into_iter().map(After::Spend).collect();
        after.push(After::Name(name.clone()));
        self.journal.give(name, None);
        let own = Some(name.clone());
        self.finish_after(Finished {
            commands: vec![command],
            result: Ok(said(true)),
            own,
            left: Left::default(),
            last,
            is_act: true,
            after,
        });
    }

    fn forget_found(&mut self, name: &Name, command: CommandId, found: &Found) {
        match found {
            Found::Nothing => return self.finish_visit(command, Ok(said(false)), None, name),
            Found::Data(data) if data.call.as_ref().is_some_and(|call| call.order_no.is_none()) => {
                return self.finish_visit(command, Ok(said(false)), None, name);
            }
            Found::Data(data) => {
                if let Some(session) = &data.session {
                    self.give_up_session(&session.id, name);
                }
            }
            Found::Bad(..) => {}
        }
        self.delete(name, false);
        self.acted(name, command, Last::Erase, Vec::new());
    }

    fn settle_found(
        &mut self,
        name: &Name,
        command: CommandId,
        settlement: Settlement,
        data: &Data,
        others: &[(String, String, RecordId)],
    ) {
        let open = match (&data.call, &data.session, &data.done) {
            (Some(call), ..) if call.order_no.is_none() || call.unanswered => Open::Doubt(call),
            (_, Some(session), _) if session.only_named => Open::Session(session),
            (.., Some(done)) if done.facts.settled => Open::Said(done),
            _ => return self.finish_visit(command, Ok(said(false)), None, name),
        };
        match (settlement, open) {
            (Settlement::NotHappened { early }, open) => {
                let left = UNDER_WAY.saturating_sub(self.means.clock.at_least_since(data.at));
                if left > 0 && !early && self.means.rules.holds(Rule::HourBeforeNone) {
                    let what = "may still be under way: settle it as not happened after an hour, or with `early` if you know better";
                    let report = Error::new(Kind::Refused, Effect::None, "settle", what, Advice::Wait).into_report();
                    let retry_at = Some(self.means.clock.unix().saturating_add(left));
                    return self.finish_visit(command, Err(Error::from(Report { retry_at, ..report })), None, name);
                }
                let counted = if let Open::Doubt(call) = &open { call.counted.clone() } else { Vec::new() };
                if let Open::Session(session) = &open {
                    self.give_up_session(&session.id, name);
                }
                let spends = self.uncount(counted);
                self.delete(name, false);
                self.acted(name, command, Last::Erase, spends);
            }
            (Settlement::Happened, Open::Doubt(call)) if call.order_no.is_none() => {
                let facts = Facts { session_id: call.session_id.clone(), settled: true, ..Facts::default() };
                if call.operation == TerminateSession::ENDPOINT.name {
                    let gone = call.session_id.as_ref().and_then(|session| self.terminated(session));
                    gone.iter().for_each(|name| self.delete(name, true));
                }
                self.close(name, command, data, call, facts);
            }
            // It was named or said already, and that says more.
            (Settlement::Happened, _) => self.finish_visit(command, Ok(said(false)), None, name),
            (Settlement::Became(became), open) => self.settle_as(name, command, &became, data, open, others),
        }
    }

    /// It happened, and this is what it became.
    fn settle_as(
        &mut self,
        name: &Name,
        command: CommandId,
        became: &str,
        data: &Data,
        open: Open<'_>,
        others: &[(String, String, RecordId)],
    ) {
        let refuse = |rule: &str| Err(Error::invalid("settle", "became", rule));
        let (operation, given) = match &open {
            Open::Doubt(call) => (call.operation.as_str(), call.given),
            Open::Session(_) => (CreateSession::ENDPOINT.name, false),
            Open::Said(done) => (done.operation.as_str(), false),
        };
        let facts = match what_became(operation, became) {
            Ok(facts) => facts,
            Err(rule) => return self.finish_visit(command, refuse(&rule), None, name),
        };
        let known = |other: &&(String, String, RecordId)| {
            other.0 == operation && other.1 == became && Name::of(&other.2).is_none_or(|(other, _)| other != *name)
        };
        // Only a key of the caller's can have bought what another purchase bought, too.
        if others.iter().any(|other| known(&other)) && !given {
            let rule = "is what another record stands for, and no two operations became the same";
            return self.finish_visit(command, refuse(rule), None, name);
        }
        let named = |id: String, call: Option<&SavedCall>| SavedSession {
            id,
            session_type: call.and_then(|call| requested_type(&Built { body: call.body.clone(), ..Built::at(&call.target) })),
            credentials: call.is_some_and(|call| call.credentials),
            auto_rotate: call.is_some_and(|call| call.auto_rotate),
            ends: call.map(|call| call.ends.clone()).unwrap_or_default(),
            only_named: true,
            ..SavedSession::default()
        };
        let opens = match &open {
            Open::Doubt(call) => call.opens.then_some(Some(*call)),
            Open::Session(_) => Some(None),
            Open::Said(done) => done.opened.then_some(None),
        };
        let next = match (opens, facts.session_id.clone(), facts.order_no.clone(), &open) {
            (_, Some(id), _, Open::Session(session)) => Data { session: Some(SavedSession { id, ..(*session).clone() }), ..data.clone() },
            (Some(call), Some(id), ..) => Data { call: None, done: None, session: Some(named(id, call)), ..data.clone() },
            (Some(Some(call)), _, Some(order_no), _) => {
                let call = SavedCall { order_no: Some(order_no), unanswered: true, doubt_since: None, ..call.clone() };
                Data { call: Some(call), ..data.clone() }
            }
            (.., Open::Doubt(call)) => return self.close(name, command, data, call, facts),
            (.., Open::Said(done)) => Data { done: Some(Done { facts, ..(*done).clone() }), ..data.clone() },
            (.., Open::Session(_)) => return self.finish_visit(command, Ok(said(false)), None, name),
        };
        if let Open::Session(session) = &open {
            self.give_up_session(&session.id, name);
        }
        let keep_for = next.done.as_ref().and_then(kept_for);
        self.put(name, Data { at: self.means.clock.at(), ..next }, keep_for, true, None);
        self.acted(name, command, Last::Put, Vec::new());
    }

    /// It happened, and so much is known of it.
    fn close(&mut self, name: &Name, command: CommandId, data: &Data, call: &SavedCall, facts: Facts) {
        if !name.is_callers() {
            self.delete(name, false);
            return self.acted(name, command, Last::Erase, Vec::new());
        }
        let done = Done { operation: call.operation.clone(), facts, opened: call.opens, answer: None };
        let keep_for = kept_for(&done);
        let data = Data { done: Some(done), call: None, at: self.means.clock.at(), ..data.clone() };
        self.put(name, data, keep_for, true, None);
        self.acted(name, command, Last::Put, Vec::new());
    }

    fn reconcile_found(
        &mut self,
        name: &Name,
        command: CommandId,
        options: &CallOptions,
        data: &Data,
        others: Vec<(String, String, RecordId)>,
    ) {
        let Some(call) = data.call.as_ref().filter(|call| call.order_no.is_none()) else {
            return self.finish_visit(command, Err(no_doubt()), None, name);
        };
        if lookups(&call.operation).is_empty() {
            let what = format!("can't look up {}, since the service documents no list of it", call.operation);
            let error = Error::new(Kind::Refused, Effect::None, "reconcile", what, Advice::CheckAccount);
            return self.finish_visit(command, Err(error), None, name);
        }
        let mut fields = call.clues.clone();
        fields.extend(call.session_id.clone().map(|session| ("session_id".to_owned(), session)));
        let others = others.into_iter().filter(|(operation, ..)| *operation == call.operation).map(|(_, became, record)| (became, record));
        let policy = options.policy(&self.service.retry);
        let Some(mut lookup) = Lookup::new(&call.operation, fields, headers(options), policy) else {
            return self.finish_visit(command, Err(no_doubt()), None, name);
        };
        lookup.others = others.collect();
        let subject = Subject { operation: lookup.reads(), ..Subject::default() };
        self.begin(Entry::new(Job::Lookup(Box::new(lookup)), subject, options), command);
    }
}

/// Whether there was something to do.
fn said(there: bool) -> Answered {
    Answered { raw: there.to_string().parse().unwrap_or_default(), ..Answered::of(Facts::default()) }
}

fn no_doubt() -> Error {
    Error::new(Kind::Misuse, Effect::None, "reconcile", "is for a record in doubt, and this one is not", Advice::ChangeRequest)
}

/// What tells one outcome of an operation from another.
pub(super) fn name_of(operation: &str, facts: &Facts) -> Option<String> {
    match operation {
        "create_session" => facts.session_id.clone(),
        "create_static_order" | "create_dynamic_order" => facts.order_no.clone(),
        "create_recharge" => facts.order_id.clone(),
        "create_user" => facts.id.map(|id| id.to_string()),
        _ => None,
    }
}

/// Whether what an operation became has a name to settle it as.
pub(super) fn becomes(operation: &str) -> bool {
    matches!(operation, "create_session" | "create_static_order" | "create_dynamic_order" | "create_recharge" | "create_user")
}

/// What is known of an operation that became this, or why it can't be.
fn what_became(operation: &str, became: &str) -> Result<Facts, String> {
    if became.trim() != became {
        return Err("must not begin or end with a space".to_owned());
    }
    let name = || Some(became.to_owned());
    let number = || bad_order_no(became).map_or_else(|| Ok(name()), |rule| Err(rule.to_owned()));
    match operation {
        "create_session" => {
            let params = serde_json::json!({ "session_id": became }).to_string();
            build(GetSession::ENDPOINT, &params).map_err(|refusal| refusal.rule)?;
            // A session is more than its id, so there is no answer to read.
            Ok(Facts { session_id: name(), settled: true, ..Facts::default() })
        }
        "create_static_order" | "create_dynamic_order" => Ok(Facts { order_no: number()?, ..Facts::default() }),
        "create_recharge" => Ok(Facts { order_id: number()?, ..Facts::default() }),
        "create_user" => match became.parse() {
            Ok(id) => Ok(Facts { id: Some(id), ..Facts::default() }),
            Err(_) => Err("must be the number of a sub-user".to_owned()),
        },
        _ => Err("belongs to a new session, order, recharge or sub-user".to_owned()),
    }
}
