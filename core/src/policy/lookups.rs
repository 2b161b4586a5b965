//! The reads of the contract that may show the result of an operation in doubt.

/// A read that may show the result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LookupRead {
    /// The operation that reads.
    pub(crate) read: &'static str,
    /// Parameters of that read, and the parameters in doubt that they are filled with.
    pub(crate) filled: &'static [(&'static str, &'static str)],
    /// Further parameters of that read, as JSON.
    pub(crate) fixed: &'static [(&'static str, &'static str)],
    /// Parameters in doubt, and the member of an item with the same meaning. An item with another value is not a candidate.
    pub(crate) keys: &'static [(&'static str, &'static str)],
}

impl LookupRead {
    const fn new(read: &'static str) -> Self {
        LookupRead { read, filled: &[], fixed: &[], keys: &[] }
    }
}

/// The reads for an operation: none where the contract has none.
pub(crate) fn lookups(operation: &str) -> &'static [LookupRead] {
    const PAYMENTS: &[LookupRead] = &[LookupRead::new("list_transactions"), LookupRead::new("get_balance")];
    const SESSION: &[LookupRead] = &[LookupRead { filled: &[("session_id", "session_id")], ..LookupRead::new("get_session") }];
    const BUDGET: &[LookupRead] = &[LookupRead::new("get_budget")];
    const NEW_USER: &[LookupRead] =
        &[LookupRead { filled: &[("search", "username")], keys: &[("username", "username")], ..LookupRead::new("list_sub_users") }];
    const USER: &[LookupRead] = &[USER_BY_ID];
    const USER_BY_ID: LookupRead =
        LookupRead { fixed: &[("includeDeleted", "true")], keys: &[("user_id", "id")], ..LookupRead::new("list_sub_users") };
    const BALANCE: &[LookupRead] = &[
        LookupRead::new("list_agent_transactions"),
        LookupRead { filled: &[("target_user_id", "user_id"), ("keyword", "remark")], ..LookupRead::new("list_consumption") },
        USER_BY_ID,
    ];
    const DYNAMIC: &[LookupRead] =
        &[LookupRead { filled: &[("user_id", "userId")], keys: &[("userId", "userId")], ..LookupRead::new("list_dynamic_orders") }];
    const NEW_STATIC: &[LookupRead] =
        &[LookupRead { filled: &[("user_id", "userId")], keys: &[("userId", "userId")], ..LookupRead::new("list_static_orders") }];
    const RENEWED: &[LookupRead] =
        &[LookupRead { filled: &[("search", "orderNo")], keys: &[("orderNo", "orderNo")], ..LookupRead::new("list_static_orders") }];
    const CANCELLED: &[LookupRead] =
        &[LookupRead { filled: &[("search", "order_no")], keys: &[("order_no", "orderNo")], ..LookupRead::new("list_static_orders") }];
    const TOP_UP: &[LookupRead] = &[LookupRead::new("list_usdt_orders")];
    match operation {
        "create_session" | "renew_session" | "create_recharge" => PAYMENTS,
        "rotate_session" | "terminate_session" => SESSION,
        "update_budget" => BUDGET,
        "create_user" => NEW_USER,
        "adjust_sub_user_balance" => BALANCE,
        "edit_sub_user_account" | "set_sub_user_status" | "delete_sub_user" => USER,
        "create_dynamic_order" => DYNAMIC,
        "create_static_order" => NEW_STATIC,
        "renew_static_order" => RENEWED,
        "cancel_static_order" => CANCELLED,
        "create_usdt_order" | "cancel_usdt_order" => TOP_UP,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Endpoint, Safety, endpoint, endpoints};

    fn has(endpoint: &Endpoint, field: &str) -> bool {
        endpoint.request.field(field).is_some()
    }

    #[test]
    fn every_lookup_is_a_read_of_the_table_with_parameters_of_the_table() {
        for doubtful in endpoints() {
            for lookup in lookups(doubtful.name) {
                let read = endpoint(lookup.read).expect(lookup.read);
                assert_eq!((read.safety, read.api), (Safety::Safe, doubtful.api), "{}", lookup.read);
                assert!(lookup.filled.iter().all(|(to, from)| has(read, to) && has(doubtful, from)), "{}", doubtful.name);
                assert!(lookup.fixed.iter().all(|(to, _)| has(read, to)), "{}", doubtful.name);
                assert!(lookup.keys.iter().all(|(from, _)| has(doubtful, from)), "{}", doubtful.name);
            }
        }
    }

    #[test]
    fn every_write_can_be_looked_up_unless_the_contract_shows_no_list_of_it() {
        let without = |endpoint: &&Endpoint| endpoint.safety != Safety::Safe && lookups(endpoint.name).is_empty();
        let names: Vec<&str> = endpoints().filter(without).map(|endpoint| endpoint.name).collect();
        assert_eq!(names, ["request_api_key", "register_account", "report_session_event", "login", "extract_dynamic_proxies"]);
    }
}
