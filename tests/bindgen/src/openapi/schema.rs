//! The schemas of an OpenAPI document: of what is asked, of what is answered, of a failure.

use hopline::contract::{Api, Field, FieldRule, Record, Shape, Words};
use hopline::policy::CODES;
use serde_json::{Map, Value, json};

use crate::model::{Type, lines, types_of};

/// The members of answers that the contract says may be null.
pub(super) const NULL: &[(&str, &str)] = &[("ProductList", "next_cursor")];

/// The lists of words that the contract leaves open.
pub(super) const OPEN: &[&str] = &["SessionStatus", "StaticOrderStatus"];

/// The schema of a request's field, with its rules.
pub(super) fn asked(field: &Field) -> Value {
    let mut schema = shape(field.shape);
    for rule in field.rules {
        let bounded = if matches!(field.shape, Shape::List(_)) { &mut schema["items"] } else { &mut schema };
        match rule {
            FieldRule::Positive => bounded["exclusiveMinimum"] = 0.into(),
            FieldRule::AtLeast(least) => bounded["minimum"] = (*least).into(),
            FieldRule::Between(least, most) => (bounded["minimum"], bounded["maximum"]) = ((*least).into(), (*most).into()),
            FieldRule::Email => bounded["format"] = "email".into(),
            FieldRule::Uuid => bounded["format"] = "uuid".into(),
            FieldRule::Length(least, most) => (bounded["minLength"], bounded["maxLength"]) = ((*least).into(), (*most).into()),
            FieldRule::Name => bounded["pattern"] = "^[A-Za-z0-9_-]*$".into(),
            FieldRule::Phone => bounded["pattern"] = "^[0-9]{11}$".into(),
            FieldRule::Date => bounded["format"] = "date".into(),
            FieldRule::Country => bounded["pattern"] = "^[A-Za-z]{2}$".into(),
            FieldRule::Always(word) => schema = json!({ "const": word }),
            FieldRule::AnyNumber => schema = json!({ "type": "number" }),
            FieldRule::WholeWhen(..) | FieldRule::Unless(_) => {}
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
        Shape::Integer | Shape::Time | Shape::Span => json!({ "type": "integer" }),
        Shape::Decimal => json!({ "type": "number" }),
        // The type of `data` and of an event, with any content.
        Shape::Json | Shape::Error => json!({ "type": "object" }),
        Shape::Word(words) => reference(words.name),
        Shape::Record(record) => reference(record.name),
        Shape::Label => json!({ "type": ["string", "number"] }),
        Shape::List(item) => json!({ "type": "array", "items": self::shape(*item) }),
        Shape::OneOrMany(item) => {
            let item = self::shape(*item);
            json!({ "anyOf": [item, { "type": "array", "items": item }] })
        }
    }
}

/// A reference to a schema of the document.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The types of the answers and of the words, and the failure.
pub(super) fn schemas(api: Api) -> Map<String, Value> {
    let printed = types_of(api).into_iter().map(|found| {
        let schema = match found {
            Type::Record(record) => answered(record),
            Type::Words(words) => words_of(words),
        };
        (found.name().to_owned(), schema)
    });
    printed.chain([("Failure".to_owned(), failure(api))]).collect()
}

fn answered(record: &Record) -> Value {
    let members: Vec<&Field> = record.fields.iter().collect();
    object(record.doc, &members, |field| or_null(shape(field.shape), NULL.contains(&(record.name, field.name))))
}

fn words_of(words: &Words) -> Value {
    let numbers: Vec<i64> = words.words.iter().filter_map(|word| word.number).collect();
    if !numbers.is_empty() {
        return json!({ "type": "integer", "description": text(words.doc), "enum": numbers });
    }
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
    let needed = |field: &Field| field.required || field.rules.iter().any(|rule| matches!(rule, FieldRule::Always(_)));
    let required: Vec<&str> = members.iter().filter(|field| needed(field)).map(|field| field.name).collect();
    json!({ "type": "object", "description": text(doc), "properties": properties, "required": required })
}

fn failure(api: Api) -> Value {
    if api == Api::Reseller {
        // Its codes are not documented: a number or a word, but never 0.
        let code = json!({ "type": ["integer", "string"], "not": { "enum": [0, "0"] } });
        return json!({ "type": "object", "required": ["code"], "properties": { "code": code } });
    }
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
    json!({
        "type": "object",
        "required": ["success", "data", "error", "meta"],
        "properties": { "success": { "const": false }, "data": { "type": "null" }, "error": error, "meta": meta },
    })
}

/// A documentation text without the space that follows `///`.
pub(super) fn text(doc: &str) -> String {
    lines(doc).collect::<Vec<_>>().join("\n").trim().to_owned()
}
