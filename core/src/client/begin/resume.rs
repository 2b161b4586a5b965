//! Going on with what a record or an intent stands for, because somebody asks for it. Nothing new is ever bought.

use crate::client::requests::{NameRequest, RequestKind, Resume, StoredRecord};
use crate::client::router::Router;
use crate::contract::pools::SlotPurchase;
use crate::engine::{Answered, RecordId};
use crate::options::CallOptions;
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{CommandId, Name};
use crate::wire::Facts;

impl Router {
    /// Goes on with what a record stands for.
    pub(crate) fn resume(&mut self, record: &RecordId, options: CallOptions) -> CommandId {
        if let Err(error) = options.check_resume() {
            return self.reject(error, None);
        }
        let Some((name, _)) = Name::of(record) else {
            return self
                .reject(Error::new(Kind::Misuse, Effect::None, "resume", "this is not the name of a record", Advice::ChangeRequest), None);
        };
        self.resume_name(&name, Resume { options, intent: None })
    }

    /// Goes on with what an intent stands for, and buys nothing new.
    pub(crate) fn resume_intent(&mut self, intent: &str, mut options: CallOptions) -> CommandId {
        if let Err(error) = options.check_resume() {
            return self.reject(error, Some(intent.to_owned()));
        }
        if SlotPurchase::is_reserved(intent) {
            let rule = "must not be a pool's own, which lends what it has bought; resume a doubt by its record";
            return self.reject(Error::invalid("resume", "intent", rule), Some(intent.to_owned()));
        }
        let name = self.account.space().intent(intent);
        options.intent = Some(intent.to_owned());
        self.resume_name(&name, Resume { options, intent: Some(intent.to_owned()) })
    }

    pub(crate) fn resume_name(&mut self, name: &Name, resume: Resume) -> CommandId {
        let command = self.command_for("resume");
        self.commands.need_ready(command, resume.options.allow_pending);
        self.request_name(name, NameRequest::new(Some(command), RequestKind::Resume(Box::new(resume))));
        command
    }

    /// Goes on with what is under a name, for somebody who asked for that.
    pub(crate) fn admit_resume(&mut self, name: &Name, command: CommandId, resume: Resume, found: &StoredRecord) {
        let Resume { mut options, intent } = resume;
        match found {
            // A refused operation can't be resumed by its intent.
            StoredRecord::Readable(data) if data.refused().is_some() && intent.is_none() => {
                let what =
                    "was not done, because the app's own backend refused it, so it had no effect; start its intent again to send it again";
                let error = Error::new(Kind::Refused, Effect::None, "resume", what, Advice::Nothing);
                self.finish_request(command, Err(error), data.intent.clone(), name);
            }
            StoredRecord::Readable(data) if data.refused().is_some() => {
                let answered = Answered::of(Facts { nothing: true, ..Facts::default() });
                self.finish_request(command, Ok(answered), intent, name);
            }
            // A renewal under a name of its caller's has left its marker where another one was.
            StoredRecord::Readable(data) if data.renewal.is_some() && !name.is_findable() => {
                let next = NameRequest::new(Some(command), RequestKind::Resume(Box::new(Resume { options, intent })));
                data.renewal.iter().for_each(|marked| self.request_name(marked, next.clone()));
            }
            StoredRecord::Readable(data) => {
                options.intent.clone_from(&data.intent);
                self.go_on(name, command, data, &options, data.intent.as_deref());
            }
            StoredRecord::Empty if intent.is_some() => {
                let answered = Answered::of(Facts { nothing: true, ..Facts::default() });
                self.finish_request(command, Ok(answered), intent, name);
            }
            StoredRecord::Empty => {
                let error = Error::new(Kind::Misuse, Effect::None, "resume", "there is no such record", Advice::ChangeRequest);
                self.finish_request(command, Err(error), intent, name);
            }
            StoredRecord::Unreadable(bad, known) => {
                let what = format!("can't go on, because {bad}; forget it once you have checked the account");
                let record = self.journal.record_of(name).map(|record| record.0);
                let error = Error::new(Kind::Store, Effect::Unknown, "resume", what, Advice::CheckAccount);
                let error = error.with(|new| new.record = record);
                self.finish_request(command, Err(error), intent.or_else(|| known.clone()), name);
            }
        }
    }
}
