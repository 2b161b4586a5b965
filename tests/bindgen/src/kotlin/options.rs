//! The options of a client and of a pool, as types of the caller's.

use std::fmt::Write;

use hopline::contract::pools::OpenPool;
use hopline::contract::{Field, Shape, Shaped};

use super::{HEADER, answer_type, of_told, option_type, print_doc, quoted, record_of};
use crate::model::{CLIENT, CallOption, RETRY, camel, pool_fields};

/// An option that is a parameter of the client by itself.
const PARAMETER: &str = "same_account";

pub(super) fn print() -> String {
    let client: Vec<&CallOption> = CLIENT.iter().filter(|option| option.name != PARAMETER).collect();
    let mut out = HEADER.to_owned();
    put!(out, "import java.math.BigDecimal\nimport kotlin.time.Duration\n");
    put!(out, "/** The options of repeats, waits and reads. Omitted options keep their defaults. */\npublic data class Options(");
    for option in client.iter().copied().chain(RETRY.iter()) {
        print_doc(&mut out, "    ", &[option.doc.to_owned()]);
        put!(out, "    val {}: {}? = null,", camel(option.plain()), option_type(option.kind));
    }
    put!(out, ")\n");
    put!(out, "/** All the options of a client: its own ones, and these. Options with a password are secrets from here on. */");
    put!(out, "internal fun Options.told(vararg own: Pair<String, Any?>): Secret {{");
    put!(out, "    val retry = mapOf({})", pairs(&RETRY.iter().collect::<Vec<_>>()));
    put!(out, "    return Secret(encode(*own, {}, \"retry\" to retry))\n}}", pairs(&client));
    print_pool(&mut out);
    out
}

/// Prints the options of a pool, beside its name.
fn print_pool(out: &mut String) {
    let Some(record) = record_of(OpenPool::SHAPE) else { return };
    put!(
        out,
        "\n/** The sessions that a pool buys, their number, and the terms on which it lends them. Omitted options keep their defaults. */\npublic data class PoolOptions("
    );
    let fields = || pool_fields(record).iter().filter(|field| field.name != "name");
    for field in fields().filter(|field| field.required).chain(fields().filter(|field| !field.required)) {
        print_doc(out, "    ", &of_told(record, field));
        put!(out, "    val {}: {}{},", plain(field), kind(field), if field.required { "" } else { "? = null" });
    }
    let pairs: Vec<String> = fields().map(|field| format!("{} to {}", quoted(field.name), plain(field))).collect();
    put!(out, ")\n\ninternal fun PoolOptions.told(name: String): String =\n    encode(\"name\" to name, {})", pairs.join(", "));
}

/// Its name; a time has a type, which says its unit.
fn plain(field: &Field) -> String {
    camel(field.name.trim_end_matches("_ms"))
}

fn kind(field: &Field) -> String {
    match field.shape {
        Shape::Integer if field.name.ends_with("_ms") => "Duration".to_owned(),
        Shape::Integer => "Int".to_owned(),
        shape => answer_type(shape),
    }
}

fn pairs(options: &[&CallOption]) -> String {
    options.iter().map(|option| format!("{} to {}", quoted(option.name), camel(option.plain()))).collect::<Vec<_>>().join(", ")
}
