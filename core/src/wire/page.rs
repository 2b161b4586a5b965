//! Recognizes a numbered page that was read before, although some members of its items are different each time.

use super::facts::id_of;
use crate::entropy::digest;
use crate::json::pick;

/// Members that tell items apart, in both spellings: those that an item must have, and those that add to them.
type Ids = ([&'static str; 2], [&'static str; 2]);

/// Those that tell items apart best first.
const IDS: [Ids; 3] = [(["id", "id"], ["id", "id"]), (["ip", "ip"], ["port", "port"]), (ORDER, ORDER)];
const ORDER: [&str; 2] = ["orderNo", "order_no"];

/// A digest by which the same items are recognized again: of their ids where each has one of its own, else of all they say.
pub(crate) fn page_mark(items: &[&str]) -> String {
    let ids = IDS.iter().find_map(|members| ids(items, members));
    let marks: Vec<&str> = ids.iter().flatten().map(String::as_str).collect();
    digest("page", if marks.is_empty() { items } else { &marks }).chars().take(16).collect()
}

/// The ids of items by these members, if each item has one and no two have the same.
fn ids(items: &[&str], members: &Ids) -> Option<Vec<String>> {
    // An order may have more items than the one that a page of one item shows.
    if items.len() == 1 && members.0 == ORDER {
        return None;
    }
    let ids: Vec<String> = items.iter().map(|item| id(item, members)).collect::<Option<_>>()?;
    let mut others: Vec<&String> = ids.iter().collect();
    others.sort_unstable();
    others.dedup();
    (others.len() == ids.len()).then_some(ids)
}

fn id(item: &str, (first, more): &Ids) -> Option<String> {
    let said = |names: &[&str; 2]| pick(item, *names)?.into_iter().flatten().find_map(id_of);
    Some(format!("{} {}", said(first)?, said(more).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_recognized_by_what_tells_them_apart() {
        for (first, second, is_same) in [
            // By their ids, whatever else changes.
            (&[r#"{"id":1,"left":50}"#, r#"{"id":2}"#][..], &[r#"{"id":1,"left":49}"#, r#"{"id":2}"#][..], true),
            (&[r#"{"id":1}"#], &[r#"{"id":2}"#], false),
            (&[r#"{"id":1}"#, r#"{"id":2}"#], &[r#"{"id":2}"#, r#"{"id":1}"#], false),
            // By their addresses, and by their orders' numbers in either spelling.
            (&[r#"{"orderNo":"o","ip":"192.0.2.1","used":1}"#], &[r#"{"orderNo":"o","ip":"192.0.2.1","used":2}"#], true),
            (&[r#"{"ip":"192.0.2.1","port":1}"#], &[r#"{"ip":"192.0.2.1","port":2}"#], false),
            (&[r#"{"orderNo":"a","n":1}"#, r#"{"order_no":"b"}"#], &[r#"{"orderNo":"a","n":2}"#, r#"{"orderNo":"b"}"#], true),
            // By all they say, where several have one id, or one has none.
            (&[r#"{"orderNo":"a","n":1}"#, r#"{"orderNo":"a","n":2}"#], &[r#"{"orderNo":"a","n":3}"#, r#"{"orderNo":"a","n":4}"#], false),
            (&[r#"{"orderNo":"a","n":1}"#], &[r#"{"orderNo":"a","n":2}"#], false),
            (&[r#"{"id":1,"n":1}"#, r#"{"n":2}"#], &[r#"{"id":1,"n":3}"#, r#"{"n":4}"#], false),
            (&[r#"{"n":1}"#, "2"], &[r#"{"n":1}"#, "2"], true),
            (&[], &[], true),
        ] {
            assert_eq!(page_mark(first) == page_mark(second), is_same, "{first:?}, {second:?}");
        }
    }
}
