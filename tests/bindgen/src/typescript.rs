//! Prints what JavaScript needs of the table: the types of `hopline.d.ts` in the wire's own spelling, and the names of the
//! operations and of the secrets as a module.

use hopline::contract::{Api, Endpoint, Field, FieldPlace, FieldRule, Record, Shape, Words, endpoints};
use hopline::policy::CODES;

use crate::model::{
    APIS, Type, Use, Walk, about, camel, client, functions_in_camel, lines, operations, request_fields, types, unlinked, use_of,
};

mod options;
mod pools;
mod table;
mod told;

/// The files to write, each with its name and its text.
pub fn files() -> Vec<(String, String)> {
    let modules = [
        ("operations.d.ts", declarations()),
        ("operations.js", table::print()),
        ("options.js", options::names()),
        ("pools.js", pools::names()),
        ("events.js", told::levels()),
    ];
    modules.map(|(name, text)| (name.to_owned(), text)).to_vec()
}

/// Every type, and the methods of a client: one for each operation.
fn declarations() -> String {
    let mut out = String::new();
    for found in types() {
        match found {
            Type::Words(words) => print_words(&mut out, words.name, words),
            Type::Record(record) => print_record(&mut out, record, Side::Answer),
        }
    }
    endpoints().for_each(|endpoint| print_record(&mut out, endpoint.request, Side::Request));
    told::print(&mut out);
    print_codes(&mut out);
    options::print(&mut out);
    pools::print(&mut out);
    for api in APIS {
        print_operations(&mut out, api);
    }
    doc(&mut out, "", &["Every operation of every API.".to_owned()]);
    let all: Vec<String> = APIS.map(|api| format!("{}Operations", client(api))).to_vec();
    out.push_str(&format!("export interface Operations extends {} {{}}\n", all.join(", ")));
    out
}

fn print_operations(out: &mut String, api: Api) {
    doc(out, "", &[format!("Every operation of the {} API, as a method.", client(api).to_lowercase())]);
    out.push_str(&format!("export interface {}Operations {{\n", client(api)));
    for endpoint in operations(api) {
        doc(out, "  ", &about(endpoint).into_iter().chain(throws(endpoint)).collect::<Vec<_>>());
        let needed = endpoint.request.fields.iter().any(|field| field.required);
        let optional = if needed { "" } else { "?" };
        let (name, request, answer) = (camel(endpoint.name), endpoint.request.name, shape(endpoint.response, Side::Answer));
        let options = options::name(use_of(endpoint));
        // The caller chooses the type of an undocumented answer.
        let (of, answer) = if endpoint.response == Shape::Json { ("<Answer = unknown>", "Answer".to_owned()) } else { ("", answer) };
        out.push_str(&format!("  {name}{of}(params{optional}: {request}, options?: {options}): Promise<{answer}>;\n"));
    }
    for walk in operations(api).filter_map(Walk::of) {
        let what = format!("Walks `{}` page by page: iterating gives the items, `.pages()` gives whole pages.", camel(walk.endpoint.name));
        let sized = |field: &&Field| matches!(field.name, "limit" | "page_size" | "pageSize");
        let size = walk.fields().find(sized).map_or(String::new(), |field| format!(" `{}` is the size of a page.", field.name));
        doc(out, "  ", &[what, format!("The walk itself sets where a page begins.{size}")]);
        let (name, page) = (camel(&walk.name()), shape(walk.endpoint.response, Side::Answer));
        let request = match walk.endpoint.request.field("page") {
            Some(page) => format!("Omit<{}, \"{}\">", walk.endpoint.request.name, page.name),
            None => walk.endpoint.request.name.to_owned(),
        };
        let item = shape(walk.item, Side::Answer);
        let (of, item) = if walk.item == Shape::Json { ("<Item = unknown>", "Item".to_owned()) } else { ("", item) };
        out.push_str(&format!("  {name}{of}(params?: {request}, options?: WalkOptions): Walk<{item}, {page}>;\n"));
    }
    out.push_str("}\n");
}

/// Answers are wider than requests: a service may say what a caller may not.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Answer,
    Request,
}

fn print_record(out: &mut String, record: &Record, side: Side) {
    doc(out, "", &said(record.doc));
    out.push_str(&format!("export interface {} {{\n", record.name));
    // The core sends members that always have the same value.
    let told = |field: &&Field| side == Side::Answer || !field.rules.iter().any(|rule| matches!(rule, FieldRule::Always(_)));
    let request = endpoints().find(|endpoint| side == Side::Request && endpoint.request.name == record.name);
    for field in request.map_or(record.fields, request_fields).iter().filter(told) {
        doc(out, "  ", &said(field.doc));
        // An answer may hold null where it holds nothing.
        let (optional, null) = match (field.required, side) {
            (true, _) => ("", ""),
            (false, Side::Request) if field.nullable => ("?", " | null | undefined"),
            (false, Side::Request) => ("?", " | undefined"),
            (false, Side::Answer) => ("?", " | null | undefined"),
        };
        // A whole body is an object of the caller's own.
        let kind = if matches!(field.place, FieldPlace::Whole | FieldPlace::WholeQuery) {
            "{ [name: string]: Json }".to_owned()
        } else if field.shape == Shape::Integer && field.is_id() {
            // One that a number does not hold exactly is text.
            "number | string".to_owned()
        } else if field.takes_any_number() {
            format!("{} | number", shape(field.shape, side))
        } else {
            shape(field.shape, side)
        };
        out.push_str(&format!("  {}{optional}: {kind}{null};\n", field.name));
    }
    out.push_str("}\n\n");
}

fn print_words(out: &mut String, name: &str, words: &Words) {
    let each = words.words.iter().map(|word| format!("- `{}`: {}", word.word, said(word.doc).join(" ")));
    doc(out, "", &said(words.doc).into_iter().chain([String::new()]).chain(each).collect::<Vec<_>>());
    let union: Vec<String> = words.words.iter().map(|word| format!("\"{}\"", word.word)).collect();
    out.push_str(&format!("export type {name} = {};\n\n", union.join(" | ")));
}

/// The codes that the contract of the agent API names.
fn print_codes(out: &mut String) {
    let each = CODES.iter().map(|row| format!("- `{}`: {}", row.code, row.meaning));
    doc(
        out,
        "",
        &["The codes that the contract of the agent API names.".to_owned(), String::new()].into_iter().chain(each).collect::<Vec<_>>(),
    );
    let union: Vec<String> = CODES.iter().map(|row| format!("\"{}\"", row.code)).collect();
    out.push_str(&format!("export type Code = {};\n\n", union.join(" | ")));
}

fn shape(shape: Shape, side: Side) -> String {
    match (shape, side) {
        (Shape::Text | Shape::Label, _) => "string".to_owned(),
        (Shape::Secret, Side::Answer) => "Secret".to_owned(),
        (Shape::Secret, Side::Request) => "string | Secret".to_owned(),
        (Shape::Bool, _) => "boolean".to_owned(),
        (Shape::Error, _) => "ErrorFields".to_owned(),
        (Shape::Integer | Shape::Time | Shape::Span, _) | (Shape::Decimal, Side::Answer) => "number".to_owned(),
        (Shape::Decimal, Side::Request) => "number | string".to_owned(),
        (Shape::Json, _) => "Json".to_owned(),
        (Shape::Word(words), Side::Answer) => format!("Open<{}>", words.name),
        (Shape::Word(words), Side::Request) => words.name.to_owned(),
        (Shape::Record(record), _) => record.name.to_owned(),
        (Shape::OneOrMany(item), side) => format!("{0} | Array<{0}>", self::shape(*item, side)),
        (Shape::List(item), side) => format!("Array<{}>", self::shape(*item, side)),
    }
}

/// The contract's text for JavaScript: an answer is what the service wrote.
fn in_javascript(line: &str) -> String {
    functions_in_camel(&unlinked(line))
        .replace("; see `raw`", "")
        .replace("; `raw` has both", "")
        .replace("`is_refused_by_us`", "`isRefusedByUs`")
        .replace("`max_pages`", "`maxPages`")
        .replace("Default: no.", "Default: false.")
        .replace("The caller's own", "Your own")
        .replace("the caller's own", "your own")
}

fn said(doc: &str) -> Vec<String> {
    lines(doc).map(str::to_owned).collect()
}

/// The errors that a call rejects with.
fn throws(endpoint: &Endpoint) -> Vec<String> {
    let writes =
        ", `in_doubt` if it may have taken effect, `busy` if another client is working on it, `store` if its record could not be kept";
    let ended = ", `ended` if the session of its intent is over";
    let of = use_of(endpoint);
    vec![
        String::new(),
        format!(
            "@throws {{HoplineError}} `invalid` before anything is sent, `refused` by the service or a limit of your own, `unavailable` or `protocol` \
             if the service fails{}{}, `decode` if the answer does not fit its type, `cancelled` by its signal.",
            if of == Use::Read { "" } else { writes },
            if of == Use::Purchase { ended } else { "" },
        ),
    ]
}

/// A line in lines that are not much longer than those of the table.
fn wrapped(line: &str) -> Vec<String> {
    const LONGEST: usize = 150;
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        match lines.last_mut() {
            Some(last) if last.is_empty() => last.push_str(word),
            Some(last) if last.len() + word.len() < LONGEST => last.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn doc(out: &mut String, indent: &str, said: &[String]) {
    let said: Vec<String> = said.iter().flat_map(|line| wrapped(&in_javascript(line.trim()))).collect();
    let end = said.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    match &said[..end] {
        [] => {}
        [line] => out.push_str(&format!("{indent}/** {} */\n", line.replace("*/", "*\\/"))),
        several => {
            out.push_str(&format!("{indent}/**\n"));
            for line in several {
                out.push_str(format!("{indent} * {}", line.replace("*/", "*\\/")).trim_end());
                out.push('\n');
            }
            out.push_str(&format!("{indent} */\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_a_documented_method() {
        let types = declarations();
        for endpoint in endpoints() {
            let begins = |of| types.find(&format!("  {}{of}(params", camel(endpoint.name)));
            let at = begins("").or_else(|| begins("<Answer = unknown>")).unwrap_or_else(|| panic!("{} has no method", endpoint.name));
            assert!(types[..at].ends_with("*/\n"), "{} is not documented", endpoint.name);
            assert!(lines(endpoint.doc).all(|line| types.contains(&in_javascript(line))), "{} has another text", endpoint.name);
        }
    }

    #[test]
    fn every_type_is_declared_once_and_every_member_is_documented() {
        let types = declarations();
        let requests = endpoints().map(|endpoint| endpoint.request.name);
        assert!(types.contains("export type Code = \"AUTH_INVALID_KEY\" | "));
        for name in super::types().into_iter().map(Type::name).chain(requests) {
            let declared =
                types.matches(&format!("export interface {name} {{")).count() + types.matches(&format!("export type {name} =")).count();
            assert_eq!(declared, 1, "{name}");
        }
        let lines: Vec<&str> = types.lines().collect();
        let bare = lines.windows(2).find(|pair| pair[1].starts_with("  ") && pair[1].ends_with(';') && !pair[0].ends_with("*/"));
        assert_eq!(bare, None, "is not documented");
    }

    #[test]
    fn a_request_takes_the_words_of_the_contract_and_an_answer_may_hold_others() {
        let types = declarations();
        assert!(
            types.contains("  session_type?: SessionType | undefined;\n")
                && types.contains("  session_type?: Open<SessionType> | null | undefined;\n")
        );
        assert!(types.contains("  quantity?: number | string | undefined;\n") && types.contains("  price: number;\n"));
    }

    #[test]
    fn an_operation_takes_the_options_that_have_a_meaning_for_it() {
        let types = declarations();
        for printed in [
            "  getBalance<Answer = unknown>(params?: GetBalance, options?: ReadOptions): Promise<Answer>;\n",
            "  createSession(params: CreateSession, options?: PurchaseOptions): Promise<Session>;\n",
            "  renewSession<Answer = unknown>(params: RenewSession, options?: RenewOptions): Promise<Answer>;\n",
            "  createRecharge(params?: CreateRecharge, options?: PaidOptions): Promise<RechargeOrder>;\n",
            "  rotateSession(params: RotateSession, options?: KeyedOptions): Promise<Session>;\n",
            "  reportSessionEvent<Answer = unknown>(params: ReportSessionEvent, options?: WriteOptions): Promise<Answer>;\n",
            "  createUser(params: CreateUser, options?: WriteOptions): Promise<SubUser>;\n",
            "  queryProducts(params?: QueryProducts, options?: ReadOptions): Promise<StaticProductList>;\n",
        ] {
            assert!(types.contains(printed), "{printed}");
        }
    }

    #[test]
    fn every_operation_that_comes_in_pages_can_be_walked() {
        let types = declarations();
        for printed in [
            "  walkProducts(params?: ListProducts, options?: WalkOptions): Walk<Product, ProductList>;\n",
            "  walkSubUsers(params?: Omit<ListSubUsers, \"page\">, options?: WalkOptions): Walk<SubUser, SubUserList>;\n",
        ] {
            assert!(types.contains(printed), "{printed}");
        }
    }

    #[test]
    fn a_field_that_is_always_the_same_is_no_parameter_and_a_whole_body_or_query_is_an_object() {
        let types = declarations();
        assert!(!types.contains("orderType") && types.contains("  poolId: string;\n  /** The user of the order"), "{types}");
        assert_eq!(types.matches("  parameters?: { [name: string]: Json } | undefined;\n").count(), 3);
        assert!(
            types.contains("  proxyType?: number | Array<number> | undefined;\n")
                && types.contains("  async?: boolean | null | undefined;\n")
        );
    }
}
