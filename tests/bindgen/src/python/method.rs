//! One method of a client, as it is printed.

use std::fmt::Write;

use hopline::contract::Field;

use super::{one_line, print_doc, request_type};

/// One option of a call: its name, its type, what it does.
pub(super) type Option3 = (&'static str, &'static str, &'static str);

/// One argument that is no option: its name, its type, its default, what it does.
pub(super) type Given = (&'static str, &'static str, &'static str, &'static str);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    Sync,
    Async,
}

/// A method to print.
pub(super) struct Method<'a> {
    pub(super) host: Host,
    pub(super) name: &'a str,
    /// The lines before the parameters.
    pub(super) doc: Vec<String>,
    /// What is sent; those without a default come first.
    pub(super) params: Vec<Param>,
    /// How many of them may be given without their names.
    pub(super) positional: usize,
    pub(super) options: Vec<Option3>,
    /// What the method takes beside, and hands on after the options.
    pub(super) beside: &'a [Given],
    pub(super) answer: String,
    /// Whether the method of the async client is awaited.
    pub(super) awaits: bool,
    /// What is called: its text before and after the parameters, the options and what is beside them.
    pub(super) call: [String; 2],
}

/// A parameter of a method.
pub(super) struct Param {
    name: &'static str,
    kind: String,
    default: &'static str,
    doc: String,
}

impl From<&Field> for Param {
    fn from(field: &Field) -> Self {
        let null = if field.nullable { " | None" } else { "" };
        let (kind, default) = match field.required {
            true => (request_type(field), ""),
            false => (format!("{}{null} | Unset", request_type(field)), " = UNSET"),
        };
        Param { name: field.name, kind, default, doc: one_line(field.doc) }
    }
}

impl From<&Given> for Param {
    fn from((name, kind, default, doc): &Given) -> Self {
        Param { name, kind: (*kind).to_owned(), default, doc: (*doc).to_owned() }
    }
}

/// The parameters that a request has, those that it must have first.
pub(super) fn params<'a>(fields: impl IntoIterator<Item = &'a Field>) -> Vec<Param> {
    let (must, may): (Vec<&Field>, Vec<&Field>) = fields.into_iter().partition(|field| field.required);
    must.into_iter().chain(may).map(Param::from).collect()
}

impl Method<'_> {
    /// Prints it with its documentation.
    pub(super) fn print(&self, out: &mut String) {
        let awaits = self.host == Host::Async && self.awaits;
        let beside: Vec<Param> = self.beside.iter().map(Param::from).collect();
        put!(out, "\n    {}def {}(\n        self,", if awaits { "async " } else { "" }, self.name);
        let (first, named) = self.params.split_at(self.positional);
        first.iter().for_each(|param| param.print(out));
        put!(out, "        *,");
        named.iter().for_each(|param| param.print(out));
        self.options.iter().for_each(|(name, kind, _)| put!(out, "        {name}: {kind} | None = None,"));
        beside.iter().for_each(|param| param.print(out));
        put!(out, "    ) -> {}:", self.answer);
        let mut doc = self.doc.clone();
        doc.extend(["".to_owned(), "Args:".to_owned()]);
        let options = self.options.iter().map(|(name, _, about)| (*name, *about));
        let told = |param: &'_ Param| format!("    {}: {}", param.name, param.doc);
        doc.extend(self.params.iter().map(told));
        doc.extend(options.map(|(name, about)| format!("    {name}: {about}")));
        doc.extend(beside.iter().map(told));
        print_doc(out, "        ", &doc);
        let params: Vec<String> = self.params.iter().map(|param| format!("{:?}: {}", param.name, param.name)).collect();
        let options: Vec<String> = self.options.iter().map(|(name, _, _)| format!("{name:?}: {name}")).collect();
        let beside: String = self.beside.iter().map(|(name, ..)| format!(", {name}")).collect();
        let ([before, after], wait) = (&self.call, if awaits { "await " } else { "" });
        put!(out, "        return {wait}{before}{{{}}}, {{{}}}{beside}{after}", params.join(", "), options.join(", "));
    }
}

impl Param {
    fn print(&self, out: &mut String) {
        put!(out, "        {}: {}{},", self.name, self.kind, self.default);
    }
}
