//! The parameters of the commands that are not endpoints themselves.

use crate::json::from_json;

record! {
    /// A session to wait for.
    WaitSession {
        /// The id of the session.
        session_id: String => Path;
    }
}

record! {
    /// A static order to wait for.
    WaitOrder {
        /// The number of the order.
        order_no: String => Path;
    }
}

record! {
    /// An operation in doubt to look up.
    ReconcileRecord {
        /// The record of the operation.
        record: String => Path;
    }
}

from_json!(WaitSession { session_id });
from_json!(WaitOrder { order_no });
from_json!(ReconcileRecord { record });
