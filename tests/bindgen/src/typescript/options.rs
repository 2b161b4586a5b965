//! The interfaces of the options: what each kind of call takes, based on one another as in the table.

use super::doc;
use crate::model::{CallOption, Kind, Use, WALK};

/// What JavaScript takes beside, which is no option of the core.
const BESIDE: [(Use, &str, &str, &str); 2] = [
    (Use::Call, "signal", "Signal", "Gives the call up: it ends with a `cancelled` error, which says whether it may have been sent."),
    (Use::Open, "keep", "boolean", "Keeps a dynamic session when it is disposed of, which else terminates it."),
];

/// The name of the interface of a use.
pub(super) fn name(of: Use) -> String {
    match of {
        Use::Wait => "SessionOptions".to_owned(),
        _ => format!("{of:?}Options"),
    }
}

/// Prints every interface.
pub(super) fn print(out: &mut String) {
    for of in Use::ALL {
        let bases: Vec<String> = of.bases().iter().copied().map(name).collect();
        begin(out, of.doc(), &name(of), &bases);
        for (_, beside, kind, about) in BESIDE.iter().filter(|(takes, ..)| *takes == of) {
            member(out, beside, kind, about);
        }
        of.own().for_each(|option| print_option(out, option));
        out.push_str("}\n\n");
    }
    begin(out, "walking a list. The options of the call are those of each page", "WalkOptions", &[name(Use::Call)]);
    WALK.iter().for_each(|option| print_option(out, option));
    out.push_str("}\n\n");
}

fn begin(out: &mut String, about: &str, name: &str, bases: &[String]) {
    doc(out, "", &[format!("What may be decided for {about}.")]);
    let bases = if bases.is_empty() { String::new() } else { format!(" extends {}", bases.join(", ")) };
    out.push_str(&format!("export interface {name}{bases} {{\n"));
}

fn print_option(out: &mut String, option: &CallOption) {
    let kind = match option.kind {
        // `null` is no intent, as of a program that has none to give.
        Kind::Text if option.name == "intent" => "string | null",
        Kind::Text => "string",
        Kind::Flag => "boolean",
        Kind::Count | Kind::Time => "number",
        Kind::Decimal => "number | string",
        // What is called `Record` elsewhere may be a type of the API one day.
        Kind::Headers => "{ [name: string]: string }",
        Kind::Until => "Until",
        Kind::Texts => "string[]",
    };
    member(out, &crate::model::camel(option.name), kind, &option.told("milliseconds"));
}

fn member(out: &mut String, name: &str, kind: &str, about: &str) {
    doc(out, "  ", &[about.to_owned()]);
    out.push_str(&format!("  {name}?: {kind} | undefined;\n"));
}
