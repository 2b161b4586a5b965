//! Going on with all that no living client has, so many at a time.

use crate::client::deferred::Deferred;
use crate::client::end::commands::Asker;
use crate::client::requests::{Listing, ListingPurpose, NameRequest, RequestKind, Resume, StoredRecord};
use crate::client::router::Router;
use crate::contract::agent::TerminateSession;
use crate::contract::{Endpoint, Json, Operation, endpoint, json_of};
use crate::engine::Answered;
use crate::options::CallOptions;
use crate::policy::Kind;
use crate::state::{CommandId, Listed, SavedCall, Whose};
use crate::wire::Facts;

/// So many are resumed at a time.
const AT_ONCE: usize = 16;

impl Router {
    /// Goes on with what no living client has, 16 at a time, beginning at a random entry.
    pub(crate) fn resume_all(&mut self, options: CallOptions) -> CommandId {
        if let Err(error) = options.check_resume() {
            return self.reject(error, None);
        }
        let command = self.command_for("resume_all");
        let what = ListingPurpose::Open { found: Vec::new(), options: Box::new(options) };
        self.list(Listing { command, what }, None, true);
        command
    }

    /// The command of `resume_all` for which this one was begun.
    pub(crate) fn caller_of(&self, command: CommandId) -> Option<CommandId> {
        match self.commands.asker(command)? {
            Asker::List(number) => self.listings.get(&number).map(|listing| listing.command),
            Asker::Caller | Asker::Pool(..) => None,
        }
    }

    /// Returns true if the entry is to be resumed with all others. Slots of pools are left to their pools.
    pub(crate) fn is_to_resume(&mut self, listed: &Listed) -> bool {
        if listed.name.is_of_a_pool() {
            return false;
        }
        let StoredRecord::Readable(data) = self.read_record(&listed.data) else { return false };
        let named = listed.name.is_findable();
        let in_doubt = data.call.as_ref().is_some_and(|call| call.is_in_doubt() && call.can_resume() && is_worth_it(call));
        let open = data.session.as_ref().is_some_and(|session| !session.is_over());
        let order = data.call.as_ref().is_some_and(|call| call.order_no.is_some());
        listed.whose == Whose::Free && (in_doubt || ((open || order) && !named))
    }

    /// Begins the next ones, as long as there are and not too many are under way.
    pub(crate) fn resume_more(&mut self, number: u32) {
        let Some(Listing { command, what: ListingPurpose::Resuming { waiting, out, ended, options } }) = self.listings.get_mut(&number)
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
            self.listings.remove(&number);
            let raw = Json::checked(json_of(&ended));
            return self.complete(command, Ok(Answered { raw, ..Answered::of(Facts::default()) }));
        };
        *out += 1;
        let options = (**options).clone();
        let child = self.commands.insert("resume", Asker::List(number));
        let resume = Resume { options, intent: None };
        self.request_name(&name, NameRequest::new(Some(child), RequestKind::Resume(Box::new(resume))));
        self.deferred.push(Deferred::ResumeMore(number));
    }

    /// Takes the end of a part of a common resume. Entries of other clients are skipped.
    pub(crate) fn part_ended(&mut self, number: u32, child: CommandId) {
        // An operation that a job was begun for may have taken effect.
        let result = self.commands.result(child).filter(|_| self.commands.job(child).is_none());
        let passed_over = matches!(result, Some(Err(error)) if error.kind == Kind::Busy || error.kind == Kind::Misuse);
        if passed_over {
            self.commands.take(child);
        }
        let Some(Listing { what: ListingPurpose::Resuming { out, ended, .. }, .. }) = self.listings.get_mut(&number) else {
            self.abandon(child);
            return;
        };
        *out = out.saturating_sub(1);
        if !passed_over {
            ended.push(child);
        }
        self.resume_more(number);
    }
}

/// Returns true if a doubt is sent again by `resume_all`: the operation was paid for, or the session that it was to end still costs money.
/// A renewal of a session that was ended since is not sent: no caller follows it. Nor is a setting or a rotation: it may have been changed
/// since, by a caller that relies on it.
fn is_worth_it(call: &SavedCall) -> bool {
    let is_known = |endpoint: &Endpoint| endpoint.paid || endpoint.name == TerminateSession::ENDPOINT.name;
    !call.session_over && endpoint(&call.operation).is_none_or(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::{BUY, NOW, agent, go_on};
    use crate::state::{Memory, Name, StoreAnswer, StoreCall};

    /// How many sessions a client goes on with that finds one under a name of this kind.
    fn resumed(kind: char) -> usize {
        const ACTIVE: &str = r#"{"success":true,"data":{"session_id":"s-1","session_type":"dynamic","status":"active"}}"#;
        let (mut buyer, mut disk) = (agent(7, true), Memory::default());
        buyer.start_json("open_session", BUY, CallOptions::default());
        go_on(&mut buyer, &mut disk, NOW, |_| (202, ACTIVE.to_owned()));
        buyer.release_session("s-1");
        go_on(&mut buyer, &mut disk, NOW, |request| panic!("{} is sent", request.url));
        let list = StoreCall::List { space: buyer.router.account.space().clone(), after: None, open: true };
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
