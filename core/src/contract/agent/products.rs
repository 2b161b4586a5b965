//! Products and their prices (parts "Product" and "Product list" of the contract).

use crate::contract::Decimal;

string_enum! {
    /// The products of a list.
    ProductFilter {
        /// Both types.
        All = "all";
        /// Billed by GB of traffic.
        Dynamic = "dynamic";
        /// Billed by address and time.
        Static = "static";
    }
}

string_enum! {
    /// The other users of a product's addresses.
    Sharing {
        /// None.
        Exclusive = "exclusive";
        /// Other customers; some shared static products need a `project_id`.
        Shared = "shared";
    }
}

record! {
    /// A product and its price.
    Product {
        /// The number to send when buying.
        product_no: String;
        /// The English name.
        name: String;
        /// `dynamic` or `static`.
        r#type: super::SessionType;
        /// `exclusive` or `shared`.
        sharing: Sharing;
        /// True if the product can be bought now.
        available: bool;
        /// USD for one `unit`: a starting price in the public list, the binding quote in the authenticated one.
        price: Decimal;
        /// Always `USD`.
        currency: String;
        /// The unit of the price.
        unit: String;
        /// The number that is left, where it is known.
        stock: Option<i64>;
        /// Country.
        country: Option<String>;
        /// City.
        city: Option<String>;
    }
}

record! {
    /// A page of products.
    ProductList {
        /// The products of this page.
        items: Vec<Product>;
        /// The `cursor` of the next page; absent or null on the last one.
        next_cursor: Option<String>;
        /// The number of products that match.
        total: Option<i64>;
        /// Seconds for which the list may be cached, at most 60.
        cache_ttl_seconds: Option<i64>;
        /// The account whose prices the public list shows.
        pricing_owner_agent_id: Option<i64>;
    }
}

record! {
    /// The products to list without a key.
    ListPublicProducts {
        /// The type of products; the server's default is `all`.
        r#type: Option<ProductFilter> => Query;
        /// Only this country.
        country: Option<String> => Query;
        /// Only products that can be bought now; the server's default is `true`.
        in_stock: Option<bool> => Query;
        /// Products on a page, 1 to 100; the server's default is 20.
        limit: Option<i64> => Query, Between(1, 100);
        /// `next_cursor` of the page before.
        cursor: Option<String> => Query;
    }
}

record! {
    /// The products to list with the account's own prices.
    ListProducts {
        /// The type of products; the service documents no default.
        r#type: Option<ProductFilter> => Query;
        /// Only this country.
        country: Option<String> => Query;
        /// Only products that can be bought now; the server's default is `true`.
        in_stock: Option<bool> => Query;
        /// Products on a page, 1 to 100; the server's default is 20.
        limit: Option<i64> => Query, Between(1, 100);
        /// `next_cursor` of the page before.
        cursor: Option<String> => Query;
    }
}

endpoints! { Agent;
    /// Lists products with starting prices, without a key. The service may answer from a cache of up to 60 seconds.
    list_public_products: Get "/public/products", Public, Safe, Free, ListPublicProducts => ProductList;
    /// Lists products with the account's own prices: the binding quote before buying.
    list_products: Get "/products", Key, Safe, Free, ListProducts => ProductList;
}
