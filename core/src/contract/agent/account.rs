//! Accounts, keys and budgets (parts "Budget policy", "Account info" and "Account creation responses" of the contract).

use crate::contract::{Decimal, Json, Patch, Secret};

string_enum! {
    /// The result of sending the mail with the key.
    EmailStatus {
        /// The mail was sent.
        Sent = "email_sent";
        /// The mail was sent a short while ago.
        RecentlySent = "email_recently_sent";
    }
}

record! {
    /// A trial credit, for testing; it can't be withdrawn.
    Trial {
        /// True if the credit was granted.
        granted: Option<bool>;
        /// The amount in USD.
        amount_usd: Option<Decimal>;
        /// The end of the credit, RFC 3339.
        expires_at: Option<String>;
    }
}

record! {
    /// The result of a request for a key. The key itself is in the mail.
    ApiKeyRequest {
        /// The status of the mail.
        status: EmailStatus;
        /// The status of the trial credit's claim, in a word of the service.
        claim_status: Option<String>;
        /// The trial credit that is left, in USD.
        trial_balance: Option<Decimal>;
        /// The balance, in USD.
        balance: Option<Decimal>;
        /// True if the account can list products, read its balance and create sessions.
        backend_ready: Option<bool>;
        /// The service's own message.
        message: Option<String>;
        /// The trial credit.
        trial: Option<Trial>;
    }
}

record! {
    /// A new account and its credentials, which are shown only this once.
    Registration {
        /// The account's number.
        agent_id: i64;
        /// The key for `X-API-Key`.
        api_key: Secret;
        /// The secret that goes with it.
        api_secret: Secret;
        /// True if the account can list products, read its balance and create sessions.
        backend_ready: Option<bool>;
        /// The reason why the account can't, if it can't.
        backend_sync_error: Option<String>;
    }
}

record! {
    /// An account. The service does not document its other fields.
    AccountInfo {
        /// The key, masked: its first and last characters.
        api_key_prefix: Option<String>;
    }
}

record! {
    /// The mailbox that a key is requested for.
    RequestApiKey {
        /// The address that the key is sent to.
        email: Secret => Body, Email;
        /// The referral code of the person who recommended the service.
        referral_code: Option<String> => Body;
        /// A UUID of this installation, used only against abuse of the trial credit.
        client_installation_id: Option<String> => Header("X-Client-Installation-Id"), Uuid;
    }
}

record! {
    /// The account to open.
    RegisterAccount {
        /// The account's name.
        name: String => Body;
        /// The owner's email address.
        contact_email: Option<Secret> => Body;
        /// The referral code of the person who recommended the service.
        referral_code: Option<String> => Body;
    }
}

record! {
    /// The account takes no parameters.
    GetAccount {}
}

record! {
    /// The budget takes no parameters.
    GetBudget {}
}

record! {
    /// The changes to the key's budget. Omitted fields stay as they are; the service does not document the effect of null.
    UpdateBudget {
        /// USD that the key may spend in all, at least 0.
        key_limit_usd: Patch<Decimal> => Body, AtLeast(0);
        /// USD that the key may spend in a UTC day, at least 0.
        daily_limit_usd: Patch<Decimal> => Body, AtLeast(0);
        /// Deprecated; the contract contradicts itself on whether it pauses the key. The server's default is `false`.
        pause_on_exceed: Option<bool> => Body;
        /// Percentages of a limit at which an alert is raised, 1 to 100 each.
        alert_thresholds: Option<Vec<i64>> => Body, Between(1, 100);
        /// Stop purchases with this key, or allow them again.
        paused: Option<bool> => Body;
    }
}

record! {
    /// The alerts take no parameters.
    GetUsageAlerts {}
}

endpoints! { Agent;
    /// Sends a key to a mailbox. A repeat sends the same key again; the trial credit is granted once for each address.
    request_api_key: Post "/account/request-api-key", Public, TwiceAtMost, Free, RequestApiKey => ApiKeyRequest;
    /// Opens an account and returns its credentials. The request is never sent twice, since that could open two accounts.
    register_account: Post "/account/register", Public, AtMostOnce, Free, RegisterAccount => Registration;
    /// Reads the account that the key belongs to.
    get_account: Get "/account/info", Key, Safe, Free, GetAccount => AccountInfo;
    /// Reads limits, estimated spend, the pause and the next reset of the key's budget. The service does not document its
    /// fields; see `raw`.
    get_budget: Get "/account/budget", Key, Safe, Free, GetBudget => Json;
    /// Changes the key's budget, which limits all processes together. The service does not document the fields of the answer; see `raw`.
    update_budget: Put "/account/budget", Key, Keyed, Free, UpdateBudget => Json;
    /// Reads which thresholds were crossed, and whether the key is paused. The service does not document its fields; see `raw`.
    get_usage_alerts: Get "/account/usage-alerts", Key, Safe, Free, GetUsageAlerts => Json;
}
