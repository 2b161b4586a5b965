//! Helpers for the tests of several files.

use super::{Client, ClientOptions, CommandId, Now, Outcome, Saved, Step};
use crate::contract::{Api, Secret};
use crate::engine::Answered;
use crate::policy::Error;
use crate::state::Memory;
use crate::wire::Request;

pub(super) const NOW: Now = Now { unix: 1_700_000_000_000, monotonic: 0 };
/// The same moment by the service's clock.
pub(super) const DATE: &str = "Tue, 14 Nov 2023 22:13:20 GMT";
pub(super) const BUY: &str = r#"{"session_type":"dynamic","product_no":"p"}"#;

/// A client of the agent API; with a store of its host's, or with its own memory.
pub(super) fn agent(entropy: u8, store: bool) -> Client {
    let options = ClientOptions { base_url: "https://api.example/v1".into(), store, ..ClientOptions::default() };
    Client::new(options, [entropy; 16]).expect("the options are sound")
}

/// Lets a client go on until it waits. Each send is answered with a status and a body; the store is a disk that others may have, too.
pub(super) fn go_on(client: &mut Client, disk: &mut Memory, now: Now, mut answer: impl FnMut(&Request) -> (u16, String)) {
    loop {
        match client.poll(now) {
            Step::Store { id, call, .. } => {
                let answer = disk.call(call, now.unix, now.monotonic);
                client.resolve(id, Outcome::Store(answer), now).expect("is answered once");
            }
            Step::Send { id, request, .. } => {
                let (status, body) = answer(&request);
                let answer = Outcome::Response { status, headers: &[("date", DATE)], body: body.as_bytes(), truncated: false };
                client.resolve(id, answer, now).expect("is answered once");
            }
            Step::Wait { .. } => return,
            Step::Completed { .. } | Step::Notify(_) => {}
        }
    }
}

/// Drains a client whose sends all get the same answer.
pub(super) fn drain(client: &mut Client, status: u16, body: &str) {
    go_on(client, &mut Memory::default(), NOW, |_| (status, body.to_owned()));
}

/// The result of a command that needs no send.
pub(super) fn result(client: &mut Client, command: CommandId) -> Result<Answered, Error> {
    go_on(client, &mut Memory::default(), NOW, |request| panic!("{} is sent", request.url));
    client.take_answer(command).expect("has completed")
}

/// The entries of a client with its own memory.
pub(super) fn saved(client: &mut Client) -> Vec<Saved> {
    let ticket = client.saved(None);
    go_on(client, &mut Memory::default(), NOW, |request| panic!("{} is sent", request.url));
    client.take(ticket).expect("has completed").expect("is read").entries
}

/// A client of the reseller API that can log in, and has a token already where it is given one.
pub(super) fn reseller(entropy: u8, token: Option<&str>, store: bool) -> Client {
    let options = ClientOptions {
        api: Api::Reseller,
        base_url: "https://api.example/api".into(),
        username: Some(Secret::new("reseller")),
        password: Some(Secret::new("word")),
        token: token.map(Secret::new),
        store,
        ..ClientOptions::default()
    };
    Client::new(options, [entropy; 16]).expect("the options are sound")
}
