//! From parameters to a request: every field is checked against the table, and whatever breaks a rule is refused by name
//! before anything is sent.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;

use super::check::{Refusal, check, holds_secret, members, no_strangers, object, value_of};
use super::host::encoded;
use crate::contract::{AnyRequest, Api, Endpoint, Field, Method, Place, Rule, Safety, Secret, Shape, Shaped};
use crate::json::{plain, quoted};

/// More than any request of the contract needs; a record of it must stay small enough to be read back.
const MAX_PARAMS: usize = 64 << 10;

/// A request whose parameters are checked: the part that is the same in every send. Its `Debug` shows only where it goes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Built {
    /// Path and query, below the base URL.
    pub(crate) target: String,
    /// The JSON body, where the request has one.
    pub(crate) body: Option<String>,
    /// Headers that carry parameters, their names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// Whether the body or the target holds a secret, so that it can't be saved.
    pub(crate) secret: bool,
    /// Those secrets: what the service says of them must not be repeated.
    pub(crate) secrets: Vec<Secret>,
    /// The session that the request names in its path.
    pub(crate) session_id: Option<String>,
    /// Whether it asks for a session's credentials.
    pub(crate) credentials: bool,
    /// Of a list that comes in numbered pages: how many items a full page has, where the request says so.
    pub(crate) page_size: Option<u32>,
    /// Of a request that is never sent twice: what a list may show of it, by the names of the parameters.
    pub(crate) clues: BTreeMap<String, String>,
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
            credentials: false,
            page_size: None,
            clues: BTreeMap::new(),
        }
    }
}

/// Checks the parameters of a command that is no endpoint of its own.
pub(crate) fn params_of<T: Shaped + DeserializeOwned>(params: &str) -> Result<T, Refusal> {
    let refuse = || Refusal::new("parameters", "must be a JSON object without repeated members");
    let given = members(params).map_err(|_| refuse())?;
    let Shape::Record(record) = T::SHAPE else { return Err(refuse()) };
    serde_json::from_str(&object(record, &given, "")?).map_err(|_| refuse())
}

/// Checks parameters, a JSON object, and lays them out as the table says.
pub(crate) fn build(endpoint: &Endpoint, params: &str) -> Result<Built, Refusal> {
    not_too_long(params)?;
    let given = members(params).map_err(|_| Refusal::new("parameters", "must be a JSON object without repeated members"))?;
    no_strangers(endpoint.request, &given, "")?;
    let mut built = Built::at(endpoint.path);
    let mut query = String::new();
    let mut body = Vec::new();
    for field in endpoint.request.fields {
        let always = field.rules.iter().find_map(|rule| if let Rule::Always(word) = rule { Some(quoted(word)) } else { None });
        let text = match (value_of(field, &given)?, always) {
            (Some(raw), _) => check(field, field.name, field.shape, raw, &given)?,
            (None, Some(word)) => word,
            (None, None) => continue,
        };
        if holds_secret(field.shape) {
            built.secret = true;
            built.secrets.push(Secret::new(plain(&text)));
        }
        if endpoint.safety == Safety::AtMostOnce && is_clue(field, &text) {
            built.clues.insert(field.name.to_owned(), plain(&text).into_owned());
        }
        match field.place {
            Place::Path => {
                let plain = plain(&text);
                if plain.is_empty() || plain == "." || plain == ".." {
                    return Err(Refusal::new(field.name, "is part of the path and must not be empty, `.` or `..`"));
                }
                if field.name == "session_id" {
                    built.session_id = Some(plain.to_string());
                }
                let encoded = encoded(&plain);
                built.target = built.target.replace(&format!("{{{}}}", field.name), &encoded);
            }
            Place::Query => {
                built.credentials |= field.name == "include_credentials" && text == "true";
                if Some(field.name) == page_size(endpoint) {
                    built.page_size = text.parse().ok();
                }
                push_query(&mut query, field.name, &plain(&text));
            }
            Place::WholeQuery => {
                for (name, value) in
                    members(&text).map_err(|_| Refusal::new(field.name, "must be a JSON object without repeated members"))?
                {
                    if value.starts_with(['{', '[', 'n']) {
                        return Err(Refusal::new(field.name, "must hold strings, numbers, `true` or `false`, since it is a query"));
                    }
                    push_query(&mut query, &name, &plain(value));
                }
            }
            Place::Header(name) => {
                let plain = plain(&text);
                if !plain.bytes().all(|byte| byte.is_ascii_graphic()) {
                    return Err(Refusal::new(field.name, "must be visible ASCII characters, since it is a header"));
                }
                built.headers.push((name.to_ascii_lowercase(), plain.into_owned()));
            }
            Place::Whole => {
                members(&text).map_err(|_| Refusal::new(field.name, "must be a JSON object without repeated members"))?;
                built.body = Some(text);
            }
            Place::Body => body.push(format!("\"{}\":{text}", field.name)),
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

/// Whether a parameter may help to find in a list what a request did: a short value that is no secret and not always the same.
fn is_clue(field: &Field, text: &str) -> bool {
    let open = matches!(field.shape, Shape::Secret | Shape::Json | Shape::Record(_) | Shape::List(_) | Shape::OneOrMany(_));
    !open && text.len() <= 256 && !field.rules.iter().any(|rule| matches!(rule, Rule::Always(_)))
}

/// Whether a text can be an `Idempotency-Key`.
pub(crate) fn is_key(key: &str) -> bool {
    (1..=64).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
}
fn not_too_long(params: &str) -> Result<(), Refusal> {
    if params.len() <= MAX_PARAMS { Ok(()) } else { Err(Refusal::new("parameters", "must be at most 64 KiB of JSON")) }
}

/// Whether a path stays below the base URL, whoever reads it: URL parsers take `%2e%2e` for `..`.
fn stays_below(path: &str) -> bool {
    let segment = |segment: &str| {
        let plain = percent_encoding::percent_decode_str(segment).decode_utf8_lossy();
        let visible = segment.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\\\"<>".contains(&byte));
        visible && !segment.is_empty() && plain != "." && plain != ".."
    };
    path.strip_prefix('/').is_some_and(|path| path.trim_end_matches('/').split('/').all(segment))
}

/// Whether a text can be the path and query of a request: one that stays below the base URL.
pub(crate) fn is_target(target: &str) -> bool {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    stays_below(path) && query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
}

/// Lays out a request that the table does not have: below the base URL, whatever its path says.
pub(crate) fn build_any(api: Api, params: &str) -> Result<(&'static Endpoint, Built), Refusal> {
    not_too_long(params)?;
    let request: AnyRequest = serde_json::from_str(params).map_err(|_| {
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
mod tests {
    use super::*;
    use crate::contract::{Record, endpoint};
    use crate::json::quoted;

    fn built(name: &str, params: &str) -> Result<Built, Refusal> {
        build(endpoint(name).expect(name), params)
    }

    fn refusal(name: &str, params: &str) -> (String, String) {
        let refusal = built(name, params).expect_err(params);
        (refusal.field, refusal.rule)
    }

    #[test]
    fn the_same_purchase_is_the_same_bytes_however_it_was_written() {
        let one = built("create_session", r#"{"product_no":"p-1","session_type":"dynamic","quantity":0.50}"#);
        let two = built("create_session", r#"{ "session_type" : "dyn\u0061mic", "quantity":"0.50","product_no":"p-1"}"#);
        assert_eq!(one, two);
        assert_eq!(one.as_ref().map(|b| b.body.as_deref()), Ok(Some(r#"{"session_type":"dynamic","product_no":"p-1","quantity":0.50}"#)));
    }

    #[test]
    fn a_path_parameter_stays_one_segment() {
        let target = |id: &str| built("get_session", &format!("{{\"session_id\":{}}}", quoted(id))).map(|built| built.target);
        assert_eq!(target("a/../b?c#d%2e").as_deref(), Ok("/sessions/a%2F..%2Fb%3Fc%23d%252e"));
        assert_eq!(target("s 1\u{e9}\n").as_deref(), Ok("/sessions/s%201%C3%A9%0A"));
        for bad in ["", ".", ".."] {
            assert!(target(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_query_holds_what_was_given_and_no_default() {
        assert_eq!(built("list_products", "{}").map(|b| b.target).as_deref(), Ok("/products"));
        let all = r#"{"type":"static","country":"a&b","in_stock":false,"limit":100,"cursor":"x="}"#;
        assert_eq!(
            built("list_products", all).map(|b| b.target).as_deref(),
            Ok("/products?type=static&country=a%26b&in_stock=false&limit=100&cursor=x%3D")
        );
    }

    #[test]
    fn a_refusal_names_the_field_and_the_rule() {
        let rule = |params| refusal("create_session", params);
        let pair = |field: &str, rule: &str| (field.to_owned(), rule.to_owned());
        assert_eq!(rule(r#"{"product_no":"p"}"#), pair("session_type", "is required"));
        assert_eq!(rule(r#"{"session_type":"rented","product_no":"p"}"#), pair("session_type", "must be one of dynamic, static"));
        assert_eq!(rule(r#"{"session_type":"static","product_no":""}"#), pair("product_no", "must not be empty"));
        assert_eq!(rule(r#"{"session_type":"static","product_no":null}"#), pair("product_no", "must not be null; leave it out instead"));
        assert_eq!(rule(r#"{"session_type":"static","product_no":"p","quantity":0}"#), pair("quantity", "must be above 0"));
        assert_eq!(
            rule(r#"{"session_type":"static","product_no":"p","quantity":1.5}"#),
            pair("quantity", "must be a whole number when `session_type` is `static`")
        );
        assert_eq!(rule(r#"{"session_type":"static","product_no":"p","duration":0}"#), pair("duration", "must be at least 1"));
        assert_eq!(rule(r#"{"session_type":"static","product_no":"p","colour":1}"#), pair("colour", "is not a field of `CreateSession`"));
        assert_eq!(rule("[]").0, "parameters");
        assert_eq!(rule(r#"{"product_no":"p","product_no":"q"}"#).0, "parameters");
        assert_eq!(refusal("list_products", r#"{"limit":101}"#), pair("limit", "must be 1 to 100"));
        assert_eq!(refusal("list_products", r#"{"limit":"5"}"#).0, "limit");
        assert_eq!(refusal("get_session", r#"{"session_id":"s","include_credentials":1}"#).0, "include_credentials");
    }

    #[test]
    fn null_is_sent_only_where_it_is_a_value_of_its_own() {
        let body = |params| built("update_budget", params).map(|built| built.body.unwrap_or_default());
        assert_eq!(body(r#"{"daily_limit_usd":null,"paused":false}"#).as_deref(), Ok(r#"{"daily_limit_usd":null,"paused":false}"#));
        assert_eq!(body("{}").as_deref(), Ok("{}"));
        assert_eq!(refusal("update_budget", r#"{"paused":null}"#).0, "paused");
        assert_eq!(refusal("update_budget", r#"{"key_limit_usd":-0.01}"#).1, "must be at least 0");
        let threshold = refusal("update_budget", r#"{"alert_thresholds":[50,101]}"#);
        assert_eq!(threshold, ("alert_thresholds[1]".to_owned(), "must be 1 to 100".to_owned()));
    }

    #[test]
    fn of_two_amounts_one_is_required() {
        assert_eq!(
            built("create_recharge", r#"{"amount_usd":10}"#).map(|b| b.body).as_ref().map(|b| b.as_deref()),
            Ok(Some(r#"{"amount_usd":10}"#))
        );
        assert!(built("create_recharge", r#"{"amount":"10.5","currency":"USDT"}"#).is_ok());
        assert_eq!(refusal("create_recharge", "{}"), ("amount".to_owned(), "is required unless `amount_usd` is given".to_owned()));
        assert_eq!(refusal("create_recharge", r#"{"amount":9.99,"amount_usd":10}"#).1, "must be at least 10");
    }

    #[test]
    fn an_event_is_an_object_of_the_callers_own() {
        let given = r#"{"event":{"status":403,"note":{"a":[1]}},"session_id":"s"}"#;
        assert_eq!(
            built("report_session_event", given).map(|b| b.body).ok().flatten().as_deref(),
            Some(r#"{"status":403,"note":{"a":[1]}}"#)
        );
        for odd in ["[]", "1", "null", r#"{"a":1,"a":2}"#] {
            assert_eq!(refusal("report_session_event", &format!("{{\"session_id\":\"s\",\"event\":{odd}}}")).0, "event");
        }
    }

    #[test]
    fn formats_are_checked_and_a_header_is_no_part_of_the_body() {
        let uuid = "123E4567-e89b-12d3-a456-426614174000";
        let asked = built("request_api_key", &format!(r#"{{"email":"a@b.example","client_installation_id":"{uuid}"}}"#)).expect("is sound");
        assert_eq!(asked.headers, [("x-client-installation-id".to_owned(), uuid.to_owned())]);
        assert!(asked.secret && asked.body.as_deref() == Some(r#"{"email":"a@b.example"}"#));
        for odd in ["", "a", "@b.example", "a@", "a b@c.example", "a@b@c", "a@b..c", "a\\nb@c.example"] {
            assert_eq!(refusal("request_api_key", &format!("{{\"email\":\"{odd}\"}}")).0, "email", "{odd}");
        }
        for odd in ["", "123", "123e4567e89b12d3a456426614174000", "g23e4567-e89b-12d3-a456-426614174000"] {
            let params = format!("{{\"email\":\"a@b.example\",\"client_installation_id\":\"{odd}\"}}");
            assert_eq!(refusal("request_api_key", &params).0, "client_installation_id", "{odd}");
        }
    }

    #[test]
    fn a_request_of_the_callers_own_stays_below_the_base_url() {
        let target =
            |path: &str| build_any(Api::Agent, &format!("{{\"method\":\"GET\",\"path\":{}}}", quoted(path))).map(|(_, built)| built.target);
        assert_eq!(target("/billing/invoices/a%2Fb").as_deref(), Ok("/billing/invoices/a%2Fb"));
        for odd in ["", "x", "//host/x", "/a/../b", "/a/%2e%2E/b", "/a?b", "/a#b", "/a b", "/\u{e9}", "/a\\b", "https://host/x", "/a//b"] {
            assert_eq!(target(odd).map_err(|refusal| refusal.field), Err("path".to_owned()), "{odd}");
        }
        let (endpoint, built) =
            build_any(Api::Agent, r#"{"method":"POST","path":"/x","query":{"a b":"c&d"},"body":[1.10],"safety":"keyed"}"#)
                .expect("is sound");
        assert_eq!((endpoint.safety, built.target.as_str()), (Safety::Keyed, "/x?a%20b=c%26d"));
        assert_eq!(built.body.as_deref(), Some("[1.10]"));
        assert_eq!(build_any(Api::Agent, r#"{"method":"DELETE","path":"/x"}"#).expect("is sound").0.safety, Safety::AtMostOnce);
        assert!(build_any(Api::Agent, r#"{"method":"TRACE","path":"/x"}"#).is_err() && build_any(Api::Agent, "{}").is_err());
    }

    #[test]
    fn a_parameter_in_a_header_belongs_to_no_request_that_is_restored() {
        for endpoint in crate::contract::endpoints() {
            let header = endpoint.request.fields.iter().any(|field| matches!(field.place, Place::Header(_)));
            let restored = !endpoint.request.fields.iter().any(|field| holds_secret(field.shape));
            assert!(!(header && restored), "{}: a record holds no such headers", endpoint.name);
        }
    }

    #[test]
    fn parameters_that_no_record_could_hold_are_refused() {
        let params = |length: usize| format!(r#"{{"session_type":"dynamic","product_no":"{}"}}"#, "p".repeat(length));
        assert!(built("create_session", &params(MAX_PARAMS - 100)).is_ok());
        assert_eq!(refusal("create_session", &params(MAX_PARAMS)).0, "parameters");
        let request = format!(r#"{{"method":"POST","path":"/x","safety":"keyed","body":"{}"}}"#, "x".repeat(MAX_PARAMS));
        assert_eq!(build_any(Api::Agent, &request).map(|_| ()).map_err(|refusal| refusal.field), Err("parameters".to_owned()));
    }

    #[test]
    fn an_idempotency_key_is_1_to_64_visible_characters() {
        assert!(is_key("a") && is_key(&"k".repeat(64)));
        assert!(!is_key("") && !is_key(&"k".repeat(65)) && !is_key("a b") && !is_key("a\n") && !is_key("é"));
    }

    #[test]
    fn what_was_built_is_printed_without_its_query() {
        let built = built("list_products", r#"{"country":"US"}"#).map(|built| format!("{built:?}"));
        assert_eq!(built.as_deref(), Ok("/products"));
    }

    #[test]
    fn a_page_has_a_size_just_where_pages_have_numbers() {
        const SIZE: Field = Field {
            name: "page_size",
            aliases: &[],
            doc: "",
            shape: Shape::Integer,
            required: false,
            nullable: false,
            place: Place::Query,
            rules: &[],
        };
        const BOTH: &Record = &Record::new("Both", "", &[Field { name: "page", ..SIZE }, SIZE]);
        const ALONE: &Record = &Record::new("Alone", "", &[SIZE]);
        let size = |request| page_size(&Endpoint { request, ..*endpoint("list_consumption").expect("list_consumption") });
        assert_eq!(size(BOTH), Some("page_size"));
        assert_eq!(size(ALONE), None);
    }
}
