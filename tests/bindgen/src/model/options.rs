//! The options of a call, once for every host: what each is called in the core, what it does, and who takes it.

use hopline::contract::{Endpoint, Safety};

use self::Use::{Call, Keyed, Paid, Purchase, Read, Renew, Wait, Watch, Write};

/// An option of a call.
#[derive(Debug)]
pub struct CallOption {
    /// What the core calls it. A time says its unit, milliseconds.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// What it does, in one sentence for every host: it names no other option by a name that hosts spell differently.
    pub doc: &'static str,
    /// Who takes it; whoever is based on one of them does too.
    of: &'static [Use],
}

/// The type of an option. Each host has its own word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A text that is shown to nobody.
    Secret,
    /// Yes or no.
    Flag,
    /// Yes or no, and yes where it is left out.
    FlagOn,
    /// A whole number.
    Count,
    /// A length of time.
    Time,
    /// A decimal number.
    Decimal,
    /// Names of headers, and their values, which may be secret.
    Headers,
    /// What a read is repeated for.
    Until,
    /// Texts.
    Texts,
}

const fn option(name: &'static str, kind: Kind, of: &'static [Use], doc: &'static str) -> CallOption {
    CallOption { name, kind, doc, of }
}

/// Every option of a call, in the order in which methods take them.
pub const OPTIONS: [CallOption; 15] = [
    option(
        "intent",
        Kind::Text,
        &[Write],
        "Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it. 1 to 256 bytes.",
    ),
    option(
        "idempotency_key",
        Kind::Text,
        &[Keyed],
        "A key of your own, 1 to 64 visible ASCII characters, which names the write as an intent does. It counts as sent before and is never replaced.",
    ),
    option(
        "wait_for_intent",
        Kind::Flag,
        &[Write],
        "Whether to wait, for as long as the call may take in all, while another client uses or holds what the intent or key stands for. Default: false, and the call is `busy`.",
    ),
    option(
        "retry_paid",
        Kind::Flag,
        &[Paid],
        "Whether to buy again with a new key when the service failed. It may have sold all the same, and then charges twice.",
    ),
    option(
        "max_unit_price",
        Kind::Decimal,
        &[Purchase],
        "The highest price of one unit that is paid, in USD, at least 0: the account's own list is read first, and a higher price is `refused`.",
    ),
    option(
        "expected_charge_usd",
        Kind::Decimal,
        &[Renew],
        "What it is to cost, in USD: where the client has a daily cap and no price can tell it, the call is `invalid` without this.",
    ),
    option("attempts", Kind::Count, &[Call], "How often it is sent at most, the first time included."),
    option("window_ms", Kind::Time, &[Call], "The time from the first send within which another may be made."),
    option("timeout_ms", Kind::Time, &[Call], "The time that one attempt may take."),
    option("headers", Kind::Headers, &[Call], "Further headers of the request. They are not kept in records."),
    option(
        "until",
        Kind::Until,
        &[Read],
        "What the read is repeated for, at growing intervals from a second on; the answer's `phase` says whether it holds.",
    ),
    option("credentials", Kind::FlagOn, &[Wait], "Whether the username and password are wanted once the session is active. Default: yes."),
    option(
        "auto_rotate",
        Kind::Flag,
        &[Wait],
        "Whether `observe` rotates the session, a dynamic one, where it would advise to. It stays so, over a crash too.",
    ),
    option(
        "deadline_ms",
        Kind::Time,
        &[Read, Watch],
        "How long to wait before what is known then is returned; 5 minutes where it is left out.",
    ),
    option("ends", Kind::Texts, &[Watch], "Further statuses that end it, at most 16, each of 1 to 64 bytes."),
];

/// Where an earlier walk of a list was, and how far a walk goes: no options of the core, whose pages these are.
pub const WALK: [CallOption; 2] = [
    option("position", Kind::Text, &[], "The position of an earlier walk of this list, to go on from there."),
    option(
        "max_pages",
        Kind::Count,
        &[],
        "How many pages are read at most, those before the position included; one is read in any case. Default: what the walk of the position had, 1000 from the beginning.",
    ),
];

/// What the clients of both APIs take, beside what belongs to one of them and to a host.
pub const CLIENT: [CallOption; 6] = [
    option(
        "account",
        Kind::Text,
        &[],
        "The name of the account in the store: what another account bought is then not found. Without it, each account needs a store of its own.",
    ),
    option(
        "same_account",
        Kind::Flag,
        &[],
        "Whether records of another key, login or base URL are this account's, because only those have changed. Default: no.",
    ),
    option(
        "backend_refuses",
        Kind::Flag,
        &[],
        "Whether a backend of your own answers, which refuses in its own words what it does not pass on. Then 401, 403, 404, 413, 422 and 429, without the envelope or with a code that the service does not document, are `refused` with effect `none` where every send of the write was answered so. Under an intent the key is kept until it is too old, and sent when the intent is started again. Default: yes where there is no API key, or no username, password and token.",
    ),
    option("allow_http", Kind::Flag, &[], "Whether plain http is allowed to a host that is not loopback. Default: no."),
    option(
        "max_in_flight",
        Kind::Count,
        &[],
        "How many requests are out at once at most, at least 1; writes have seven of eight of them. Who comes later waits, and was not sent. The end of a session and a login need no place. Default: 64, and 6 in a page.",
    ),
    option("max_body", Kind::Count, &[], "The longest body that is read, in bytes. Default: 8 MiB."),
];

/// What a client of the agent API takes beside.
pub const AGENT: [CallOption; 3] = [
    option("api_key", Kind::Secret, &[], "The API key."),
    option(
        "daily_cap_usd",
        Kind::Decimal,
        &[],
        "The most, in USD, that all clients of the store with the same account buy in a UTC day, together: what was charged, what is in doubt and what is under way; recharges do not count. What would go beyond it is `refused` before it is sent. A client without a cap does not count what it buys, so give every client of a store the same one. The account's own limit, which holds for all stores, is `daily_limit_usd` of `update_budget`. At least 0.",
    ),
    option(
        "backend_ready",
        Kind::Flag,
        &[],
        "`backend_ready` as the account was registered with. If false, purchases of sessions are `refused` before they are sent, until `get_account` says otherwise.",
    ),
];

/// What a client of the reseller API takes beside.
pub const RESELLER: [CallOption; 6] = [
    option(
        "username",
        Kind::Secret,
        &[],
        "Who logs in. The client does so by itself, once for any number of calls, when it has no token or the service refuses it.",
    ),
    option("password", Kind::Secret, &[], "The password that goes with it."),
    option("token", Kind::Secret, &[], "A token to start from. Without a username and a password there is no other."),
    option("token_codes", Kind::Texts, &[], "The service's codes that mean that the token is refused, beside HTTP 401. Default: `401`."),
    option(
        "doubt_codes",
        Kind::Texts,
        &[],
        "Further codes that do not say whether a write was done: then it is `in_doubt`. They come after `token_codes` and before `refusal_codes`. Each is compared as text, whole. Default: none.",
    ),
    option(
        "refusal_codes",
        Kind::Texts,
        &[],
        "Further codes that say that a write was not done: then it is `refused`, though not under HTTP 408, 409, 425, 429 and 5xx. The service documents one code only, so which others say so is an assumption, and what is not taken for a refusal is `in_doubt`. Default: none.",
    ),
];

/// How a client repeats: the members of its option `retry`.
pub const RETRY: [CallOption; 8] = [
    option("attempts", Kind::Count, &[], "How often one call is sent at most, the first time included. Default: 4."),
    option("window_ms", Kind::Time, &[], "The time from the first send within which another may be made. Default: a minute."),
    option("timeout_ms", Kind::Time, &[], "How long one attempt may take. Default: 20 seconds."),
    option(
        "backoff_ms",
        Kind::Time,
        &[],
        "The longest wait before the first repeat; each further one may be twice as long. Default: half a second.",
    ),
    option("throttled_backoff_ms", Kind::Time, &[], "The same after the service asked to slow down. Default: a second."),
    option(
        "max_backoff_ms",
        Kind::Time,
        &[],
        "The longest wait before any repeat, unless the service asks for a longer one. Default: 20 seconds.",
    ),
    option(
        "conflict_ms",
        Kind::Time,
        &[],
        "How long to wait, in all, for an earlier request with the same key to end. Default: two minutes.",
    ),
    option(
        "retry_paid",
        Kind::Flag,
        &[],
        "Whether a paid operation that the service failed may be bought again with a new key; it may then be charged twice. Default: no.",
    ),
];

/// What is done with a call, by which it takes its options. What each takes beyond those it is based on is in [`OPTIONS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Any call, a page of a walk among them.
    Call,
    /// What only reads.
    Read,
    /// What writes.
    Write,
    /// A write with an idempotency key.
    Keyed,
    /// One that can charge money.
    Paid,
    /// Lengthening a session.
    Renew,
    /// Buying a session.
    Purchase,
    /// Waiting for an order.
    Watch,
    /// Waiting for a session.
    Wait,
    /// Buying a session and waiting for it.
    Open,
    /// Placing an order and waiting for it.
    Place,
    /// A request of the caller's own.
    Request,
}

impl Use {
    /// All of them, each after those that it is based on.
    pub const ALL: [Use; 12] = [Call, Read, Write, Keyed, Paid, Renew, Purchase, Watch, Wait, Use::Open, Use::Place, Use::Request];

    /// What an operation of the table is. The core refuses the options that mean nothing for it, as a test shows.
    pub fn of(endpoint: &Endpoint) -> Use {
        match (endpoint.safety, endpoint.name) {
            (Safety::Safe, _) => Read,
            (Safety::Keyed, "create_session") => Purchase,
            (Safety::Keyed, "renew_session") => Renew,
            (Safety::Keyed, _) if endpoint.paid => Paid,
            (Safety::Keyed, _) => Keyed,
            (Safety::Idempotent | Safety::TwiceAtMost | Safety::AtMostOnce, _) => Write,
        }
    }

    /// Whose options it takes beside its own.
    pub fn bases(self) -> &'static [Use] {
        match self {
            Call => &[],
            Read | Write | Watch => &[Call],
            Wait => &[Watch],
            Keyed => &[Write],
            Paid => &[Keyed],
            Renew => &[Paid],
            Purchase => &[Renew],
            Use::Open => &[Wait, Purchase],
            Use::Place => &[Watch, Write],
            Use::Request => &[Read, Keyed],
        }
    }

    /// What it is, as the end of "What may be decided for".
    pub fn doc(self) -> &'static str {
        match self {
            Call => "one call. Whatever is left out is as the client has it",
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
            Use::Request => "a request of your own. What belongs to reads is for one that only reads, the rest for one that writes",
        }
    }

    /// The options that it takes.
    pub fn options(self) -> impl Iterator<Item = &'static CallOption> {
        OPTIONS.iter().filter(move |option| self.takes(option))
    }

    /// The options that it takes beyond those it is based on.
    pub fn own(self) -> impl Iterator<Item = &'static CallOption> {
        OPTIONS.iter().filter(move |option| option.of.contains(&self))
    }

    fn takes(self, option: &CallOption) -> bool {
        option.of.contains(&self) || self.bases().iter().any(|base| base.takes(option))
    }
}

impl CallOption {
    /// Its name where a time is of a type that says its unit.
    pub fn plain(&self) -> &'static str {
        self.name.strip_suffix("_ms").unwrap_or(self.name)
    }

    /// What it does, with the unit of times where the type of the host does not say it.
    pub fn told(&self, unit: &str) -> String {
        if self.kind == Kind::Time { format!("{} In {unit}.", self.doc) } else { self.doc.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use hopline::contract::{Field, FieldRule, Shape, endpoints};
    use hopline::policy::RetryPolicy;
    use hopline::{CallOptions, Client, ClientOptions};
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
                let takes = Use::of(endpoint).options().any(|known| known.name == option);
                let of_it = refused.as_ref().is_some_and(|error| error.field.as_deref() == Some(option));
                assert_eq!((takes, of_it), (refused.is_none(), refused.is_some()), "{} {option}: {refused:?}", endpoint.name);
            }
        }
    }

    #[test]
    fn every_option_of_the_core_is_here_once() {
        let mut known = CallOptions::NAMES.to_vec();
        let mut here = OPTIONS.map(|option| option.name).to_vec();
        known.sort_unstable();
        here.sort_unstable();
        assert_eq!(here, known);
    }

    #[test]
    fn the_options_of_a_client_are_the_cores() {
        let sorted = |names: &[&'static str]| names.iter().copied().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(sorted(&RETRY.map(|option| option.name)), sorted(RetryPolicy::NAMES));
        let own = ["api", "base_url", "late_calls", "retry", "store"];
        let here = CLIENT.iter().chain(&AGENT).chain(&RESELLER).map(|option| option.name);
        assert_eq!(here.chain(own).collect::<std::collections::BTreeSet<_>>(), sorted(ClientOptions::NAMES));
    }

    #[test]
    fn a_use_takes_what_it_is_based_on_and_its_own() {
        let names = |of: Use| of.options().map(|option| option.name).collect::<Vec<_>>();
        assert_eq!(names(Call), ["attempts", "window_ms", "timeout_ms", "headers"]);
        assert!(names(Use::Open).contains(&"max_unit_price") && names(Use::Open).contains(&"ends") && !names(Use::Open).contains(&"until"));
        assert!(names(Renew).contains(&"expected_charge_usd") && !names(Paid).contains(&"expected_charge_usd"));
        assert!(names(Use::Request).contains(&"until") && !names(Use::Request).contains(&"max_unit_price"));
    }
}
