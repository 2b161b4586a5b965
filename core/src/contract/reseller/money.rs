//! The dashboard, consumption and top-ups (parts "Transactions query" and the USDT rows of "Endpoints").

use super::OpenList;
use crate::contract::Json;

string_enum! {
    /// The type of an order.
    OrderType {
        /// Static proxies.
        Static = "static";
        /// Traffic.
        Dynamic = "dynamic";
    }
}

record! {
    /// The dashboard takes no parameters.
    GetDashboard {}
}

record! {
    /// The records of consumption to list.
    ListConsumption {
        /// The page, from 1.
        page: Option<i64> => Query, AtLeast(1);
        /// Records on a page, at most 100.
        page_size: Option<i64> => Query, Between(1, 100);
        /// Only of this kind; the service does not document the words.
        r#type: Option<String> => Query;
        /// Only of orders of this kind.
        order_type: Option<OrderType> => Query;
        /// From this day, `YYYY-MM-DD`.
        start_date: Option<String> => Query, Date;
        /// To this day, `YYYY-MM-DD`.
        end_date: Option<String> => Query, Date;
        /// Only of the user with this name.
        username: Option<String> => Query;
        /// Only of this order.
        order_no: Option<String> => Query;
        /// A part of a remark, a kind, an order number or a name.
        keyword: Option<String> => Query;
        /// Only of this user.
        target_user_id: Option<i64> => Query;
    }
}

record! {
    /// The records of top-ups and adjustments take no parameters.
    ListAgentTransactions {}
}

record! {
    /// The wallet takes no parameters.
    GetUsdtWallet {}
}

record! {
    /// The top-up to order. The service does not document the fields.
    CreateUsdtOrder {
        /// An object of the caller's own.
        parameters: Option<Json> => Whole;
    }
}

record! {
    /// The top-up order to check. The service does not document the parameters.
    CheckUsdtOrder {
        /// An object of the caller's own; its members go into the query.
        parameters: Option<Json> => WholeQuery;
    }
}

record! {
    /// The list of top-up orders takes no parameters: the service does not document its own.
    ListUsdtOrders {}
}

record! {
    /// The top-up order to cancel. The service does not document the fields.
    CancelUsdtOrder {
        /// An object of the caller's own.
        parameters: Option<Json> => Whole;
    }
}

endpoints! { Reseller;
    /// Reads the balance, the numbers of resources and an overview. The service does not document the fields of the answer; see `raw`.
    get_dashboard: Get "/open/app/dashboard/info/v2", Bearer, Safe, Free, GetDashboard => Json;
    /// Lists consumption records. The service does not document the fields of the items.
    list_consumption: Get "/open/app/user/transactions", Bearer, Safe, Free, ListConsumption => OpenList;
    /// Lists top-ups and balance adjustments of the reseller and its sub-users. The service does not document the fields of the items.
    list_agent_transactions: Get "/transaction/agent/transactions", Bearer, Safe, Free, ListAgentTransactions => OpenList;
    /// Reads the wallet to pay USDT (TRC20) to, and the rate. The service does not document the fields of the answer; see `raw`.
    get_usdt_wallet: Get "/usdt/wallet-info", Bearer, Safe, Free, GetUsdtWallet => Json;
    /// Orders a top-up in USDT (TRC20). The service documents neither the fields of the request nor those of the answer.
    create_usdt_order: Post "/usdt/create-order", Bearer, AtMostOnce, Paid, CreateUsdtOrder => Json;
    /// Reads the status of a top-up order; this request makes the service look for the transfer. With `until` the client repeats it. The
    /// service documents neither the fields of the request nor those of the answer.
    check_usdt_order: Get "/usdt/check-status", Bearer, Safe, Free, CheckUsdtOrder => Json;
    /// Lists top-up orders. The service does not document the fields of the items.
    list_usdt_orders: Get "/usdt/orders", Bearer, Safe, Free, ListUsdtOrders => OpenList;
    /// Cancels a top-up order that was not paid. The service documents neither the fields of the request nor those of the answer.
    cancel_usdt_order: Post "/usdt/cancel-order", Bearer, AtMostOnce, Free, CancelUsdtOrder => Json;
}
