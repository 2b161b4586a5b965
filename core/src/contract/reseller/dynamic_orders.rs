//! Dynamic orders and their traffic (part "Dynamic order body" of the contract).

use super::{OpenList, OrderUnit};
use crate::contract::{Decimal, Json};

string_enum! {
    /// The kind of order.
    DynamicOrderType {
        /// The only word.
        DynamicProxy = "dynamic_proxy";
    }
}

record! {
    /// The traffic to order. The service does not document which fields are required.
    CreateDynamicOrder {
        /// Always `dynamic_proxy`; it may be left out.
        order_type: Option<DynamicOrderType> as "orderType" => Body, Always("dynamic_proxy");
        /// The dynamic product's number.
        pool_id: Option<String> as "poolId" => Body;
        /// The amount of traffic; the service does not document the unit.
        traffic_amount: Option<Decimal> as "trafficAmount" => Body;
        /// The price of one unit.
        unit_price: Option<Decimal> as "unitPrice" => Body;
        /// The total price.
        total_amount: Option<Decimal> as "totalAmount" => Body;
        /// A note, by which `find_dynamic_order` and `reconcile` can recognize the order.
        remark: Option<String> => Body;
        /// The user of the order.
        user_id: Option<i64> as "userId" => Body;
        /// The number of addresses.
        ip_count: Option<Decimal> as "ipCount" => Body;
        /// The duration.
        duration: Option<Decimal> => Body;
        /// The unit of the duration: any number, since the service documents no list here. A word stands for its number of a static order.
        unit: Option<OrderUnit> => Body, AnyNumber;
    }
}

record! {
    /// The dynamic orders to list.
    ListDynamicOrders {
        /// The page, from 1.
        page: Option<i64> => Query, AtLeast(1);
        /// Orders on a page, at most 100.
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
    /// The dynamic order to read.
    GetDynamicOrder {
        /// The order's id.
        order_id: String => Path;
    }
}

record! {
    /// The dynamic order to find.
    FindDynamicOrder {
        /// The order number or the application order number.
        order_no: String => Path;
    }
}

record! {
    /// The way in which proxies are extracted. The service documents no more than this.
    ExtractConfig {
        /// The method; the service does not document the words.
        method: Option<String>;
    }
}

record! {
    /// The proxies to extract.
    ExtractDynamicProxies {
        /// The product.
        product_no: String as "productNo" => Body;
        /// The kind of proxy.
        proxy_type: Decimal as "proxyType" => Body;
        /// The way to extract them.
        extract_config: Option<ExtractConfig> as "extractConfig" => Body;
    }
}

record! {
    /// The user whose traffic is read.
    GetProductsFlow {
        /// The user's id.
        user_id: i64 => Path;
    }
}

record! {
    /// The user and the product whose traffic is read.
    GetRemainingFlow {
        /// The user's id.
        user_id: i64 => Path;
        /// The dynamic product's number.
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
    /// Reads the remaining traffic of all products of a user. The service does not document the fields of the answer; see `raw`.
    get_products_flow: Get "/user/{user_id}/products-flow", Bearer, Safe, Free, GetProductsFlow => Json;
    /// Reads the remaining traffic of one product of a user. The service does not document the fields of the answer; see `raw`.
    get_remaining_flow: Get "/user/{user_id}/remaining-flow/{product_no}", Bearer, Safe, Free, GetRemainingFlow => Json;
}
