//! Prints the table as an OpenAPI 3.1 document. Undocumented parts stay open.

mod schema;

use std::collections::BTreeMap;

use hopline::contract::{Api, Auth, Endpoint, Field, FieldPlace, FieldRule, Record, Safety, Shape, endpoints};
use hopline::policy::CODES;
use serde_json::{Map, Value, json};

use crate::model::client;
use schema::{asked, object, reference, schemas, shape, text};

/// The operations that succeed with another status than 200.
const SUCCESS: &[(&str, u16)] = &[("create_session", 202), ("register_account", 201), ("create_recharge", 201)];

/// The statuses of failure that the contract states of an operation; others are possible everywhere.
const FAILURES: &[(&str, &[u16])] = &[
    ("list_public_products", &[400]),
    ("get_account", &[401]),
    ("get_budget", &[401]),
    ("update_budget", &[400, 401, 409, 429]),
    ("list_products", &[400, 401, 429]),
    ("create_session", &[402, 409, 422, 429]),
    ("get_session", &[401, 404]),
    ("terminate_session", &[401, 404]),
    ("rotate_session", &[401, 404, 409, 429]),
    ("get_balance", &[401]),
    ("create_recharge", &[409, 429]),
    ("list_transactions", &[401]),
];

/// An operation that follows from an answer beside its ids.
struct Link {
    from: &'static str,
    to: &'static str,
    /// Members of the next body, each with where it stands in `data`.
    body: &'static [(&'static str, &'static str)],
}

const LINKS: &[Link] = &[Link {
    from: "list_products",
    to: "create_session",
    body: &[("product_no", "items/0/product_no"), ("session_type", "items/0/type")],
}];

/// The files to write, each with its name and its text.
pub fn files() -> Vec<(String, String)> {
    let file = |api: Api, base_url| (format!("{}.openapi.json", client(api).to_lowercase()), format!("{:#}\n", document(api, base_url)));
    vec![file(Api::Agent, "https://api.example/v1"), file(Api::Reseller, "https://api.example/api")]
}

/// The document of an API at a base URL.
pub fn document(api: Api, base_url: &str) -> Value {
    let title = match api {
        Api::Agent => "Agent Proxy Session API",
        Api::Reseller => "Reseller Backend API",
    };
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for endpoint in endpoints().filter(|endpoint| endpoint.api == api) {
        let method = endpoint.method.as_str().to_ascii_lowercase();
        paths.entry(endpoint.path).or_default().insert(method, operation(endpoint));
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": title, "version": "1.0.0" },
        "servers": [{ "url": base_url }],
        "paths": paths,
        "components": {
            "schemas": schemas(api),
            "securitySchemes": match api {
                Api::Agent => json!({ "key": { "type": "apiKey", "in": "header", "name": "X-API-Key" } }),
                Api::Reseller => json!({ "token": { "type": "http", "scheme": "bearer" } }),
            },
        },
    })
}

fn operation(endpoint: &Endpoint) -> Value {
    let mut out = json!({
        "operationId": endpoint.name,
        "description": text(endpoint.doc),
        "parameters": parameters(endpoint),
        "responses": responses(endpoint),
        "security": match endpoint.auth {
            Auth::Public => json!([]),
            Auth::Key => json!([{ "key": [] }]),
            Auth::Bearer => json!([{ "token": [] }]),
        },
    });
    if let Some(body) = body(endpoint.request) {
        out["requestBody"] = body;
    }
    out
}

fn parameters(endpoint: &Endpoint) -> Vec<Value> {
    let mut found: Vec<Value> = endpoint.request.fields.iter().filter_map(parameter).collect();
    if endpoint.safety == Safety::Keyed {
        found.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "description": "The same key with the same request is answered once and for all.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[!-~]+$" },
        }));
    }
    found
}

fn parameter(field: &Field) -> Option<Value> {
    if field.place == FieldPlace::WholeQuery {
        let schema = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        return Some(json!({ "name": field.name, "in": "query", "description": text(field.doc), "explode": true, "schema": schema }));
    }
    let (place, name) = match field.place {
        FieldPlace::Path => ("path", field.name),
        FieldPlace::Query => ("query", field.name),
        FieldPlace::Header(name) => ("header", name),
        FieldPlace::Body | FieldPlace::Whole | FieldPlace::WholeQuery => return None,
    };
    let mut schema = asked(field);
    if place == "path" {
        schema["minLength"] = 1.into();
    }
    Some(json!({ "name": name, "in": place, "required": field.required, "description": text(field.doc), "schema": schema }))
}

/// The JSON body, where the request has one. The body is required if one of its members is.
fn body(record: &Record) -> Option<Value> {
    if let Some(field) = record.fields.iter().find(|field| field.place == FieldPlace::Whole) {
        let schema = json!({ "type": "object", "description": text(field.doc) });
        return Some(json!({ "required": field.required, "content": { "application/json": { "schema": schema } } }));
    }
    let members: Vec<&Field> = record.fields.iter().filter(|field| field.place == FieldPlace::Body).collect();
    if members.is_empty() {
        return None;
    }
    let mut schema = object(record.doc, &members, asked);
    let mut conditions = Vec::new();
    for field in &members {
        for rule in field.rules {
            match rule {
                FieldRule::Unless(other) => conditions.push(json!({ "anyOf": [{ "required": [field.name] }, { "required": [other] }] })),
                FieldRule::WholeWhen(other, word) => conditions.push(json!({
                    "if": { "properties": { *other: { "const": word } }, "required": [other] },
                    "then": { "properties": { field.name: { "multipleOf": 1 } } },
                })),
                _ => {}
            }
        }
    }
    let needed = members.iter().any(|field| field.required || field.rules.iter().any(|rule| matches!(rule, FieldRule::Unless(_))));
    if !conditions.is_empty() {
        schema["allOf"] = conditions.into();
    }
    Some(json!({ "required": needed, "content": { "application/json": { "schema": schema } } }))
}

fn responses(endpoint: &Endpoint) -> Value {
    let status = SUCCESS.iter().find(|(name, _)| *name == endpoint.name).map_or(200, |(_, status)| *status);
    let (flag, success) = match endpoint.api {
        Api::Agent => ("success", json!({ "const": true })),
        Api::Reseller => ("code", json!({ "enum": [0, "0"] })),
    };
    let success = json!({
        "type": "object",
        "required": [flag, "data"],
        "properties": { flag: success, "data": shape(endpoint.response) },
    });
    let mut out = Map::new();
    let mut succeeded = response("Success.", success);
    succeeded["links"] = links(endpoint).into();
    out.insert(status.to_string(), succeeded);
    let stated = FAILURES.iter().find(|(name, _)| *name == endpoint.name);
    for status in stated.map_or(&[][..], |(_, statuses)| statuses) {
        let codes: Vec<&str> = CODES.iter().filter(|row| row.status == *status).map(|row| row.code).collect();
        out.insert(status.to_string(), refused(&codes));
    }
    out.insert("default".to_owned(), response("Any other failure.", reference("Failure")));
    out.into()
}

/// The operations that an answer leads to: those whose path takes an id that it made, and those of the list.
fn links(endpoint: &Endpoint) -> Map<String, Value> {
    let expression = |member: &str| Value::from(format!("$response.body#/data/{member}"));
    let mut out = Map::new();
    let made = |field: &Field| match endpoint.response {
        Shape::Record(answer) => answer.field(field.name).is_some() && endpoint.request.field(field.name).is_none(),
        _ => false,
    };
    for next in endpoints().filter(|next| next.api == endpoint.api) {
        let ids = next.request.fields.iter().filter(|field| field.place == FieldPlace::Path && made(field));
        let ids: Map<String, Value> = ids.map(|field| (field.name.to_owned(), expression(field.name))).collect();
        if !ids.is_empty() {
            out.insert(next.name.to_owned(), json!({ "operationId": next.name, "parameters": ids }));
        }
    }
    for link in LINKS.iter().filter(|link| link.from == endpoint.name) {
        let body: Map<String, Value> = link.body.iter().map(|(name, place)| ((*name).to_owned(), expression(place))).collect();
        out.insert(link.to.to_owned(), json!({ "operationId": link.to, "requestBody": body }));
    }
    out
}

/// A failure of a status, which is determined by the code. A status that no code has may come with any.
fn refused(codes: &[&str]) -> Value {
    if codes.is_empty() {
        return response("The request is valid and can't be fulfilled.", reference("Failure"));
    }
    let narrowed = json!({ "properties": { "error": { "properties": { "code": { "enum": codes } } } } });
    response(&format!("One of: {}.", codes.join(", ")), json!({ "allOf": [reference("Failure"), narrowed] }))
}

fn response(description: &str, schema: Value) -> Value {
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

#[cfg(test)]
mod tests {
    use super::schema::{NULL, OPEN};
    use super::*;

    fn printed() -> Value {
        document(Api::Agent, "http://127.0.0.1:1/v1")
    }

    #[test]
    fn every_operation_has_its_path_and_method() {
        let both = [Api::Agent, Api::Reseller].map(|api| (api, document(api, "http://127.0.0.1:1/v1")));
        for endpoint in endpoints() {
            let Some((_, document)) = both.iter().find(|(api, _)| *api == endpoint.api) else { panic!("{}", endpoint.name) };
            let printed = &document["paths"][endpoint.path][endpoint.method.as_str().to_ascii_lowercase()];
            assert_eq!(printed["operationId"], endpoint.name);
            assert_eq!(printed["security"].as_array().map(Vec::len), Some(usize::from(endpoint.auth != Auth::Public)));
        }
        assert_eq!(printed()["servers"][0]["url"], "http://127.0.0.1:1/v1");
    }

    #[test]
    fn the_lists_name_operations_and_types_of_the_table() {
        let agent = printed();
        for name in SUCCESS.iter().map(|(name, _)| name).chain(FAILURES.iter().map(|(name, _)| name)) {
            assert!(endpoints().any(|endpoint| endpoint.name == *name), "{name}");
        }
        for (name, member) in NULL {
            assert!(agent["components"]["schemas"][name]["properties"][member].is_object(), "{name}.{member}");
        }
        let reseller = document(Api::Reseller, "http://127.0.0.1:1/api");
        for name in OPEN {
            let listed = |document: &Value| document["components"]["schemas"][name]["examples"].is_array();
            assert!(listed(&agent) || listed(&reseller), "{name}");
        }
    }

    #[test]
    fn rules_are_bounds_formats_and_conditions() {
        let document = printed();
        let body = |path: &str, method: &str| {
            let operation = &document["paths"][path][method];
            (operation["requestBody"]["required"].clone(), operation["requestBody"]["content"]["application/json"]["schema"].clone())
        };
        let (needed, session) = body("/sessions", "post");
        assert_eq!((needed, &session["required"]), (true.into(), &json!(["session_type", "product_no"])));
        assert_eq!(session["properties"]["quantity"]["exclusiveMinimum"], 0);
        assert_eq!(session["allOf"][0]["then"]["properties"]["quantity"]["multipleOf"], 1);
        let (needed, budget) = body("/account/budget", "put");
        assert_eq!((needed, &budget["properties"]["key_limit_usd"]["type"]), (false.into(), &json!(["number", "null"])));
        assert_eq!(budget["properties"]["alert_thresholds"]["items"], json!({"type": "integer", "minimum": 1, "maximum": 100}));
        let (needed, recharge) = body("/billing/recharge", "post");
        assert_eq!((needed, &recharge["properties"]["amount"]["minimum"]), (true.into(), &json!(10)));
        assert_eq!(recharge["allOf"][0]["anyOf"], json!([{"required": ["amount"]}, {"required": ["amount_usd"]}]));
        let (_, request) = body("/account/request-api-key", "post");
        assert_eq!(request["properties"]["email"]["format"], "email");
        let header = &document["paths"]["/account/request-api-key"]["post"]["parameters"][0];
        assert_eq!((&header["in"], &header["schema"]["format"]), (&json!("header"), &json!("uuid")));
    }

    #[test]
    fn an_accepted_session_leads_to_what_can_be_done_with_it() {
        let document = printed();
        let links = |path: &str, method: &str, status: &str| document["paths"][path][method]["responses"][status]["links"].clone();
        let names: Vec<String> =
            links("/sessions", "post", "202").as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let expected =
            ["get_session", "get_session_health", "renew_session", "report_session_event", "rotate_session", "terminate_session"];
        assert_eq!(names, expected);
        assert_eq!(links("/sessions/{session_id}", "get", "200"), json!({}));
        assert_eq!(links("/products", "get", "200")["create_session"]["requestBody"]["session_type"], "$response.body#/data/items/0/type");
        for link in LINKS {
            assert!([link.from, link.to].into_iter().all(|name| endpoints().any(|endpoint| endpoint.name == name)));
        }
    }

    #[test]
    fn a_status_of_failure_takes_the_codes_that_have_it() {
        let document = printed();
        let responses = &document["paths"]["/sessions"]["post"]["responses"];
        let codes = |status: &str| {
            responses[status]["content"]["application/json"]["schema"]["allOf"][1]["properties"]["error"]["properties"]["code"]["enum"]
                .clone()
        };
        assert_eq!(codes("402"), json!(["INSUFFICIENT_BALANCE", "BUDGET_EXCEEDED"]));
        assert_eq!(responses["422"]["content"]["application/json"]["schema"], reference("Failure"));
        assert!(responses["202"].is_object() && responses["default"].is_object() && responses["200"].is_null());
    }
}
