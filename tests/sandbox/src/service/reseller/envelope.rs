//! The backend's envelope, and the spellings that the contract leaves open.

use std::collections::BTreeMap;

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::service::envelope::{Answer, Refusal, Reply, raw};

/// The spelling that the backend uses, of those in the contract. A client has to read them all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spelling {
    /// The name of the message.
    pub message: Message,
    /// How a numeric code is written.
    pub code: Code,
    /// The name of a list's members.
    pub list: List,
    /// How a product says that it is shared.
    pub product_type: ProductType,
    /// The HTTP status of a refusal.
    pub refusal_status: RefusalStatus,
}

/// The name of the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// `message`.
    #[default]
    Message,
    /// `msg`.
    Msg,
}

/// How a numeric code is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// As a number.
    #[default]
    Number,
    /// As text.
    Text,
}

/// The name of a list's members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum List {
    /// Twice the same: `items` and `list`.
    #[default]
    Both,
    /// `items` alone.
    Items,
    /// `list` alone.
    List,
}

/// How a product says that it is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProductType {
    /// 1 or 2.
    #[default]
    Number,
    /// `exclusive` or `shared`.
    Word,
}

/// The HTTP status of a refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalStatus {
    /// Its own.
    #[default]
    Own,
    /// 200 for all.
    Ok,
}

impl Spelling {
    /// A list with the counts that stand beside it.
    pub(super) fn listed(&self, items: &impl Serialize, counts: &[(&'static str, i64)]) -> Reply {
        let names: &[&str] = match self.list {
            List::Both => &["items", "list"],
            List::Items => &["items"],
            List::List => &["list"],
        };
        let items = raw(items);
        let mut data: BTreeMap<&str, Box<RawValue>> = counts.iter().map(|(name, count)| (*name, raw(count))).collect();
        data.extend(names.iter().map(|name| (*name, items.clone())));
        Reply::new(200, &data)
    }

    /// Puts a result into the envelope.
    pub(super) fn seal(&self, result: Result<Reply, Refusal>) -> Answer {
        match result {
            Ok(Reply { data, .. }) => Answer::new(200, None, &self.envelope("0", "ok", Some(data))),
            Err(Refusal { code, status, message, details, retry_after }) => {
                // Beside `data`, which would say that something was done: the contract shows it for one code only.
                let name = if code == REGION { "data" } else { "details" };
                let details = (!details.is_empty()).then(|| (name, raw(&details)));
                let status = if self.refusal_status == RefusalStatus::Ok { 200 } else { status };
                let mut envelope = self.envelope(&code, &message, None);
                envelope.extend(details);
                Answer::new(status, retry_after, &envelope)
            }
        }
    }

    fn envelope<'a>(&self, code: &'a str, message: &'a str, data: Option<Box<RawValue>>) -> BTreeMap<&'static str, Box<RawValue>> {
        let number = code.parse::<i64>().ok().filter(|_| self.code == Code::Number);
        let code = number.map_or_else(|| raw(&code), |number| raw(&number));
        let name = match self.message {
            Message::Message => "message",
            Message::Msg => "msg",
        };
        BTreeMap::from([("code", code), (name, raw(&message)), ("data", raw(&data))])
    }
}

/// The only code that the contract names.
pub(super) const REGION: &str = "location_not_supported_for_product";

/// A refusal whose code is the HTTP status, since the contract names but one code.
pub(super) fn refused(status: u16, message: impl Into<String>) -> Refusal {
    Refusal::other(status.to_string(), status, message)
}

pub(super) fn forbidden(message: &str) -> Refusal {
    refused(403, message)
}

pub(super) fn not_found(method: &Method, path: &str) -> Refusal {
    refused(404, "the method and path are not a route of the backend").detail("method", method.as_str()).detail("path", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(spelling: &Spelling, result: Result<Reply, Refusal>) -> String {
        String::from_utf8(spelling.seal(result).into_response(0).into_body()).unwrap()
    }

    #[test]
    fn a_success_has_code_0_and_a_refusal_its_status_or_its_word() {
        let plain = Spelling::default();
        assert_eq!(body(&plain, Ok(Reply::new(200, &7))), r#"{"code":0,"data":7,"message":"ok"}"#);
        assert_eq!(body(&plain, Err(refused(404, "no"))), r#"{"code":404,"data":null,"message":"no"}"#);
        let word = Refusal::other("some_word", 400, "no").detail("a", 1);
        assert_eq!(body(&plain, Err(word)), r#"{"code":"some_word","data":null,"details":{"a":1},"message":"no"}"#);
    }

    #[test]
    fn each_spelling_can_be_switched() {
        let odd = Spelling { message: Message::Msg, code: Code::Text, list: List::List, ..Spelling::default() };
        let listed = odd.listed(&[1, 2], &[("total", 2)]);
        assert_eq!(body(&odd, Ok(listed)), r#"{"code":"0","data":{"list":[1,2],"total":2},"msg":"ok"}"#);
        let ok = Spelling { refusal_status: RefusalStatus::Ok, list: List::Items, ..Spelling::default() };
        assert_eq!(ok.seal(Err(refused(404, "no"))).into_response(0).status(), 200);
        assert_eq!(body(&ok, Ok(ok.listed(&[1], &[]))), r#"{"code":0,"data":{"items":[1]},"message":"ok"}"#);
    }
}
