//! The few members of an answer that the engine reads, of any type of answer.

use std::borrow::Cow;

use super::read::{FactMembers, NAMES, decimal_of, is_id, whole_of};
use super::text::{KEPT_WORD, LONGEST_CURSOR, is_number, word};
use crate::contract::agent::{SessionStatus, SessionType};
use crate::contract::reseller::StaticOrderStatus;
use crate::contract::{Shape, Shaped, host_record};
use crate::json::{self, from_json, pick, text_of};

host_record! {
    /// The members of an answer's `data` that the engine looks at. Everything else is the caller's.
    #[derive(Debug, Clone, Default, PartialEq, Hash)]
    pub struct Facts {
        /// The session's id.
        pub session_id: Option<String>,
        /// The order's id.
        pub order_id: Option<String>,
        /// The order's number.
        pub order_no: Option<String>,
        /// The number of a sub-user, or of another resource that the answer describes.
        pub id: Option<i64>,
        /// The status of the session or the order, in the contract's spelling where the contract names it.
        pub status: Option<String>,
        /// `dynamic` or `static`.
        pub session_type: Option<String>,
        /// USD, as it was written; of more than 28 digits it is rounded up.
        pub estimated_charge_usd: Option<String> => Decimal,
        /// The charge of a session's purchase in USD, for a session with a handle, where it is known.
        pub charged_usd: Option<String> => Decimal,
        /// `meta.request_id`.
        pub request_id: Option<String>,
        /// True if the account can buy; only answers about the account have it.
        pub backend_ready: Option<bool>,
        /// `next_cursor` of a list.
        pub next_cursor: Option<String>,
        /// Of a list in numbered pages: true if the page holds fewer items than a full page, so that no page follows.
        pub short_page: Option<bool>,
        /// Of a list in numbered pages: a digest by which the same items are recognized again.
        pub page_items: Option<String>,
        /// True if a person declared that the operation took effect: then there never was an answer, and nothing else is known.
        pub settled: bool,
        /// True if an intent that was to be resumed has no operation.
        pub nothing: bool,
    }
}

from_json!(Facts {
    session_id,
    order_id,
    order_no,
    id,
    status,
    session_type,
    estimated_charge_usd,
    charged_usd,
    request_id,
    backend_ready,
    next_cursor,
    short_page,
    page_items,
    settled,
    nothing,
});

impl Facts {
    /// Reads what is there in the `data` of an answer.
    pub(crate) fn of(data: &str, request_id: Option<&str>) -> Facts {
        Facts::from(pick(data, NAMES).unwrap_or_default(), request_id).0
    }

    /// Reads the members as the types of the table are read; a member of another type counts as absent. The second value is true if the
    /// charge was rounded.
    pub(crate) fn from(members: FactMembers<'_>, request_id: Option<&str>) -> (Facts, bool) {
        let [session_id, order_id, order_id_camel, order_no, order_no_camel, id, status, session_type, charge, ready, cursor] = members;
        let (charge, is_rounded) = charge.and_then(decimal_of).unzip();
        let facts = Facts {
            session_id: session_id.and_then(id_of),
            order_id: [order_id, order_id_camel].into_iter().flatten().find_map(id_of),
            order_no: [order_no_camel, order_no].into_iter().flatten().find_map(id_of),
            id: id.and_then(whole_of),
            status: status.and_then(word).map(known_status),
            session_type: session_type.and_then(word).map(|word| known(word, &[SessionType::SHAPE])),
            estimated_charge_usd: charge,
            charged_usd: None,
            request_id: request_id.map(str::to_owned),
            backend_ready: ready.and_then(|json| json.parse().ok()),
            next_cursor: cursor.and_then(text_of).filter(|cursor| cursor.len() <= LONGEST_CURSOR).map(Cow::into_owned),
            short_page: None,
            page_items: None,
            settled: false,
            nothing: false,
        };
        (facts, is_rounded.unwrap_or_default())
    }
}

/// The member of an answer that holds the charge.
pub(super) const CHARGE: &str = "estimated_charge_usd";

/// A word in the spelling of the lists, where one of them has it in any case.
fn known(word: String, lists: &[Shape]) -> String {
    let words = lists.iter().filter_map(|list| if let Shape::Word(list) = list { Some(list.words) } else { None }).flatten();
    words.map(|known| known.word).find(|known| known.eq_ignore_ascii_case(&word)).map_or(word, str::to_owned)
}

/// A status in the contract's spelling.
pub(crate) fn known_status(status: String) -> String {
    known(status, &[SessionStatus::SHAPE, StaticOrderStatus::SHAPE])
}

/// The items of a list of the reseller API: `items`, or `list`, which returns the same.
pub(crate) fn items(data: &str) -> Option<Vec<&str>> {
    let mut lists = pick(data, ["items", "list"])?.into_iter().flatten().filter_map(|list| json::items(list).ok());
    let first = lists.next()?;
    // An empty spelling gives way to the next one, as everywhere.
    Some(if first.is_empty() { lists.next().unwrap_or(first) } else { first })
}

/// Returns true if the answer to a read of an order is about another order: it has numbers, and none of them is the requested one.
pub(crate) fn names_another_order(data: &str, order_no: &str) -> bool {
    let said = pick(data, ["orderNo", "order_no", "appOrderNo", "app_order_no"]).unwrap_or_default();
    let mut numbers = said.into_iter().flatten().filter_map(id_of).peekable();
    numbers.peek().is_some() && !numbers.any(|number| is_same_id(&number, order_no))
}

/// Returns true if two ids are equal as text, ignoring case: ids are ASCII.
pub(crate) fn is_same_id(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Returns true if an answer has null in place of a list, which may hide an error.
pub(crate) fn lacks_list(data: &str) -> bool {
    let says_null =
        || json::members(data).is_ok_and(|all| all.iter().any(|(name, json)| matches!(name.as_ref(), "items" | "list") && *json == "null"));
    items(data).is_none() && says_null()
}

/// An id as text. The JSON may be a text or a number without fraction and exponent. Ids are never cut, since a cut id names another
/// resource.
pub(crate) fn id_of(json: &str) -> Option<String> {
    short_text(json).filter(|_| !is_number(json) || is_id(json))
}

/// The status of an order in the contract's spelling. The JSON may be a text or a number: the contract does not document which.
pub(crate) fn status_of(json: &str) -> Option<String> {
    short_text(json).map(known_status)
}

fn short_text(json: &str) -> Option<String> {
    let text = if is_number(json) { Some(Cow::Borrowed(json)) } else { text_of(json) };
    text.filter(|text| !text.is_empty() && json.len() <= KEPT_WORD).map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_items_of_a_list_are_found_under_either_name() {
        let count = |data| items(data).map(|items| items.len());
        assert_eq!([r#"{"items":[1,2],"list":[1]}"#, r#"{"list":[]}"#, "[]", r#"{"items":{}}"#].map(count), [Some(2), Some(0), None, None]);
        assert_eq!(items(r#"{"items":[],"list":[1, {}]}"#), Some(vec!["1", "{}"]));
    }

    #[test]
    fn facts_are_read_from_what_fits_and_nothing_else() {
        let facts = Facts::of(r#"{"session_id":"s","status":7,"estimated_charge_usd":4.00,"other":[]}"#, Some("r"));
        assert_eq!((facts.session_id.as_deref(), facts.status, facts.request_id.as_deref()), (Some("s"), None, Some("r")));
        assert_eq!(facts.estimated_charge_usd.as_deref(), Some("4.00"));
        assert_eq!(Facts::of("[]", None), Facts::default());
        let session =
            |length: usize| Facts::of(&format!(r#"{{"session_id":"{}"}}"#, "s".repeat(length)), None).session_id.map(|id| id.len());
        assert_eq!([1022, 1023].map(session), [Some(1022), None]);
        let id = |json: &str| Facts::of(&format!(r#"{{"id":{json}}}"#), None).id;
        assert_eq!(
            ["7", "9223372036854775807", "9223372036854775808", "\"7\"", "7.0", "7.5"].map(id),
            [7, i64::MAX, 0, 7, 7, 0].map(|id| Some(id).filter(|id| *id > 0))
        );
    }
}
