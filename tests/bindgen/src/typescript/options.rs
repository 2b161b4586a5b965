//! The interfaces of the options: what each kind of call takes, based on one another as in the table.

use std::collections::BTreeSet;

use super::doc;
use crate::model::{AGENT, CLIENT, CallOption, Kind, OPTIONS, RESELLER, RETRY, USES, Use, WALK, in_camel, own_options, use_doc};

/// The options of JavaScript beside those of the core.
const BESIDE: [(Use, &str, &str, &str); 2] = [
    (
        Use::Call,
        "signal",
        "Signal",
        "Cancels the call: it ends with a `cancelled` error, whose `effect` says whether it may have been sent.",
    ),
    (Use::Open, "keep", "boolean", "Keeps a dynamic session when its handle is disposed of, which otherwise terminates it."),
];

/// The options of a client that depend on its environment: their names, types and texts.
const ENVIRONMENT: [(&str, &str, &str); 5] = [
    (
        "baseUrl",
        "string",
        "The address of the API with its path, such as `https://host/v1` or `https://host/api`. In a browser, an \
         address that begins with `/` or `.` is on the page's own server. Default: in Node, the environment's `HOPLINE_BASE_URL` (agent) or \
         `HOPLINE_BACKEND_URL` (reseller).",
    ),
    (
        "fetch",
        "Fetch",
        "The `fetch` that sends requests. The function must not repeat a request or follow a redirect, and gets `redirect: \"manual\"` and a \
         signal. If a function of your own fails, the request may have been sent. Default: the environment's own.",
    ),
    (
        "store",
        "Store",
        "The store of records. Each client needs a store of its own: a second client is refused as `misuse`. Default: the client's own \
         memory, for as long as it lives.",
    ),
    ("retry", "RetryOptions", "How requests are repeated."),
    (
        "log",
        "Log",
        "The log, which gets each event of `onEvent` by the method of its level: purchases and waits are `info`, doubts `warn`, sends \
         `debug`. `console` is one. Default: none.",
    ),
];

/// Where the options of one API are looked for in Node, where they are left out.
const IN_NODE: [(&str, &str); 3] =
    [("api_key", "`HOPLINE_API_KEY`"), ("username", "`HOPLINE_USERNAME`"), ("password", "`HOPLINE_PASSWORD`")];

/// The name of the interface of a use.
pub(super) fn name(of: Use) -> String {
    match of {
        Use::Wait => "SessionOptions".to_owned(),
        _ => format!("{of:?}Options"),
    }
}

/// Prints every interface.
pub(super) fn print(out: &mut String) {
    for of in USES {
        let bases: Vec<String> = of.bases().iter().copied().map(name).collect();
        begin(out, use_doc(of), &name(of), &bases);
        for (_, beside, kind, about) in BESIDE.iter().filter(|(takes, ..)| *takes == of) {
            member(out, beside, kind, about);
        }
        own_options(of).for_each(|option| print_option(out, option));
        out.push_str("}\n\n");
    }
    begin(out, "walking a list. The options of the call apply to each page", "WalkOptions", &[name(Use::Call)]);
    WALK.iter().for_each(|option| print_option(out, option));
    out.push_str("}\n\n");
    declare(out, "How requests are repeated.", "RetryOptions", &[], &RETRY);
    open(out, "The options of a client of either API.".to_owned(), "ClientOptions", &[]);
    ENVIRONMENT.iter().for_each(|(name, kind, about)| member(out, name, kind, about));
    CLIENT.iter().for_each(|option| print_option(out, option));
    out.push_str("}\n\n");
    declare(out, "The options of an `AgentClient`.", "AgentClientOptions", &["ClientOptions".to_owned()], &AGENT);
    let about = "The options of a `ResellerClient`. In a page behind its own server the login and the token may be omitted.";
    declare(out, about, "ResellerClientOptions", &["ClientOptions".to_owned()], &RESELLER);
}

/// The module with the names of the options of more than one word, as the core spells them.
pub(super) fn names() -> String {
    let names: BTreeSet<&str> = all().map(|option| option.name).chain(["base_url", "at_least"]).filter(|name| name.contains('_')).collect();
    let list = names.into_iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    format!("/** The options of more than one word, as the core spells them. */\nexport const optionNames = [{list}];\n")
}

fn declare(out: &mut String, about: &str, name: &str, bases: &[String], options: &[CallOption]) {
    open(out, about.to_owned(), name, bases);
    options.iter().for_each(|option| print_option(out, option));
    out.push_str("}\n\n");
}

fn begin(out: &mut String, about: &str, name: &str, bases: &[String]) {
    open(out, format!("The options for {about}."), name, bases);
}

fn open(out: &mut String, about: String, name: &str, bases: &[String]) {
    doc(out, "", &[about]);
    let bases = if bases.is_empty() { String::new() } else { format!(" extends {}", bases.join(", ")) };
    out.push_str(&format!("export interface {name}{bases} {{\n"));
}

fn print_option(out: &mut String, option: &CallOption) {
    let kind = match option.kind {
        // `null` is no intent, as of a program that has none to give.
        Kind::Text if option.name == "intent" => "string | null",
        Kind::Text => "string",
        Kind::Secret => "string | Secret",
        Kind::Flag | Kind::FlagOn => "boolean",
        Kind::Count | Kind::Time => "number",
        Kind::Decimal => "number | string",
        // The global type `Record` may be hidden by a type of the API one day.
        Kind::Headers => "{ [name: string]: string } | Iterable<readonly [string, string]>",
        Kind::Until => "Until",
        Kind::Texts => "string[]",
        Kind::Product => "Cheapest",
        Kind::UseWith => "UseWith",
        Kind::IfEnded => "IfEnded",
    };
    let in_node = IN_NODE.iter().find(|(name, _)| *name == option.name);
    let default = in_node.map_or_else(String::new, |(_, variable)| format!(" Default: in Node, the environment's {variable}."));
    // Its own name is that of a member of an answer.
    let about = in_camel(&option.told("milliseconds"), |name| name != option.name && all().any(|known| known.name == name));
    member(out, &crate::model::camel(option.name), kind, &(about + &default));
}

/// Every option, whoever takes it.
fn all() -> impl Iterator<Item = &'static CallOption> {
    OPTIONS.iter().chain(WALK.iter()).chain(CLIENT.iter()).chain(AGENT.iter()).chain(RESELLER.iter()).chain(RETRY.iter())
}

fn member(out: &mut String, name: &str, kind: &str, about: &str) {
    doc(out, "  ", &[about.to_owned()]);
    out.push_str(&format!("  {name}?: {kind} | undefined;\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_named_in_prose_as_they_are_called_here() {
        let mut printed = String::new();
        print(&mut printed);
        assert!(printed.contains("`tokenCodes`") && !printed.contains("`token_codes`"));
        assert!(printed.contains("`backend_ready`"), "a member of an answer keeps its name");
    }
}
