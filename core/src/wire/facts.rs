//! What the engine looks at in an answer: a few members, never its type.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::text::{KEPT_WORD, is_number, word};

/// The members of an answer's `data` that the engine looks at. Everything else is the caller's.
#[derive(Debug, Clone, Default, PartialEq, Hash, Serialize, Deserialize)]
pub struct Facts {
    /// The session's id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_id: Option<String>,
    /// The order's id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub order_id: Option<String>,
    /// The order's number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub order_no: Option<String>,
    /// The number of a sub-user, or of whatever else the answer is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id: Option<i64>,
    /// The status of the session or the order, as it came.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<String>,
    /// `dynamic` or `static`, as it came.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_type: Option<String>,
    /// USD, as it was written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub estimated_charge_usd: Option<String>,
    /// `meta.request_id`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request_id: Option<String>,
    /// Whether the account can buy, where an answer about the account says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub backend_ready: Option<bool>,
    /// `next_cursor` of a list.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<String>,
    /// Of a list in numbered pages: whether the page holds fewer items than it may, so that no other follows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub short_page: Option<bool>,
    /// Whether a person said that it happened: then there never was an answer, and nothing else is known of it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub settled: bool,
    /// Whether an intent that was to be resumed stands for nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub nothing: bool,
}

impl Facts {
    /// Reads what is there. A member of another type than the contract's is as good as absent.
    pub(crate) fn of(data: &str, request_id: Option<&str>) -> Facts {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(borrow)]
            session_id: Option<&'a RawValue>,
            #[serde(borrow)]
            order_id: Option<&'a RawValue>,
            #[serde(borrow, rename = "orderId")]
            order_id_camel: Option<&'a RawValue>,
            #[serde(borrow)]
            order_no: Option<&'a RawValue>,
            #[serde(borrow, rename = "orderNo")]
            order_no_camel: Option<&'a RawValue>,
            #[serde(borrow)]
            id: Option<&'a RawValue>,
            #[serde(borrow)]
            status: Option<&'a RawValue>,
            #[serde(borrow)]
            session_type: Option<&'a RawValue>,
            #[serde(borrow)]
            estimated_charge_usd: Option<&'a RawValue>,
            #[serde(borrow)]
            backend_ready: Option<&'a RawValue>,
            #[serde(borrow)]
            next_cursor: Option<&'a RawValue>,
        }
        let Ok(found) = serde_json::from_str::<Members<'_>>(data) else {
            return Facts { request_id: request_id.map(str::to_owned), ..Facts::default() };
        };
        let amount = found.estimated_charge_usd.filter(|raw| raw.get().parse::<crate::contract::Decimal>().is_ok());
        Facts {
            session_id: found.session_id.and_then(word),
            order_id: [found.order_id, found.order_id_camel].into_iter().flatten().find_map(number_of),
            order_no: [found.order_no_camel, found.order_no].into_iter().flatten().find_map(number_of),
            id: found.id.and_then(|raw| raw.get().parse().ok()),
            status: found.status.and_then(word),
            session_type: found.session_type.and_then(word),
            estimated_charge_usd: amount.map(|raw| raw.get().to_owned()),
            request_id: request_id.map(str::to_owned),
            backend_ready: found.backend_ready.and_then(|raw| raw.get().parse().ok()),
            next_cursor: found.next_cursor.and_then(word),
            short_page: None,
            settled: false,
            nothing: false,
        }
    }
}

/// How many items a list of the reseller API holds.
pub(crate) fn count_items(data: &str) -> Option<usize> {
    items(data).map(|items| items.len())
}

/// The items of a list of the reseller API: `items`, or `list`, which returns the same.
pub(crate) fn items(data: &str) -> Option<Vec<&RawValue>> {
    #[derive(Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        items: Option<&'a RawValue>,
        #[serde(borrow)]
        list: Option<&'a RawValue>,
    }
    let found: List<'_> = serde_json::from_str(data).ok()?;
    let mut lists = [found.items, found.list].into_iter().flatten().filter_map(|list| serde_json::from_str::<Vec<_>>(list.get()).ok());
    let first = lists.next()?;
    // A spelling that is empty gives way, as everywhere.
    Some(if first.is_empty() { lists.next().unwrap_or(first) } else { first })
}

/// The number or the status of an order as text, which may be a text or a number: the contract does not document which.
pub(crate) fn number_of(raw: &RawValue) -> Option<String> {
    let number = || is_number(raw.get()).then(|| raw.get().to_owned());
    let text = serde_json::from_str(raw.get()).ok().or_else(number);
    text.filter(|text: &String| !text.is_empty() && text.len() <= KEPT_WORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_items_of_a_list_are_found_under_either_name() {
        assert_eq!(count_items(r#"{"items":[1,2],"list":[1]}"#), Some(2));
        assert_eq!(count_items(r#"{"list":[]}"#), Some(0));
        assert_eq!([count_items("[]"), count_items(r#"{"items":{}}"#)], [None, None]);
    }

    #[test]
    fn facts_are_read_from_what_fits_and_nothing_else() {
        let facts = Facts::of(r#"{"session_id":"s","status":7,"estimated_charge_usd":4.00,"other":[]}"#, Some("r"));
        assert_eq!((facts.session_id.as_deref(), facts.status, facts.request_id.as_deref()), (Some("s"), None, Some("r")));
        assert_eq!(facts.estimated_charge_usd.as_deref(), Some("4.00"));
        assert_eq!(Facts::of("[]", None), Facts::default());
    }
}
