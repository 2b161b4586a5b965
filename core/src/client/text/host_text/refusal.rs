//! The refusals of hosts before a call reaches the core, so that all hosts word them the same.

use crate::client::text::host_params::HostParams;
use crate::contract::endpoint;
use crate::policy::{Advice, Effect, Error, Kind};

/// The calls that are no operation of the table.
const CALLS: [&str; 16] = [
    "open_session",
    "wait_session",
    "place_order",
    "wait_order",
    "reconcile",
    "request",
    "resume",
    "resume_intent",
    "resume_all",
    "saved",
    "settle",
    "forget",
    "observe",
    "release_session",
    "quote",
    "store",
];

/// The error of a call that a host does not make.
pub(super) fn refusal(given: &HostParams<'_>) -> Result<Error, Error> {
    let text = |name| given.text(name).map(Option::unwrap_or_default);
    let operation = operation(&text("operation")?);
    let misuse = |what: &str, advice| Error::new(Kind::Misuse, Effect::None, operation, what, advice);
    Ok(match text("because")?.as_str() {
        "closed" => misuse("was called on a client that is closed", Advice::NewClient),
        "forked" => misuse("was called in a process that was forked after its client was made", Advice::NewClient),
        "released" => {
            let what = "was called on the handle of a session that this client released, so that another client may have it; \
                        open or resume it again, or name its id in a call of the client";
            misuse(what, Advice::ReadSession).with(|new| new.session_id = given.text("session_id").ok().flatten())
        }
        "store_in_use" => misuse("this store has a client already", Advice::NewStore),
        "store" => {
            let what = format!("the store can't be used: {}", text("said")?);
            Error::new(Kind::Store, Effect::None, operation, what, Advice::MendStore)
        }
        "base_url" => {
            let variable = text("variable")?;
            let or_set = if variable.is_empty() { String::new() } else { format!(" or set the environment variable `{variable}`") };
            Error::invalid(operation, "base_url", &format!("is missing; give it{or_set}"))
        }
        "blank" => {
            let what = format!("is blank in the environment variable `{}`; set the variable, or unset it", text("variable")?);
            Error::invalid(operation, &text("field")?, &what)
        }
        "not_text" => Error::invalid(operation, &text("field")?, "holds half of a surrogate pair, which is not text"),
        _ => given.refuse("because", "is not a known reason"),
    })
}

/// A call by its name; any other one is the client's own.
fn operation(name: &str) -> &'static str {
    let call = CALLS.into_iter().find(|call| *call == name);
    call.or_else(|| endpoint(name).map(|endpoint| endpoint.name)).unwrap_or("client")
}
