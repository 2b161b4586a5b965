//! The options of clients and calls, as hosts print them.

use std::sync::LazyLock;

use hopline::client::{OptionEntry, Taker};
use hopline::contract::{Endpoint, Safety};
use hopline::policy::RetryPolicy;
use hopline::{CallOptions, ClientOptions};

/// The types of options, and the calls that take them.
pub use hopline::client::{OptionKind as Kind, Taker as Use};

use self::Use::{Call, Keyed, Paid, Purchase, Read, Renew, Wait, Watch, Write};

/// An option as hosts print it.
#[derive(Debug)]
pub struct CallOption {
    /// The option's name in the core. A time says its unit, milliseconds.
    pub name: &'static str,
    /// The option's type.
    pub kind: Kind,
    /// The option's prose, with its default.
    pub doc: &'static str,
    /// The calls or clients that take it; all that are based on one of them do too.
    of: &'static [Use],
}

const fn option(name: &'static str, kind: Kind, of: &'static [Use], doc: &'static str) -> CallOption {
    CallOption { name, kind, doc, of }
}

impl CallOption {
    /// None of an option that hosts give in a way of their own.
    fn of(entry: &OptionEntry) -> Option<Self> {
        let (kind, doc) = (entry.kind?, super::lines(entry.doc).collect::<Vec<_>>().join(" "));
        let default = match (entry.default, kind) {
            (None, _) => String::new(),
            (Some(0), Kind::Flag) => " Default: no.".to_owned(),
            (Some(1000), Kind::Time) => " Default: 1 second.".to_owned(),
            (Some(ms), Kind::Time) if ms % 1000 == 0 => format!(" Default: {} seconds.", ms / 1000),
            (Some(ms), Kind::Time) => format!(" Default: {ms} milliseconds."),
            (Some(number), _) => format!(" Default: {number}."),
        };
        Some(option(entry.name, kind, entry.takers, format!("{}{default}", doc.trim()).leak()))
    }
}

fn printed(entries: &'static [OptionEntry], is_meant: impl Fn(&OptionEntry) -> bool) -> Vec<CallOption> {
    entries.iter().filter(|entry| is_meant(entry)).filter_map(CallOption::of).collect()
}

/// Every option of a call, in the order in which methods take them.
pub static OPTIONS: LazyLock<Vec<CallOption>> = LazyLock::new(|| printed(CallOptions::OPTIONS, |_| true));
/// The options that the clients of both APIs take, beside those of one of them and of a host.
pub static CLIENT: LazyLock<Vec<CallOption>> = LazyLock::new(|| client_options(Taker::Client));
/// The options that a client of the agent API takes beside.
pub static AGENT: LazyLock<Vec<CallOption>> = LazyLock::new(|| client_options(Taker::AgentClient));
/// The options that a client of the reseller API takes beside.
pub static RESELLER: LazyLock<Vec<CallOption>> = LazyLock::new(|| client_options(Taker::ResellerClient));
/// The members of a client's option `retry`.
pub static RETRY: LazyLock<Vec<CallOption>> = LazyLock::new(|| printed(RetryPolicy::OPTIONS, |_| true));

fn client_options(of: Taker) -> Vec<CallOption> {
    printed(ClientOptions::OPTIONS, |entry| entry.takers == [of])
}

/// The position and the length of a walk: not options of the core, which reads single pages.
pub const WALK: [CallOption; 2] = [
    option("position", Kind::Text, &[], "The position of an earlier walk of this list, to continue from."),
    option(
        "max_pages",
        Kind::Count,
        &[],
        "The most pages that are read, those before the position included; one is read in any case. Default: that of the walk of the position, 1000 from the beginning.",
    ),
];

/// The kinds of calls, each after those that it is based on.
pub const USES: [Use; 12] = [Call, Read, Write, Keyed, Paid, Renew, Purchase, Watch, Wait, Use::Open, Use::Place, Use::Request];

/// The use of an operation of the table. The core refuses the options that mean nothing for it, as a test shows.
pub fn use_of(endpoint: &Endpoint) -> Use {
    match (endpoint.safety, endpoint.name) {
        (Safety::Safe, _) => Read,
        (Safety::Keyed, "create_session") => Purchase,
        (Safety::Keyed, "renew_session") => Renew,
        (Safety::Keyed, _) if endpoint.paid => Paid,
        (Safety::Keyed, _) => Keyed,
        (Safety::Idempotent | Safety::TwiceAtMost | Safety::AtMostOnce, _) => Write,
    }
}

/// The prose of a use, as the end of "The options for".
pub fn use_doc(of: Use) -> &'static str {
    match of {
        Call => "one call. Omitted ones are the client's",
        Read => "a call that only reads",
        Write => "a write",
        Keyed => "a write that has an idempotency key",
        Paid => "a write that can charge money",
        Renew => "lengthening a session",
        Purchase => "buying a session",
        Watch => "waiting for an order",
        Wait => "waiting for a session",
        Use::Open => "a session that is bought",
        Use::Place => "an order that is placed",
        Use::Request => "a request of your own. The options of reads are for one that only reads, the others for one that writes",
        Use::Client | Use::AgentClient | Use::ResellerClient => "a client",
    }
}

/// The options that a call takes.
pub fn options_of(of: Use) -> impl Iterator<Item = &'static CallOption> {
    OPTIONS.iter().filter(move |option| takes(of, option))
}

/// The options that a call takes beyond those that it is based on.
pub fn own_options(of: Use) -> impl Iterator<Item = &'static CallOption> {
    OPTIONS.iter().filter(move |option| option.of.contains(&of))
}

fn takes(of: Use, option: &CallOption) -> bool {
    option.of.contains(&of) || of.bases().iter().any(|base| takes(*base, option))
}

impl CallOption {
    /// Its name where a time is of a type that says its unit.
    pub fn plain(&self) -> &'static str {
        self.name.strip_suffix("_ms").unwrap_or(self.name)
    }

    /// The documentation, with the unit of times if the host's type does not have one.
    pub fn told(&self, unit: &str) -> String {
        if self.kind == Kind::Time { format!("{} In {unit}.", self.doc) } else { self.doc.to_owned() }
    }
}

/// Holds that a hand-written constructor says of its options what the table says, with names and sentences in the host's own spelling. Credentials are no part of
/// this, since hosts say where in the environment they look for them.
#[cfg(test)]
pub fn assert_documents(file: &str, options: &[CallOption]) {
    let plain = |text: &str| {
        let lines = text.lines().map(|line| line.trim().trim_start_matches(['/', '*']).trim());
        let words =
            lines.collect::<Vec<_>>().join(" ").replace(['[', ']'], "`").replace(['.', ';', ':'], " ").replace('_', "").to_lowercase();
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let documented = plain(&std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}")));
    for option in options.iter().filter(|option| !["api_key", "username", "password"].contains(&option.name)) {
        assert!(documented.contains(&plain(option.doc)), "{file} does not say of `{}`: {}", option.name, option.doc);
    }
}

#[cfg(test)]
mod tests {
    use hopline::Client;
    use hopline::contract::{Field, FieldRule, Shape, endpoints};
    use serde_json::{Map, Value, json};

    use super::*;

    /// Parameters that the core takes.
    fn sound(endpoint: &Endpoint) -> String {
        let needed = |field: &&Field| field.required || field.rules.iter().any(|rule| matches!(rule, FieldRule::Unless(_)));
        let fields = endpoint.request.fields.iter().filter(needed);
        Value::Object(fields.map(|field| (field.name.to_owned(), value(field))).collect::<Map<_, _>>()).to_string()
    }

    fn value(field: &Field) -> Value {
        match field.shape {
            Shape::Text | Shape::Secret if field.rules.contains(&FieldRule::Email) => json!("a@example.com"),
            Shape::Text | Shape::Secret if field.rules.contains(&FieldRule::Uuid) => json!("00000000-0000-4000-8000-000000000000"),
            Shape::Text | Shape::Secret | Shape::Label => json!("abcdef"),
            Shape::Bool => json!(true),
            Shape::Integer | Shape::Time | Shape::Span | Shape::Decimal => json!(20),
            Shape::Word(words) => json!(words.words.first().map(|word| word.word)),
            Shape::Json | Shape::Error | Shape::Record(_) => json!({}),
            Shape::List(_) | Shape::OneOrMany(_) => json!([]),
        }
    }

    #[test]
    fn the_core_refuses_what_an_operation_does_not_take_and_nothing_else() {
        for endpoint in endpoints() {
            for (option, given) in [("intent", json!("a")), ("idempotency_key", json!("a")), ("until", json!({"at": "/a", "is": ["b"]}))] {
                let client = json!({"base_url": "https://example.com/v1", "api": endpoint.api}).to_string();
                let mut client = Client::from_text(&client, &[1; 16]).expect("a client");
                let command = client.start_text(endpoint.name, &sound(endpoint), &json!({ option: given }).to_string());
                let refused = client.take_text(command.0).and_then(Result::err);
                let takes = options_of(use_of(endpoint)).any(|known| known.name == option);
                let of_it = refused.as_ref().is_some_and(|error| error.field.as_deref() == Some(option));
                assert_eq!((takes, of_it), (refused.is_none(), refused.is_some()), "{} {option}: {refused:?}", endpoint.name);
            }
        }
    }

    #[test]
    fn a_use_takes_what_it_is_based_on_and_its_own() {
        let names = |of: Use| options_of(of).map(|option| option.name).collect::<Vec<_>>();
        assert_eq!(names(Call), ["attempts", "window_ms", "timeout_ms", "headers"]);
        assert!(names(Use::Open).contains(&"max_unit_price") && names(Use::Open).contains(&"ends") && !names(Use::Open).contains(&"until"));
        assert!(names(Renew).contains(&"expected_charge_usd") && !names(Paid).contains(&"expected_charge_usd"));
        assert!(names(Use::Request).contains(&"until") && !names(Use::Request).contains(&"max_unit_price"));
    }
}
