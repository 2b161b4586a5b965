//! Prints the types and the operations of the Swift package: names, types and documentation. Their code is written by hand, in
//! `Sources/Hopline`.

use std::fmt::Write;

use hopline::client::{EVENTS, EventEntry, Level, PagesEnd};
use hopline::contract::pools::LeaseAdvice;
use hopline::contract::{Field, FieldRule, Method, Record, Safety, Shape, Shaped, Words};

use crate::model::{
    APIS, Type, WALK, camel, client, in_camel, is_choice, lines, named_in_camel, pool_requests, told_types, types, unlinked,
};

const HEADER: &str = "// Printed from the table by hopline-bindgen. Do not edit: change the table.\n\nimport Foundation\n";

/// Writes a line.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {
        // A text takes whatever is written to it.
        _ = writeln!($out, $($text)*)
    };
}

mod operations;
mod options;

/// Words of the language that can't be names of members or parameters as they are.
const RESERVED: &[&str] = &[
    "as",
    "associatedtype",
    "break",
    "case",
    "catch",
    "class",
    "continue",
    "default",
    "defer",
    "deinit",
    "do",
    "else",
    "enum",
    "extension",
    "fallthrough",
    "false",
    "fileprivate",
    "for",
    "func",
    "guard",
    "if",
    "import",
    "in",
    "init",
    "inout",
    "internal",
    "is",
    "let",
    "nil",
    "operator",
    "precedencegroup",
    "private",
    "protocol",
    "public",
    "repeat",
    "rethrows",
    "return",
    "self",
    "static",
    "struct",
    "subscript",
    "super",
    "switch",
    "throw",
    "throws",
    "true",
    "try",
    "typealias",
    "var",
    "where",
    "while",
];

/// Types with another name here than in the core. A name with a point is that of a type inside another one.
const NAMED: &[(&str, &str)] = &[
    ("ErrorFields", "HoplineError"),
    ("Kind", "HoplineError.Kind"),
    ("Effect", "HoplineError.Effect"),
    ("Advice", "HoplineError.Advice"),
    ("RecordKind", "Saved.RecordKind"),
    ("Event", "EventFields"),
    ("EventName", "EventFields.Name"),
    ("Verdict", "VerdictFields"),
    ("VerdictName", "VerdictFields.Name"),
    ("PagesEnd", "WalkEnd"),
    ("Method", "HTTPMethod"),
];

/// Types that the package shows in another way.
const INTERNAL: &[&str] = &["Event", "EventName", "Verdict", "VerdictName", "SavedPage", "OpenedPool", "PoolLease", "KnownPools"];

/// Types that are answers of a pool's commands, with their names in front.
const POOL_ANSWERS: &[&str] = &["OpenedPool", "PoolLease", "PoolStatus", "KnownPools"];

/// The type that the package only passes back.
const UNREAD: &str = "AnswerFacts";

/// Events of the package's own, since it is the package that sends.
const EXCHANGES: &str = "        /// A request was handed to the transport: its method and its URL without the query.
        case sent(request: String)
        /// A request was answered, with this HTTP status; nil if there was no response; and the time since it was sent.
        case answered(status: Int?, duration: Duration)
";

/// The member of the error beside those of the core.
const NOTES: &str = "    /// Messages of the store or the transport about the failure.
    public internal(set) var notes: [String] = []
    /// Of `notReady`: the handle of the session, by which it can be waited for or ended.
    public var session: OpenSession? { handle.session }
    var handle = HandleInError()";

/// The files to write, each with its name and its text.
pub fn files() -> Vec<(String, String)> {
    let operations = APIS.into_iter().map(|api| (format!("{}Operations.swift", client(api)), operations::print(api)));
    [("Types.swift".to_owned(), print_types())].into_iter().chain(operations).collect()
}

fn print_types() -> String {
    let mut out = HEADER.to_owned();
    for found in types() {
        match found {
            Type::Words(words) => print_words(&mut out, words),
            Type::Record(record) => print_record(&mut out, record, false),
        }
    }
    for found in own_types() {
        match found {
            Type::Words(words) => print_closed(&mut out, words),
            Type::Record(record) => print_record(&mut out, record, true),
        }
        if let Type::Record(record) = found
            && record.name == "Event"
        {
            print_events(&mut out, record);
        }
    }
    options::print(&mut out);
    out
}

/// Hopline's own types: what is told, and the words that only this host's callers are asked for.
fn own_types() -> Vec<Type> {
    let lists = [Method::SHAPE, Safety::SHAPE, PagesEnd::SHAPE, LeaseAdvice::SHAPE];
    let words = lists.into_iter().filter_map(|shape| if let Shape::Word(words) = shape { Some(Type::Words(words)) } else { None });
    told_types().into_iter().filter(|told| told.name() != UNREAD).chain(words).collect()
}

/// The name of a type of the table here.
fn type_name(known: &'static str) -> &'static str {
    NAMED.iter().find(|(core, _)| *core == known).map_or(known, |(_, here)| here)
}

fn access(known: &str) -> &'static str {
    if INTERNAL.contains(&known) { "" } else { "public " }
}

/// A closed list: nobody adds to it.
fn print_closed(out: &mut String, words: &Words) {
    let outer = type_name(words.name).split_once('.');
    let (indent, name_of) = outer.map_or(("", type_name(words.name)), |(_, inner)| ("    ", inner));
    put!(out, "");
    if let Some((outer, _)) = outer {
        put!(out, "extension {outer} {{");
    }
    doc(out, indent, lines(words.doc));
    put!(out, "{indent}{}enum {name_of}: String, CaseIterable, Codable, Sendable {{", access(words.name));
    for word in words.words {
        doc(out, &format!("{indent}    "), lines(word.doc));
        let case = lower(word.name);
        let raw = if case == word.word { String::new() } else { format!(" = {:?}", word.word) };
        put!(out, "{indent}    case {}{raw}", name(&case));
    }
    if words.name == "EventName" {
        print_levels(out);
    }
    put!(out, "{indent}}}");
    if outer.is_some() {
        put!(out, "}}");
    }
}

/// The readers of each event.
fn print_levels(out: &mut String) {
    put!(out, "\n        /// The audience of the event.\n        var level: Event.Level {{\n            switch self {{");
    for level in [Level::Info, Level::Warning] {
        let events = EVENTS.iter().filter(|event| event.level == level);
        let cases: Vec<String> = events.map(|event| format!(".{}", camel(event.name))).collect();
        put!(out, "            case {}: .{}", cases.join(", "), level.as_str());
    }
    put!(out, "            default: .debug\n            }}\n        }}");
}

/// The events as an enum, and how each is made of what the core told.
fn print_events(out: &mut String, record: &Record) {
    let words = record.fields.iter().find_map(|field| if let Shape::Word(words) = field.shape { Some(words.words) } else { None });
    put!(out, "\nextension Event {{\n    /// The kind of the event.\n    public enum What: Sendable {{");
    for (event, word) in EVENTS.iter().zip(words.unwrap_or_default()) {
        let members = members_of(record, event);
        let about =
            members.iter().map(|member| format!("- `{}`: {}", member.name, lines(&member.doc).collect::<Vec<_>>().join(" ").trim()));
        doc(out, "        ", lines(word.doc));
        doc(out, "        ", about.collect::<Vec<_>>().iter().map(String::as_str));
        let typed = members.iter().map(|member| format!("{}: {}{}", member.name, member.kind, if member.is_optional { "?" } else { "" }));
        put!(out, "        case {}{}", name(&camel(event.name)), in_brackets(typed));
    }
    put!(out, "{EXCHANGES}    }}\n}}\n\nextension Event.What {{\n    /// Nil if a member is missing.\n    init?(_ told: EventFields) {{");
    put!(out, "        switch told.event {{");
    for event in EVENTS {
        let (members, case) = (members_of(record, event), camel(event.name));
        let needed = members.iter().filter(|member| !member.is_optional);
        let needed: Vec<String> = needed.map(|member| format!("let {0} = told.{0}", member.name)).collect();
        put!(out, "        case .{case}:");
        if !needed.is_empty() {
            put!(out, "            guard {} else {{ return nil }}", needed.join(", "));
        }
        let given = event.fields.iter().zip(&members).map(|(field, member)| match (field.shape, member.is_optional) {
            (Shape::Word(words), false) if !words.closed => format!("{0}: {1}(rawValue: {0})", member.name, member.kind),
            (_, false) => format!("{0}: {0}", member.name),
            (_, true) => format!("{0}: told.{0}", member.name),
        });
        put!(out, "            self = .{case}{}", in_brackets(given));
    }
    put!(out, "        }}\n    }}\n}}");
}

fn members_of(record: &Record, event: &EventEntry) -> Vec<Member> {
    event.fields.iter().map(|field| Member::of(record, field, true)).collect()
}

/// The values of a case, if it has any.
fn in_brackets(members: impl Iterator<Item = String>) -> String {
    let members = members.collect::<Vec<_>>().join(", ");
    if members.is_empty() { members } else { format!("({members})") }
}

/// An open list: a service may say what the contract does not name.
fn print_words(out: &mut String, words: &Words) {
    put!(out, "");
    doc(out, "", lines(words.doc));
    put!(out, "public struct {}: RawRepresentable, Codable, Hashable, Sendable, Parameter, Words {{", words.name);
    put!(out, "    /// The word as it is sent and answered.\n    public let rawValue: String\n");
    put!(out, "    /// Makes any word. A word that the contract does not name is refused before it is sent.");
    put!(out, "    public init(rawValue: String) {{\n        self.rawValue = rawValue\n    }}\n");
    for word in words.words {
        doc(out, "    ", lines(word.doc));
        put!(out, "    public static let {} = {}(rawValue: {:?})", name(&lower(word.name)), words.name, word.word);
    }
    let all: Vec<String> = words.words.iter().map(|word| name(&lower(word.name))).collect();
    put!(out, "\n    /// All of these, in the order of the contract.");
    put!(out, "    static let words: [{}] = [{}]", words.name, all.join(", "));
    put!(out, "}}");
}

fn print_record(out: &mut String, record: &'static Record, is_told: bool) {
    let (named, access) = (type_name(record.name), access(record.name));
    let members: Vec<Member> = record.fields.iter().map(|field| Member::of(record, field, is_told)).collect();
    put!(out, "");
    doc(out, "", lines(record.doc));
    let is_error = named == type_name("ErrorFields");
    put!(out, "{access}struct {named}: {}Hashable, Sendable {{", if is_error { "Error, " } else { "" });
    for member in &members {
        doc(out, "    ", lines(&member.doc));
        if member.is_own {
            put!(out, "    {access}var {}: {}? {{ {}s.first }}", member.name, member.kind, member.name);
        } else {
            put!(out, "    {access}let {}: {}{}", name(&member.name), member.kind, if member.is_optional { "?" } else { "" });
        }
    }
    for own in members.iter().filter(|member| member.is_own) {
        put!(out, "    /// A list, since a struct can't hold itself.\n    private let {}s: [{}]", own.name, own.kind);
    }
    if is_error {
        put!(out, "{NOTES}");
    }
    if !access.is_empty() {
        put!(out, "\n    /// One of your own, such as for a preview or a test.");
        put!(out, "    public init({}) {{", members.iter().map(Member::given).collect::<Vec<_>>().join(", "));
        for Member { name: given, is_own, .. } in &members {
            match is_own {
                true => put!(out, "        {given}s = [{given}].compactMap {{ $0 }}"),
                false => put!(out, "        self.{given} = {}", name(given)),
            }
        }
        put!(out, "    }}");
    }
    put!(out, "}}\n");
    print_reader(out, record, &members, is_told);
}

/// The reader of a packed record. A record beside answers has no name in front.
fn print_reader(out: &mut String, record: &Record, members: &[Member], is_told: bool) {
    match is_told && !POOL_ANSWERS.contains(&record.name) {
        true => put!(out, "extension {} {{", type_name(record.name)),
        false => put!(out, "extension {}: Packable {{\n    static let type = {:?}\n", record.name, record.name),
    }
    put!(out, "    init(_ packed: inout Packed) {{");
    let looks = record.fields.iter().any(|field| !is_there(field));
    put!(out, "        {} = packed.members({})", if looks { "let there" } else { "_" }, record.fields.len());
    for (index, (field, member)) in record.fields.iter().zip(members).enumerate() {
        let is_told_by_core = record.name == "ErrorFields" && ["message", "what", "field"].contains(&field.name);
        let read = if is_told_by_core { "packed.told()".to_owned() } else { reader(field.shape) };
        let here = name(&member.name);
        match (is_there(field), field.shape) {
            (true, _) => put!(out, "        {here} = {read}"),
            _ if member.is_own => put!(out, "        {here}s = there.has({index}) ? [{read}] : []"),
            (_, Shape::Bool) if is_told => put!(out, "        {here} = there.has({index}) && {read}"),
            _ => put!(out, "        {here} = there.has({index}) ? {read} : {}", if field.required { "Raw(text: \"null\")" } else { "nil" }),
        }
    }
    put!(out, "    }}\n}}");
}

/// A member of a printed type.
struct Member {
    name: String,
    doc: String,
    kind: String,
    is_optional: bool,
    /// The value if none is given.
    default: &'static str,
    /// True if the member has the type that it is a member of.
    is_own: bool,
}

impl Member {
    fn of(record: &Record, field: &Field, is_told: bool) -> Member {
        // A record beside answers leaves out false members.
        let is_flag = is_told && !field.required && matches!(field.shape, Shape::Bool);
        let camel = match field.name {
            IS_REFUSED => "isRefusedByUs".to_owned(),
            known if matches!(field.shape, Shape::Span) => camel(known.trim_end_matches("_ms")),
            known => camel(known),
        };
        let is_optional = !field.required && !is_flag;
        let doc = if matches!(field.shape, Shape::Time) { field.doc.replace(", Unix milliseconds", "") } else { field.doc.to_owned() };
        Member {
            name: camel,
            doc,
            kind: answer_type(field.shape),
            is_optional,
            default: if is_flag { " = false" } else { ["", " = nil"][usize::from(is_optional)] },
            is_own: record.name == "ErrorFields" && matches!(field.shape, Shape::Error),
        }
    }

    /// The member as a parameter.
    fn given(&self) -> String {
        format!("{}: {}{}{}", name(&self.name), self.kind, if self.is_optional { "?" } else { "" }, self.default)
    }
}

/// A flag of the error, which is called as Swift calls a flag.
const IS_REFUSED: &str = "refused_by_us";

/// Returns true if a member is always there. Undocumented JSON may be null.
fn is_there(field: &Field) -> bool {
    field.required && !matches!(field.shape, Shape::Json)
}

/// The reader of a packed value.
fn reader(shape: Shape) -> String {
    match shape {
        Shape::Text | Shape::Label => "packed.text()".to_owned(),
        Shape::Secret => "packed.secret()".to_owned(),
        Shape::Bool => "packed.flag()".to_owned(),
        Shape::Integer => "packed.integer()".to_owned(),
        Shape::Time => "packed.time()".to_owned(),
        Shape::Span => "packed.span()".to_owned(),
        Shape::Error => "HoplineError(&packed)".to_owned(),
        Shape::Decimal => "packed.decimal()".to_owned(),
        Shape::Json => "packed.raw()".to_owned(),
        Shape::Word(words) if words.closed => "packed.closed()".to_owned(),
        Shape::Word(_) => "packed.word()".to_owned(),
        Shape::Record(record) => format!("{}(&packed)", type_name(record.name)),
        Shape::List(item) | Shape::OneOrMany(item) => format!("packed.list {{ packed in {} }}", reader(*item)),
    }
}

fn answer_type(shape: Shape) -> String {
    match shape {
        Shape::Text | Shape::Label => "String".to_owned(),
        Shape::Secret => "Secret".to_owned(),
        Shape::Bool => "Bool".to_owned(),
        Shape::Integer => "Int".to_owned(),
        Shape::Time => "Date".to_owned(),
        Shape::Span => "Duration".to_owned(),
        Shape::Error => "HoplineError".to_owned(),
        Shape::Decimal => "Decimal".to_owned(),
        Shape::Json => "Raw".to_owned(),
        Shape::Word(words) => type_name(words.name).to_owned(),
        Shape::Record(record) => type_name(record.name).to_owned(),
        Shape::List(item) | Shape::OneOrMany(item) => format!("[{}]", answer_type(*item)),
    }
}

/// The type of a value in a request. An object in it is the caller's own JSON.
fn request_type(shape: Shape) -> String {
    match shape {
        Shape::Record(record) if is_choice(record.name) => record.name.to_owned(),
        Shape::Json | Shape::Record(_) => "JSON".to_owned(),
        Shape::List(item) | Shape::OneOrMany(item) => format!("[{}]", request_type(*item)),
        plain => answer_type(plain),
    }
}

fn optional(field: &Field) -> String {
    let kind = request_type(field.shape);
    if field.nullable { format!("Patch<{kind}> = .absent") } else { format!("{kind}? = nil") }
}

/// The fields that a caller fills in: what leaves no choice the core sends by itself.
fn chosen(fields: &'static [Field]) -> Vec<&'static Field> {
    fields.iter().filter(|field| !field.rules.iter().any(|rule| matches!(rule, FieldRule::Always(_)))).collect()
}

/// A name, in backticks where the language has it for itself.
fn name(known: &str) -> String {
    if RESERVED.contains(&known) { format!("`{known}`") } else { known.to_owned() }
}

/// `OnDemand` as `onDemand`, `Http403` as `http403`.
fn lower(upper: &str) -> String {
    let mut letters = upper.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn one_line(doc: &str) -> String {
    in_swift(lines(doc).collect::<Vec<_>>().join(" ").trim())
}

fn doc<'a>(out: &mut String, indent: &str, said: impl Iterator<Item = &'a str>) {
    let said: Vec<&str> = said.collect();
    let end = said.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    said[..end].iter().for_each(|line| put!(out, "{}", format!("{indent}/// {}", in_swift(line)).trim_end()));
}

/// A line of a description with the names that things have here.
fn in_swift(line: &str) -> String {
    let is_own = |name: &str| {
        own_types().into_iter().any(|own| match own {
            Type::Record(record) => record.field(name).is_some(),
            Type::Words(words) => words.words.iter().any(|word| word.word == name),
        }) || pool_requests().any(|record| record.field(name).is_some())
    };
    let plain = unlinked(line).replace(&format!("`{IS_REFUSED}`"), "`is_refused_by_us`");
    in_camel(&named_in_camel(&plain), |name| name == "is_refused_by_us" || is_own(name) || WALK.iter().any(|own| own.name == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AGENT, RESELLER, assert_documents};

    #[test]
    fn what_holds_a_secret_is_never_written() {
        let printed = print_types();
        assert!(printed.contains("public struct Proxy: Hashable, Sendable {") && !printed.contains("JSON"));
        let words = types().into_iter().chain(own_types()).filter(|found| found.record().is_none()).count();
        assert_eq!(printed.matches("Codable").count(), words);
    }

    #[test]
    fn every_type_is_printed_once_and_every_member_is_documented() {
        let printed = print_types();
        for found in types() {
            assert_eq!(printed.matches(&format!("public struct {}: ", found.name())).count(), 1, "{}", found.name());
        }
        for found in own_types() {
            let (name, access) = (type_name(found.name()), access(found.name()));
            let kind = if found.record().is_some() { "struct" } else { "enum" };
            let is_there = match name.split_once('.') {
                None => printed.matches(&format!("\n{access}{kind} {name}: ")).count() == 1,
                Some((outer, inner)) => {
                    let begin = format!("\nextension {outer} {{\n");
                    let mut parts = printed.split(&begin).skip(1).filter_map(|rest| rest.split("\n}").next());
                    parts.any(|part| part.contains(&format!("    {access}{kind} {inner}: ")))
                }
            };
            assert!(is_there, "{name}");
        }
        let lines: Vec<&str> = printed.lines().map(str::trim).collect();
        let bare = lines.windows(2).find(|pair| pair[1].starts_with("public ") && !pair[0].starts_with("///"));
        assert_eq!(bare, None, "is not documented");
    }

    #[test]
    fn a_member_is_read_in_its_place_of_the_table() {
        let printed = print_types();
        let told = own_types().into_iter().map(|found| (found, true));
        for (found, is_told) in types().into_iter().map(|found| (found, false)).chain(told) {
            let Some(record) = found.record() else { continue };
            let begin = if is_told && !POOL_ANSWERS.contains(&record.name) {
                format!("extension {} {{\n    init(", type_name(record.name))
            } else {
                format!("extension {}: Packable {{", record.name)
            };
            let reader = printed.split(&begin).nth(1).and_then(|rest| rest.split("\n}").next());
            let lines: Vec<&str> = reader.unwrap_or_else(|| panic!("{}", record.name)).lines().collect();
            let read: Vec<&&str> = lines.iter().skip_while(|line| !line.contains("packed.members(")).skip(1).collect();
            assert!(read.len() > record.fields.len(), "{}", record.name);
            for (field, line) in record.fields.iter().zip(read) {
                let member = Member::of(record, field, is_told);
                let here = if member.is_own { format!("{}s", member.name) } else { name(&member.name) };
                assert!(line.trim_start().starts_with(&format!("{here} = ")), "{} {line}", field.name);
                assert_eq!(line.contains("there.has("), !is_there(field), "{} {line}", field.name);
            }
        }
        assert!(printed.contains("        isRefusedByUs = there.has(1) && packed.flag()\n"));
        assert!(printed.contains("    public let retryAt: Date?\n") && printed.contains("    let delay: Duration?\n"));
        assert!(printed.contains("        case `protocol`\n") && printed.contains("        case inDoubt = \"in_doubt\"\n"));
        assert!(printed.contains("    public static let month = OrderUnit(rawValue: \"month\")\n"));
    }

    #[test]
    fn documentation_uses_the_names_of_swift() {
        let printed = [print_types()].into_iter().chain(APIS.map(operations::print)).collect::<String>();
        // Names that Swift does not have: members that only the service has, paths and words.
        let named: Vec<&str> = printed
            .lines()
            .filter(|line| line.trim_start().starts_with("///"))
            .flat_map(|line| line.split('`').skip(1).step_by(2))
            .filter(|name| name.contains('_') && !name.contains([' ', '/']))
            .collect();
        assert_eq!(named, [""; 0]);
    }

    #[test]
    fn words_of_the_language_are_names_in_backticks() {
        assert_eq!([name("default"), name("type"), name(&lower("OnDemand"))], ["`default`", "type", "onDemand"]);
        let printed = APIS.map(operations::print).concat();
        assert!(printed.contains("        protocol: Protocol? = nil,") || printed.contains("        `protocol`: Protocol? = nil,"));
    }

    #[test]
    fn constructors_say_of_their_options_what_the_table_says() {
        assert_documents("bindings-uniffi/swift/Sources/Hopline/AgentClient.swift", &AGENT);
        assert_documents("bindings-uniffi/swift/Sources/Hopline/ResellerClient.swift", &RESELLER);
    }
}
