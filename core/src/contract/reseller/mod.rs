//! The Reseller Backend API: one file for each part of the contract.
//!
//! The API spells some members in two ways, in snake case and in camel case. A member has one name here, which requests are sent with; an
//! answer may use any of its spellings.

mod dynamic_orders;
mod money;
mod products;
mod static_orders;
mod users;

pub use dynamic_orders::*;
pub use money::*;
pub use products::*;
pub use static_orders::*;
pub use users::*;

use super::{Endpoint, Json};

/// The endpoints of this API, in the order of the contract.
pub const ENDPOINTS: &[&[&Endpoint]] =
    &[users::ENDPOINTS, products::ENDPOINTS, dynamic_orders::ENDPOINTS, static_orders::ENDPOINTS, money::ENDPOINTS];

string_enum! {
    /// The unit of a duration, which is a number on the wire.
    OrderUnit {
        /// Days.
        Day = "day" (1);
        /// Months.
        Month = "month" (3);
        /// Years.
        Year = "year" (4);
    }
}

string_enum! {
    /// The language of names.
    Language {
        /// Chinese.
        Zh = "zh";
        /// English; the server's default.
        En = "en";
    }
}

record! {
    /// A list whose items the contract does not document.
    OpenList {
        /// The items, as the service wrote them.
        items: Vec<Json> as "items" | "list";
    }
}
