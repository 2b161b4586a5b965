//! What a host hands on that needs no client, as text: settings of a proxy, the beginning of a walk, events of a session. One function, so that a rule is
//! in one place and each binding has one crossing for all of them.

mod event;
mod proxy;

use serde::Serialize;

use super::json::{read, text};
use super::pages;
use crate::policy::Error;

/// Answers one question of a host, both as JSON. Each file below says what it takes and what it gives.
///
/// | Question | Takes | Gives |
/// |---|---|---|
/// | `proxy` | a session's `proxy`, and the HTTP client that it is for | the proxy as URL, as parts and as a configuration of curl |
/// | `use_with` | an HTTP client, and the protocol of a session that is to be bought | nothing, or why it can't use such a session |
/// | `walk` | a list, the saved position to go on from, and how many pages may be read | the position at which its walk begins |
/// | `session_event` | what was seen through a session | the `event` of `report_session_event` |
pub fn host_text(question: &str, given: &str) -> Result<String, Error> {
    match question {
        "proxy" => write(read("proxy", "proxy", given).and_then(proxy::settings)),
        "use_with" => write(read("open_session", "use_with", given).and_then(proxy::check)),
        "session_event" => write(read("report_session_event", "event", given).and_then(event::event)),
        "walk" => write(read("pages", "walk", given).and_then(pages::begin)),
        _ => Err(Error::invalid("host_text", "question", "is not one that is answered")),
    }
}

fn write(answer: Result<impl Serialize, Error>) -> Result<String, Error> {
    answer.map(|answer| text(&answer))
}
