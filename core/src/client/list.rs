//! What a store holds: shown to people page by page, resumed as a whole, or looked through for what a doubt may not have become.

use super::admit::Found;
use super::options::CallOptions;
use super::outbox::Pending;
use super::people::{UNDER_WAY, name_of};
use super::root::{Client, Command};
use super::types::{Outputs, Ticket};
use super::waiting::{Act, Listing, Purpose, Reading, Resume, Visit};
use crate::contract::agent::CreateSession;
use crate::contract::{Operation, Safety};
use crate::engine::{Answered, Phase, RecordId, phase_of};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{CommandId, Data, Holds, Listed, Name, Saved, SavedCall, SavedPage, StoreAnswer, StoreCall, User, Version, Whose};
use crate::time::Now;
use crate::wire::Facts;

/// So many are resumed at a time.
const AT_ONCE: usize = 16;

/// Marks the ticket of [`Client::saved`].
#[derive(Debug, Clone, Copy)]
pub enum SavedRecords {}

impl Outputs for SavedRecords {
    type Output = SavedPage;

    fn read(answered: Answered) -> Result<SavedPage, super::types::Misfit> {
        answered.raw.read().map_err(|error| Box::new((answered, error)))
    }
}

/// Marks the ticket of [`Client::resume_all`]: its answer are the commands that have ended, whose results are to be taken.
#[derive(Debug, Clone, Copy)]
pub enum Resumed {}

impl Outputs for Resumed {
    type Output = Vec<CommandId>;

    fn read(answered: Answered) -> Result<Vec<CommandId>, super::types::Misfit> {
        answered.raw.read().map_err(|error| Box::new((answered, error)))
    }
}

impl Client {
    /// A page of what the store holds, behind that name. Nothing is sent, and nothing claimed.
    pub fn saved(&mut self, after: Option<Name>) -> Ticket<SavedRecords> {
        let command = self.command_for("saved");
        self.list(Listing { command, what: Reading::Page }, after, false);
        Ticket::of(command)
    }

    /// Goes on with what no living client has, 16 at a time, beginning at a random entry: with every doubt that can be sent again, and with
    /// the sessions and orders that were begun without an intent or key of the caller's. Those with one are left to whoever starts it.
    /// Its answer are the commands that have ended, whose results are to be taken.
    pub fn resume_all(&mut self, options: CallOptions) -> Ticket<Resumed> {
        if let Err(error) = options.check_resume() {
            return Ticket::of(self.reject(error, None));
        }
        let command = self.command_for("resume_all");
        let what = Reading::Open { found: Vec::new(), options: Box::new(options) };
        self.list(Listing { command, what }, None, true);
        Ticket::of(command)
    }

    /// Looks through what other records stand for, before something is done about one.
    pub(super) fn scan(&mut self, command: CommandId, name: Name, act: Act) {
        self.list(Listing { command, what: Reading::Others(name, Box::new(act)) }, None, false);
    }

    fn list(&mut self, listing: Listing, after: Option<Name>, open: bool) {
        let command = Some(listing.command);
        let number = self.waiting.listings.insert(listing);
        self.push_store(Pending::List(number), command, StoreCall::List { space: self.account.space.clone(), after, open });
    }

    /// Gives up what reads a list, or resumes what is in it. What was begun with it ends by what is known, and nobody is told.
    pub(super) fn stop_listing(&mut self, command: CommandId, now: Now) {
        let Some(number) = self.waiting.listings.iter().find(|(_, listing)| listing.command == command).map(|(number, _)| *number) else {
            return;
        };
        self.waiting.listings.remove(&number);
        let is_part = |(id, known): (&CommandId, &Command)| (known.part_of == Some(number)).then_some(*id);
        let parts: Vec<CommandId> = self.commands.iter().filter_map(is_part).collect();
        for part in parts {
            if !self.abandon(part) {
                self.cancel(part, now);
            }
        }
        let operation = self.commands.get(&command).map_or("list", |command| command.operation);
        let error = Error::new(Kind::Cancelled, Effect::None, operation, "was cancelled; `saved` shows what is under way", Advice::Nothing);
        self.complete(command, Err(error));
    }

    /// A page was read, or could not be.
    pub(super) fn on_listed(&mut self, number: u32, answer: StoreAnswer) {
        let Some(Listing { command, what }) = self.waiting.listings.remove(&number) else { return };
        let StoreAnswer::Listed { entries, more } = answer else {
            let operation = self.commands.get(&command).map_or("saved", |command| command.operation);
            let what = "could not be done, because the store could not be read";
            return self.complete(command, Err(Error::new(Kind::Store, Effect::None, operation, what, Advice::MendStore)));
        };
        let after = entries.last().filter(|_| more).map(|listed| listed.name.clone());
        match what {
            Reading::Page => {
                let entries = entries.into_iter().filter_map(|listed| self.shown(&listed)).collect();
                let page = serde_json::to_string(&SavedPage { entries, after }).unwrap_or_default();
                self.complete(command, Ok(Answered { raw: page.parse().unwrap_or_default(), ..Answered::of(Facts::default()) }));
            }
            Reading::Open { mut found, options } => {
                found.extend(entries.into_iter().filter(|listed| self.is_to_resume(listed)).map(|listed| listed.name));
                if after.is_some() {
                    return self.list(Listing { command, what: Reading::Open { found, options } }, after, true);
                }
                if !found.is_empty() {
                    let at = usize::try_from(self.means.dice.jitter()).unwrap_or_default() % found.len();
                    found.rotate_left(at);
                }
                found.reverse();
                let what = Reading::Resuming { waiting: found, out: 0, ended: Vec::new(), options };
                self.waiting.listings.put_back(number, Listing { command, what });
                self.resume_more(number);
            }
            Reading::Others(name, mut act) => {
                act.others.extend(entries.iter().filter_map(|listed| self.stands_for(listed)));
                match after {
                    Some(after) => self.list(Listing { command, what: Reading::Others(name, act) }, Some(after), false),
                    None => self.visit(&name, Visit::new(Some(command), Purpose::Act(act))),
                }
            }
            Reading::Resuming { .. } => {}
        }
    }

    fn read_listed(&mut self, listed: &Listed) -> Found {
        self.found(&listed.data)
    }

    /// Whether it is to be resumed with all others. Slots of pools are left to their pools.
    fn is_to_resume(&mut self, listed: &Listed) -> bool {
        if listed.name.is_of_a_pool() {
            return false;
        }
        let Found::Data(data) = self.read_listed(listed) else { return false };
        let named = listed.name.is_callers();
        let in_doubt = data.call.as_ref().is_some_and(|call| call.order_no.is_none() && can_resume(call));
        let open = data.session.as_ref().is_some_and(|session| phase_of(session.status.as_deref(), &session.ends) != Phase::Ended);
        let order = data.call.as_ref().is_some_and(|call| call.order_no.is_some());
        listed.whose == Whose::Free && (in_doubt || ((open || order) && !named))
    }

    /// Begins the next ones, as long as there are and not too many are under way.
    fn resume_more(&mut self, number: u32) {
        loop {
            let Some(Listing { command, what: Reading::Resuming { waiting, out, ended, options } }) =
                self.waiting.listings.get_mut(&number)
            else {
                return;
            };
            if *out >= AT_ONCE {
                return;
            }
            let Some(name) = waiting.pop() else {
                if *out > 0 {
                    return;
                }
                let (command, ended) = (*command, std::mem::take(ended));
                self.waiting.listings.remove(&number);
                let raw = serde_json::to_string(&ended).unwrap_or_default().parse().unwrap_or_default();
                return self.complete(command, Ok(Answered { raw, ..Answered::of(Facts::default()) }));
            };
            *out += 1;
            let options = (**options).clone();
            let child = self.command_for("resume");
            if let Some(known) = self.commands.get_mut(&child) {
                known.part_of = Some(number);
            }
            let resume = Resume { options, intent: None };
            self.visit(&name, Visit::new(Some(child), Purpose::Resume(Box::new(resume))));
        }
    }

    /// One of those that are resumed together has ended. What another client has is passed over.
    pub(super) fn part_ended(&mut self, number: u32, child: CommandId) {
        // What a job was begun for may have been done.
        let visit = self.commands.get(&child).filter(|command| command.job.is_none());
        let result = visit.and_then(|command| command.ended.as_deref()).map(|ended| &ended.result);
        let passed_over = matches!(result, Some(Err(error)) if error.kind == Kind::Busy || error.kind == Kind::Misuse);
        if passed_over {
            self.commands.remove(&child);
        }
        let Some(Listing { what: Reading::Resuming { out, ended, .. }, .. }) = self.waiting.listings.get_mut(&number) else {
            self.abandon(child);
            return;
        };
        *out = out.saturating_sub(1);
        if !passed_over {
            ended.push(child);
        }
        self.resume_more(number);
    }

    /// What another record stands for.
    fn stands_for(&mut self, listed: &Listed) -> Option<(String, String, RecordId)> {
        let Found::Data(data) = self.read_listed(listed) else { return None };
        let record = listed.name.at(Version::of(&listed.data));
        let (operation, facts) = match (data.session, data.call, data.done) {
            (Some(session), ..) => (CreateSession::ENDPOINT.name.to_owned(), Facts { session_id: Some(session.id), ..Facts::default() }),
            (_, Some(call), _) => (call.operation, Facts { order_no: call.order_no, ..Facts::default() }),
            (.., Some(done)) => (done.operation, done.facts),
            _ => return None,
        };
        let became = name_of(&operation, &facts)?;
        Some((operation, became, record))
    }

    /// One name as people are shown it. A result that waits to be taken is nobody's business yet.
    fn shown(&mut self, listed: &Listed) -> Option<Saved> {
        let user = self.journal.user(&listed.name).cloned();
        if user == Some(User::Result) {
            return None;
        }
        let record = listed.name.at(Version::of(&listed.data));
        let mut saved = match self.read_listed(listed) {
            Found::Data(data) => of_data(&data, record, listed.whose),
            Found::Bad(bad, intent) => {
                Saved { intent, reason: Some(bad.as_str().to_owned()), ..empty(record, listed.whose, "unknown", Holds::Refused) }
            }
            Found::Nothing => return None,
        };
        let is_at_work = matches!(user, Some(User::Job(_))) || listed.whose == Whose::Other && saved.holds == Holds::InDoubt;
        if is_at_work {
            (saved.holds, saved.in_doubt_since, saved.settle_from) = (Holds::UnderWay, None, None);
        }
        if let Some(User::Session(id)) = &user {
            saved.status = self.sessions.get(id).and_then(|tracked| Some(tracked.shown.status.as_ref()?.to_string())).or(saved.status);
        }
        Some(saved)
    }
}

fn empty(record: RecordId, whose: Whose, operation: &str, holds: Holds) -> Saved {
    Saved {
        record,
        whose,
        operation: operation.to_owned(),
        intent: None,
        session_id: None,
        order_no: None,
        status: None,
        holds,
        reason: None,
        in_doubt_since: None,
        settle_from: None,
    }
}

fn of_data(data: &Data, record: RecordId, whose: Whose) -> Saved {
    let intent = data.intent.clone();
    if let Some(session) = &data.session {
        let over = phase_of(session.status.as_deref(), &session.ends) == Phase::Ended;
        let holds = if over { Holds::Accepted } else { Holds::Session };
        let of = empty(record, whose, CreateSession::ENDPOINT.name, holds);
        return Saved { intent, session_id: Some(session.id.clone()), status: session.status.clone(), ..of };
    }
    if let Some(call) = &data.call {
        let holds = match call {
            SavedCall { order_no: Some(_), .. } => Holds::Order,
            call if can_resume(call) => Holds::InDoubt,
            _ => Holds::InDoubtForGood,
        };
        let in_doubt = call.order_no.is_none();
        let since = call.doubt_since.unwrap_or(data.at.unix);
        return Saved {
            intent,
            session_id: call.session_id.clone(),
            order_no: call.order_no.clone(),
            in_doubt_since: in_doubt.then_some(since),
            settle_from: in_doubt.then(|| data.at.unix.saturating_add(UNDER_WAY)),
            ..empty(record, whose, &call.operation, holds)
        };
    }
    let (operation, facts) = data.done.as_ref().map(|done| (done.operation.as_str(), done.facts.clone())).unwrap_or_default();
    Saved {
        intent,
        session_id: facts.session_id,
        order_no: facts.order_no,
        status: facts.status,
        ..empty(record, whose, operation, Holds::Accepted)
    }
}

/// Whether a call can be sent again at all.
pub(super) fn can_resume(call: &SavedCall) -> bool {
    let once = [crate::contract::Api::Agent, crate::contract::Api::Reseller]
        .into_iter()
        .any(|api| call.endpoint(api).is_some_and(|endpoint| endpoint.safety == Safety::AtMostOnce));
    !call.secret && !call.spent && !once
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BUY, NOW, agent, go_on};
    use super::*;
    use crate::state::Memory;

    /// How many sessions a client goes on with that finds one under a name of this kind.
    fn resumed(kind: char) -> usize {
        const ACTIVE: &str = r#"{"success":true,"data":{"session_id":"s-1","session_type":"dynamic","status":"active"}}"#;
        let (mut buyer, mut disk) = (agent(7, true), Memory::default());
        buyer.start_json("open_session", BUY, CallOptions::default());
        go_on(&mut buyer, &mut disk, NOW, |_| (202, ACTIVE.to_owned()));
        buyer.release_session("s-1");
        go_on(&mut buyer, &mut disk, NOW, |request| panic!("{} is sent", request.url));
        let list = StoreCall::List { space: buyer.account.space.clone(), after: None, open: true };
        let StoreAnswer::Listed { entries, .. } = disk.call(list, NOW.unix, 0) else { panic!("is listed") };
        let mut disk = Memory::default();
        for Listed { name, data, .. } in entries {
            let name = Name::from(name.to_string().replacen(".r", &format!(".{kind}"), 1));
            disk.call(StoreCall::Put { name, data, new: true, keep_for: None, release: true }, NOW.unix, 0);
        }
        let mut client = agent(8, true);
        let all = client.resume_all(CallOptions::default());
        go_on(&mut client, &mut disk, NOW, |_| (200, ACTIVE.to_owned()));
        client.take(all).expect("has completed").expect("is read").len()
    }

    #[test]
    fn slots_of_pools_are_left_to_their_pools() {
        assert_eq!((resumed('r'), resumed('p')), (1, 0));
    }
}
