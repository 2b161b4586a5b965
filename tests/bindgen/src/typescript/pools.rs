//! The options of a pool: those of its sessions in the wire's spelling, and the others as options are spelled.

use hopline::contract::agent::CreateSession;
use hopline::contract::{Field, Operation, Record};

use super::{Side, doc, said};
use crate::model::{camel, in_camel, pool_fields, pool_requests};

/// The parameters of `open_pool`.
fn open() -> impl Iterator<Item = &'static Record> {
    pool_requests().filter(|record| record.name == "OpenPool")
}

/// The members of the options: the name is a parameter of its own.
fn members() -> impl Iterator<Item = &'static Field> {
    open().flat_map(pool_fields).filter(|field| field.name != "name")
}

/// Returns true if the member is one of a session.
fn is_sessions(field: &Field) -> bool {
    CreateSession::ENDPOINT.request.field(field.name).is_some()
}

fn spelled(field: &Field) -> String {
    if is_sessions(field) { field.name.to_owned() } else { camel(field.name) }
}

/// The interface of the options.
pub(super) fn print(out: &mut String) {
    open().for_each(|record| doc(out, "", &said(record.doc)));
    out.push_str("export interface PoolOptions {\n");
    for field in members() {
        doc(out, "  ", &said(field.doc).iter().map(|line| in_options(line)).collect::<Vec<_>>());
        let (optional, absent) = if field.required { ("", "") } else { ("?", " | undefined") };
        out.push_str(&format!("  {}{optional}: {}{absent};\n", spelled(field), super::shape(field.shape, Side::Request)));
    }
    doc(out, "  ", &["A function of a response that `observe` is given: true if it is a block, such as a page with a captcha. It answers at once, and not by a promise.".to_owned()]);
    out.push_str("  blocked?: ((response: any) => boolean) | undefined;\n");
    out.push_str("}\n\n");
}

/// The module that says how the options are spelled.
pub(super) fn names() -> String {
    let list = |wanted: bool| {
        let found = members().filter(move |field| is_sessions(field) == wanted);
        found.map(|field| format!("{:?}", field.name)).collect::<Vec<_>>().join(", ")
    };
    format!(
        "/** The options of a pool that say what a session is, and those that are its own, as the core spells them. */\n\
         export const [ofSessions, ofPools] = [[{}], [{}]];\n",
        list(true),
        list(false)
    )
}

/// A line that names options as they are spelled here.
fn in_options(line: &str) -> String {
    in_camel(line, |name| members().any(|field| field.name == name && !is_sessions(field)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_is_has_the_wires_spelling_and_the_rest_that_of_options() {
        let mut printed = String::new();
        print(&mut printed);
        for line in [
            "  session_type?: SessionType | undefined;\n",
            "  product?: Cheapest | undefined;\n",
            "  quantity?: number | string | undefined;\n",
            "  size: number;\n",
            "  dailyCapUsd?: number | string | undefined;\n",
            "  idleReleaseMs?: number | undefined;\n",
            "  replace?: PoolReplace | undefined;\n",
            "  maxWaiters?: number | undefined;\n",
        ] {
            assert!(printed.contains(line), "{line}{printed}");
        }
        let names = names();
        assert!(names.contains("\"session_type\"") && names.contains("\"max_waiters\"") && !names.contains("\"name\""), "{names}");
    }
}
