//! A method of the client as Kotlin writes it.

use std::fmt::Write;

use hopline::contract::{Field, FieldRule};

use super::{escaped, option_type, print_doc, quoted, request_type, said};
use crate::model::{CallOption, OPTIONS, Use, camel, options_of};

/// A parameter that is none of the table's: its name in the core, its type, its default, what it is.
pub(super) type Given = (&'static str, &'static str, &'static str, &'static str);

/// A method to print.
pub(super) struct Method {
    /// How it begins: `suspend fun` or `fun`.
    pub(super) fun: &'static str,
    pub(super) name: String,
    /// The lines before the parameters.
    pub(super) doc: Vec<String>,
    pub(super) params: Vec<Param>,
    /// The use, which decides the options.
    pub(super) takes: Use,
    /// Further parameters, which are passed on after the options.
    pub(super) beside: Vec<Param>,
    pub(super) answer: String,
    /// The call: its text before and after the parameters and the options.
    pub(super) call: [String; 2],
}

/// A parameter of a method.
pub(super) struct Param {
    wire: &'static str,
    name: String,
    /// Its type and its default.
    kind: String,
    doc: String,
}

impl From<&Field> for Param {
    fn from(field: &Field) -> Self {
        let kind = request_type(field.shape);
        let kind = match (field.required, field.nullable) {
            (true, _) => kind,
            (false, true) => format!("Patch<{kind}> = Patch.Absent"),
            (false, false) => format!("{kind}? = null"),
        };
        Param { wire: field.name, name: parameter(field.name), kind, doc: said(field.doc).join(" ") }
    }
}

impl From<&Given> for Param {
    fn from((name, kind, default, doc): &Given) -> Self {
        Param { wire: name, name: camel(name), kind: format!("{kind}{default}"), doc: (*doc).to_owned() }
    }
}

impl From<&CallOption> for Param {
    fn from(option: &CallOption) -> Self {
        let kind = format!("{}? = null", option_type(option.kind));
        Param { wire: option.name, name: camel(option.plain()), kind, doc: option.doc.to_owned() }
    }
}

/// The parameters of a request, required ones first. A member with only one value is not a parameter.
pub(super) fn params<'a>(fields: impl IntoIterator<Item = &'a Field>) -> Vec<Param> {
    let (must, may): (Vec<&Field>, Vec<&Field>) = fields.into_iter().filter(|field| !is_fixed(field)).partition(|field| field.required);
    must.into_iter().chain(may).map(Param::from).collect()
}

fn is_fixed(field: &Field) -> bool {
    field.rules.iter().any(|rule| matches!(rule, FieldRule::Always(_)))
}

/// The name of a parameter, which may not be that of an option.
pub(super) fn parameter(wire: &str) -> String {
    let name = camel(wire);
    if OPTIONS.iter().any(|option| camel(option.plain()) == name) { format!("{name}_") } else { escaped(name) }
}

impl Method {
    /// Prints it as a part of an interface, with its documentation. What implements the interface may leave it out.
    pub(super) fn declare(&self, out: &mut String) {
        let options: Vec<Param> = options_of(self.takes).map(Param::from).collect();
        let all = || self.params.iter().chain(&options).chain(&self.beside);
        let mut doc = self.doc.clone();
        doc.push(String::new());
        doc.extend(all().map(|param| format!("@param {} {}", param.name.replace('`', ""), param.doc.trim())));
        put!(out, "");
        print_doc(out, "    ", &doc);
        put!(out, "    public {} {}(", self.fun, self.name);
        all().for_each(|param| put!(out, "        {}: {},", param.name, param.kind));
        put!(out, "    ): {} = missing({})", self.answer, quoted(&self.name));
    }

    /// Prints it as a part of the client, which has its documentation and its defaults from the interface.
    pub(super) fn print(&self, out: &mut String) {
        let options: Vec<Param> = options_of(self.takes).map(Param::from).collect();
        let all = || self.params.iter().chain(&options).chain(&self.beside);
        put!(out, "\n    override {} {}(", self.fun, self.name);
        all().for_each(|param| put!(out, "        {}: {},", param.name, param.kind.split(" = ").next().unwrap_or_default()));
        let params: Vec<String> = self.params.iter().map(|param| format!("{} to {}", quoted(param.wire), param.name)).collect();
        let options: Vec<String> = options.iter().map(|param| format!("{} to {}", quoted(param.wire), param.name)).collect();
        let beside: String = self.beside.iter().map(|param| format!(", {}", param.name)).collect();
        let [before, after] = &self.call;
        put!(
            out,
            "    ): {} =\n        {before}{{ encode({}) }}, {{ encode({}) }}{beside}{after}",
            self.answer,
            params.join(", "),
            options.join(", ")
        );
    }
}
