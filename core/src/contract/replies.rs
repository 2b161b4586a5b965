//! What the client itself makes of several answers: the orders that it waits for, and what it finds about a doubt.

use super::reseller::StaticOrderStatus;
use super::{Json, Shape, Shaped};

record! {
    /// A static order, as the list of static orders shows it.
    StaticOrder {
        /// Its number: the handle for everything that comes after.
        order_no: String as "orderNo";
        /// Where it is: of its items the first status that is not `active`, where they differ.
        status: Option<StaticOrderStatus>;
        /// The items of the list that belong to it, as the service wrote them; the service does not document their fields.
        items: Vec<Json>;
        /// Whether it may have more items than these: no more than 20 pages of 100, or 4 MiB, are read.
        truncated: bool;
    }
}

record! {
    /// Something that may be what became of an operation in doubt.
    Candidate {
        /// The operation that showed it.
        read: String;
        /// The parameters of the operation in doubt that it shows with the same values.
        matched: Vec<String>;
        /// The item, or the whole answer where it is no list, as the service wrote it.
        item: Json;
        /// The record that has this already: then it belongs to that operation, and not to the one in doubt.
        record: Option<String>;
    }
}

record! {
    /// What the service shows that may be an operation in doubt. Whether it is, a person says with `settle`.
    Reconciliation {
        /// The operation in doubt.
        operation: String;
        /// What was found.
        candidates: Vec<Candidate>;
        /// Whether all was read that there is; otherwise there were too many pages.
        complete: bool;
    }
}

/// These types, for whoever prints the table.
pub const REPLIES: [Shape; 2] = [StaticOrder::SHAPE, Reconciliation::SHAPE];
