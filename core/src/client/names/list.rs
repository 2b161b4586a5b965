//! Lists of what a store holds, read page by page: for people, to resume it all, or for what a doubt may not have become.

use crate::client::deferred::Deferred;
use crate::client::outbox::Pending;
use crate::client::requests::{Act, Listing, ListingPurpose};
use crate::client::router::Router;
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{CommandId, Name, StoreCall};

impl Router {
    /// Looks through what other records stand for, before something is done about one.
    pub(crate) fn scan(&mut self, command: CommandId, name: Name, act: Act) {
        self.list(Listing { command, what: ListingPurpose::Others(name, Box::new(act)) }, None, false);
    }

    pub(crate) fn list(&mut self, listing: Listing, after: Option<Name>, open: bool) {
        let command = Some(listing.command);
        let number = self.listings.insert(listing);
        self.push_store(Pending::List(number), command, StoreCall::List { space: self.account.space().clone(), after, open });
    }

    /// Stops a command that reads a list, or resumes its entries. Its other commands end with their last known state, without a report.
    pub(crate) fn stop_listing(&mut self, command: CommandId) {
        let Some(number) = self.listings.iter().find(|(_, listing)| listing.command == command).map(|(number, _)| *number) else {
            return;
        };
        self.listings.remove(&number);
        for part in self.commands.parts_of(number) {
            let has_ended = self.commands.result(part).is_some();
            self.deferred.push(if has_ended { Deferred::Abandon(part) } else { Deferred::Cancel(part) });
        }
        let operation = self.commands.operation(command).unwrap_or("list");
        let error =
            Error::new(Kind::Cancelled, Effect::None, operation, "was cancelled; `saved` shows the operations under way", Advice::Nothing);
        self.deferred.push(Deferred::Fail(command, Box::new(error)));
    }
}
