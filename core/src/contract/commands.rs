//! The parameters of the commands that are no endpoints of their own.

use crate::json::own;

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

own!(WaitSession { session_id });
own!(WaitOrder { order_no });
own!(ReconcileRecord { record });
