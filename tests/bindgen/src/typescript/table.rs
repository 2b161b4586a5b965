//! The module of the table: what each method sends, what each walk reads, and what is never shown.

use std::collections::{BTreeMap, BTreeSet};

use hopline::contract::{Endpoint, Field, Shape, endpoints};

use crate::model::{APIS, Type, Walk, camel, client, operations, types};

/// What the code needs. Each API stands by itself, so that a page that uses one of them carries no table of the other.
pub(super) fn print() -> String {
    let mut out = String::new();
    for api in APIS {
        let (name, client) = (client(api).to_lowercase(), client(api));
        out.push_str(&format!("/** What each method of `{client}Client` sends. */\nexport const {name}Operations = {{\n"));
        for endpoint in operations(api) {
            let (method, verb) = (camel(endpoint.name), endpoint.method.as_str());
            let row = format!("api: \"{name}\", operation: \"{}\", method: \"{verb}\", path: \"{}\"", endpoint.name, endpoint.path);
            out.push_str(&format!("  {method}: {{ {row} }},\n"));
        }
        out.push_str(&format!(
            "}};\n\n/** What each walk of it reads, and where in a page its items are. */\nexport const {name}Walks = {{\n"
        ));
        for walk in operations(api).filter_map(Walk::of) {
            let (method, operation, items) = (camel(&walk.name()), walk.endpoint.name, walk.items.name);
            out.push_str(&format!("  {method}: {{ operation: \"{operation}\", items: \"{items}\" }},\n"));
        }
        out.push_str("};\n\n");
    }
    let names: Vec<String> = secrets().iter().map(|name| format!("\"{name}\"")).collect();
    out.push_str("/** The members of answers that are secrets, in any spelling: without underscores, in small letters. */\n");
    out.push_str(&format!("export const secrets = new Set([{}]);\n\n", names.join(", ")));
    out.push_str("/** By operation: where in its answer a member has the name of a secret and is none. */\nexport const plain = {\n");
    for endpoint in endpoints() {
        let tree = shown(endpoint);
        if !tree.0.is_empty() {
            out.push_str(&format!("  {}: {},\n", endpoint.name, tree.text()));
        }
    }
    out.push_str("};\n");
    out
}

/// A name whatever its spelling.
fn unspelled(name: &str) -> String {
    name.replace('_', "").to_ascii_lowercase()
}

/// The members of answers that are secrets. An answer that the contract does not document may hold them too.
fn secrets() -> BTreeSet<String> {
    let fields = types().into_iter().flat_map(|found| match found {
        Type::Record(record) => record.fields,
        Type::Words(_) => &[],
    });
    fields.filter(|field| matches!(field.shape, Shape::Secret)).map(|field| unspelled(field.name)).collect()
}

/// Members by their names, each with those below it. A list is passed through.
#[derive(Default)]
struct Tree(BTreeMap<&'static str, Tree>);

impl Tree {
    fn text(&self) -> String {
        let members: Vec<String> = self.0.iter().map(|(name, below)| format!("{name}: {}", below.text())).collect();
        if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join(", ")) }
    }
}

/// Where an answer has a member of the contract that has the name of a secret and is none.
fn shown(endpoint: &Endpoint) -> Tree {
    let secrets = secrets();
    below(endpoint.response, &|field| secrets.contains(&unspelled(field.name)) && !matches!(field.shape, Shape::Secret))
}

fn below(shape: Shape, is_shown: &impl Fn(&Field) -> bool) -> Tree {
    match shape {
        Shape::List(item) | Shape::OneOrMany(item) => below(*item, is_shown),
        Shape::Record(record) => {
            let members = record.fields.iter().map(|field| (field, below(field.shape, is_shown)));
            Tree(members.filter(|(field, tree)| is_shown(field) || !tree.0.is_empty()).map(|(field, tree)| (field.name, tree)).collect())
        }
        _ => Tree::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_and_every_walk_is_a_row_of_its_api() {
        let table = print();
        for endpoint in endpoints() {
            let api = client(endpoint.api).to_lowercase();
            let row = format!("  {}: {{ api: \"{api}\", operation: \"{}\", ", camel(endpoint.name), endpoint.name);
            assert!(table.contains(&row), "{row}");
        }
        assert!(table.contains("  walkProducts: { operation: \"list_products\", items: \"items\" },\n"));
        let (_, reseller) = table.split_once("export const resellerWalks").expect("has walks");
        let names = ["walkSubUsers", "walkDynamicOrders", "walkStaticOrders", "walkConsumption"];
        assert!(names.iter().all(|name| reseller.contains(&format!("  {name}: "))), "{reseller}");
    }

    #[test]
    fn a_secret_is_known_by_its_name_in_any_spelling() {
        let known = ["apikey", "apisecret", "email", "fullurl", "password", "token", "username"];
        assert_eq!(secrets().iter().map(String::as_str).collect::<Vec<_>>(), known);
    }

    #[test]
    fn what_has_the_name_of_a_secret_and_is_none_is_shown_where_the_contract_has_it_and_nowhere_else() {
        let table = print();
        let (_, plain) = table.split_once("export const plain = {\n").expect("is printed");
        let all =
            "  login: { user: { username: {} } },\n  create_user: { username: {} },\n  list_sub_users: { items: { username: {} } },\n};\n";
        assert_eq!(plain, all);
    }
}
