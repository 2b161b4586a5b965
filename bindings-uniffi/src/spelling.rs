//! The names of methods, parameters and options in errors. The core spells them as the contract does, `max_unit_price`; in Kotlin and Swift
//! they are `maxUnitPrice`, and a time has a type in place of `_ms`. What the service, a person or the contract has named stays: intents,
//! products, words of the contract, and places in an answer, which begin with `data`.

use std::collections::HashSet;
use std::sync::LazyLock;

use hopline::client::{OptionEntry, OptionKind, host_types};
use hopline::contract::pools::POOL_REQUESTS;
use hopline::contract::{REPLIES, Record, Shape, endpoints};
use hopline::policy::RetryPolicy;
use hopline::{CallOptions, ClientOptions};

/// The names that are in no table: methods that are no operation of it, and parameters of functions beside the client.
const OTHERS: [&str; 18] = [
    "open_session",
    "wait_session",
    "place_order",
    "wait_order",
    "resume_intent",
    "resume_all",
    "release_session",
    "open_pool",
    "join_pool",
    "list_pools",
    "pool_status",
    "close_pool",
    "drain_pool",
    "wait_ready",
    "discard_lease",
    "is_shared",
    "needs_project_id",
    "max_pages",
];

/// The names to spell anew, and of those the ones that a type says the unit of.
struct Names {
    known: HashSet<&'static str>,
    times: HashSet<&'static str>,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let mut names = Names { known: OTHERS.into_iter().collect(), times: HashSet::new() };
    names.add("latency_ms", true);
    for OptionEntry { name, kind, .. } in [CallOptions::OPTIONS, ClientOptions::OPTIONS, RetryPolicy::OPTIONS].into_iter().flatten() {
        names.add(name, *kind == Some(OptionKind::Time));
    }
    for endpoint in endpoints() {
        names.add(endpoint.name, false);
        names.add_all(Shape::Record(endpoint.request), false);
        names.add_all(endpoint.response, false);
    }
    POOL_REQUESTS.into_iter().for_each(|request| names.add_all(request, true));
    REPLIES.into_iter().chain(host_types().into_iter().map(Shape::Record)).for_each(|told| names.add_all(told, false));
    names
});

impl Names {
    fn add(&mut self, name: &'static str, is_time: bool) {
        self.known.insert(name);
        if is_time && name.ends_with("_ms") {
            self.times.insert(name);
        }
    }

    fn add_all(&mut self, shape: Shape, has_times: bool) {
        match shape {
            Shape::Record(Record { fields, .. }) => {
                for field in *fields {
                    self.add(field.name, has_times || field.shape == Shape::Span);
                    self.add_all(field.shape, has_times);
                }
            }
            Shape::List(item) | Shape::OneOrMany(item) => self.add_all(*item, has_times),
            _ => {}
        }
    }
}

/// A message of the core, in which the method that was called comes first and may have another name than its operation.
pub(crate) fn message(told: &str, called: Option<&str>) -> String {
    let (operation, rest) = told.split_at(told.find([' ', ':']).unwrap_or(told.len()));
    // The intent is the caller's own word.
    let end = rest.strip_prefix(" `").and_then(|rest| rest.find("`: ")).map_or(0, |at| at + " `".len() + 1);
    let (intent, rest) = rest.split_at_checked(end).unwrap_or(("", rest));
    format!("{}{intent}{}", camel(called.unwrap_or(operation)), spelled(rest))
}

/// A sentence of the core, or a part of one, in the spelling of Kotlin and Swift. Words of the service, which stand in quotes, stay.
#[uniffi::export]
pub fn spelled(told: &str) -> String {
    let quotes = told.split('"').enumerate().map(|(n, part)| if n % 2 == 0 { names_in(part) } else { part.to_owned() });
    quotes.collect::<Vec<_>>().join("\"")
}

fn names_in(told: &str) -> String {
    let parts = told.split('`').enumerate().map(|(n, part)| if n % 2 == 1 { spelled_field(part) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

/// A field of an error in the spelling of Kotlin and Swift: a name, or names with dots.
#[uniffi::export]
pub fn spelled_field(field: &str) -> String {
    if field == "data" || field.starts_with("data.") {
        return field.to_owned();
    }
    let parts = field.split_inclusive(|letter: char| !letter.is_alphanumeric() && letter != '_');
    parts.map(part).collect()
}

/// A name, and what ends it.
fn part(text: &str) -> String {
    let (name, end) = text.split_at(text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len()));
    let plain = if NAMES.times.contains(name) { name.trim_end_matches("_ms") } else { name };
    if NAMES.known.contains(name) { camel(plain) + end } else { text.to_owned() }
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |spelled, word| {
        let (initial, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        spelled + &initial.to_ascii_uppercase() + rest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_table_are_spelled_anew_and_others_stay() {
        let cases = [
            ("`if_ended` can be `buy` only in a client with `daily_cap_usd`", "`ifEnded` can be `buy` only in a client with `dailyCapUsd`"),
            ("`product.max_unit_price` or `alert_thresholds[2]`", "`product.maxUnitPrice` or `alertThresholds[2]`"),
            ("`timeout_ms` and `base_url`, of `list_products`", "`timeout` and `baseUrl`, of `listProducts`"),
            ("`my_job` and `ses_1`, session_id, `on_demand`", "`my_job` and `ses_1`, session_id, `on_demand`"),
            ("the service: \"give `session_id`\"; not `data.session_id`", "the service: \"give `session_id`\"; not `data.session_id`"),
        ];
        for (core, host) in cases {
            assert_eq!(spelled(core), host);
            assert_eq!(spelled(host), host, "once");
        }
    }

    #[test]
    fn a_message_begins_with_the_method_that_was_called() {
        let told = "create_session `session_id`: `session_id` is required; nothing was charged";
        assert_eq!(message(told, None), "createSession `session_id`: `sessionId` is required; nothing was charged");
        assert_eq!(message(told, Some("open_session")), "openSession `session_id`: `sessionId` is required; nothing was charged");
        assert_eq!(message("client: `api_key` must be text", None), "client: `apiKey` must be text");
    }
}
