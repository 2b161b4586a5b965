//! One method of a client, as it is printed.

use std::fmt::Write;

use hopline::contract::{Field, FieldRule};

use super::told::in_python;
use super::{one_line, option_type, print_doc, python_name, request_type};
use crate::model::{CallOption, Use, options_of};

/// One argument that is no option: its name, its type, its default, what it does.
pub(super) type Given = (&'static str, &'static str, &'static str, &'static str);

/// A method to print, of a client for tasks.
pub(super) struct Method<'a> {
    pub(super) name: &'a str,
    /// The lines before the parameters.
    pub(super) doc: Vec<String>,
    /// The parameters that are sent; those without a default come first.
    pub(super) params: Vec<Param>,
    /// How many of them may be given without their names.
    pub(super) positional: usize,
    /// The use, which decides the options; none for a pool's method.
    pub(super) takes: Option<Use>,
    /// Further parameters, which are passed on after the options.
    pub(super) beside: Vec<Param>,
    pub(super) answer: String,
    /// True if the method is awaited.
    pub(super) awaits: bool,
    /// The call: its text before and after the parameters, the options and the further ones.
    pub(super) call: [String; 2],
}

/// A parameter of a method.
pub(super) struct Param {
    name: String,
    /// The name in the core.
    sent: &'static str,
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
        Param { name: python_name(field), sent: field.name, kind, default, doc: one_line(field.doc) }
    }
}

impl Param {
    /// The parameter for a member of a pool's request. A time is in seconds.
    pub(super) fn of_pool(field: &'static Field) -> Self {
        let plain = Param::from(field);
        let is_time = field.name.ends_with("_ms");
        let kind = if is_time { "float".to_owned() } else { plain.kind.trim_end_matches(" | Unset").to_owned() };
        let (kind, default) = if field.required { (kind, "") } else { (format!("{kind} | None"), " = None") };
        let doc = in_python(&if is_time { format!("{} In seconds.", plain.doc) } else { plain.doc });
        Param { name: plain.name.trim_end_matches("_ms").to_owned(), kind, default, doc, ..plain }
    }
}

impl From<&Given> for Param {
    fn from((name, kind, default, doc): &Given) -> Self {
        Param { name: (*name).to_owned(), sent: name, kind: (*kind).to_owned(), default, doc: (*doc).to_owned() }
    }
}

/// The parameters of a request, required ones first. The core sends a member with only one value by itself.
pub(super) fn params<'a>(fields: impl IntoIterator<Item = &'a Field>) -> Vec<Param> {
    let chosen = fields.into_iter().filter(|field| !field.rules.iter().any(|rule| matches!(rule, FieldRule::Always(_))));
    let (must, may): (Vec<&Field>, Vec<&Field>) = chosen.partition(|field| field.required);
    must.into_iter().chain(may).map(Param::from).collect()
}

impl From<&CallOption> for Param {
    fn from(option: &CallOption) -> Self {
        Param {
            name: option.plain().to_owned(),
            sent: option.plain(),
            kind: format!("{} | None", option_type(option.kind)),
            default: " = None",
            doc: in_python(&option.told("seconds")),
        }
    }
}

impl Method<'_> {
    /// Prints it with its documentation.
    pub(super) fn print(&self, out: &mut String) {
        let options: Vec<Param> = self.takes.into_iter().flat_map(options_of).map(Param::from).collect();
        put!(out, "\n    {}def {}(\n        self,", if self.awaits { "async " } else { "" }, self.name);
        let (first, named) = self.params.split_at(self.positional);
        first.iter().for_each(|param| param.print(out));
        put!(out, "        *,");
        named.iter().chain(&options).chain(&self.beside).for_each(|param| param.print(out));
        put!(out, "    ) -> {}:", self.answer);
        let mut doc = self.doc.clone();
        doc.extend(["".to_owned(), "Args:".to_owned()]);
        let all = self.params.iter().chain(&options).chain(&self.beside);
        doc.extend(all.map(|param| format!("    {}: {}", param.name, param.doc)));
        doc.extend(["".to_owned(), raises(self.takes)]);
        print_doc(out, "        ", &doc);
        let named =
            |params: &[Param]| params.iter().map(|param| format!("{:?}: {}", param.sent, param.name)).collect::<Vec<_>>().join(", ");
        let beside: String = self.beside.iter().map(|param| format!(", {}", param.name)).collect();
        let ([before, after], wait) = (&self.call, if self.awaits { "await " } else { "" });
        let options = match self.takes {
            Some(_) => {
                put!(out, "        chosen: dict[str, Any] = {{{}}}", named(&options));
                ", chosen"
            }
            None => "",
        };
        // A traceback shows the line of the call.
        put!(out, "        given: dict[str, Any] = {{{}}}", named(&self.params));
        put!(out, "        return {wait}{before}given{options}{beside}{after}");
    }
}

/// The exceptions of a call.
fn raises(takes: Option<Use>) -> String {
    let Some(takes) = takes else {
        return "Raises `Invalid` if the pool can't be opened with these options, and `StoreError` if the store can't be read.".to_owned();
    };
    let waits = matches!(takes, Use::Open | Use::Purchase);
    let effect = match takes {
        Use::Call | Use::Read | Use::Watch | Use::Wait => "",
        _ => {
            " `InDoubt` if it may have taken effect, `Busy` if another client is working on it, `StoreError` if its record could not be kept,"
        }
    };
    let ended = if waits { " `Ended` if the session of its intent is over," } else { "" };
    let unready = match takes {
        Use::Open | Use::Wait => " `NotReady` if its session is not usable at the deadline,",
        _ => "",
    };
    format!(
        "Raises `Invalid` before anything is sent, `Refused` if the service or a limit of your own refuses it, `Unavailable` or `ProtocolError` \
         if the service fails,{effect}{ended}{unready} and `Decode` if the answer does not fit its type."
    )
}

impl Param {
    /// Returns true if the parameter is required.
    pub(super) fn is_required(&self) -> bool {
        self.default.is_empty()
    }

    fn print(&self, out: &mut String) {
        put!(out, "        {}: {}{},", self.name, self.kind, self.default);
    }
}
