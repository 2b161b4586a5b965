//! Products and their prices (parts "Product" and "Product list" of the contract).

use crate::contract::Decimal;

string_enum! {
    /// Which products a list holds.
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
    /// Who else uses the addresses of a product.
    Sharing {
        /// Nobody.
        Exclusive = "exclusive";
        /// Other customers; some shared static products need a `project_id`.
        Shared = "shared";
    }
}

record! {
    /// A product and its price.
    Product {
        /// What to send when buying.
        product_no: String;
        /// Its English name.
        name: String;
        /// `dynamic` or `static`.
        r#type: super::SessionType;
        /// `exclusive` or `shared`.
        sharing: Sharing;
        /// Whether it can be bought now.
        available: bool;
        /// USD for one `unit`: a starting price in the public list, the binding quote in the authenticated one.
        price: Decimal;
        /// Always `USD`.
        currency: String;
        /// What the price is for.
        unit: String;
        /// How many are left, where that is known.
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
        /// What to pass as `cursor` for the next page; absent or null on the last one.
        next_cursor: Option<String>;
        /// How many products match.
        total: Option<i64>;
        /// For how long the list may be kept, in seconds; at most 60.
        cache_ttl_seconds: Option<i64>;
        /// Whose prices the public list shows.
        pricing_owner_agent_id: Option<i64>;
    }
}

record! {
    /// What to list without a key.
    ListPublicProducts {
        /// Which products; the server's default is `all`.
        r#type: Option<ProductFilter> => Query;
        /// Only this country.
        country: Option<String> => Query;
        /// Only what can be bought now; the server's default is `true`.
        in_stock: Option<bool> => Query;
        /// How many a page, 1 to 100; the server's default is 20.
        limit: Option<i64> => Query, Between(1, 100);
        /// `next_cursor` of the page before.
        cursor: Option<String> => Query;
    }
}

record! {
    /// What to list with the account's own prices.
    ListProducts {
        /// Which products; no default is stated.
        r#type: Option<ProductFilter> => Query;
        /// Only this country.
        country: Option<String> => Query;
        /// Only what can be bought now; the server's default is `true`.
        in_stock: Option<bool> => Query;
        /// How many a page, 1 to 100; the server's default is 20.
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
