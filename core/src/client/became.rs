//! What an operation in doubt may have become: the id or the number that tells one outcome of it from another.

use crate::contract::agent::GetSession;
use crate::contract::{Operation, json_of};
use crate::engine::bad_order_no;
use crate::wire::{Facts, build};

/// What tells one outcome of an operation from another.
pub(super) fn name_of(operation: &str, facts: &Facts) -> Option<String> {
    match operation {
        "create_session" => facts.session_id.clone(),
        "create_static_order" | "create_dynamic_order" => facts.order_no.clone(),
        "create_recharge" => facts.order_id.clone(),
        "create_user" => facts.id.map(|id| id.to_string()),
        _ => None,
    }
}

/// Whether what an operation became has a name to settle it as.
pub(super) fn becomes(operation: &str) -> bool {
    matches!(operation, "create_session" | "create_static_order" | "create_dynamic_order" | "create_recharge" | "create_user")
}

/// What is known of an operation that became this, or why it can't be.
pub(super) fn what_became(operation: &str, became: &str) -> Result<Facts, String> {
    if became.trim() != became {
        return Err("must not begin or end with a space".to_owned());
    }
    let name = || Some(became.to_owned());
    let number = || bad_order_no(became).map_or_else(|| Ok(name()), |rule| Err(rule.to_owned()));
    match operation {
        "create_session" => {
            let read = GetSession { session_id: became.to_owned(), include_credentials: None };
            let params = json_of(&read);
            build(GetSession::ENDPOINT, &params).map_err(|refusal| refusal.rule)?;
            // A session is more than its id, so there is no answer to read.
            Ok(Facts { session_id: name(), settled: true, ..Facts::default() })
        }
        "create_static_order" | "create_dynamic_order" => Ok(Facts { order_no: number()?, ..Facts::default() }),
        "create_recharge" => Ok(Facts { order_id: number()?, ..Facts::default() }),
        "create_user" => match became.parse() {
            Ok(id) => Ok(Facts { id: Some(id), ..Facts::default() }),
            Err(_) => Err("must be the number of a sub-user".to_owned()),
        },
        _ => Err("belongs to a new session, order, recharge or sub-user".to_owned()),
    }
}
