//! Static orders (parts "Static order body", "Static order acceptance" and "Static order list query" of the contract).

use super::{OpenList, OrderUnit};
use crate::contract::{Decimal, Json, Label};

string_enum! {
    /// The kind of order.
    StaticOrderType {
        /// The only word.
        StaticProxy = "static_proxy";
    }
}

string_enum! {
    /// The status of a static order. The contract names these and leaves the list open.
    StaticOrderStatus {
        /// Accepted; the order waits for the supplier.
        Processing = "processing";
        /// The proxies can be used.
        Active = "active";
    }
}

record! {
    /// A static order that was accepted. Its result is read from the static order list by its number.
    StaticOrderAcceptance {
        /// The order number.
        order_no: Label as "orderNo" | "order_no";
        /// The application order number.
        app_order_no: Option<Label> as "appOrderNo" | "app_order_no";
        /// The status of the order.
        status: Option<StaticOrderStatus>;
        /// True if the order waits for the supplier.
        queued: Option<bool>;
        /// True if the supplier is called in the background.
        r#async: Option<bool>;
    }
}

record! {
    /// The static order to place, and its user.
    CreateStaticOrder {
        /// Always `static_proxy`; it may be left out.
        order_type: Option<StaticOrderType> as "orderType" => Body, Always("static_proxy");
        /// The product's number.
        pool_id: String as "poolId" => Body;
        /// The user of the order: a sub-user of the reseller's own.
        user_id: i64 as "userId" => Body;
        /// The price of one address; 0 lets the service price it.
        unit_price: Decimal as "unitPrice" => Body;
        /// The total price; 0 lets the service compute it for some products.
        total_amount: Decimal as "totalAmount" => Body;
        /// Region.
        region_code: Option<String> as "regionCode" => Body;
        /// Country, as `query_products` spells it.
        country_code: Option<String> as "countryCode" => Body;
        /// City, as `query_products` spells it.
        city_code: Option<String> as "cityCode" => Body;
        /// The kind of resource. This word does not distinguish shared from exclusive.
        static_type: Option<String> as "staticType" => Body;
        /// The number of addresses.
        ip_count: Decimal as "ipCount" => Body;
        /// The number of times that the duration is bought.
        cycle_times: Decimal as "cycleTimes" => Body;
        /// The duration.
        duration: Decimal => Body;
        /// The unit of the duration.
        unit: OrderUnit => Body;
        /// Networks and the number of addresses of each, for products that allocate by CIDR. The service does not document the form of an
        /// item.
        cidr_blocks: Option<Vec<Json>> as "cidrBlocks" => Body;
        /// One address.
        assigned_ip: Option<String> as "assignedIp" => Body;
        /// Several addresses.
        assigned_ip_list: Option<Vec<String>> as "assignedIpList" => Body;
        /// The project; a shared product needs it, as `needs_project_id` says.
        project_id: Option<String> as "projectId" => Body;
    }
}

record! {
    /// The static orders to list.
    ListStaticOrders {
        /// The page, from 1; the server's default is 1.
        page: Option<i64> => Query, AtLeast(1);
        /// Orders on a page, at most 100.
        page_size: Option<i64> as "pageSize" => Query, Between(1, 100);
        /// Only with this status, such as `active`.
        status: Option<String> => Query;
        /// A filter of the service's console; the service does not document the words.
        filter: Option<String> => Query;
        /// Only of this user.
        user_id: Option<i64> => Query;
        /// An order number, address, port, username, password or remark.
        search: Option<String> => Query;
        /// A part of a region's name.
        region: Option<String> => Query;
        /// Created at this time or later; the service does not document the form.
        created_start: Option<String> => Query;
        /// Created at this time or earlier; the service does not document the form.
        created_end: Option<String> => Query;
        /// Ending at this time or later; the service does not document the form.
        expire_start: Option<String> => Query;
        /// Ending at this time or earlier; the service does not document the form.
        expire_end: Option<String> => Query;
        /// Show an ordinary user the contents of the recycle bin.
        show_recycle_bin: Option<bool> => Query;
    }
}

record! {
    /// The numbers of static orders take no parameters.
    GetStaticOrderStatistics {}
}

record! {
    /// The static order to renew, and the duration. 30 days, once, count as one month.
    RenewStaticOrder {
        /// The order number.
        order_no: Option<String> as "orderNo" => Body, Unless("order_id");
        /// The order's id, a text or a number.
        order_id: Option<Json> => Body;
        /// The proxies of the order to renew; all of them if left out. The service does not document the form.
        instances: Option<Json> => Body;
        /// The duration.
        duration: Option<Decimal> => Body;
        /// The unit of the duration.
        unit: Option<OrderUnit> => Body;
        /// The number of times that the duration is bought.
        cycle_times: Option<Decimal> as "cycleTimes" => Body;
    }
}

record! {
    /// The static order to cancel.
    CancelStaticOrder {
        /// The order number.
        order_no: String => Path;
    }
}

endpoints! { Reseller;
    /// Orders static proxies for a sub-user. The answer means accepted: `place_order` also waits for the result.
    create_static_order: Post "/open/app/static/order/create-standard/v2", Bearer, AtMostOnce, Paid, CreateStaticOrder => StaticOrderAcceptance;
    /// Lists static orders and their proxies. The service does not document the fields of the items.
    list_static_orders: Get "/open/app/static/order/list/v2", Bearer, Safe, Free, ListStaticOrders => OpenList;
    /// Counts static orders by their status. The service does not document the fields of the answer; see `raw`.
    get_static_order_statistics: Get "/open/app/static/order/statistics", Bearer, Safe, Free, GetStaticOrderStatistics => Json;
    /// Renews a static order, whole or in part. The service does not document the fields of the answer; see `raw`.
    renew_static_order: Post "/open/app/static/order/renew", Bearer, AtMostOnce, Paid, RenewStaticOrder => Json;
    /// Cancels or releases a static order. The service does not document the fields of the answer; see `raw`.
    cancel_static_order: Post "/open/app/static/order/{order_no}/cancel", Bearer, AtMostOnce, Free, CancelStaticOrder => Json;
}
