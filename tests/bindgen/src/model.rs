//! The table as a printer wants it: every type once, in the order in which it is met, with its documentation trimmed.

use std::sync::LazyLock;

use hopline::client::{Cheapest, EVENTS, IfEnded, Level, host_types};
use hopline::contract::agent::CreateSession;
use hopline::contract::pools::POOL_REQUESTS;
use hopline::contract::{Api, Endpoint, Field, Operation, REPLIES, Record, Shape, Shaped, Words, endpoints};

mod options;

#[cfg(test)]
pub use options::assert_documents;
pub use options::{AGENT, CLIENT, CallOption, Kind, OPTIONS, RESELLER, RETRY, USES, Use, WALK, options_of, own_options, use_doc, use_of};

/// The APIs, for each of which every host has a client.
pub const APIS: [Api; 2] = [Api::Agent, Api::Reseller];

/// The beginning of the names of a client: `AgentClient`, `AgentOperations`.
pub fn client(api: Api) -> &'static str {
    match api {
        Api::Agent => "Agent",
        Api::Reseller => "Reseller",
    }
}

/// The operations of an API, in the order of the table.
pub fn operations(api: Api) -> impl Iterator<Item = &'static Endpoint> {
    endpoints().filter(move |endpoint| endpoint.api == api)
}

/// An operation of that name, where it belongs to the API.
pub fn operation(api: Api, name: &str) -> Option<&'static Endpoint> {
    operations(api).find(|endpoint| endpoint.name == name)
}

/// The walk of a list that comes in pages.
#[derive(Debug, Clone, Copy)]
pub struct Walk {
    /// The operation that reads a page.
    pub endpoint: &'static Endpoint,
    /// A page.
    pub page: &'static Record,
    /// The member of a page that holds its items.
    pub items: &'static Field,
    /// The type of an item.
    pub item: Shape,
}

impl Walk {
    /// The walk of an operation whose answer names the page after it, or that takes the number of a page.
    pub fn of(endpoint: &'static Endpoint) -> Option<Walk> {
        let Shape::Record(page) = endpoint.response else { return None };
        page.field("next_cursor").or(endpoint.request.field("page"))?;
        page.fields.iter().find_map(|items| match items.shape {
            Shape::List(item) => Some(Walk { endpoint, page, items, item: *item }),
            _ => None,
        })
    }

    /// Its name, in snake case: `list_x` is walked by `walk_x`.
    pub fn name(self) -> String {
        self.endpoint.name.replacen("list_", "walk_", 1)
    }

    /// Its parameters: where a page begins is its own to say.
    pub fn fields(self) -> impl Iterator<Item = &'static Field> {
        self.endpoint.request.fields.iter().filter(|field| !matches!(field.name, "cursor" | "page"))
    }
}

/// A type to print.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    /// An object: the parameters of a request, or a part of an answer.
    Record(&'static Record),
    /// A list of words.
    Words(&'static Words),
}

impl Type {
    /// The record, if the type is one.
    pub fn record(self) -> Option<&'static Record> {
        if let Type::Record(record) = self { Some(record) } else { None }
    }

    /// Its name, in upper camel case.
    pub fn name(self) -> &'static str {
        match self {
            Type::Record(record) => record.name,
            Type::Words(words) => words.name,
        }
    }
}

/// The types of all answers, each after those that it is made of. Types of requests that are no answers too are not
/// among them, but the words that requests use are.
pub fn types() -> Vec<Type> {
    let mut found = Vec::new();
    APIS.into_iter().flat_map(operations).for_each(|endpoint| collect_all(endpoint, &mut found));
    REPLIES.into_iter().for_each(|reply| collect(reply, &mut found));
    found
}

/// The request that opens a pool.
const OPEN_POOL: &str = "OpenPool";

/// The requests about pools: the parameters of `open_pool`, `acquire` and so on.
pub fn pool_requests() -> impl Iterator<Item = &'static Record> {
    POOL_REQUESTS.into_iter().filter_map(|shape| if let Shape::Record(record) = shape { Some(record) } else { None })
}

/// The types of what hosts are told beside answers, each after those that it is made of, without those of answers.
pub fn told_types() -> Vec<Type> {
    let known = types();
    let mut found = Vec::new();
    host_types().into_iter().for_each(|record| collect(Shape::Record(record), &mut found));
    // The words that options and pools are asked with.
    collect(IfEnded::SHAPE, &mut found);
    pool_requests().flat_map(|record| record.fields).for_each(|field| collect(field.shape, &mut found));
    // A choice of a product is each host's own type, which makes one by its properties.
    found.retain(|found| !is_choice(found.name()) && !known.iter().any(|known| known.name() == found.name()));
    found
}

/// True if a type is a choice of a product.
pub fn is_choice(name: &str) -> bool {
    matches!(Cheapest::SHAPE, Shape::Record(choice) if choice.name == name)
}

/// The parameters of a request about a pool. A pool may leave its product to a choice, too.
pub fn pool_fields(request: &'static Record) -> &'static [Field] {
    static OPEN: LazyLock<Vec<Field>> = LazyLock::new(|| {
        let open = pool_requests().find(|request| request.name == OPEN_POOL);
        open.into_iter().flat_map(|open| open.fields).map(with_choice).collect()
    });
    if request.name == OPEN_POOL { &OPEN } else { request.fields }
}

/// The parameters of an operation. A purchase of a session may leave its product to a choice, so nothing that names the product is
/// required there.
pub fn request_fields(endpoint: &Endpoint) -> &'static [Field] {
    static BUY: LazyLock<Vec<Field>> = LazyLock::new(|| CreateSession::ENDPOINT.request.fields.iter().map(with_choice).collect());
    if endpoint.name == CreateSession::ENDPOINT.name { &BUY } else { endpoint.request.fields }
}

fn with_choice(field: &Field) -> Field {
    match field.required && CreateSession::ENDPOINT.request.field(field.name).is_some() {
        true => Field { required: false, doc: format!("{} Required unless `product` chooses.", field.doc.trim()).leak(), ..*field },
        false => *field,
    }
}

/// The readers of an event. Those of the hosts' own, of what they send, are for whoever looks for a fault.
pub fn level_of(event: &str) -> Level {
    EVENTS.iter().find(|known| known.name == event).map_or(Level::Debug, |known| known.level)
}

/// The types of one API that go over the wire.
pub fn types_of(api: Api) -> Vec<Type> {
    let mut found = Vec::new();
    operations(api).for_each(|endpoint| collect_all(endpoint, &mut found));
    found
}

fn collect_all(endpoint: &'static Endpoint, found: &mut Vec<Type>) {
    endpoint.request.fields.iter().for_each(|field| collect(field.shape, found));
    collect(endpoint.response, found);
}

fn collect(shape: Shape, found: &mut Vec<Type>) {
    let new = match shape {
        Shape::List(item) | Shape::OneOrMany(item) => return collect(*item, found),
        Shape::Word(words) => Type::Words(words),
        Shape::Record(record) => {
            record.fields.iter().for_each(|field| collect(field.shape, found));
            Type::Record(record)
        }
        _ => return,
    };
    if !found.iter().any(|known| known.name() == new.name()) {
        found.push(new);
    }
}

/// The lines of a description, without the space that follows `///`.
pub fn lines(doc: &str) -> impl Iterator<Item = &str> {
    doc.lines().map(str::trim)
}

/// An operation's name as `camelCase`.
pub fn camel(snake: &str) -> String {
    let mut upper = false;
    let mut out = String::new();
    for letter in snake.chars() {
        match letter {
            '_' => upper = true,
            _ if std::mem::take(&mut upper) => out.extend(letter.to_uppercase()),
            _ => out.push(letter),
        }
    }
    out
}

/// A line of a description as the hosts with `camelCase` print it: what they have a name for has that name.
pub fn named_in_camel(line: &str) -> String {
    let records = || types().into_iter().chain(told_types()).filter_map(Type::record);
    let is_field = |name: &str| records().any(|record| record.field(name).is_some());
    let is_parameter = |name: &str| endpoints().any(|endpoint| endpoint.request.field(name).is_some());
    in_camel(line, |name: &str| is_function(name) || is_parameter(name) || is_field(name))
}

/// A line of a description for a host whose functions alone have names in `camelCase`.
pub fn functions_in_camel(line: &str) -> String {
    in_camel(line, is_function)
}

/// A line of a description without Rust's links: what they name by a path is named by its end.
pub fn unlinked(line: &str) -> String {
    let plain = line.replace("[`", "\u{0}`").replace("`]", "`\u{0}");
    let parts = plain.split('\u{0}').enumerate().map(|(n, part)| {
        let path = part.rsplit("::").next().filter(|_| n % 2 == 1).map(|end| end.trim_matches('`'));
        path.map_or_else(|| part.to_owned(), |end| format!("`{}`", snake(end).trim_start_matches('_')))
    });
    parts.collect()
}

fn is_function(name: &str) -> bool {
    const FUNCTIONS: [&str; 4] = ["is_shared", "needs_project_id", "parse_ip_range", "place_order"];
    FUNCTIONS.contains(&name) || endpoints().any(|endpoint| endpoint.name == name)
}

/// A line of a description in which names that are known are in `camelCase`.
pub fn in_camel(line: &str, is_known: impl Fn(&str) -> bool) -> String {
    let parts = line.split('`').enumerate();
    let parts = parts.map(|(n, part)| if n % 2 == 1 && part.contains('_') && is_known(part) { camel(part) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

/// A name of the wire as `snake_case`.
pub fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// The documentation of an endpoint, with what every host says of it: whether it costs money, and how it is repeated.
pub fn about(endpoint: &Endpoint) -> Vec<String> {
    let mut said: Vec<String> = lines(endpoint.doc).map(str::to_owned).collect();
    said.push(String::new());
    said.push(format!("`{} {}`{}", endpoint.method.as_str(), endpoint.path, if endpoint.paid { "; it can charge money." } else { "." }));
    said
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn links_of_rust_are_the_names_that_they_end_with() {
        assert_eq!(
            unlinked("as [`Error::is_refused_by_us`] and [`Kind::InDoubt`] of `GET`"),
            "as `is_refused_by_us` and `in_doubt` of `GET`"
        );
    }

    #[test]
    fn every_name_means_one_type() {
        let mut known: BTreeMap<&str, String> = BTreeMap::new();
        let mut check = |name: &'static str, shape: String| {
            let first = known.entry(name).or_insert_with(|| shape.clone());
            assert_eq!(*first, shape, "two types are called {name}");
        };
        fn walk(shape: Shape, check: &mut impl FnMut(&'static str, String)) {
            match shape {
                Shape::List(item) => walk(*item, check),
                Shape::Word(words) => check(words.name, format!("{words:?}")),
                Shape::Record(record) => {
                    check(record.name, format!("{record:?}"));
                    record.fields.iter().for_each(|field| walk(field.shape, check));
                }
                _ => {}
            }
        }
        for endpoint in endpoints() {
            walk(Shape::Record(endpoint.request), &mut check);
            walk(endpoint.response, &mut check);
        }
    }

    #[test]
    fn a_type_comes_after_what_it_is_made_of() {
        let names: Vec<&str> = types().into_iter().map(Type::name).collect();
        let at = |name: &str| names.iter().position(|known| *known == name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!(at("Product") < at("ProductList") && at("Proxy") < at("Session") && at("SessionStatus") < at("Session"));
    }

    #[test]
    fn every_operation_belongs_to_a_client() {
        assert_eq!(APIS.into_iter().flat_map(operations).count(), endpoints().count());
    }

    #[test]
    fn names_change_their_casing_and_nothing_else() {
        assert_eq!(camel("list_public_products"), "listPublicProducts");
        assert_eq!(camel("balance"), "balance");
        assert_eq!([camel("orderNo"), snake("orderNo"), snake("order_no")], ["orderNo", "order_no", "order_no"]);
        assert_eq!(
            named_in_camel("as `needs_project_id` of `query_products`, `dynamic_proxy`"),
            "as `needsProjectId` of `queryProducts`, `dynamic_proxy`"
        );
        assert_eq!(
            functions_in_camel("`order_no` of `place_order`, `find_dynamic_order`"),
            "`order_no` of `placeOrder`, `findDynamicOrder`"
        );
    }

    #[test]
    fn everything_public_is_documented() {
        for endpoint in endpoints() {
            assert!(!endpoint.doc.trim().is_empty(), "{}", endpoint.name);
            for field in endpoint.request.fields {
                assert!(!field.doc.trim().is_empty(), "{}.{}", endpoint.request.name, field.name);
            }
        }
        for found in types().into_iter().chain(told_types()) {
            let undocumented = match found {
                Type::Record(record) => record.doc.trim().is_empty() || record.fields.iter().any(|field| field.doc.trim().is_empty()),
                Type::Words(words) => words.doc.trim().is_empty() || words.words.iter().any(|word| word.doc.trim().is_empty()),
            };
            assert!(!undocumented, "{}", found.name());
        }
    }
}
