//! The way to a request that the table does not have: the contracts leave some out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Api, Auth, Endpoint, Json, Method, Record, Safety, Shape};

/// A request of the caller's own, below the base URL and with the client's key. Only the caller knows what may be done after
/// a failure, so `safety` says it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnyRequest {
    /// The HTTP method.
    pub method: Method,
    /// The path below the base URL, percent-encoded, such as `/billing/invoices`.
    pub path: String,
    /// The parameters of the query; they are percent-encoded here.
    #[serde(default)]
    pub query: BTreeMap<String, String>,
    /// The JSON body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Json>,
    /// What may be done after a failure whose effect is unknown; for a GET `safe`, else `at_most_once`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety: Option<Safety>,
}

impl AnyRequest {
    /// A request without query and body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        AnyRequest { method, path: path.into(), query: BTreeMap::new(), body: None, safety: None }
    }

    pub(crate) fn endpoint(&self) -> &'static Endpoint {
        let default = if self.method == Method::Get { Safety::Safe } else { Safety::AtMostOnce };
        any(self.method, self.safety.unwrap_or(default))
    }
}

/// The name of every such operation.
pub(crate) const ANY: &str = "request";

const NOTHING: &Record = &Record { name: "AnyRequest", doc: "", fields: &[] };

const fn entry(method: Method, safety: Safety) -> Endpoint {
    Endpoint {
        api: Api::Agent,
        name: ANY,
        doc: "A request of the caller's own.",
        method,
        path: "/",
        auth: Auth::Key,
        safety,
        // NOT SHOWN: what it costs.
        paid: false,
        request: NOTHING,
        response: Shape::Json,
    }
}

const fn row(method: Method) -> [Endpoint; 5] {
    [
        entry(method, Safety::Safe),
        entry(method, Safety::Idempotent),
        entry(method, Safety::TwiceAtMost),
        entry(method, Safety::Keyed),
        entry(method, Safety::AtMostOnce),
    ]
}

static ENTRIES: [[Endpoint; 5]; 5] = [row(Method::Get), row(Method::Post), row(Method::Put), row(Method::Patch), row(Method::Delete)];

/// The entry of a method and a safety.
pub(crate) fn any(method: Method, safety: Safety) -> &'static Endpoint {
    // Every pair is there, as a test says; the other is never needed.
    static OTHER: Endpoint = entry(Method::Post, Safety::AtMostOnce);
    ENTRIES.iter().flatten().find(|entry| entry.method == method && entry.safety == safety).unwrap_or(&OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_comes_with_every_safety() {
        for method in [Method::Get, Method::Post, Method::Put, Method::Patch, Method::Delete] {
            for safety in [Safety::Safe, Safety::Idempotent, Safety::TwiceAtMost, Safety::Keyed, Safety::AtMostOnce] {
                let found = any(method, safety);
                assert_eq!((found.method, found.safety), (method, safety));
            }
        }
    }
}
