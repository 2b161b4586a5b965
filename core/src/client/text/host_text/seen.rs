//! The exception of a caller's HTTP client, as what `observe` takes.

use crate::client::text::host_params::HostParams;
use crate::contract::exceptions::Cause;
use crate::json::{items, text_of};
use crate::policy::{Error, Exception, Interpretation, interpret};

/// `{"status":N}`, or a word.
pub(super) fn seen(given: &HostParams<'_>) -> Result<String, Error> {
    let refuse = || given.refuse("chain", "must be a list of exceptions");
    let chain = items(given.get("chain").unwrap_or_default()).map_err(|_| refuse())?;
    let chain: Result<Vec<_>, Error> = chain.into_iter().map(exception).collect();
    let word = match interpret(&chain?) {
        Interpretation::Status(status) => return Ok(format!("{{\"status\":{status}}}")),
        Interpretation::Of(Cause::Timeout) => "timeout",
        Interpretation::Of(Cause::Proxy) => "proxy",
        Interpretation::Of(Cause::Target) => "target",
        Interpretation::Of(Cause::Unknown) => "unknown",
    };
    Ok(format!("\"{word}\""))
}

fn exception(json: &str) -> Result<Exception<'_>, Error> {
    let given = HostParams::read("observe", "chain", json)?;
    let names = items(given.get("names").unwrap_or("[]")).ok().and_then(|names| names.into_iter().map(text_of).collect());
    let text = |name| given.get(name).and_then(text_of).unwrap_or_default();
    Ok(Exception {
        names: names.ok_or_else(|| given.refuse("names", "must be a list of strings"))?,
        code: text("code"),
        status: given.get("status").and_then(|status| status.parse().ok()),
        text: text("said"),
        during: text("during"),
    })
}
