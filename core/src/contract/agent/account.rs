//! Accounts, keys and budgets (parts "Budget policy", "Account info" and "Account creation responses" of the contract).

use crate::contract::{Decimal, Json, Patch, Secret};

string_enum! {
    /// What became of the mail with the key.
    EmailStatus {
        /// It was sent.
        Sent = "email_sent";
        /// It was sent a short while ago.
        RecentlySent = "email_recently_sent";
    }
}

record! {
    /// A trial credit, for testing; it can't be withdrawn.
    Trial {
        /// Whether it was granted.
        granted: Option<bool>;
        /// How much, in USD.
        amount_usd: Option<Decimal>;
        /// When it ends, RFC 3339.
        expires_at: Option<String>;
    }
}

record! {
    /// What came of asking for a key. The key itself is in the mail.
    ApiKeyRequest {
        /// What became of the mail.
        status: EmailStatus;
        /// Whether the trial credit was claimed, in a word of the service.
        claim_status: Option<String>;
        /// The trial credit that is left, in USD.
        trial_balance: Option<Decimal>;
        /// The balance, in USD.
        balance: Option<Decimal>;
        /// Whether the account can list products, read its balance and create sessions.
        backend_ready: Option<bool>;
        /// What the service says about it.
        message: Option<String>;
        /// The trial credit.
        trial: Option<Trial>;
    }
}

record! {
    /// A new account and its credentials, which are shown this once.
    Registration {
        /// The account's number.
        agent_id: i64;
        /// The key for `X-API-Key`.
        api_key: Secret;
        /// The secret that goes with it.
        api_secret: Secret;
        /// Whether the account can list products, read its balance and create sessions.
        backend_ready: Option<bool>;
        /// Why it can't, where it can't.
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
    /// Who asks for a key.
    RequestApiKey {
        /// The address that the key is sent to.
        email: Secret => Body, Email;
        /// Who recommended the service.
        referral_code: Option<String> => Body;
        /// A UUID of this installation, used only against abuse of the trial credit.
        client_installation_id: Option<String> => Header("X-Client-Installation-Id"), Uuid;
    }
}

record! {
    /// Who opens an account.
    RegisterAccount {
        /// The account's name.
        name: String => Body;
        /// An address to reach its owner at.
        contact_email: Option<Secret> => Body;
        /// Who recommended the service.
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
    /// What to change of the key's budget. What is left out stays; the service does not document what null does.
    UpdateBudget {
        /// USD that the key may spend in all, at least 0.
        key_limit_usd: Patch<Decimal> => Body, AtLeast(0);
        /// USD that the key may spend in a UTC day, at least 0.
        daily_limit_usd: Patch<Decimal> => Body, AtLeast(0);
        /// Deprecated; the contract contradicts itself on whether it pauses the key. The server's default is `false`.
        pause_on_exceed: Option<bool> => Body;
        /// Percentages of a limit at which an alert is raised, 1 to 100 each.
        alert_thresholds: Option<Vec<i64>> => Body, Between(1, 100);
        /// Whether purchases with this key are stopped.
        paused: Option<bool> => Body;
    }
}

record! {
    /// The alerts take no parameters.
    GetUsageAlerts {}
}

endpoints! { Agent;
    /// Has a key sent to a mailbox. A repeat sends the same key again; the trial credit is granted once an address.
    request_api_key: Post "/account/request-api-key", Public, TwiceAtMost, Free, RequestApiKey => ApiKeyRequest;
    /// Opens an account and returns its credentials. It is never sent twice, since that could open two accounts.
    register_account: Post "/account/register", Public, AtMostOnce, Free, RegisterAccount => Registration;
    /// Reads the account that the key belongs to.
    get_account: Get "/account/info", Key, Safe, Free, GetAccount => AccountInfo;
    /// Reads limits, estimated spend, the pause and the next reset of the key's budget. The service does not document its
    /// fields; see `raw`.
    get_budget: Get "/account/budget", Key, Safe, Free, GetBudget => Json;
    /// Changes the key's budget: the guard that holds across processes. The service does not document the fields of the answer; see `raw`.
    update_budget: Put "/account/budget", Key, Keyed, Free, UpdateBudget => Json;
    /// Reads which thresholds were crossed, and whether the key is paused. The service does not document its fields; see `raw`.
    get_usage_alerts: Get "/account/usage-alerts", Key, Safe, Free, GetUsageAlerts => Json;
}
