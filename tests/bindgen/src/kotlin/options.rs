//! The options of a client, as a type of the caller's.

use std::fmt::Write;

use super::{HEADER, option_type, print_doc, quoted};
use crate::model::{CLIENT, CallOption, RETRY, camel};

/// An option that is a parameter of the client by itself.
const PARAMETER: &str = "same_account";

pub(super) fn print() -> String {
    let client: Vec<&CallOption> = CLIENT.iter().filter(|option| option.name != PARAMETER).collect();
    let mut out = HEADER.to_owned();
    put!(out, "import kotlin.time.Duration\n");
    put!(out, "/** How a client repeats, waits and reads. Omitted options keep their defaults. */\npublic data class Options(");
    for option in client.iter().copied().chain(&RETRY) {
        print_doc(&mut out, "    ", &[option.doc.to_owned()]);
        put!(out, "    val {}: {}? = null,", camel(option.plain()), option_type(option.kind));
    }
    put!(out, ")\n");
    put!(out, "/** All the options of a client: those that are its own, and these. What holds a password is a secret from here on. */");
    put!(out, "internal fun Options.told(vararg own: Pair<String, Any?>): Secret {{");
    put!(out, "    val retry = mapOf({})", pairs(&RETRY.iter().collect::<Vec<_>>()));
    put!(out, "    return Secret(encode(*own, {}, \"retry\" to retry))\n}}", pairs(&client));
    out
}

fn pairs(options: &[&CallOption]) -> String {
    options.iter().map(|option| format!("{} to {}", quoted(option.name), camel(option.plain()))).collect::<Vec<_>>().join(", ")
}
