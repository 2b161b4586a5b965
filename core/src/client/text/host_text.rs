//! Answers of the core that need no client, as text: settings of a proxy, the beginning of a walk, events of a session, and refusals of
//! hosts. One function, so that each rule is in one place and each binding has one crossing for all of them.

mod event;
mod proxy;
mod refusal;
mod seen;

use super::pages;
use crate::client::text::host_params::HostParams;
use crate::contract::json_of;
use crate::policy::Error;
use crate::wire::time::{http_date, retry_after};

/// Answers one question of a host, both as JSON.
///
/// | Question | Takes | Gives |
/// |---|---|---|
/// | `proxy` | a session's `proxy`, and the HTTP `client` that it is for | the proxy as a URL, as parts and as a configuration of curl |
/// | `use_with` | an HTTP `client`, and the `protocol` of a session that is to be bought | the `scheme` that the client will speak |
/// | `refusal` | the `operation` that is refused, and `because`: `closed`, `forked`, `store_in_use`, `store` (with what it `said`), `base_url` (with its `variable`), `blank` (with its `field` and `variable`), `not_text` (with its `field`) | the error, always |
/// | `walk` | the `operation` of a list, a saved `position` to go on from, and `max_pages` | the `position` at which its walk begins |
/// | `retry_after` | the `header` Retry-After of a caller's own target, the `date` of that response where it has one, and `now`, in milliseconds since 1970 | `wait_ms`, null where it asks for no wait |
/// | `seen` | the `chain` of an exception of the caller's HTTP client, outermost first: of each the `names` of its class and those that it is based on, behind their package; its `code`; the `status` of the response that it holds; what it `said`; and `during`, `connect` or `tls`, where that is known | an observation for `observe`: `{"status":N}`, `timeout`, `proxy`, `target` or `unknown` |
/// | `session_event` | the `facts` of an observation through a session, and `more` of the caller's own | the `event` of `report_session_event` |
pub fn host_text(question: &str, given: &str) -> Result<String, Error> {
    let read = |operation| HostParams::read(operation, "given", given);
    match question {
        "proxy" => Ok(json_of(&proxy::settings(&read("proxy")?)?)),
        "use_with" => Ok(json_of(&proxy::check(&read("open_session")?)?)),
        "session_event" => event::event(&read("report_session_event")?),
        "refusal" => Err(refusal::refusal(&read("client")?)?),
        "seen" => seen::seen(&read("observe")?),
        "retry_after" => wait(&read("observe")?),
        "walk" => Ok(json_of(&pages::begin(&read("pages")?)?)),
        _ => Err(Error::invalid("host_text", "question", "is not a known question")),
    }
}

/// How long a target asks to wait.
fn wait(given: &HostParams<'_>) -> Result<String, Error> {
    let (header, date) = (given.text("header")?.unwrap_or_default(), given.text("date")?);
    let now = given.get("now").and_then(|json| json.parse().ok());
    let now = now.ok_or_else(|| given.refuse("now", "must be a whole number of milliseconds since 1970"))?;
    let wait = retry_after(&header, date.as_deref().and_then(http_date), now);
    Ok(format!("{{\"wait_ms\":{}}}", wait.map_or("null".to_owned(), |ms| ms.to_string())))
}
