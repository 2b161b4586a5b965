//! What the list of static orders shows of one of them. The contract does not show the fields of an item, so as little as can
//! be is read of it: its order's number and its status.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::contract::Json;
use crate::wire::items;

/// No number and no status is longer than this many bytes; a server does not decide how much we hold.
const MOST: usize = 1024;

/// A member of an item as text, where it is a text or a number: the contract does not show which.
fn text(raw: &RawValue) -> Option<String> {
    let number = || raw.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()).then(|| raw.get().to_owned());
    serde_json::from_str(raw.get()).ok().or_else(number).filter(|text: &String| text.len() <= MOST)
}

/// The items of a list that belong to an order.
pub(super) fn found(data: &str, order_no: &str) -> Vec<Json> {
    #[derive(Deserialize)]
    struct Item<'a> {
        #[serde(borrow, rename = "orderNo")]
        camel: Option<&'a RawValue>,
        #[serde(borrow)]
        order_no: Option<&'a RawValue>,
    }
    let belongs = |raw: &&RawValue| {
        let item = serde_json::from_str::<Item<'_>>(raw.get()).ok();
        item.and_then(|item| text(item.camel.or(item.order_no)?)).as_deref() == Some(order_no)
    };
    items(data).unwrap_or_default().into_iter().filter(belongs).map(Json::from).collect()
}

/// Where an order is: of its items the first status that is not `active`, where they differ.
pub(super) fn status_of(items: &[Json]) -> Option<String> {
    #[derive(Deserialize)]
    struct Item<'a> {
        #[serde(borrow)]
        status: Option<&'a RawValue>,
    }
    let mut statuses = items.iter().filter_map(|item| text(item.read::<Item<'_>>().ok()?.status?));
    let first = statuses.next()?;
    Some(if first == "active" { statuses.find(|status| status != "active").unwrap_or(first) } else { first })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_known_by_its_number_in_either_spelling() {
        let list = r#"{"items":[{"orderNo":"7","status":"active"},{"order_no":7,"status":2},{"orderNo":"b","status":{}},{"x":1},7]}"#;
        let items = found(list, "7");
        assert_eq!((status_of(&items).as_deref(), items.len()), (Some("2"), 2));
        assert_eq!((status_of(&found(list, "b")), found(list, "b").len()), (None, 1));
        assert_eq!(found("[]", "a").len() + found(list, "c").len(), 0);
    }
}
