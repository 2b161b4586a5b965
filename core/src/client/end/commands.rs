//! Commands: each from its start until its result is taken, and what the store has to have answered before a result is given.

use arcstr::ArcStr;

use crate::client::news::{PoolNo, WorkNo};
use crate::client::requests::{AfterRetry, Start};
use crate::collections::{IdMap, Map};
use crate::engine::{Answered, Counted};
use crate::policy::Error;
use crate::state::{CommandId, JobId, Name};

/// All commands, until their results are taken.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Commands {
    // Boxed, as a map's nodes have room for more than they hold.
    known: IdMap<CommandId, Box<Command>>,
    /// Those that have their result, by what they wait for next.
    finishing: Map<PendingWrite, Vec<Finished>>,
    /// Those that begin once an earlier rotation was sent once more.
    after_retry: Map<CommandId, AfterRetry>,
    /// Those that may buy the next session of their intent, where the one that they wait for turns out to be over.
    may_buy_next: Map<CommandId, Box<Start>>,
}

/// A command, until its result is taken.
#[derive(Debug, Clone, Hash)]
struct Command {
    job: Option<JobId>,
    /// The name that it waits for, before there is a job.
    waits_for: Option<Name>,
    asker: Asker,
    /// The session that it ended with.
    session: Option<ArcStr>,
    operation: &'static str,
    /// True if a session that is not usable at the deadline is an error for its caller.
    needs_ready: bool,
    ended: Option<Box<Ended>>,
}

#[derive(Debug, Clone, Hash)]
struct Ended {
    result: Result<Answered, Error>,
    left: RecordsToDelete,
}

/// The receiver of a command's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Asker {
    Caller,
    /// The list whose records are resumed together, of which it is one.
    List(u32),
    Pool(PoolNo, WorkNo),
}

/// A result that was taken, or that nobody takes.
#[derive(Debug, PartialEq)]
pub(crate) struct TakenResult {
    pub(crate) operation: &'static str,
    /// The session that the command ended with.
    pub(crate) session: Option<ArcStr>,
    pub(crate) result: Result<Answered, Error>,
    pub(crate) left: RecordsToDelete,
}

/// The thing that a command waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PendingWrite {
    /// The last step of this name.
    Name(Name),
    /// A changed entry under the day's cap.
    Spend(u32),
    /// The last page of this listing.
    Listing(u32),
}

/// The purpose of a name's last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FinalWrite {
    /// The lasting facts are put. If that fails it is tried again, and the result stands.
    Put,
    /// The record goes first, then it is said that there was no effect.
    Erase,
    /// The record goes first, after its put failed and may still be done: then it may be found, and sent.
    EraseLate,
}

/// Commands that have their result.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Finished {
    pub(crate) commands: Vec<CommandId>,
    pub(crate) result: Result<Answered, Error>,
    /// The name of the result: the outcome of its last step may change the result. Other waits change nothing.
    pub(crate) own: Option<Name>,
    pub(crate) left: RecordsToDelete,
    pub(crate) last: FinalWrite,
    /// The entries that stop counting under the day's cap once the last step was done.
    pub(crate) counted: Vec<Counted>,
    /// The marker of a renewal, which goes once the last step was done: until then whoever finds it finds what may have been paid.
    pub(crate) marker: Option<Name>,
    /// True for an act of a person on a record, which counts as not done if its last step changes nothing.
    pub(crate) is_act: bool,
    /// The things that they wait for.
    pub(crate) after: Vec<PendingWrite>,
}

impl Finished {
    /// These commands have this result, and wait for nothing yet.
    pub(crate) fn new(commands: Vec<CommandId>, result: Result<Answered, Error>) -> Self {
        Finished {
            commands,
            result,
            own: None,
            left: RecordsToDelete::default(),
            last: FinalWrite::Put,
            counted: Vec::new(),
            marker: None,
            is_act: false,
            after: Vec::new(),
        }
    }
}

/// The names whose records go once a result was taken.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RecordsToDelete {
    /// The operation's own.
    pub(crate) own: Option<Name>,
    /// Those of sessions that are over.
    pub(crate) others: Vec<Name>,
}

impl RecordsToDelete {
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.others.iter().chain(&self.own)
    }
}

/// Commands begin.
impl Commands {
    pub(crate) fn insert(&mut self, operation: &'static str, asker: Asker) -> CommandId {
        let command = Command { job: None, waits_for: None, asker, session: None, operation, needs_ready: false, ended: None };
        self.known.insert(Box::new(command))
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn operation(&self, command: CommandId) -> Option<&'static str> {
        Some(self.known.get(&command)?.operation)
    }

    /// The command turns out to be of this operation.
    pub(crate) fn set_operation(&mut self, command: CommandId, operation: &'static str) {
        self.change(command, |known| known.operation = operation);
    }

    /// A session that is not usable at the deadline is an error for the caller of the command, unless they allow it.
    pub(crate) fn need_ready(&mut self, command: CommandId, allow_pending: bool) {
        self.change(command, |known| known.needs_ready = !allow_pending);
    }

    /// Returns true if the command has no session that is not usable. Pools and a common resume look at each as it is.
    pub(crate) fn needs_ready(&self, command: CommandId) -> bool {
        self.known.get(&command).is_some_and(|known| known.needs_ready && known.asker == Asker::Caller)
    }

    pub(crate) fn asker(&self, command: CommandId) -> Option<Asker> {
        Some(self.known.get(&command)?.asker)
    }

    /// The command is a pool's, which hears of its end. Returns true if it has ended already.
    pub(crate) fn give_to_pool(&mut self, command: CommandId, pool: PoolNo, work: WorkNo) -> bool {
        self.change(command, |known| known.asker = Asker::Pool(pool, work));
        self.result(command).is_some()
    }

    /// The command of a pool's work.
    pub(crate) fn of_pool(&self, pool: PoolNo, work: WorkNo) -> Option<CommandId> {
        self.known.iter().find(|(_, known)| known.asker == Asker::Pool(pool, work)).map(|(id, _)| *id)
    }

    /// The parts of a common resume.
    pub(crate) fn parts_of(&self, list: u32) -> Vec<CommandId> {
        self.known.iter().filter(|(_, known)| known.asker == Asker::List(list)).map(|(id, _)| *id).collect()
    }

    pub(crate) fn job(&self, command: CommandId) -> Option<JobId> {
        self.known.get(&command)?.job
    }

    /// The job that the command waits for from now on.
    pub(crate) fn set_job(&mut self, command: CommandId, job: Option<JobId>) {
        self.change(command, |known| known.job = job);
    }

    /// The name that the command waits for.
    pub(crate) fn waits_for(&self, command: CommandId) -> Option<&Name> {
        self.known.get(&command)?.waits_for.as_ref()
    }

    pub(crate) fn set_waits_for(&mut self, command: CommandId, name: Option<Name>) {
        self.change(command, |known| known.waits_for = name);
    }

    /// Returns true if the command has not ended.
    pub(crate) fn is_pending(&self, command: CommandId) -> bool {
        self.known.get(&command).is_some_and(|known| known.ended.is_none())
    }

    /// The command begins once an earlier rotation, which it retries now, has ended.
    pub(crate) fn begin_after(&mut self, command: CommandId, after: AfterRetry) {
        self.after_retry.insert(command, after);
    }

    /// The caller of a command that retries an earlier rotation first wants it no more.
    pub(crate) fn unwant(&mut self, command: CommandId) {
        if let Some(after) = self.after_retry.get_mut(&command) {
            after.is_wanted = false;
        }
        self.may_buy_next.remove(&command);
    }

    /// The command waits for the session of its intent, and buys the next one if this one is over for good.
    pub(crate) fn may_buy_next(&mut self, command: CommandId, start: Start) {
        self.may_buy_next.insert(command, Box::new(start));
    }

    /// The session that the command waits for is over for good.
    pub(crate) fn found_over(&mut self, command: CommandId, session: &ArcStr) {
        if let Some(start) = self.may_buy_next.get_mut(&command) {
            start.over = Some(session.clone());
        }
    }

    /// The purchase that the command begins, now that it has found its session to be over.
    pub(crate) fn take_next_purchase(&mut self, command: CommandId) -> Option<Box<Start>> {
        self.may_buy_next.remove(&command).filter(|start| start.over.is_some())
    }

    /// The work that the command begins now that the earlier rotation has ended.
    pub(crate) fn take_after_retry(&mut self, command: CommandId) -> Option<AfterRetry> {
        self.after_retry.remove(&command)
    }

    fn change(&mut self, command: CommandId, change: impl FnOnce(&mut Command)) {
        if let Some(known) = self.known.get_mut(&command) {
            change(known);
        }
    }
}

/// Commands end.
impl Commands {
    /// The command ends with a session, which its taker has.
    pub(crate) fn promise(&mut self, command: CommandId, session: &ArcStr) {
        self.change(command, |known| known.session = Some(session.clone()));
    }

    /// Sets the result of a command, and what goes once it was taken.
    pub(crate) fn end(&mut self, command: CommandId, result: Result<Answered, Error>, left: RecordsToDelete) {
        self.change(command, |known| known.ended = Some(Box::new(Ended { result, left })));
    }

    pub(crate) fn result(&self, command: CommandId) -> Option<&Result<Answered, Error>> {
        Some(&self.known.get(&command)?.ended.as_deref()?.result)
    }

    /// The operation and the result of a command that has succeeded, has the record under this name, and was not taken yet.
    pub(crate) fn success_under(&self, name: &Name) -> Option<(&'static str, &Answered)> {
        let mut ended = self.known.values().filter_map(|known| Some((known.operation, known.ended.as_deref()?)));
        let (operation, ended) = ended.find(|(_, ended)| ended.left.own.as_ref() == Some(name))?;
        Some((operation, ended.result.as_ref().ok()?))
    }

    /// The record of a result has another name now. Returns true if that result was not taken yet.
    pub(crate) fn move_result(&mut self, from: &Name, to: &Name) -> bool {
        let mut owns = self.known.values_mut().filter_map(|known| known.ended.as_mut()?.left.own.as_mut());
        let own = owns.find(|own| *own == from);
        own.map(|own| *own = to.clone()).is_some()
    }

    /// Takes a result, if there is one.
    pub(crate) fn take(&mut self, command: CommandId) -> Option<TakenResult> {
        self.result(command)?;
        let Command { operation, session, ended, .. } = *self.known.remove(&command)?;
        let Ended { result, left } = *ended?;
        Some(TakenResult { operation, session, result, left })
    }

    /// Returns true if nothing depends on who takes the result of a command: no record, session, pool, lease or other result.
    pub(crate) fn is_free_to_take(&self, command: CommandId) -> bool {
        let Some(Command { operation, session: None, ended: Some(ended), .. }) = self.known.get(&command).map(|known| &**known) else {
            return false;
        };
        !matches!(*operation, "resume_all" | "open_pool" | "acquire") && ended.left.names().next().is_none()
    }

    /// Gives back what has its result now. Where something that it waits for is pending still, it is kept until that is
    /// [answered](Self::answered).
    pub(crate) fn finish(&mut self, mut finished: Finished, is_pending: impl Fn(&PendingWrite) -> bool) -> Option<Finished> {
        while let Some(after) = finished.after.last() {
            if is_pending(after) {
                let after = after.clone();
                self.wait(after, finished);
                return None;
            }
            finished.after.pop();
        }
        Some(finished)
    }

    /// These wait for that, whether it is pending or not.
    pub(crate) fn wait(&mut self, after: PendingWrite, finished: Finished) {
        self.finishing.get_or_insert_with(after, Vec::new).push(finished);
    }

    /// Takes out those that waited for this.
    pub(crate) fn answered(&mut self, after: &PendingWrite) -> Vec<Finished> {
        self.finishing.remove(after).unwrap_or_default()
    }

    /// A command that waits for this.
    pub(crate) fn waiting_for(&self, after: &PendingWrite) -> Option<CommandId> {
        self.finishing.get(after)?.iter().find_map(|finished| finished.commands.first().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Facts;

    fn done() -> Result<Answered, Error> {
        Ok(Answered::of(Facts::default()))
    }

    fn name(of: &str) -> Name {
        Name::from(format!("5e.r{of}"))
    }

    #[test]
    fn a_result_is_taken_once_and_not_before_there_is_one() {
        let mut commands = Commands::default();
        let command = commands.insert("create_session", Asker::Caller);
        assert!(commands.is_pending(command) && commands.take(command).is_none() && commands.result(command).is_none());
        commands.promise(command, &"s-1".into());
        let left = RecordsToDelete { own: Some(name("1")), others: vec![name("2")] };
        commands.end(command, done(), left.clone());
        assert!(!commands.is_pending(command) && commands.result(command).is_some());
        let taken = commands.take(command).expect("has ended");
        assert_eq!((taken.operation, taken.session.as_deref(), taken.left), ("create_session", Some("s-1"), left));
        assert!(commands.take(command).is_none() && !commands.is_pending(command) && commands.len() == 0);
    }

    #[test]
    fn a_result_on_whose_taking_something_depends_is_not_free_to_take() {
        let cases: [(&str, bool, bool, bool); 6] = [
            ("get_balance", false, false, true),
            ("get_session", true, false, false),
            ("create_session", false, true, false),
            ("resume_all", false, false, false),
            ("open_pool", false, false, false),
            ("acquire", false, false, false),
        ];
        for (operation, has_session, leaves, expected) in cases {
            let mut commands = Commands::default();
            let command = commands.insert(operation, Asker::Caller);
            assert!(!commands.is_free_to_take(command), "{operation} has no result");
            if has_session {
                commands.promise(command, &"s-1".into());
            }
            commands.end(command, done(), RecordsToDelete { own: leaves.then(|| name("1")), others: Vec::new() });
            assert_eq!(commands.is_free_to_take(command), expected, "{operation}");
        }
    }

    #[test]
    fn a_result_is_given_once_all_that_it_waits_for_is_answered() {
        let mut commands = Commands::default();
        let command = commands.insert("create_session", Asker::Caller);
        let [of_name, of_spend] = [PendingWrite::Name(name("1")), PendingWrite::Spend(7)];
        let finished = Finished { after: vec![of_name.clone(), of_spend.clone()], ..Finished::new(vec![command], done()) };
        assert!(commands.finish(finished, |_| true).is_none());
        assert_eq!((commands.waiting_for(&of_spend), commands.waiting_for(&of_name)), (Some(command), None));
        let mut waited = commands.answered(&of_spend);
        assert!(commands.answered(&of_spend).is_empty(), "it waits for one thing at a time");
        let finished = waited.pop().expect("has waited");
        assert!(commands.finish(finished, |after| *after == of_name).is_none());
        assert_eq!(commands.waiting_for(&of_name), Some(command));
        let finished = commands.answered(&of_name).pop().expect("has waited");
        let given = commands.finish(finished, |_| false).expect("waits for nothing");
        assert_eq!((given.commands, given.after), (vec![command], Vec::new()));
    }

    #[test]
    fn the_end_of_a_command_goes_to_its_asker() {
        let mut commands = Commands::default();
        let askers = [Asker::Caller, Asker::List(3), Asker::List(4), Asker::List(3)];
        let ids = askers.map(|asker| commands.insert("resume", asker));
        assert_eq!(ids.map(|id| commands.asker(id)), askers.map(Some));
        assert_eq!(commands.parts_of(3), [ids[1], ids[3]]);
        assert!(!commands.give_to_pool(ids[0], 9, 1));
        commands.end(ids[1], done(), RecordsToDelete::default());
        assert!(commands.give_to_pool(ids[1], 9, 2), "it was refused at once");
        assert_eq!([ids[0], ids[1]].map(|id| commands.asker(id)), [1, 2].map(|work| Some(Asker::Pool(9, work))));
        assert_eq!([(9, 2), (9, 3), (8, 2)].map(|(pool, work)| commands.of_pool(pool, work)), [Some(ids[1]), None, None]);
        assert_eq!(commands.parts_of(3), [ids[3]]);
    }

    #[test]
    fn a_command_waits_for_a_name_and_then_for_a_job() {
        let mut commands = Commands::default();
        let command = commands.insert("resume", Asker::Caller);
        commands.set_waits_for(command, Some(name("1")));
        assert_eq!((commands.waits_for(command), commands.job(command)), (Some(&name("1")), None));
        commands.set_waits_for(command, None);
        commands.set_job(command, Some(JobId::MIN));
        commands.set_operation(command, "create_session");
        assert_eq!((commands.waits_for(command), commands.job(command)), (None, Some(JobId::MIN)));
        assert_eq!(commands.operation(command), Some("create_session"));
    }
}
