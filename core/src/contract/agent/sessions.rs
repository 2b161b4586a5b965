//! Sessions (parts "Session record", "Create-session request fields" and "States and transitions" of the contract).

use crate::contract::{Decimal, Json, Secret};

string_enum! {
    /// How a session is billed.
    SessionType {
        /// By GB of traffic; it can be rotated.
        Dynamic = "dynamic";
        /// By address and time; it can be renewed.
        Static = "static";
    }
}

string_enum! {
    /// The source of a session's resource.
    ProvisioningMode {
        /// The resource is bought; the server's default.
        Purchase = "purchase";
        /// The resource is already on the account, and nothing is charged.
        Existing = "existing";
    }
}

string_enum! {
    /// The protocol of a session's proxy.
    Protocol {
        /// SOCKS5 with a username and a password; the server's default.
        Socks5 = "socks5";
        /// An HTTP proxy.
        Http = "http";
        /// An HTTP proxy over TLS.
        Https = "https";
    }
}

string_enum! {
    /// The moments at which the exit address changes.
    RotationMode {
        /// Never by itself.
        Fixed = "fixed";
        /// Every `rotation_interval_sec`.
        Timed = "timed";
        /// On request.
        OnDemand = "on_demand";
    }
}

string_enum! {
    /// The reason for a new exit address.
    RotateReason {
        /// A person or program requested it.
        Manual = "manual";
        /// The scheduled time came.
        Scheduled = "scheduled";
        /// The target answered 403.
        Http403 = "http_403";
        /// The target answered 429.
        Http429 = "http_429";
        /// The target asked for a captcha.
        Captcha = "captcha";
        /// The target did not answer.
        Timeout = "timeout";
        /// The target blocked the address in another way.
        Block = "block";
    }
}

string_enum! {
    /// The status of a session. The contract names these and leaves the list open.
    SessionStatus {
        /// Accepted and being set up. The session counts toward the session limit, and has no credentials yet.
        Creating = "creating";
        /// Usable.
        Active = "active";
        /// Over; a static session can be renewed.
        Expired = "expired";
    }
}

record! {
    /// The address and the credentials of a session's proxy.
    Proxy {
        /// Host name or address.
        host: Option<String>;
        /// Port.
        port: Option<i64>;
        /// The protocol.
        protocol: Option<Protocol>;
        /// Only of an active session, when asked for with `include_credentials`.
        username: Option<Secret>;
        /// Only of an active session, when asked for with `include_credentials`.
        password: Option<Secret>;
        /// Scheme, credentials, host and port as one URL; only of an active session, when asked for.
        full_url: Option<Secret>;
    }
}

record! {
    /// A session. Members that the contract does not document stay in the raw data.
    Session {
        /// The session's id.
        session_id: String;
        /// `dynamic` or `static`.
        session_type: Option<SessionType>;
        /// The status of the session.
        status: SessionStatus;
        /// `purchase` or `existing`.
        provisioning_mode: Option<ProvisioningMode>;
        /// The session's proxy.
        proxy: Option<Proxy>;
        /// USD; on the accepted answer of `create_session`.
        estimated_charge_usd: Option<Decimal>;
    }
}

record! {
    /// The session to buy.
    CreateSession {
        /// `dynamic` or `static`.
        session_type: SessionType => Body;
        /// The product, from a product list.
        product_no: String => Body;
        /// `purchase` is the server's default; `existing` uses a resource of the account and charges nothing.
        provisioning_mode: Option<ProvisioningMode> => Body;
        /// The number of an existing static order; without it, a usable static resource of the account is chosen.
        resource_id: Option<String> => Body;
        /// GB (dynamic, fractions allowed) or addresses (static, whole); the server's default is 1.
        quantity: Option<Decimal> => Body, Positive, WholeWhen("session_type", "static");
        /// The duration, at least 1; the service does not document the unit.
        duration: Option<i64> => Body, AtLeast(1);
        /// The protocol of the proxy; the server's default is `socks5`.
        protocol: Option<Protocol> => Body;
        /// Country of the exit.
        country_code: Option<String> => Body;
        /// City of the exit.
        city_code: Option<String> => Body;
        /// Project code, which some shared static products need.
        project_id: Option<String> => Body;
        /// The moments at which the exit address is to change.
        rotation_mode: Option<RotationMode> => Body;
        /// Seconds between two changes of the address.
        rotation_interval_sec: Option<i64> => Body;
    }
}

record! {
    /// The session to read.
    GetSession {
        /// The session's id.
        session_id: String => Path;
        /// Include the username and password of an active session; the server's default is `false`.
        include_credentials: Option<bool> => Query;
    }
}

record! {
    /// The session to end.
    TerminateSession {
        /// The session's id.
        session_id: String => Path;
    }
}

record! {
    /// The session to give a new exit address.
    RotateSession {
        /// The session's id.
        session_id: String => Path;
        /// Include the username and password in the answer; the server's default is `false`.
        include_credentials: Option<bool> => Query;
        /// The reason.
        reason: Option<RotateReason> => Body;
    }
}

record! {
    /// The session to renew, and the duration.
    RenewSession {
        /// The session's id.
        session_id: String => Path;
        /// The duration, at least 1; the service does not document the unit.
        duration: i64 => Body, AtLeast(1);
    }
}

record! {
    /// An observation through a session.
    ReportSessionEvent {
        /// The session's id.
        session_id: String => Path;
        /// A JSON object; the service does not document its members.
        event: Json => Whole;
    }
}

record! {
    /// The session whose health is read.
    GetSessionHealth {
        /// The session's id.
        session_id: String => Path;
    }
}

endpoints! { Agent;
    /// Buys a session. The answer means accepted, not usable: the session is `creating`, without credentials, until a read returns another
    /// status.
    create_session: Post "/sessions", Key, Keyed, Paid, CreateSession => Session;
    /// Reads a session.
    get_session: Get "/sessions/{session_id}", Key, Safe, Free, GetSession => Session;
    /// Ends a session and releases its resource. A static resource is not refunded.
    terminate_session: Delete "/sessions/{session_id}", Key, Idempotent, Free, TerminateSession => Json;
    /// Gives a dynamic session another exit address. The session must be `active`.
    rotate_session: Post "/sessions/{session_id}/rotate", Key, Keyed, Free, RotateSession => Session;
    /// Lengthens a static session. The session must be `active` or `expired`. The service does not document the body of the answer; see
    /// `raw`.
    renew_session: Post "/sessions/{session_id}/renew", Key, Keyed, Paid, RenewSession => Json;
    /// Reports an observation through a session. The request is never sent twice, since it would count twice. The answer is not shown.
    report_session_event: Post "/sessions/{session_id}/report-event", Key, AtMostOnce, Free, ReportSessionEvent => Json;
    /// Reads a session's health, and whether the service recommends a rotation. The service does not document its fields; see `raw`.
    get_session_health: Get "/sessions/{session_id}/health", Key, Safe, Free, GetSessionHealth => Json;
}
