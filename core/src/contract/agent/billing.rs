//! Balance and payments (parts "Recharge order" and "Other responses" of the contract).

use crate::contract::Json;

record! {
    /// The balance takes no parameters.
    GetBalance {}
}

endpoints! { Agent;
    /// Reads the account's balance in USD. The fields of the answer are not shown.
    get_balance: Get "/billing/balance", Key, Safe, Free, GetBalance => Json;
}
