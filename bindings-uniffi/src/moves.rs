//! What moves the client, in one crossing each: something is done, and the steps that come of it are the answer.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

use hopline::client::{CommandId, Name, RecordId};
use hopline::contract::pools::LeaseRef;
use hopline::pool::PoolClient;
use hopline::wire::{Expected, Received};
use hopline::{Now, Outcome};

use crate::packed::{Read, packed, read};
use crate::{Client, ClientError, FailureKind, Header, Sent, Step, StoreAnswer, Taken};

/// How many steps come at once at most.
pub(crate) const MOST_STEPS: usize = 64;

/// What to do before the steps are taken.
#[derive(uniffi::Enum)]
pub enum Move {
    /// Nothing: it is time, or there are more steps.
    Go,
    /// Start an operation.
    Start {
        /// Its name.
        operation: String,
        /// Its parameters, as JSON.
        params: String,
        /// Its options, as JSON.
        options: String,
    },
    /// Go on with what a record holds.
    Resume {
        /// The record.
        record: String,
        /// As JSON.
        options: String,
    },
    /// Go on with what an intent stands for; the answer is `nothing` if it stands for nothing.
    ResumeIntent {
        /// The intent.
        intent: String,
        /// As JSON.
        options: String,
    },
    /// Go on with all that can be resumed. `raw` of the answer is a list of commands that have ended: take each.
    ResumeAll {
        /// As JSON.
        options: String,
    },
    /// List what the store holds. `raw` of the answer is a page, for `saved_page`; the next one is behind its `after`.
    Saved {
        /// Behind which name; null for the first page.
        after: Option<String>,
    },
    /// Close a doubt by hand. `raw` of the answer is whether there was one.
    Settle {
        /// Of which record.
        record: String,
        /// Whether it happened.
        happened: bool,
        /// The session or the order that came of it, where that is known.
        became: Option<String>,
        /// Whether to say that it did not happen even before an hour has passed.
        early: bool,
    },
    /// Forget a session, what was accepted, or a record that can't be read. `raw` of the answer is whether something was forgotten.
    Forget {
        /// The record.
        record: String,
    },
    /// Say what was seen through a session: `{"status":403}` or a word.
    Observe {
        /// Which session.
        session_id: String,
        /// As JSON.
        seen: String,
    },
    /// Follow a session no more, without ending it: another client may have it then.
    ReleaseSession {
        /// Which session.
        session_id: String,
    },
    /// Say what was seen through a lease, as `Observe` does of a session.
    ObserveLease {
        /// Of which pool.
        pool: u32,
        /// Which lease.
        lease: i64,
        /// As JSON.
        seen: String,
        /// The Retry-After of the target.
        wait_ms: Option<i64>,
    },
    /// Give a lease back.
    ReleaseLease {
        /// Of which pool.
        pool: u32,
        /// Which lease.
        lease: i64,
    },
    /// Stop further sends of a command.
    Cancel {
        /// Which command.
        command: u32,
    },
    /// The store's claims have ended while this client lives.
    Lost {
        /// Of which names; null for all.
        names: Option<Vec<String>>,
    },
    /// A Send was answered; its body comes beside this.
    Respond {
        /// Which Send.
        step: u32,
        /// The HTTP status.
        status: u16,
        /// The headers, of those that `response_headers` names.
        headers: Vec<Header>,
        /// Whether there was more of the body.
        truncated: bool,
    },
    /// A Send was not answered.
    Fail {
        /// Which Send.
        step: u32,
        /// Why.
        kind: FailureKind,
        /// Whether it may have been sent.
        sent: Sent,
    },
    /// A Send was not sent, since a header of the caller's own can't be sent with it: its command ends at once.
    RefuseHeaders {
        /// Which Send.
        step: u32,
        /// Why, as the end of a sentence.
        rule: String,
    },
    /// The store has answered.
    Stored {
        /// Which Store.
        step: u32,
        /// What.
        answer: StoreAnswer,
    },
    /// The results of these commands were read.
    Taken {
        /// Which commands.
        commands: Vec<u32>,
    },
    /// Nobody reads the results of these commands. A write without an intent that was done, or may have been, stays in what is saved; a lease
    /// goes back, and a pool is closed.
    Abandon {
        /// Which commands.
        commands: Vec<u32>,
    },
}

/// What a move was answered with, beside the steps.
#[derive(uniffi::Enum)]
pub enum MoveAnswer {
    /// Nothing.
    Nothing,
    /// The command that was started. Whatever is wrong with it comes back as its result.
    Command {
        /// Its number.
        command: u32,
    },
    /// Of a cancelled command, the Send that is out: abort it, and say that it failed.
    Abort {
        /// Which Send; null for none.
        step: Option<u32>,
    },
    /// Advice, packed; null if this client does not follow the session.
    Advice {
        /// The verdict.
        verdict: Option<Vec<u8>>,
    },
    /// Advice on a lease: `keep`, `give_back` or `wait`; null where it is not valid any more, or its session has another exit by now.
    LeaseAdvice {
        /// In a word.
        word: Option<String>,
    },
    /// Whether it was so: that the session was followed, that the lease was valid.
    Was {
        /// Whether.
        so: bool,
    },
    /// Nothing was changed: an option or an answer to a step does not fit.
    Refused {
        /// The error, packed.
        error: Vec<u8>,
    },
}

impl From<CommandId> for MoveAnswer {
    fn from(CommandId(command): CommandId) -> Self {
        MoveAnswer::Command { command }
    }
}

/// What came of a move.
#[derive(uniffi::Record)]
pub struct Moved {
    /// What it was answered with.
    pub answer: MoveAnswer,
    /// What to do next, up to 64 steps, of which a wait is the last; without it there are more. A command that has ended comes with its result,
    /// which stays until it is taken or abandoned, unless it is one of `taken`.
    pub steps: Vec<Step>,
    /// Those of them whose result is taken already, since it makes no difference who takes it.
    pub taken: Vec<u32>,
}

/// What the answer of each Send that is out is read as, by its step.
pub(crate) type Expecting = HashMap<u32, Expected>;

#[uniffi::export]
impl Client {
    /// Does that, and takes the steps that come of it. `body` is that of a response, and empty otherwise.
    pub fn advance(&self, what: Move, body: &[u8], unix_ms: i64, monotonic_ms: i64) -> Moved {
        let now = Now { unix: unix_ms, monotonic: monotonic_ms };
        let (answer, made) = self.answered(what, body, now);
        let (steps, taken) = self.next_steps(now, made);
        Moved { answer, steps, taken }
    }

    /// Does that and no more, for the vectors, which say what is asked before the steps are taken.
    pub fn act(&self, what: Move, body: &[u8], unix_ms: i64, monotonic_ms: i64) -> MoveAnswer {
        self.answered(what, body, Now { unix: unix_ms, monotonic: monotonic_ms }).0
    }

    /// One step, for the vectors. What a command ended with is left to `result`.
    pub fn poll(&self, unix_ms: i64, monotonic_ms: i64) -> Step {
        let step = self.poll_core(&mut self.lock(), Now { unix: unix_ms, monotonic: monotonic_ms });
        Step::of(step, None)
    }
}

impl Client {
    pub(crate) fn expecting(&self) -> MutexGuard<'_, Expecting> {
        self.expecting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what a move says. Returns what was made of a response, too.
    fn answered(&self, what: Move, body: &[u8], now: Now) -> (MoveAnswer, Option<Read>) {
        let mut made = None;
        let answer = self.do_move(what, body, now, &mut made);
        (answer.unwrap_or_else(|ClientError::Refused { error }| MoveAnswer::Refused { error }), made)
    }

    /// A response is read here, and what was `made` of it is kept for its command.
    fn do_move(&self, what: Move, body: &[u8], now: Now, made: &mut Option<Read>) -> Result<MoveAnswer, ClientError> {
        if let Move::Respond { step, status, headers, truncated } = what {
            let headers: Vec<(&str, &str)> = headers.iter().map(|header| (header.name.as_str(), header.value.as_str())).collect();
            *made = self.received(step, Received { status, headers: &headers, body, truncated }, now)?;
            return Ok(MoveAnswer::Nothing);
        }
        let mut client = self.lock();
        let answer = match what {
            Move::Go | Move::Respond { .. } => MoveAnswer::Nothing,
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
            Move::ReleaseLease { pool, lease } => MoveAnswer::Was { so: client.give_back(&LeaseRef { pool, lease }, now) },
            Move::Cancel { command } => MoveAnswer::Abort { step: client.cancel(CommandId(command), now).map(|step| step.0) },
            Move::Lost { names } => {
                let names: Option<Vec<Name>> = names.map(|names| names.into_iter().map(Name::from).collect());
                client.lost(names.as_deref(), now);
                MoveAnswer::Nothing
            }
            Move::Fail { step, kind, sent } => {
                self.expecting().remove(&step);
                client.resolve_text(step, Outcome::Failed { kind, sent }, now)?;
                MoveAnswer::Nothing
            }
            Move::RefuseHeaders { step, rule } => {
                self.expecting().remove(&step);
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

    /// Reads a response while nobody waits for the client, and says what came. Returns what was packed of a success.
    fn received(&self, step: u32, received: Received<'_>, now: Now) -> Result<Option<Read>, ClientError> {
        let expected = self.expecting().remove(&step);
        let Some(expected) = expected else {
            let Received { status, headers, body, truncated } = received;
            self.lock().resolve_text(step, Outcome::Response { status, headers, body, truncated }, now)?;
            return Ok(None);
        };
        let (response, made) = read(expected, received);
        self.lock().resolve_text(step, Outcome::Read(response), now)?;
        Ok(made)
    }

    /// The next step. How the answer of a Send is to be read is kept until it comes.
    fn poll_core(&self, client: &mut PoolClient, now: Now) -> hopline::Step {
        let step = client.poll(now);
        if let hopline::Step::Send { id, request, .. } = &step {
            self.expecting().insert(id.0, request.expects);
        }
        step
    }

    /// The steps, and of which commands the results were taken. `made` is the answer that one of them may have.
    fn next_steps(&self, now: Now, made: Option<Read>) -> (Vec<Step>, Vec<u32>) {
        let (mut steps, mut taken) = (Vec::new(), Vec::new());
        let mut client = self.lock();
        while steps.len() < MOST_STEPS && !matches!(steps.last(), Some((hopline::Step::Wait { .. }, _))) {
            let step = self.poll_core(&mut client, now);
            let result = match &step {
                hopline::Step::Completed { command } if client.is_free_to_take(*command) => {
                    taken.push(command.0);
                    client.take_to_read(*command)
                }
                hopline::Step::Completed { command } => client.result_to_read(*command),
                _ => None,
            };
            steps.push((step, result));
        }
        drop(client);
        // Nobody waits for the client while answers are read.
        let made = made.as_ref();
        let steps = steps.into_iter().map(|(step, result)| Step::of(step, result.map(|result| Taken::of(result, made))));
        (steps.collect(), taken)
    }
}
