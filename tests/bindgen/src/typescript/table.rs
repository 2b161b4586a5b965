//! The module of the table: what each method sends, what each walk reads, and what is never shown.

use hopline::contract::{Field, Record, Shape};
use hopline::wire::{is_secret_name, secret_endings};

use crate::model::{APIS, Type, Walk, camel, client, operations, types};

/// Prints the table that the code needs. Each API stands by itself, so that a page that uses one of them carries no table of the other.
pub(super) fn print() -> String {
    let mut out = "import { rows, walks } from \"../src/names.js\";\n\n".to_owned();
    for api in APIS {
        let (name, client) = (client(api).to_lowercase(), client(api));
        out.push_str(&format!(
            "/** What each method of `{client}Client` sends. */\nexport const {name}Operations = /* @__PURE__ */ rows(\"{name}\", {{\n"
        ));
        for endpoint in operations(api) {
            out.push_str(&format!("  {}: \"{} {}\",\n", camel(endpoint.name), endpoint.method.as_str(), endpoint.path));
        }
        out.push_str(&format!(
            "}});\n\n/** What each walk of it reads: where in a page its items are. */\nexport const {name}Walks = /* @__PURE__ */ walks({{\n"
        ));
        for walk in operations(api).filter_map(Walk::of) {
            out.push_str(&format!("  {}: \"{}\",\n", camel(&walk.name()), walk.items.name));
        }
        out.push_str("});\n\n");
    }
    let endings: Vec<String> = secret_endings().map(|name| format!("\"{name}\"")).collect();
    out.push_str(
        "/** What the name of a secret ends with, in any spelling: without underscores, hyphens and a last `s`, in small letters. */\n",
    );
    out.push_str(&format!("export const secretEndings = [{}];\n\n", endings.join(", ")));
    out.push_str(
        "/**\n * By type: which of its members are secrets, which have the name of one and are none, and which are of a type that has some.\n */\n",
    );
    out.push_str("export const secrets = {\n");
    for record in records() {
        let members: Vec<String> = record.fields.iter().filter_map(|field| Some(format!("{}: {}", field.name, sealed(field)?))).collect();
        if !members.is_empty() {
            out.push_str(&format!("  {}: {{ {} }},\n", record.name, members.join(", ")));
        }
    }
    out.push_str("};\n");
    out
}

fn records() -> impl Iterator<Item = &'static Record> {
    types().into_iter().filter_map(Type::record)
}

/// The mark of a member, if JavaScript needs one.
fn sealed(field: &Field) -> Option<String> {
    match field.shape {
        Shape::Secret => Some("true".to_owned()),
        _ if is_secret_name(field.name) => Some("false".to_owned()),
        shape => sealed_record(shape).map(|record| format!("\"{}\"", record.name)),
    }
}

/// The objects that a value is made of, if something in them has to be known.
fn sealed_record(shape: Shape) -> Option<&'static Record> {
    match shape {
        Shape::List(item) | Shape::OneOrMany(item) => sealed_record(*item),
        Shape::Record(record) => record.fields.iter().any(|field| sealed(field).is_some()).then_some(record),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hopline::contract::endpoints;

    use super::*;

    #[test]
    fn every_operation_and_every_walk_is_a_row_of_its_api() {
        let table = print();
        for endpoint in endpoints() {
            let api = client(endpoint.api).to_lowercase();
            let row = format!("  {}: \"{} {}\",\n", camel(endpoint.name), endpoint.method.as_str(), endpoint.path);
            let (_, of) = table.split_once(&format!("export const {api}Operations")).expect("has operations");
            assert!(of.split("export").next().is_some_and(|of| of.contains(&row)), "{row}");
        }
        assert!(table.contains("  walkProducts: \"items\",\n"));
        let (_, reseller) = table.split_once("export const resellerWalks").expect("has walks");
        let names = ["walkSubUsers", "walkDynamicOrders", "walkStaticOrders", "walkConsumption"];
        assert!(names.iter().all(|name| reseller.contains(&format!("  {name}: "))), "{reseller}");
    }

    /// JavaScript finds the name of an operation in that of its method.
    #[test]
    fn the_name_of_a_method_is_that_of_its_operation_in_another_spelling() {
        let snake = |name: &str| -> String {
            name.chars().map(|letter| if letter.is_uppercase() { format!("_{}", letter.to_lowercase()) } else { letter.into() }).collect()
        };
        for endpoint in endpoints() {
            assert_eq!(snake(&camel(endpoint.name)), endpoint.name);
        }
        for walk in APIS.into_iter().flat_map(operations).filter_map(Walk::of) {
            assert_eq!(walk.name().replacen("walk_", "list_", 1), walk.endpoint.name);
        }
    }

    #[test]
    fn a_type_says_which_members_are_secrets_and_which_have_the_name_of_one_and_are_none() {
        let table = print();
        let (_, types) = table.split_once("export const secrets = {\n").expect("is printed");
        let all = [
            "  Registration: { api_key: true, api_secret: true },\n",
            "  Proxy: { username: true, password: true, full_url: true },\n",
            "  Session: { proxy: \"Proxy\" },\n",
            "  LoginUser: { username: false },\n",
            "  LoginResult: { token: true, user: \"LoginUser\" },\n",
            "  SubUser: { username: false, email: true },\n",
            "  SubUserList: { items: \"SubUser\" },\n",
            "};\n",
        ];
        assert_eq!(types, all.concat());
    }
}
