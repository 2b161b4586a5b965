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
    /// Where a session's resource comes from.
    ProvisioningMode {
        /// It is bought; the server's default.
        Purchase = "purchase";
        /// It is already on the account, and nothing is charged.
        Existing = "existing";
    }
}

string_enum! {
    /// What a session's proxy speaks.
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
    /// When the exit address changes.
    RotationMode {
        /// Never by itself.
        Fixed = "fixed";
        /// Every `rotation_interval_sec`.
        Timed = "timed";
        /// When asked to.
        OnDemand = "on_demand";
    }
}

string_enum! {
    /// Why the exit address is to change.
    RotateReason {
        /// Somebody asked for it.
        Manual = "manual";
        /// It was time.
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
    /// Where a session is in its life. The contract names these and leaves the list open.
    SessionStatus {
        /// Accepted and being set up; it counts toward the session limit, and there are no credentials yet.
        Creating = "creating";
        /// Usable.
        Active = "active";
        /// Over; a static one can be renewed.
        Expired = "expired";
    }
}

record! {
    /// How to reach a session's proxy.
    Proxy {
        /// Host name or address.
        host: Option<String>;
        /// Port.
        port: Option<i64>;
        /// What it speaks.
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
    /// A session. It may carry more than is listed here: what the contract does not document stays in the raw data.
    Session {
        /// Its id.
        session_id: String;
        /// `dynamic` or `static`.
        session_type: Option<SessionType>;
        /// Where it is in its life.
        status: SessionStatus;
        /// `purchase` or `existing`.
        provisioning_mode: Option<ProvisioningMode>;
        /// How to reach it.
        proxy: Option<Proxy>;
        /// USD; on the accepted answer of `create_session`.
        estimated_charge_usd: Option<Decimal>;
    }
}

record! {
    /// What to buy.
    CreateSession {
        /// `dynamic` or `static`.
        session_type: SessionType => Body;
        /// From a product list.
        product_no: String => Body;
        /// `purchase` is the server's default; `existing` uses a resource of the account and charges nothing.
        provisioning_mode: Option<ProvisioningMode> => Body;
        /// An existing static order number; without it, a usable static resource of the account is chosen.
        resource_id: Option<String> => Body;
        /// GB (dynamic, fractions allowed) or addresses (static, whole); the server's default is 1.
        quantity: Option<Decimal> => Body, Positive, WholeWhen("session_type", "static");
        /// For how long, at least 1; the service does not document the unit.
        duration: Option<i64> => Body, AtLeast(1);
        /// What the proxy is to speak; the server's default is `socks5`.
        protocol: Option<Protocol> => Body;
        /// Country of the exit.
        country_code: Option<String> => Body;
        /// City of the exit.
        city_code: Option<String> => Body;
        /// Project code, which some shared static products need.
        project_id: Option<String> => Body;
        /// When the exit address is to change.
        rotation_mode: Option<RotationMode> => Body;
        /// Seconds between two changes of the address.
        rotation_interval_sec: Option<i64> => Body;
    }
}

record! {
    /// Which session to read.
    GetSession {
        /// Its id.
        session_id: String => Path;
        /// Whether an active session's username and password are wanted; the server's default is `false`.
        include_credentials: Option<bool> => Query;
    }
}

record! {
    /// Which session to end.
    TerminateSession {
        /// Its id.
        session_id: String => Path;
    }
}

record! {
    /// Which session is to get a new exit address.
    RotateSession {
        /// Its id.
        session_id: String => Path;
        /// Whether the username and password are wanted in the answer; the server's default is `false`.
        include_credentials: Option<bool> => Query;
        /// Why.
        reason: Option<RotateReason> => Body;
    }
}

record! {
    /// Which session to renew, and for how long.
    RenewSession {
        /// Its id.
        session_id: String => Path;
        /// At least 1; the service does not document the unit.
        duration: i64 => Body, AtLeast(1);
    }
}

record! {
    /// What was seen through a session.
    ReportSessionEvent {
        /// Its id.
        session_id: String => Path;
        /// A JSON object; the service does not document its members.
        event: Json => Whole;
    }
}

record! {
    /// Which session's health to read.
    GetSessionHealth {
        /// Its id.
        session_id: String => Path;
    }
}

endpoints! { Agent;
    /// Buys a session. The answer means accepted, not usable: it is `creating`, without credentials, until a read says
    /// otherwise.
    create_session: Post "/sessions", Key, Keyed, Paid, CreateSession => Session;
    /// Reads a session.
    get_session: Get "/sessions/{session_id}", Key, Safe, Free, GetSession => Session;
    /// Ends a session and releases its resource. A static resource is not refunded.
    terminate_session: Delete "/sessions/{session_id}", Key, Idempotent, Free, TerminateSession => Json;
    /// Gives a dynamic session another exit address. The session must be `active`.
    rotate_session: Post "/sessions/{session_id}/rotate", Key, Keyed, Free, RotateSession => Session;
    /// Lengthens a static session. It must be `active` or `expired`. The service does not document the body of the answer; see `raw`.
    renew_session: Post "/sessions/{session_id}/renew", Key, Keyed, Paid, RenewSession => Json;
    /// Reports what was seen through a session. It is never sent twice, since that would count twice. The answer is not
    /// shown.
    report_session_event: Post "/sessions/{session_id}/report-event", Key, AtMostOnce, Free, ReportSessionEvent => Json;
    /// Reads a session's health, and whether the service recommends a rotation. The service does not document its fields; see `raw`.
    get_session_health: Get "/sessions/{session_id}/health", Key, Safe, Free, GetSessionHealth => Json;
}
