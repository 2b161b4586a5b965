//! A client whose store holds some bytes.

use hopline::client::{Client, ClientOptions, Outcome, RecordId, RecordKind, Settlement, Step, StoreCall};
use hopline::wire::Request;
use hopline_store::{Memory, Put, Store};

use crate::{NOW, next};

pub(crate) struct Held {
    pub(crate) client: Client,
    /// The name of these bytes in the client.
    pub(crate) record: RecordId,
    /// True if they are no record that the client can use.
    pub(crate) is_refused: bool,
    store: Memory,
}

impl Held {
    /// The client has listed them: whatever they are, they are one entry.
    pub(crate) fn new(options: ClientOptions, bytes: &[u8]) -> Held {
        let options = ClientOptions { store: true, same_account: true, ..options };
        let mut client = Client::new(options, [2; 16]).expect("the options are sound");
        let (store, ticket) = (Memory::new(), client.saved(None));
        let Step::Store { id, call, .. } = next(&mut client, NOW) else { panic!("a list is asked of the store") };
        let StoreCall::List { space, .. } = &call else { panic!("a list is a list") };
        let (name, how) = (format!("{}.r{:032x}", space.0, 1), Put { new: true, release: true, ..Put::default() });
        store.open().put(&name, bytes, &how).expect("memory keeps it");
        let listed = store.call(&call).expect("memory is listed");
        client.resolve(id, Outcome::Store(listed), NOW).expect("the step waits");
        let page = client.take(ticket).expect("it was answered").expect("the list was read");
        let [saved] = page.entries.as_slice() else { panic!("one record is listed as {:?}", page.entries) };
        Held { record: saved.record.clone(), is_refused: saved.holds == RecordKind::Refused, client, store }
    }

    /// Answers the store's steps until there is nothing to do, and no request. The requests that were sent.
    pub(crate) fn run(&mut self) -> Vec<Request> {
        let mut sent = Vec::new();
        for _ in 0..40 {
            match next(&mut self.client, NOW) {
                Step::Store { id, call, .. } => {
                    let answer = self.store.call(&call).expect("memory can be asked");
                    self.client.resolve(id, Outcome::Store(answer), NOW).expect("the step waits");
                }
                Step::Send { request, .. } => sent.push(request),
                Step::Wait { .. } => return sent,
                Step::Completed { .. } | Step::Notify(_) => {}
            }
        }
        panic!("it never waits")
    }

    /// Settles and forgets: each ends at once, and what was forgotten is gone.
    pub(crate) fn end(&mut self, settlement: Settlement) {
        let settled = self.client.settle(&self.record, settlement);
        self.run();
        _ = self.client.take(settled).expect("a settlement ends");
        let forgotten = self.client.forget(&self.record);
        self.run();
        if let Ok(true) = self.client.take(forgotten).expect("it is forgotten or not") {
            let listed = self.client.saved(None);
            self.run();
            assert_eq!(self.client.take(listed).expect("it is listed").expect("the list was read").entries, []);
        }
    }
}
