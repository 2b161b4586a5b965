//! Prints what JavaScript needs of the table: the types of `hopline.d.ts` in the wire's own spelling, and the names of the
//! operations and of the secrets as a module.

use std::collections::BTreeSet;

use hopline::contract::{Api, Endpoint, Field, Place, Record, Shape, Words, endpoints};

use crate::model::{APIS, Type, Use, Walk, about, camel, client, lines, operations, types};

mod options;

/// The files to write, each with its name and its text.
pub fn files() -> Vec<(String, String)> {
    vec![("operations.d.ts".to_owned(), declarations()), ("operations.js".to_owned(), table())]
}

/// Every type, and the methods of a client: one for each operation.
fn declarations() -> String {
    let mut out = String::new();
    for found in types() {
        match found {
            Type::Words(words) => print_words(&mut out, words),
            Type::Record(record) => print_record(&mut out, record, Side::Answer),
        }
    }
    endpoints().for_each(|endpoint| print_record(&mut out, endpoint.request, Side::Request));
    options::print(&mut out);
    for api in APIS {
        print_operations(&mut out, api);
    }
    doc(&mut out, "", &["Every operation of every API.".to_owned()]);
    let all: Vec<String> = APIS.map(|api| format!("{}Operations", client(api))).to_vec();
    out.push_str(&format!("export interface Operations extends {} {{}}\n", all.join(", ")));
    out
}

fn print_operations(out: &mut String, api: Api) {
    doc(out, "", &["Every operation of the API, as a method.".to_owned()]);
    out.push_str(&format!("export interface {}Operations {{\n", client(api)));
    for endpoint in operations(api) {
        doc(out, "  ", &about(endpoint));
        let needed = endpoint.request.fields.iter().any(|field| field.required);
        let optional = if needed { "" } else { "?" };
        let (name, request, answer) = (camel(endpoint.name), endpoint.request.name, answer(endpoint));
        let options = options::name(Use::of(endpoint));
        out.push_str(&format!("  {name}(params{optional}: {request}, options?: {options}): Promise<{answer}>;\n"));
    }
    for walk in operations(api).filter_map(Walk::of) {
        let what = format!("Walks `{}` page by page, and gives each item, or with `.pages()` each page.", camel(walk.endpoint.name));
        doc(out, "  ", &[what, "The cursor of a page is set on the way, and `limit` is the size of one.".to_owned()]);
        let (name, request, page) = (camel(&walk.name()), walk.endpoint.request.name, answer(walk.endpoint));
        let item = shape(walk.item, Side::Answer);
        out.push_str(&format!("  {name}(params?: {request}, options?: WalkOptions): Walk<{item}, {page}>;\n"));
    }
    out.push_str("}\n");
}

/// What the code needs: every operation with its address, and the names of the members that are never shown.
fn table() -> String {
    let mut out = String::from("/** What each method of which client sends. */\nexport const operations = {\n");
    for endpoint in endpoints() {
        let (method, name, verb, path) = (camel(endpoint.name), endpoint.name, endpoint.method.as_str(), endpoint.path);
        let api = client(endpoint.api).to_lowercase();
        out.push_str(&format!("  {method}: {{ api: \"{api}\", operation: \"{name}\", method: \"{verb}\", path: \"{path}\" }},\n"));
    }
    out.push_str("};\n\n/** What each walk reads, and where in a page its items are. */\nexport const walks = {\n");
    for walk in endpoints().filter_map(Walk::of) {
        let (method, api, Walk { endpoint, items, .. }) = (camel(&walk.name()), client(walk.endpoint.api).to_lowercase(), walk);
        out.push_str(&format!("  {method}: {{ api: \"{api}\", operation: \"{}\", items: \"{}\" }},\n", endpoint.name, items.name));
    }
    out.push_str("};\n\n/** The members of answers that are secrets. */\nexport const secrets = new Set([");
    let names: Vec<String> = secrets().into_iter().map(|name| format!("\"{name}\"")).collect();
    out.push_str(&format!("{}]);\n", names.join(", ")));
    out
}

/// The members of answers that are secrets.
fn secrets() -> BTreeSet<&'static str> {
    answered().filter(|field| matches!(field.shape, Shape::Secret)).map(|field| field.name).collect()
}

/// Every member of every object of every answer.
fn answered() -> impl Iterator<Item = &'static Field> {
    types().into_iter().flat_map(|found| match found {
        Type::Record(record) => record.fields,
        Type::Words(_) => &[],
    })
}

/// Answers are wider than requests: a service may say what a caller may not.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Answer,
    Request,
}

fn print_record(out: &mut String, record: &Record, side: Side) {
    doc(out, "", &lines(record.doc).map(str::to_owned).collect::<Vec<_>>());
    out.push_str(&format!("export interface {} {{\n", record.name));
    for field in record.fields {
        let mut said: Vec<String> = lines(field.doc).map(str::to_owned).collect();
        if side == Side::Answer && matches!(field.shape, Shape::Secret) {
            said.push("Not enumerable: it is read by its name, and absent from what is printed or copied.".to_owned());
        }
        doc(out, "  ", &said);
        // An answer may hold null where it holds nothing.
        let (optional, null) = match (field.required, side) {
            (true, _) => ("", ""),
            (false, Side::Request) if field.nullable => ("?", " | null | undefined"),
            (false, Side::Request) => ("?", " | undefined"),
            (false, Side::Answer) => ("?", " | null | undefined"),
        };
        // A whole body is an object of the caller's own.
        let kind = if field.place == Place::Whole { "{ [name: string]: Json }".to_owned() } else { shape(field.shape, side) };
        out.push_str(&format!("  {}{optional}: {kind}{null};\n", field.name));
    }
    out.push_str("}\n\n");
}

fn print_words(out: &mut String, words: &Words) {
    let said: Vec<String> = lines(words.doc).map(str::to_owned).collect();
    let each = words.words.iter().map(|word| format!("- `{}`: {}", word.word, lines(word.doc).collect::<Vec<_>>().join(" ")));
    doc(out, "", &said.into_iter().chain([String::new()]).chain(each).collect::<Vec<_>>());
    let union: Vec<String> = words.words.iter().map(|word| format!("\"{}\"", word.word)).collect();
    out.push_str(&format!("export type {} = {};\n\n", words.name, union.join(" | ")));
}

fn shape(shape: Shape, side: Side) -> String {
    match (shape, side) {
        (Shape::Text | Shape::Label | Shape::Secret, _) => "string".to_owned(),
        (Shape::Bool, _) => "boolean".to_owned(),
        (Shape::Integer, _) | (Shape::Decimal, Side::Answer) => "number".to_owned(),
        (Shape::Decimal, Side::Request) => "number | string".to_owned(),
        (Shape::Json, _) => "Json".to_owned(),
        (Shape::Word(words), Side::Answer) => format!("Open<{}>", words.name),
        (Shape::Word(words), Side::Request) => words.name.to_owned(),
        (Shape::Record(record), _) => record.name.to_owned(),
        (Shape::OneOrMany(item), side) => format!("{0} | Array<{0}>", self::shape(*item, side)),
        (Shape::List(item), side) => format!("Array<{}>", self::shape(*item, side)),
    }
}

/// What is not shown is any JSON, and may be no object at all.
fn answer(endpoint: &Endpoint) -> String {
    match endpoint.response {
        Shape::Json => "Json".to_owned(),
        other => format!("Answer<{}>", shape(other, Side::Answer)),
    }
}

fn doc(out: &mut String, indent: &str, said: &[String]) {
    let said: Vec<&str> = said.iter().map(|line| line.trim()).collect();
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
    fn every_operation_is_a_documented_method_and_a_row_of_the_table() {
        let (types, table) = (declarations(), table());
        for endpoint in endpoints() {
            let method = format!("  {}(params", camel(endpoint.name));
            let at = types.find(&method).unwrap_or_else(|| panic!("{} has no method", endpoint.name));
            assert!(types[..at].ends_with("*/\n"), "{} is not documented", endpoint.name);
            assert!(lines(endpoint.doc).all(|line| types.contains(line)), "{} has another text", endpoint.name);
            let api = client(endpoint.api).to_lowercase();
            let row = format!("  {}: {{ api: \"{api}\", operation: \"{}\", ", camel(endpoint.name), endpoint.name);
            assert!(table.contains(&row), "{row}");
        }
    }

    #[test]
    fn every_type_is_declared_once_and_every_member_is_documented() {
        let types = declarations();
        let requests = endpoints().map(|endpoint| endpoint.request.name);
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
            types.contains("  session_type: SessionType;\n") && types.contains("  session_type?: Open<SessionType> | null | undefined;\n")
        );
        assert!(types.contains("  quantity?: number | string | undefined;\n") && types.contains("  price: number;\n"));
    }

    #[test]
    fn an_operation_takes_the_options_that_have_a_meaning_for_it() {
        let types = declarations();
        for printed in [
            "  getBalance(params?: GetBalance, options?: ReadOptions): Promise<Json>;\n",
            "  createSession(params: CreateSession, options?: PurchaseOptions): Promise<Answer<Session>>;\n",
            "  renewSession(params: RenewSession, options?: RenewOptions): Promise<Json>;\n",
            "  createRecharge(params?: CreateRecharge, options?: PaidOptions): Promise<Answer<RechargeOrder>>;\n",
            "  rotateSession(params: RotateSession, options?: KeyedOptions): Promise<Answer<Session>>;\n",
            "  reportSessionEvent(params: ReportSessionEvent, options?: WriteOptions): Promise<Json>;\n",
        ] {
            assert!(types.contains(printed), "{printed}");
        }
    }

    #[test]
    fn every_operation_that_comes_in_pages_can_be_walked() {
        let (types, table) = (declarations(), table());
        assert!(types.contains("  walkProducts(params?: ListProducts, options?: WalkOptions): Walk<Product, Answer<ProductList>>;\n"));
        assert!(table.contains("  walkProducts: { api: \"agent\", operation: \"list_products\", items: \"items\" },\n"));
    }

    #[test]
    fn a_secret_is_known_by_its_name_alone() {
        assert!(secrets().is_superset(&BTreeSet::from(["full_url", "password", "username"])));
        let shown = answered().find(|field| !matches!(field.shape, Shape::Secret) && secrets().contains(field.name));
        assert!(shown.is_none(), "{shown:?} has the name of a secret");
    }
}
