//! The schemas of an OpenAPI document: of what is asked, of what is answered, of a failure.

use hopline::contract::{Field, Record, Rule, Shape, Words};
use hopline::policy::CODES;
use serde_json::{Map, Value, json};

use crate::model::{Type, lines, types};

/// The members of answers that the contract says may be null.
pub(super) const NULL: &[(&str, &str)] = &[("ProductList", "next_cursor")];

/// The lists of words that the contract leaves open.
pub(super) const OPEN: &[&str] = &["SessionStatus"];

/// The schema of a request's field, with its rules.
pub(super) fn asked(field: &Field) -> Value {
    let mut schema = shape(field.shape);
    for rule in field.rules {
        let bounded = if matches!(field.shape, Shape::List(_)) { &mut schema["items"] } else { &mut schema };
        match rule {
            Rule::Positive => bounded["exclusiveMinimum"] = 0.into(),
            Rule::AtLeast(least) => bounded["minimum"] = (*least).into(),
            Rule::Between(least, most) => (bounded["minimum"], bounded["maximum"]) = ((*least).into(), (*most).into()),
            Rule::Email => bounded["format"] = "email".into(),
            Rule::Uuid => bounded["format"] = "uuid".into(),
            Rule::WholeWhen(..) | Rule::Unless(_) => {}
        }
    }
    or_null(schema, field.nullable)
}

fn or_null(mut schema: Value, is_nullable: bool) -> Value {
    if is_nullable {
        schema["type"] = json!([schema["type"], "null"]);
    }
    schema
}

/// The schema of a shape.
pub(super) fn shape(shape: Shape) -> Value {
    match shape {
        Shape::Text => json!({ "type": "string" }),
        Shape::Secret => json!({ "type": "string", "format": "password" }),
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::Integer => json!({ "type": "integer" }),
        Shape::Decimal => json!({ "type": "number" }),
        // What `data` and an event are, whatever is in them.
        Shape::Json => json!({ "type": "object" }),
        Shape::Word(words) => reference(words.name),
        Shape::Record(record) => reference(record.name),
        Shape::List(item) => json!({ "type": "array", "items": self::shape(*item) }),
    }
}

/// A reference to a schema of the document.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The types of the answers and of the words, and the failure.
pub(super) fn schemas() -> Map<String, Value> {
    let printed = types().into_iter().map(|found| {
        let schema = match found {
            Type::Record(record) => answered(record),
            Type::Words(words) => words_of(words),
        };
        (found.name().to_owned(), schema)
    });
    printed.chain(failure()).collect()
}

fn answered(record: &Record) -> Value {
    let members: Vec<&Field> = record.fields.iter().collect();
    object(record.doc, &members, |field| or_null(shape(field.shape), NULL.contains(&(record.name, field.name))))
}

fn words_of(words: &Words) -> Value {
    let known: Vec<&str> = words.words.iter().map(|word| word.word).collect();
    let limit = if OPEN.contains(&words.name) { "examples" } else { "enum" };
    json!({ "type": "string", "description": text(words.doc), limit: known })
}

/// An object of such members. Others are not forbidden.
pub(super) fn object(doc: &str, members: &[&Field], schema: impl Fn(&Field) -> Value) -> Value {
    let described = |field: &Field| {
        let mut schema = schema(field);
        schema["description"] = text(field.doc).into();
        schema
    };
    let properties: Map<String, Value> = members.iter().map(|field| (field.name.to_owned(), described(field))).collect();
    let required: Vec<&str> = members.iter().filter(|field| field.required).map(|field| field.name).collect();
    json!({ "type": "object", "description": text(doc), "properties": properties, "required": required })
}

fn failure() -> [(String, Value); 1] {
    let codes: Vec<&str> = CODES.iter().map(|row| row.code).collect();
    let error = json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": { "code": { "enum": codes }, "message": { "type": "string" }, "details": { "type": "object" } },
    });
    let meta = json!({
        "type": "object",
        "required": ["request_id", "timestamp"],
        "properties": {
            "request_id": { "type": "string" },
            "timestamp": { "type": "string", "format": "date-time" },
            "latency_ms": { "type": "integer" },
        },
    });
    let failure = json!({
        "type": "object",
        "required": ["success", "data", "error", "meta"],
        "properties": { "success": { "const": false }, "data": { "type": "null" }, "error": error, "meta": meta },
    });
    [("Failure".to_owned(), failure)]
}

/// A documentation text without the space that follows `///`.
pub(super) fn text(doc: &str) -> String {
    lines(doc).collect::<Vec<_>>().join("\n").trim().to_owned()
}
