//! The client's methods. Each gives the router one thing to do; the router then does whatever follows from it, before the method returns.

use crate::client::begin::order::PlaceOrder;
use crate::client::requests::{ActKind, Settlement};
use crate::client::router::Router;
use crate::client::sessions::session::OpenSession;
use crate::client::types::{Misuse, Outcome, Outputs, Step, Taken, Ticket, Whole};
use crate::contract::agent::CreateSession;
use crate::contract::reseller::CreateStaticOrder;
use crate::contract::{AnyRequest, Operation, Reconciliation, Secret, json_of};
use crate::engine::{Answered, RecordId, Then};
use crate::options::{CallOptions, ClientOptions};
use crate::policy::Error;
use crate::state::{CommandId, Name, SavedPage, Seen, StepId, Verdict};
use crate::time::Now;

/// The client of one account. The proof branches it; nobody else copies one, since each step is to be answered once.
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub struct Client {
    pub(super) router: Router,
}

/// Says how much there is, and nothing of what it is.
impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("base_url", &self.router.service.base.as_str())
            .field("commands", &self.router.commands.len())
            .field("sessions", &self.router.sessions.len())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client. `entropy` is 16 bytes from the host's own generator, new ones for each client: keys are made from them.
    pub fn new(options: ClientOptions, entropy: [u8; 16]) -> Result<Client, Error> {
        Ok(Client { router: Router::new(options, entropy)? })
    }

    /// Does something, and all that follows from it.
    pub(super) fn route<T>(&mut self, act: impl FnOnce(&mut Router) -> T) -> T {
        debug_assert!(self.router.deferred.is_empty(), "each entry carries out what it leads to");
        let value = act(&mut self.router);
        self.router.carry_out_all();
        value
    }

    pub(crate) fn command_operation(&self, command: CommandId) -> Option<&'static str> {
        self.router.commands.operation(command)
    }

    /// A command that ended before it began.
    pub(crate) fn reject(&mut self, error: Error, intent: Option<String>) -> CommandId {
        self.route(|router| router.reject(error, intent))
    }
}

/// The drive contract.
impl Client {
    /// Returns the next step. Drain it until [`Step::Wait`].
    pub fn poll(&mut self, now: Now) -> Step {
        self.router.poll(now)
    }

    /// Takes in what came of a step. An unknown or repeated id is an error and changes nothing.
    pub fn resolve(&mut self, id: StepId, outcome: Outcome<'_>, now: Now) -> Result<(), Misuse> {
        self.route(|router| router.resolve(id, outcome, now))
    }

    /// Resolves a Send that was not sent, since a header of the caller's own can't be sent with it; `rule` says which one and why,
    /// as the end of a sentence. Its command ends at once.
    pub fn refuse_headers(&mut self, id: StepId, rule: &str, now: Now) -> Result<(), Misuse> {
        self.route(|router| router.refuse_headers(id, rule, now))
    }

    /// Reports claims that have ended while this client lives: of these names, or of all. Must be called before a claim that was made
    /// meanwhile is answered, or that one would be forgotten, too. Operations under these names end as after a lost put; a session with a
    /// handle is claimed again, and given up if another client owns it.
    pub fn lost(&mut self, names: Option<&[Name]>, now: Now) {
        self.route(|router| router.claims_have_ended(names, now));
    }

    /// The token that is used at present: for a safe place of the host's, to start from next time.
    pub fn token(&self) -> Option<&Secret> {
        self.router.shared.tokens.token()
    }
}

/// Commands begin.
impl Client {
    /// Starts an operation. Its faults come back as its result.
    pub fn start<O: Operation>(&mut self, operation: O, options: CallOptions) -> Ticket<O> {
        let params = json_of(&operation);
        Ticket::of(self.route(|router| router.start(O::ENDPOINT, &params, Then::End, options)))
    }

    /// Starts an operation by its name, with its parameters as a JSON object: what every binding calls. Beside the
    /// operations of the table there are `open_session` (the parameters of `create_session`), `wait_session`
    /// (`session_id`), `place_order` (those of `create_static_order`), `wait_order` (`order_no`), `reconcile` (`record`) and
    /// `request` ([`AnyRequest`]).
    pub fn start_json(&mut self, operation: &str, params: &str, options: CallOptions) -> CommandId {
        self.route(|router| router.start_json(operation, params, options))
    }

    /// Starts a request that the table does not have.
    pub fn request(&mut self, request: AnyRequest, options: CallOptions) -> Ticket<AnyRequest> {
        Ticket::of(self.route(|router| router.start_any(&json_of(&request), options)))
    }

    /// Buys a session and waits until it is usable, over, or the deadline has come. The session lives on in the client.
    pub fn open_session(&mut self, request: CreateSession, options: CallOptions) -> Ticket<OpenSession> {
        Ticket::of(self.route(|router| router.start(CreateSession::ENDPOINT, &json_of(&request), Then::Follow, options)))
    }

    /// Waits for a session that is known by its id, as `open_session` does after its purchase, and for its username and
    /// password unless [`CallOptions::credentials`] says otherwise.
    pub fn wait_session(&mut self, session_id: &str, options: CallOptions) -> Ticket<OpenSession> {
        Ticket::of(self.route(|router| router.watch(session_id, options)))
    }

    /// Places a static order and waits until its proxies can be used, it has ended, or the deadline has come. The order is placed once:
    /// with an unknown effect it stays in doubt, and `reconcile` shows candidates for its result.
    pub fn place_order(&mut self, request: CreateStaticOrder, options: CallOptions) -> Ticket<PlaceOrder> {
        Ticket::of(self.route(|router| router.start(CreateStaticOrder::ENDPOINT, &json_of(&request), Then::Follow, options)))
    }

    /// Waits for a static order that is known by its number, as `place_order` does once it was placed.
    pub fn wait_order(&mut self, order_no: &str, options: CallOptions) -> Ticket<PlaceOrder> {
        Ticket::of(self.route(|router| router.watch_order(order_no, options)))
    }

    /// Stops further sends of a command. Returns the request that is out if no other command waits for it: a host aborts it and resolves it
    /// as failed. An operation that was not sent ends without effect; one that may have been sent stays in doubt and can be resumed.
    pub fn cancel(&mut self, command: CommandId, now: Now) -> Option<StepId> {
        self.route(|router| {
            router.tick(now);
            router.cancel(command)
        })
    }
}

/// Commands end.
impl Client {
    /// Returns true if a command is known and has not completed.
    pub fn is_pending(&self, command: CommandId) -> bool {
        self.router.commands.is_pending(command)
    }

    /// The typed result of a command that completed, once.
    pub fn take<O: Outputs>(&mut self, ticket: Ticket<O>) -> Option<Result<O::Output, Error>> {
        let result = self.take_to_read(ticket.command)?;
        Some(result.and_then(|taken| {
            let operation = taken.operation;
            let ((), answered) = taken.read(&mut ())?;
            O::read(answered).map_err(|misfit| {
                let (answered, error) = *misfit;
                crate::client::types::misfit(operation, answered, &format!("line {} column {}", error.line(), error.column()))
            })
        }))
    }

    /// The untyped result of a command that completed, once.
    pub fn take_answer(&mut self, command: CommandId) -> Option<Result<Answered, Error>> {
        self.route(|router| router.take_answer(command))
    }

    /// The same, to be read as what it is.
    pub fn take_to_read(&mut self, command: CommandId) -> Option<Result<Taken, Error>> {
        let operation = self.command_operation(command)?;
        Some(self.take_answer(command)?.map(|answered| Taken { operation, answered }))
    }

    /// The result of a command that completed, left where it is until it is [taken](Self::take_answer) or
    /// [abandoned](Self::abandon).
    pub fn result(&self, command: CommandId) -> Option<&Result<Answered, Error>> {
        self.router.commands.result(command)
    }

    /// The same, to be read as what it is.
    pub fn result_to_read(&self, command: CommandId) -> Option<Result<Taken, Error>> {
        let operation = self.command_operation(command)?;
        Some(self.result(command)?.clone().map(|answered| Taken { operation, answered }))
    }

    /// The command of [`resume_all`](Self::resume_all) for which the client began this one, while it runs: a host does its work in the name of
    /// that one's caller.
    pub fn caller_of(&self, command: CommandId) -> Option<CommandId> {
        self.router.caller_of(command)
    }

    /// Returns true if nothing depends on who takes the result of a command: no record, session, pool, lease or other result.
    pub fn is_free_to_take(&self, command: CommandId) -> bool {
        self.router.commands.is_free_to_take(command)
    }

    /// Drops the result of a command that completed, because its caller is gone. A write without a name of its caller's that was done,
    /// or may have been, keeps its record: [`saved`](Self::saved) shows it, [`resume`](Self::resume) gives what it was answered with, and
    /// [`forget`](Self::forget) drops it. Returns whether there was a result.
    pub fn abandon(&mut self, command: CommandId) -> bool {
        let has_ended = self.result(command).is_some();
        self.route(|router| router.abandon(command));
        has_ended
    }
}

/// Sessions.
impl Client {
    /// Returns true if the client follows a session: it has a record of it, and the session has not ended as far as it knows.
    pub fn follows(&self, session: &str) -> bool {
        self.router.sessions.name(session).is_some()
    }

    /// Follows a session no more, without ending it: another client may have it then. Returns whether it was followed.
    pub fn release_session(&mut self, session: &str) -> bool {
        self.route(|router| router.release_session(session))
    }

    /// Turns what was seen through a session into advice, and sends nothing: to rotate is the caller's decision. If that
    /// decision was made by [`CallOptions::auto_rotate`], the session is rotated where the advice would be to, or the
    /// rotation that is under way is joined. `None` if this client does not follow the session.
    pub fn observe(&mut self, session_id: &str, seen: Seen, now: Now) -> Option<Verdict> {
        self.route(|router| router.observe(session_id, seen, now))
    }
}

/// The entries of the store.
impl Client {
    /// Resumes a record: a keyed call sends the same bytes with the same key, a session or an order is waited for. An operation that can't
    /// be sent again comes back in doubt. An accepted operation returns its answer. The options apply to the rest of the operation: omitted
    /// ones have their defaults, not the values of the first start.
    pub fn resume(&mut self, record: &RecordId, options: CallOptions) -> CommandId {
        self.route(|router| router.resume(record, options))
    }

    /// Goes on with what an intent stands for: a doubt is resumed, a call that is under way is joined, a session or an order is waited
    /// for, an accepted answer is given again. Nothing new is ever bought: where it stands for nothing, the facts of the
    /// answer say so.
    pub fn resume_intent(&mut self, intent: &str, options: CallOptions) -> CommandId {
        self.route(|router| router.resume_intent(intent, options))
    }

    /// Goes on with what no living client has, 16 at a time, beginning at a random entry: with purchases, payments and terminations in doubt
    /// that can be sent again, and with the sessions and orders that were begun without an intent or key of the caller's. Those with one are
    /// left to whoever starts it. Settings and rotations in doubt are left too, since somebody may have changed them again, and so are
    /// renewals of sessions that were ended: resume them by their record.
    /// Its answer are the commands that have ended, whose results are to be taken.
    pub fn resume_all(&mut self, options: CallOptions) -> Ticket<Whole<Vec<CommandId>>> {
        Ticket::of(self.route(|router| router.resume_all(options)))
    }

    /// A page of what the store holds, behind that name. Nothing is sent, and nothing claimed.
    pub fn saved(&mut self, after: Option<Name>) -> Ticket<Whole<SavedPage>> {
        Ticket::of(self.route(|router| router.saved(after)))
    }

    /// Looks up an operation in doubt: reads the lists of the contract, and returns candidates, as the service gave them, with the
    /// parameters that they have with the same values. Nothing is decided and only reads are sent; [`settle`](Self::settle) ends the doubt
    /// once a person knows the outcome.
    pub fn reconcile(&mut self, record: &RecordId, options: CallOptions) -> Ticket<Whole<Reconciliation>> {
        Ticket::of(self.route(|router| router.look_up(record, options)))
    }

    /// Settles a doubt by hand. The answer is true if there was a doubt. A record that has changed since it was read is an error and stays
    /// untouched. If the operation did not happen, the record is deleted and the intent is free. If it happened, the intent stands for the
    /// result from then on: a new start of the intent, or a resume of the record, waits for a session or static order. A result that only a
    /// person named, and the service has not confirmed, may be settled once more.
    pub fn settle(&mut self, record: &RecordId, settlement: Settlement) -> Ticket<Whole<bool>> {
        let scans = matches!(settlement, Settlement::Became(_));
        Ticket::of(self.route(|router| router.act_on(record, ActKind::Settle(settlement), scans)))
    }

    /// Forgets a session, an order that no call waits for, an accepted operation, or a record that can't be read: the record is deleted. An
    /// operation under way or in doubt stays, and so does a record of another account or base URL, unless this client was made with
    /// [`same_account`](super::ClientOptions::same_account). The answer is true if something was forgotten. A session that this client
    /// holds and that is not over is refused: it may cost money, and its intent would buy another one.
    /// [Terminate](crate::contract::agent::TerminateSession) it, or [release](Self::release_session) it first.
    pub fn forget(&mut self, record: &RecordId) -> Ticket<Whole<bool>> {
        Ticket::of(self.route(|router| router.act_on(record, ActKind::Forget, false)))
    }
}
