//! Balance and payments (parts "Recharge order" and "Other responses" of the contract).

use crate::contract::{Decimal, Json};

string_enum! {
    /// The currency of a recharge.
    RechargeCurrency {
        /// Tether.
        Usdt = "USDT";
    }
}

record! {
    /// An order to top up the balance, and the address to pay to. The service does not document the words of its status.
    RechargeOrder {
        /// The order's id.
        order_id: String;
        /// The credited amount, in USD.
        amount_usd: Option<Decimal>;
        /// The amount to pay, in USDT.
        amount_usdt: Option<Decimal>;
        /// The amount to pay, in CNY.
        amount_cny: Option<Decimal>;
        /// The exchange rate of the amounts.
        exchange_rate: Option<Decimal>;
        /// The chain to pay on.
        network: Option<String>;
        /// The address to pay to.
        wallet_address: Option<String>;
        /// A page that shows that address.
        wallet_explorer_url: Option<String>;
        /// The status of the order; the service does not document the words.
        status: Option<String>;
    }
}

record! {
    /// The balance takes no parameters.
    GetBalance {}
}

record! {
    /// Pricing takes no parameters: the service does not document its own.
    GetPricing {}
}

record! {
    /// The amount to top up: `amount`, `amount_usd` or both.
    CreateRecharge {
        /// The amount, at least 10.
        amount: Option<Decimal> => Body, AtLeast(10), Unless("amount_usd");
        /// The amount in USD, at least 10.
        amount_usd: Option<Decimal> => Body, AtLeast(10);
        /// `USDT` is the server's default.
        currency: Option<RechargeCurrency> => Body;
    }
}

record! {
    /// The transactions take no parameters: the service does not document its own.
    ListTransactions {}
}

endpoints! { Agent;
    /// Reads the account's balance in USD. The service does not document the fields of the answer; see `raw`.
    get_balance: Get "/billing/balance", Key, Safe, Free, GetBalance => Json;
    /// Reads the account's prices. The service does not document the fields of the answer; see `raw`.
    get_pricing: Get "/billing/pricing", Key, Safe, Free, GetPricing => Json;
    /// Orders a top-up of at least 10 USD, to be paid in USDT.
    create_recharge: Post "/billing/recharge", Key, Keyed, Paid, CreateRecharge => RechargeOrder;
    /// Reads the account's transactions. The service does not document the fields of the answer; see `raw`.
    list_transactions: Get "/billing/transactions", Key, Safe, Free, ListTransactions => Json;
}
