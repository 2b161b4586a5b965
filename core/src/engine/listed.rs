//! What the list of static orders shows of one of them. The contract does not document the fields of an item, so as little as can
//! be is read of it: its order's number and its status.

use crate::contract::Json;
use crate::json::pick;
use crate::wire::{self, id_of, items};

/// The items of a list that belong to an order.
pub(crate) fn found(data: &str, order_no: &str) -> Vec<Json> {
    let belongs = |item: &&str| {
        let spellings = pick(item, ["orderNo", "order_no"]).unwrap_or_default();
        spellings.into_iter().flatten().find_map(id_of).as_deref() == Some(order_no)
    };
    items(data).unwrap_or_default().into_iter().filter(belongs).map(Json::checked).collect()
}

/// Where an order is: of its items the first status that is not `active`, where they differ.
pub(crate) fn status_of(items: &[Json]) -> Option<String> {
    let status = |item: &Json| pick(item.text(), ["status"]).and_then(|[status]| wire::status_of(status?));
    let mut statuses = items.iter().filter_map(status);
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
