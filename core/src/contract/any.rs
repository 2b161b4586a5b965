//! Requests that the table does not have: the contracts leave some out.

use std::collections::BTreeMap;

use crate::json::{FromJson, FromJsonError, Object};

use super::{Api, Auth, Endpoint, Json, Method, Record, Safety, Shape};

/// A request of the caller's own, below the base URL and with the client's key. Only the caller knows what may be done after a failure, so
/// `safety` states it.
#[derive(Debug, Clone, PartialEq)]
pub struct AnyRequest {
    /// The HTTP method.
    pub method: Method,
    /// The path below the base URL, percent-encoded, such as `/billing/invoices`.
    pub path: String,
    /// The parameters of the query; they are percent-encoded here.
    pub query: BTreeMap<String, String>,
    /// The JSON body.
    pub body: Option<Json>,
    /// The repeats that are allowed after a failure whose effect is unknown; the default for a GET is `safe`, else `at_most_once`.
    pub safety: Option<Safety>,
}

written!(AnyRequest { method, path, query, body, safety });

impl FromJson for AnyRequest {
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        let object = Object::of(json)?;
        object.only(&["method", "path", "query", "body", "safety"])?;
        let mut request = AnyRequest::new(Method::Get, "");
        object.need(&mut [("method", &mut request.method), ("path", &mut request.path)])?;
        object.read(&mut [("query", &mut request.query), ("body", &mut request.body), ("safety", &mut request.safety)])?;
        Ok(request)
    }
}

impl AnyRequest {
    /// A request without query and body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        AnyRequest { method, path: path.into(), query: BTreeMap::new(), body: None, safety: None }
    }

    pub(crate) fn endpoint(&self, api: Api) -> &'static Endpoint {
        let default = if self.method == Method::Get { Safety::Safe } else { Safety::AtMostOnce };
        any(api, self.method, self.safety.unwrap_or(default))
    }
}

/// The name of every such operation.
pub(crate) const ANY: &str = "request";

const NOTHING: &Record = &Record::new("AnyRequest", "", &[]);

const fn entry(api: Api, method: Method, safety: Safety) -> Endpoint {
    Endpoint {
        api,
        name: ANY,
        doc: "A request of the caller's own.",
        method,
        path: "/",
        auth: match api {
            Api::Agent => Auth::Key,
            Api::Reseller => Auth::Bearer,
        },
        safety,
        // NOT DOCUMENTED: the cost.
        paid: false,
        request: NOTHING,
        response: Shape::Json,
    }
}

const fn row(api: Api, method: Method) -> [Endpoint; 5] {
    [
        entry(api, method, Safety::Safe),
        entry(api, method, Safety::Idempotent),
        entry(api, method, Safety::TwiceAtMost),
        entry(api, method, Safety::Keyed),
        entry(api, method, Safety::AtMostOnce),
    ]
}

const fn rows(api: Api) -> [[Endpoint; 5]; 5] {
    [row(api, Method::Get), row(api, Method::Post), row(api, Method::Put), row(api, Method::Patch), row(api, Method::Delete)]
}

static ENTRIES: [[[Endpoint; 5]; 5]; 2] = [rows(Api::Agent), rows(Api::Reseller)];

/// The entry of a method and a safety.
pub(crate) fn any(api: Api, method: Method, safety: Safety) -> &'static Endpoint {
    // Every combination is there, as a test checks; the other entry is never used.
    static OTHER: Endpoint = entry(Api::Agent, Method::Post, Safety::AtMostOnce);
    let mut entries = ENTRIES.iter().flatten().flatten();
    entries.find(|entry| entry.api == api && entry.method == method && entry.safety == safety).unwrap_or(&OTHER)
}

#[cfg(test)]
mod tests {
    use super::super::json_of;
    use super::*;
    use crate::json::read_json;

    #[test]
    fn every_method_comes_with_every_safety_in_both_apis() {
        for (api, method) in [Api::Agent, Api::Reseller]
            .into_iter()
            .flat_map(|api| [Method::Get, Method::Post, Method::Put, Method::Patch, Method::Delete].map(|method| (api, method)))
        {
            for safety in [Safety::Safe, Safety::Idempotent, Safety::TwiceAtMost, Safety::Keyed, Safety::AtMostOnce] {
                let found = any(api, method, safety);
                assert_eq!((found.api, found.method, found.safety), (api, method, safety));
            }
        }
    }

    #[test]
    fn a_request_is_read_as_it_is_written() {
        for method in [Method::Get, Method::Post, Method::Put, Method::Patch, Method::Delete] {
            for safety in [Safety::Safe, Safety::Idempotent, Safety::TwiceAtMost, Safety::Keyed, Safety::AtMostOnce] {
                let query = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
                let request =
                    AnyRequest { query, body: Some(Json::checked("[1.0]")), safety: Some(safety), ..AnyRequest::new(method, "/x") };
                let written = json_of(&request);
                assert_eq!(read_json(&written), Ok(request), "{written}");
            }
        }
    }
}
