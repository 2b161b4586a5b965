//! Dynamic orders and their traffic (part "Dynamic order body" of the contract).

use super::{OpenList, OrderUnit};
use crate::contract::{Decimal, Json};

string_enum! {
    /// What kind of order it is.
    DynamicOrderType {
        /// The only word.
        DynamicProxy = "dynamic_proxy";
    }
}

record! {
    /// What to order. The service does not document which fields are required.
    CreateDynamicOrder {
        /// Always `dynamic_proxy`; it may be left out.
        order_type: Option<DynamicOrderType> as "orderType" => Body, Always("dynamic_proxy");
        /// The dynamic product's number.
        pool_id: Option<String> as "poolId" => Body;
        /// How much traffic; the service does not document the unit.
        traffic_amount: Option<Decimal> as "trafficAmount" => Body;
        /// The price of one.
        unit_price: Option<Decimal> as "unitPrice" => Body;
        /// The price of all.
        total_amount: Option<Decimal> as "totalAmount" => Body;
        /// A note; `find_dynamic_order` and `reconcile` can know an order by it.
        remark: Option<String> => Body;
        /// For whom.
        user_id: Option<i64> as "userId" => Body;
        /// How many addresses.
        ip_count: Option<Decimal> as "ipCount" => Body;
        /// For how long.
        duration: Option<Decimal> => Body;
        /// What the duration counts: any number, as the service documents no list here. A word stands for its number of a static order.
        unit: Option<OrderUnit> => Body, AnyNumber;
    }
}

record! {
    /// Which dynamic orders to list.
    ListDynamicOrders {
        /// Which page, from 1.
        page: Option<i64> => Query, AtLeast(1);
        /// How many a page, at most 100.
        page_size: Option<i64> => Query, Between(1, 100);
        /// Only of this user.
        user_id: Option<i64> => Query;
        /// Only this order.
        order_no: Option<String> => Query;
        /// Only of this kind of pool.
        pool_type: Option<String> => Query;
    }
}

record! {
    /// Which dynamic order to read.
    GetDynamicOrder {
        /// Its id.
        order_id: String => Path;
    }
}

record! {
    /// Which dynamic order to find.
    FindDynamicOrder {
        /// Its order number or its application order number.
        order_no: String => Path;
    }
}

record! {
    /// How proxies are extracted. The service documents no more than this.
    ExtractConfig {
        /// The service does not document the words.
        method: Option<String>;
    }
}

record! {
    /// Which proxies to extract.
    ExtractDynamicProxies {
        /// The product.
        product_no: String as "productNo" => Body;
        /// The kind of proxy.
        proxy_type: Decimal as "proxyType" => Body;
        /// How.
        extract_config: Option<ExtractConfig> as "extractConfig" => Body;
    }
}

record! {
    /// Whose traffic to read.
    GetProductsFlow {
        /// Which user.
        user_id: i64 => Path;
    }
}

record! {
    /// Whose traffic of which product to read.
    GetRemainingFlow {
        /// Which user.
        user_id: i64 => Path;
        /// Which dynamic product.
        product_no: String => Path;
    }
}

endpoints! { Reseller;
    /// Orders traffic. The service does not document the fields of the answer; see `raw`.
    create_dynamic_order: Post "/open/app/order/create/v2", Bearer, AtMostOnce, Paid, CreateDynamicOrder => Json;
    /// Lists dynamic orders. The service does not document the fields of the items.
    list_dynamic_orders: Get "/dynamic", Bearer, Safe, Free, ListDynamicOrders => OpenList;
    /// Reads a dynamic order by its id. The service does not document the fields of the answer; see `raw`.
    get_dynamic_order: Get "/dynamic/{order_id}", Bearer, Safe, Free, GetDynamicOrder => Json;
    /// Reads a dynamic order by its order number or its application order number. The service does not document the fields of
    /// the answer; see `raw`.
    find_dynamic_order: Get "/dynamic/order-info/{order_no}", Bearer, Safe, Free, FindDynamicOrder => Json;
    /// Extracts proxies of a dynamic product. The service does not document the fields of the answer; see `raw`.
    extract_dynamic_proxies: Post "/business/dynamic-proxy/extract", Bearer, AtMostOnce, Free, ExtractDynamicProxies => Json;
    /// Reads what is left of the traffic of all products of a user. The service does not document the fields of the answer; see `raw`.
    get_products_flow: Get "/user/{user_id}/products-flow", Bearer, Safe, Free, GetProductsFlow => Json;
    /// Reads what is left of the traffic of one product of a user. The service does not document the fields of the answer; see `raw`.
    get_remaining_flow: Get "/user/{user_id}/remaining-flow/{product_no}", Bearer, Safe, Free, GetRemainingFlow => Json;
}
