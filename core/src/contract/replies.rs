//! The results that the client makes from several answers: the orders that it waits for, and the candidates for a doubt.

use super::reseller::StaticOrderStatus;
use super::{Json, Shape, Shaped};

record! {
    /// A static order, as the list of static orders shows it.
    StaticOrder {
        /// The order's number: the handle for all further operations.
        order_no: String as "orderNo";
        /// The status of the order: the first status of its items that is not `active`, if they differ.
        status: Option<StaticOrderStatus>;
        /// The items of the list that belong to it, as the service wrote them; the service does not document their fields.
        items: Vec<Json>;
        /// True if the order may have more items than these: at most 20 pages of 100, or 4 MiB, are read.
        truncated: bool;
    }
}

record! {
    /// A possible result of an operation in doubt.
    Candidate {
        /// The operation that found the candidate.
        read: String;
        /// The parameters of the operation in doubt that the candidate has with the same values.
        matched: Vec<String>;
        /// The item, or the whole answer if it is not a list, as the service wrote it.
        item: Json;
        /// The id or number of the item, if the operation makes something that has one: give this to `settle` as `became`.
        became: Option<String>;
        /// The record that already has this result: then it belongs to that operation, and not to the one in doubt.
        record: Option<String>;
    }
}

record! {
    /// The candidates for an operation in doubt. A person decides among them with `settle`.
    Reconciliation {
        /// The operation in doubt.
        operation: String;
        /// The candidates.
        candidates: Vec<Candidate>;
        /// True if everything was read; otherwise there were too many pages.
        complete: bool;
    }
}

/// These types, for tools that print the table.
pub const REPLIES: [Shape; 2] = [StaticOrder::SHAPE, Reconciliation::SHAPE];
