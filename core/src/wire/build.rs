//! Builds a request from parameters: every field is checked against the table, and a value that breaks a rule is refused by name before
//! anything is sent.

use std::collections::BTreeMap;
use std::fmt;

use super::check::{Refusal, check, members, no_strangers, object, value_of};
use super::host::encoded;
use crate::contract::{AnyRequest, Api, Endpoint, Field, FieldPlace, FieldRule, Method, Safety, Secret, Shape, Shaped};
use crate::json::{FromJson, is_too_deep, plain, quoted, read_json};

/// More than any request of the contract needs; a record of it must stay small enough to be read back.
const MAX_PARAMS: usize = 64 << 10;

/// A request with checked parameters: the part that every send has in common. `Debug` shows only the target.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Built {
    /// Path and query, below the base URL.
    pub(crate) target: String,
    /// The JSON body, where the request has one.
    pub(crate) body: Option<String>,
    /// Headers that carry parameters, their names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// True if the body or the target holds a secret, so that the request can't be saved.
    pub(crate) secret: bool,
    /// Those secrets: an error must not repeat them, even if the service does.
    pub(crate) secrets: Vec<Secret>,
    /// The session that the request names in its path.
    pub(crate) session_id: Option<String>,
    /// The order whose number the request names in its path.
    pub(crate) order_no: Option<String>,
    /// True if the request asks for a session's credentials.
    pub(crate) credentials: bool,
    /// The number of items of a full page, for a list that comes in numbered pages and a request that states it.
    pub(crate) page_size: Option<u32>,
    /// The parameters that help to find the result of this request in a list, by name. Only requests that are sent at most once have them.
    pub(crate) match_fields: BTreeMap<String, String>,
}

impl fmt::Debug for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.target.split('?').next().unwrap_or_default())
    }
}

impl Built {
    /// A request without parameters.
    pub(crate) fn at(path: &str) -> Self {
        Built {
            target: path.to_owned(),
            body: None,
            headers: Vec::new(),
            secret: false,
            secrets: Vec::new(),
            session_id: None,
            order_no: None,
            credentials: false,
            page_size: None,
            match_fields: BTreeMap::new(),
        }
    }
}

/// Checks the parameters of a command that is no endpoint of its own.
pub(crate) fn params_of<T: Shaped + FromJson>(params: &str) -> Result<T, Refusal> {
    let refuse = || no_object(params);
    let given = members(params).map_err(|_| refuse())?;
    let Shape::Record(record) = T::SHAPE else { return Err(refuse()) };
    read_json(&object(record, &given, "")?).map_err(|_| refuse())
}

/// Parameters that can't be read.
fn no_object(params: &str) -> Refusal {
    not_too_deep(params).err().unwrap_or_else(|| Refusal::new("parameters", "must be a JSON object without repeated members"))
}

/// Checks parameters, a JSON object, and lays them out as the table says.
pub(crate) fn build(endpoint: &Endpoint, params: &str) -> Result<Built, Refusal> {
    not_too_long(params)?;
    let given = members(params).map_err(|_| no_object(params))?;
    no_strangers(endpoint.request, &given, "")?;
    let mut built = Built::at(endpoint.path);
    let mut query = String::new();
    let mut body = Vec::new();
    for field in endpoint.request.fields {
        let always = field.rules.iter().find_map(|rule| if let FieldRule::Always(word) = rule { Some(quoted(word)) } else { None });
        let text = match (value_of(field, &given)?, always) {
            (Some(raw), _) => check(field, field.name, field.shape, raw, &given)?,
            (None, Some(word)) => word,
            (None, None) => continue,
        };
        if field.shape.has_secrets() {
            built.secret = true;
            built.secrets.push(Secret::new(plain(&text)));
        }
        if endpoint.safety == Safety::AtMostOnce && is_match_field(field, &text) {
            built.match_fields.insert(field.name.to_owned(), plain(&text).into_owned());
        }
        match field.place {
            FieldPlace::Path => {
                let plain = plain(&text);
                if plain.is_empty() || plain == "." || plain == ".." {
                    return Err(Refusal::new(field.name, "is part of the path and must not be empty, `.` or `..`"));
                }
                match field.name {
                    "session_id" => built.session_id = Some(plain.to_string()),
                    "order_no" => built.order_no = Some(plain.to_string()),
                    _ => {}
                }
                let encoded = encoded(&plain);
                built.target = built.target.replace(&format!("{{{}}}", field.name), &encoded);
            }
            FieldPlace::Query => {
                built.credentials |= field.name == "include_credentials" && text == "true";
                if Some(field.name) == page_size(endpoint) {
                    built.page_size = text.parse().ok();
                }
                push_query(&mut query, field.name, &plain(&text));
            }
            FieldPlace::WholeQuery => {
                for (name, value) in
                    members(&text).map_err(|_| Refusal::new(field.name, "must be a JSON object without repeated members"))?
                {
                    if value.starts_with(['{', '[', 'n']) {
                        return Err(Refusal::new(field.name, "must hold strings, numbers, `true` or `false`, since it is a query"));
                    }
                    push_query(&mut query, &name, &plain(value));
                }
            }
            FieldPlace::Header(name) => {
                let plain = plain(&text);
                if !plain.bytes().all(|byte| byte.is_ascii_graphic()) {
                    return Err(Refusal::new(field.name, "must be visible ASCII characters, since it is a header"));
                }
                built.headers.push((name.to_ascii_lowercase(), plain.into_owned()));
            }
            FieldPlace::Whole => {
                members(&text).map_err(|_| Refusal::new(field.name, "must be a JSON object without repeated members"))?;
                built.body = Some(text);
            }
            FieldPlace::Body => body.push(format!("\"{}\":{text}", field.name)),
        }
    }
    // A change of nothing is still a document; other requests do without an empty one.
    if !body.is_empty() || endpoint.method == Method::Put {
        built.body = Some(format!("{{{}}}", body.join(",")));
    }
    built.target.push_str(&query);
    Ok(built)
}

fn push_query(query: &mut String, name: &str, value: &str) {
    let separator = if query.is_empty() { '?' } else { '&' };
    query.push_str(&format!("{separator}{}={}", encoded(name), encoded(value)));
}

/// The parameter that says how many items a page has, of a list that comes in numbered pages.
pub(crate) fn page_size(endpoint: &Endpoint) -> Option<&'static str> {
    let fields = || endpoint.request.fields.iter().map(|field| field.name);
    fields().find(|name| matches!(*name, "page_size" | "pageSize")).filter(|_| fields().any(|name| name == "page"))
}

/// Returns true if a parameter helps to find in a list the result of a request: a short value that is not a secret and not always the same.
fn is_match_field(field: &Field, text: &str) -> bool {
    let open = matches!(field.shape, Shape::Secret | Shape::Json | Shape::Record(_) | Shape::List(_) | Shape::OneOrMany(_));
    !open && text.len() <= 256 && !field.rules.iter().any(|rule| matches!(rule, FieldRule::Always(_)))
}

/// Returns true if a text is a valid `Idempotency-Key`.
pub(crate) fn is_key(key: &str) -> bool {
    (1..=64).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
}

fn not_too_long(params: &str) -> Result<(), Refusal> {
    if params.len() <= MAX_PARAMS { Ok(()) } else { Err(Refusal::new("parameters", "must be at most 64 KiB of JSON")) }
}

fn not_too_deep(params: &str) -> Result<(), Refusal> {
    if is_too_deep(params) { Err(Refusal::new("parameters", "must not be nested more than 100 levels deep")) } else { Ok(()) }
}

/// Returns true if a path stays below the base URL for every reader: URL parsers take `%2e%2e` for `..`.
fn stays_below(path: &str) -> bool {
    let segment = |segment: &str| {
        let plain = percent_encoding::percent_decode_str(segment).decode_utf8_lossy();
        let visible = segment.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\\\"<>".contains(&byte));
        visible && !segment.is_empty() && plain != "." && plain != ".."
    };
    path.strip_prefix('/').is_some_and(|path| path.trim_end_matches('/').split('/').all(segment))
}

/// Returns true if a text is a valid path and query of a request: one that stays below the base URL.
pub(crate) fn is_target(target: &str) -> bool {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    stays_below(path) && query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
}

/// Builds a request that the table does not have. The path must stay below the base URL.
pub(crate) fn build_any(api: Api, params: &str) -> Result<(&'static Endpoint, Built), Refusal> {
    not_too_long(params)?;
    not_too_deep(params)?;
    let request: AnyRequest = read_json(params).map_err(|_| {
        Refusal::new(
            "parameters",
            "must be an object with a method such as `GET` and a path, and may have a query of strings, a JSON body and a safety",
        )
    })?;
    if !stays_below(&request.path) {
        return Err(Refusal::new("path", "must begin with `/` and be made of percent-encoded segments, none of them empty, `.` or `..`"));
    }
    let mut built = Built::at(&request.path);
    let mut query = String::new();
    request.query.iter().for_each(|(name, value)| push_query(&mut query, name, value));
    built.target.push_str(&query);
    built.body = request.body.as_ref().map(|body| body.text().to_owned());
    Ok((request.endpoint(api), built))
}

#[cfg(test)]
mod tests;
