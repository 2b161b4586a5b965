//! Commands that have their result, and wait for the store to have answered every step of theirs: a program that ends when its call
//! returns leaves nothing to do.

use crate::client::end::commands::{FinalWrite, Finished, PendingWrite, RecordsToDelete};
use crate::client::end::taken_over::{after, taken_over};
use crate::client::router::Router;
use crate::client::types::busy;
use crate::engine::{Answered, Counted};
use crate::policy::{Advice, Effect, Error, Kind, Rule};
use crate::state::{CommandId, Name, WriteResult};
use crate::wire::Facts;

impl Router {
    /// Gives commands their result once the store has answered all that they wait for.
    pub(crate) fn finish_after(&mut self, finished: Finished) {
        let command = finished.commands.first().copied();
        for after in &finished.after {
            if let PendingWrite::Spend(number) = after {
                self.spending.serve(*number, command);
            }
        }
        let is_pending = |after: &PendingWrite| match after {
            PendingWrite::Name(name) => self.journal.is_busy(name),
            PendingWrite::Spend(number) => self.spending.is_awaited(*number),
        };
        let Some(Finished { commands, result, mut left, .. }) = self.commands.finish(finished, is_pending) else { return };
        for command in commands {
            self.complete_with(command, result.clone(), std::mem::take(&mut left));
        }
    }

    /// Ends a command with what was found under its name, a result or a refusal, once the name was let go of.
    pub(crate) fn finish_request(&mut self, command: CommandId, result: Result<Answered, Error>, intent: Option<String>, name: &Name) {
        let result = result.map_err(|error| match error.intent {
            Some(_) => error,
            None => error.with(|new| new.intent = intent),
        });
        let after = PendingWrite::Name(name.clone());
        let finished = Finished { after: vec![after.clone()], ..Finished::new(vec![command], result) };
        match self.journal.user(name) {
            // The name is let go of as soon as all who wait have been let in.
            None => self.commands.wait(after, finished),
            Some(_) => self.finish_after(finished),
        }
    }

    /// The store has answered a step of this.
    pub(crate) fn answered(&mut self, after: &PendingWrite, written: Option<WriteResult>) {
        if let PendingWrite::Name(name) = after
            && self.journal.is_busy(name)
        {
            return;
        }
        for mut finished in self.commands.answered(after) {
            if let (Some(written), PendingWrite::Name(name)) = (written, after)
                && finished.own.as_ref() == Some(name)
            {
                self.change(&mut finished, name, written);
            }
            self.finish_after(finished);
        }
    }

    fn operation_of(&self, finished: &Finished) -> &'static str {
        finished.commands.first().and_then(|command| self.commands.operation(*command)).unwrap_or("store")
    }

    /// Stops counting their entries, and deletes the marker of a renewal; they wait for that.
    pub(crate) fn let_go_for(&mut self, finished: &mut Finished) {
        let counted = std::mem::take(&mut finished.counted);
        let spends = self.spend(|spending, actions| spending.uncount(counted, actions));
        finished.after.extend(spends.into_iter().map(PendingWrite::Spend));
        self.end_marker(finished);
    }

    /// Changes the result after the outcome of the last step.
    fn change(&mut self, finished: &mut Finished, name: &Name, written: WriteResult) {
        match (written, finished.last) {
            (WriteResult::Done, FinalWrite::EraseLate) => {
                let what = "was not sent, but the store may still write its record later, and resuming that record would send it: check the \
                            saved entries, and settle it as not happened";
                if let Err(error) = &finished.result {
                    finished.result = Err(after(error, Kind::Store, Effect::Unknown, what, Advice::MendStore));
                }
                // The client that ends the record finds its entries there.
                finished.counted.clear();
                self.keep_marker(finished);
            }
            (WriteResult::Done, _) => self.let_go_for(finished),
            // The put is tried again. Until it is done, a client that takes the record over finds the entries that still count.
            (WriteResult::Failed, FinalWrite::Put) if !finished.counted.is_empty() || finished.marker.is_some() => {
                let (counted, marker) = (std::mem::take(&mut finished.counted), finished.marker.take());
                let later = Finished {
                    commands: Vec::new(),
                    counted,
                    marker,
                    left: RecordsToDelete::default(),
                    after: Vec::new(),
                    ..finished.clone()
                };
                self.commands.wait(PendingWrite::Name(name.clone()), later);
            }
            (WriteResult::Failed | WriteResult::Never, FinalWrite::Put) => {}
            (WriteResult::Failed | WriteResult::Never, FinalWrite::Erase | FinalWrite::EraseLate) => {
                let what = "its record could not be deleted from the store, so it stays in doubt: once the store works, resume it or settle it as not happened";
                let record = self.journal.record_of(name).map(|record| record.0);
                let error = match &finished.result {
                    Err(error) => after(error, Kind::Store, Effect::Unknown, what, Advice::MendStore),
                    Ok(_) => {
                        let what = "may not have been done, since the store could not delete the record: check again";
                        Error::new(Kind::Store, Effect::Unknown, self.operation_of(finished), what, Advice::MendStore)
                    }
                };
                finished.last = FinalWrite::Put;
                finished.result = Err(error.with(|new| new.record = record));
                // A client that finds the record may buy with its key, and the client that ends it finds its entries there.
                finished.counted.clear();
                self.keep_marker(finished);
                // The record may be there: whoever comes next finds it.
                self.release(name);
            }
            (WriteResult::Lost, _) if self.holds(Rule::LostIsNotNone) => {
                self.keep_marker(finished);
                let operation = self.operation_of(finished);
                finished.left = RecordsToDelete::default();
                finished.result = Err(match finished.is_act {
                    true => busy(operation, "another client has taken the record over"),
                    false => taken_over(operation, name.is_findable(), &finished.result),
                });
            }
            (WriteResult::Lost, _) => {}
        }
    }

    /// A record goes, or is written, and its name is let go of: then that is said. Once it is gone, what it counted counts no more.
    pub(crate) fn acted(&mut self, name: &Name, command: CommandId, last: FinalWrite, counted: Vec<Counted>) {
        self.journal.give(name, None);
        let own = Some(name.clone());
        let after = vec![PendingWrite::Name(name.clone())];
        self.finish_after(Finished { own, last, counted, is_act: true, after, ..Finished::new(vec![command], Ok(said(true))) });
    }
}

/// The answer to an act: true if there was something to do.
pub(crate) fn said(there: bool) -> Answered {
    Answered { raw: there.to_string().parse().unwrap_or_default(), ..Answered::of(Facts::default()) }
}
