//! Moves of the client, each in one crossing: an input, and the steps that follow as the answer.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

use hopline::client::{CommandId, Name, RecordId};
use hopline::contract::endpoint;
use hopline::contract::pools::LeaseRef;
use hopline::pool::PoolClient;
use hopline::wire::{Expected, Received};
use hopline::{Now, Outcome};

use crate::packed::{Read, packed, read};
use crate::{Client, ClientError, FailureKind, Header, Sent, Step, StoreAnswer, Taken};

/// The most steps that come at once.
pub(crate) const MOST_STEPS: usize = 64;

/// The input before the steps are taken.
#[derive(uniffi::Enum)]
pub enum Move {
    /// None: the time has come, or there are more steps.
    Go,
    /// Start an operation.
    Start {
        /// The name of the operation.
        operation: String,
        /// The parameters, as JSON.
        params: String,
        /// The options, as JSON.
        options: String,
    },
    /// Resume a record.
    Resume {
        /// The record.
        record: String,
        /// The options, as JSON.
        options: String,
    },
    /// Resume an intent; the answer is `nothing` if the intent is not known.
    ResumeIntent {
        /// The intent.
        intent: String,
        /// The options, as JSON.
        options: String,
    },
    /// Resume everything that can be resumed. `raw` of the answer is a list of commands that have ended: take each.
    ResumeAll {
        /// The options, as JSON.
        options: String,
    },
    /// List the entries of the store. `raw` of the answer is a page, for `saved_page`; the next one is behind its `after`.
    Saved {
        /// The name after which the page begins; null for the first page.
        after: Option<String>,
    },
    /// Settle a doubt by hand. `raw` of the answer is true if there was one.
    Settle {
        /// The record.
        record: String,
        /// True if the operation took effect.
        happened: bool,
        /// The resulting session or order, if it is known.
        became: Option<String>,
        /// True to settle as not happened before an hour has passed.
        early: bool,
    },
    /// Forget a session, an accepted operation, or a record that can't be read. `raw` of the answer is true if something was forgotten.
    Forget {
        /// The record.
        record: String,
    },
    /// Report an observation through a session: `{"status":403}` or a word.
    Observe {
        /// The session.
        session_id: String,
        /// The observation, as JSON.
        seen: String,
    },
    /// Stop following a session, without ending it: another client may take it then.
    ReleaseSession {
        /// The session.
        session_id: String,
    },
    /// Report an observation through a lease, as `Observe` does for a session.
    ObserveLease {
        /// The pool.
        pool: u32,
        /// The lease.
        lease: i64,
        /// The observation, as JSON.
        seen: String,
        /// The Retry-After of the target.
        wait_ms: Option<i64>,
    },
    /// Discard the session of a lease, which is not lent again. The lease is still to be given back.
    DiscardLease {
        /// The pool.
        pool: u32,
        /// The lease.
        lease: i64,
    },
    /// Keep data of the callers' for the next lease of this exit, here or in another client. Refused if they are too long, or the lease is
    /// not valid any more.
    SetLeaseData {
        /// The pool.
        pool: u32,
        /// The lease.
        lease: i64,
        /// The data, an object of JSON.
        data: String,
    },
    /// Give a lease back.
    ReleaseLease {
        /// The pool.
        pool: u32,
        /// The lease.
        lease: i64,
    },
    /// Stop further sends of a command.
    Cancel {
        /// The command.
        command: u32,
    },
    /// The store's claims have ended while this client lives.
    Lost {
        /// The names; null for all.
        names: Option<Vec<String>>,
    },
    /// A Send was answered; its body comes beside this.
    Respond {
        /// The Send.
        step: u32,
        /// The HTTP status.
        status: u16,
        /// The headers that `response_headers` names.
        headers: Vec<Header>,
        /// True if the body was longer than the limit.
        truncated: bool,
    },
    /// A Send was not answered.
    Fail {
        /// The Send.
        step: u32,
        /// The reason.
        kind: FailureKind,
        /// The reach of the request.
        sent: Sent,
    },
    /// A Send was not sent, since a header of the caller's own can't be sent with it: its command ends at once.
    RefuseHeaders {
        /// The Send.
        step: u32,
        /// The reason, as the end of a sentence.
        rule: String,
    },
    /// The store has answered.
    Stored {
        /// The Store.
        step: u32,
        /// The answer.
        answer: StoreAnswer,
    },
    /// The results of these commands were read.
    Taken {
        /// The commands.
        commands: Vec<u32>,
    },
    /// Of `drive`: a Send that has a `patience` is about to begin; true if the store vouches for its claims. The answer is whether to send it:
    /// if not, it is over, and nothing is reported of it.
    Begin {
        /// The Send.
        step: u32,
        /// True if the store is sure of its claims.
        is_sure: bool,
    },
    /// Of `drive`: the owner's caller is gone. Nothing more is sent for its command, and an operation that took effect, or may have, keeps its
    /// record. Its Ended comes all the same.
    GiveUp,
    /// Of `drive`: the owner goes, after its Ended. If its caller has the results for certain they `has_heard` them, and the record may be
    /// deleted; otherwise it stays.
    Leave {
        /// True if the results are surely the caller's.
        has_heard: bool,
    },
    /// Of `drive`: close the client. Every command but those that end sessions is cancelled, and Finish comes once nobody is in it. It may be
    /// said again, with an earlier time.
    Close {
        /// The monotonic time at which all that still goes on is given up; null for none.
        ends_at: Option<i64>,
    },
    /// Of `drive`: nothing is sent and no store called until GoOn. The host waits until its calls of the store have ended, releases all names,
    /// and says Lost.
    Pause,
    /// Of `drive`: the pause is over.
    GoOn,
    /// Abandon the results of these commands. A write without an intent that took effect, or may have, stays in the saved entries; a lease
    /// goes back, and a pool is closed.
    Abandon {
        /// The commands.
        commands: Vec<u32>,
    },
}

/// The answer of a move, beside the steps.
#[derive(uniffi::Enum)]
pub enum MoveAnswer {
    /// Nothing.
    Nothing,
    /// The command that was started. Its faults come back as its result.
    Command {
        /// Its number.
        command: u32,
    },
    /// Of a cancelled command, the Send that is out: abort it, and report that it failed.
    Abort {
        /// The Send; null for none.
        step: Option<u32>,
    },
    /// Advice, packed; null if this client does not follow the session.
    Advice {
        /// The verdict.
        verdict: Option<Vec<u8>>,
    },
    /// Advice on a lease: `keep`, `give_back` or `wait`; null if the lease is not valid any more, or its session has another exit by now.
    LeaseAdvice {
        /// The word.
        word: Option<String>,
    },
    /// The answer to a question: true if the session was followed, the lease was valid, the Send is to be sent, or the store's answer fits.
    Was {
        /// The answer.
        so: bool,
    },
    /// Nothing was changed: an option or an answer to a step does not fit.
    Refused {
        /// The error, packed.
        error: Vec<u8>,
    },
    /// Of `drive`: nothing was begun, since the client is closed.
    Closed,
}

impl From<CommandId> for MoveAnswer {
    fn from(CommandId(command): CommandId) -> Self {
        MoveAnswer::Command { command }
    }
}

/// The result of a move.
#[derive(uniffi::Record)]
pub struct Moved {
    /// The answer.
    pub answer: MoveAnswer,
    /// The next steps, up to 64, of which a wait is the last; without a wait there are more. A command that has ended comes with its
    /// result, which stays until it is taken or abandoned, unless it is one of `taken`.
    pub steps: Vec<Step>,
    /// The commands among them whose result is taken already, since nothing depends on who takes it.
    pub taken: Vec<u32>,
}

/// The type that the answer of each Send is read as, by its step.
pub(crate) type Expecting = HashMap<u32, Expected>;

#[uniffi::export]
impl Client {
    /// Carries out a move, and takes the steps that follow. `body` is that of a response, and empty otherwise.
    pub fn advance(&self, what: Move, body: &[u8], unix_ms: i64, monotonic_ms: i64) -> Moved {
        let now = Now { unix: unix_ms, monotonic: monotonic_ms };
        let (answer, made) = self.answered(what, body, now);
        let (steps, taken) = self.next_steps(now, made);
        Moved { answer, steps, taken }
    }

    /// Carries out a move alone, for the vectors, which compare its answer before the steps are taken.
    pub fn act(&self, what: Move, body: &[u8], unix_ms: i64, monotonic_ms: i64) -> MoveAnswer {
        self.answered(what, body, Now { unix: unix_ms, monotonic: monotonic_ms }).0
    }

    /// Takes one step, for the vectors. The result of a command is left to `result`.
    pub fn poll(&self, unix_ms: i64, monotonic_ms: i64) -> Step {
        let step = self.poll_core(self.lock().client(), Now { unix: unix_ms, monotonic: monotonic_ms });
        Step::of(step, None)
    }
}

/// The method that is called, unless it is an operation of the table.
pub(crate) fn called_by(what: &Move) -> Option<String> {
    let Move::Start { operation, .. } = what else { return None };
    endpoint(operation).is_none().then(|| operation.clone())
}

impl Client {
    fn called(&self) -> MutexGuard<'_, HashMap<u32, String>> {
        self.called.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn expecting(&self) -> MutexGuard<'_, Expecting> {
        self.expecting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out a move. Returns the packed response, too.
    fn answered(&self, what: Move, body: &[u8], now: Now) -> (MoveAnswer, Option<Read>) {
        let mut made = None;
        let answer = self.do_move(what, body, now, &mut made);
        (answer.unwrap_or_else(|ClientError::Refused { error }| MoveAnswer::Refused { error }), made)
    }

    /// Reads a response here, and keeps the packed answer in `made` for its command.
    fn do_move(&self, what: Move, body: &[u8], now: Now, made: &mut Option<Read>) -> Result<MoveAnswer, ClientError> {
        if let Move::Respond { step, status, headers, truncated } = what {
            let headers: Vec<(&str, &str)> = headers.iter().map(|header| (header.name.as_str(), header.value.as_str())).collect();
            *made = self.received(step, Received { status, headers: &headers, body, truncated }, now)?;
            return Ok(MoveAnswer::Nothing);
        }
        if let Move::Abandon { commands } = &what {
            commands.iter().for_each(|command| _ = self.called().remove(command));
        }
        if let Move::Fail { step, .. } | Move::RefuseHeaders { step, .. } = &what {
            self.expecting().remove(step);
        }
        let called = called_by(&what);
        let mut core = self.lock();
        let answer = carry_out(core.client(), what, now)?;
        if let (Some(called), MoveAnswer::Command { command }) = (called, &answer) {
            self.called().insert(*command, called);
        }
        Ok(answer)
    }

    /// Reads a response without blocking the client, and passes it on. Returns the packed answer of a success.
    fn received(&self, step: u32, received: Received<'_>, now: Now) -> Result<Option<Read>, ClientError> {
        let expected = self.expecting().remove(&step);
        let Some(expected) = expected else {
            let Received { status, headers, body, truncated } = received;
            self.lock().client().resolve_text(step, Outcome::Response { status, headers, body, truncated }, now)?;
            return Ok(None);
        };
        let (response, made) = read(expected, received);
        self.lock().client().resolve_text(step, Outcome::Read(response), now)?;
        Ok(made)
    }

    /// Takes the next step. The type of a Send's answer is kept until the answer comes.
    fn poll_core(&self, client: &mut PoolClient, now: Now) -> hopline::Step {
        let step = client.poll(now);
        if let hopline::Step::Send { id, request, .. } = &step {
            self.expecting().insert(id.0, request.expects);
        }
        step
    }

    /// The steps, and the commands whose results were taken. `made` is the answer that one of them may have.
    fn next_steps(&self, now: Now, made: Option<Read>) -> (Vec<Step>, Vec<u32>) {
        let (mut steps, mut taken) = (Vec::new(), Vec::new());
        let mut core = self.lock();
        let client = core.client();
        while steps.len() < MOST_STEPS && !matches!(steps.last(), Some((hopline::Step::Wait { .. }, _))) {
            let step = self.poll_core(client, now);
            let result = match &step {
                hopline::Step::Completed { command } if client.is_free_to_take(*command) => {
                    taken.push(command.0);
                    client.take_to_read(*command)
                }
                hopline::Step::Completed { command } => client.result_to_read(*command),
                _ => None,
            };
            let called = if let hopline::Step::Completed { command } = &step { self.called().remove(&command.0) } else { None };
            steps.push((step, result.map(|result| (called, result))));
        }
        drop(core);
        // The client is not locked while answers are read.
        let made = made.as_ref();
        let of = |(called, result): (Option<String>, _)| Taken::of(called.as_deref(), result, made);
        let steps = steps.into_iter().map(|(step, result)| Step::of(step, result.map(of)));
        (steps.collect(), taken)
    }
}

/// Carries out a move that needs nothing but the client.
pub(crate) fn carry_out(client: &mut PoolClient, what: Move, now: Now) -> Result<MoveAnswer, ClientError> {
    let answer = match what {
        // A host that drives by hand has no owners.
        Move::Go
        | Move::Respond { .. }
        | Move::Begin { .. }
        | Move::GiveUp
        | Move::Leave { .. }
        | Move::Close { .. }
        | Move::Pause
        | Move::GoOn => MoveAnswer::Nothing,
        Move::Start { operation, params, options } => client.start_text(&operation, &params, &options).into(),
        Move::Resume { record, options } => client.resume_text(record, &options).into(),
        Move::ResumeIntent { intent, options } => client.resume_intent_text(&intent, &options).into(),
        Move::ResumeAll { options } => client.resume_all_text(&options).into(),
        Move::Saved { after } => client.saved(after.map(Name::from)).command.into(),
        Move::Settle { record, happened, became, early } => client.settle_text(record, happened, became, early).into(),
        Move::Forget { record } => client.forget(&RecordId(record)).command.into(),
        Move::Observe { session_id, seen } => {
            let verdict = client.observe_text(&session_id, &seen, now)?;
            MoveAnswer::Advice { verdict: verdict.as_ref().map(packed) }
        }
        Move::ReleaseSession { session_id } => MoveAnswer::Was { so: client.release_session(&session_id) },
        Move::ObserveLease { pool, lease, seen, wait_ms } => {
            let word = client.observe_lease_text(&LeaseRef { pool, lease }, &seen, wait_ms, now)?;
            MoveAnswer::LeaseAdvice { word: word.map(str::to_owned) }
        }
        Move::DiscardLease { pool, lease } => MoveAnswer::Was { so: client.discard(&LeaseRef { pool, lease }, now) },
        Move::SetLeaseData { pool, lease, data } => {
            client.set_lease_data(&LeaseRef { pool, lease }, &data, now)?;
            MoveAnswer::Nothing
        }
        Move::ReleaseLease { pool, lease } => MoveAnswer::Was { so: client.give_back(&LeaseRef { pool, lease }, now) },
        Move::Cancel { command } => MoveAnswer::Abort { step: client.cancel(CommandId(command), now).map(|step| step.0) },
        Move::Lost { names } => {
            let names: Option<Vec<Name>> = names.map(|names| names.into_iter().map(Name::from).collect());
            client.lost(names.as_deref(), now);
            MoveAnswer::Nothing
        }
        Move::Fail { step, kind, sent } => {
            client.resolve_text(step, Outcome::Failed { kind, sent }, now)?;
            MoveAnswer::Nothing
        }
        Move::RefuseHeaders { step, rule } => {
            client.refuse_headers_text(step, &rule, now)?;
            MoveAnswer::Nothing
        }
        Move::Stored { step, answer } => {
            client.resolve_text(step, Outcome::Store(answer.into()), now)?;
            MoveAnswer::Nothing
        }
        Move::Taken { commands } => {
            commands.into_iter().for_each(|command| _ = client.take_to_read(CommandId(command)));
            MoveAnswer::Nothing
        }
        Move::Abandon { commands } => {
            commands.into_iter().for_each(|command| _ = client.abandon(CommandId(command), now));
            MoveAnswer::Nothing
        }
    };
    Ok(answer)
}
