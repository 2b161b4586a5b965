//! The table of error codes: status, meaning, advice, and what the client does by itself.

use std::fmt;

use crate::contract::{Api, closed_enum};

closed_enum! {
    /// The next step for a person or a program.
    pub enum Advice {
        /// Nothing helps until a person has checked the account or the key.
        Stop = "stop",
        /// Check the username and the password, or the token, and log in again.
        Reauthenticate = "reauthenticate",
        /// Check the base URL.
        CheckBaseUrl = "check_base_url",
        /// Change the request.
        ChangeRequest = "change_request",
        /// Read the session: its state may have changed.
        ReadSession = "read_session",
        /// Top up the balance.
        Recharge = "recharge",
        /// Raise a limit, lift the pause if there is one, or buy less.
        RaiseBudget = "raise_budget",
        /// Read the prices, then change the product or the limit.
        ReadPrices = "read_prices",
        /// Terminate a session first.
        TerminateSession = "terminate_session",
        /// Terminate the session again: a second termination does no harm.
        TerminateAgain = "terminate_again",
        /// Wait, until `retry_at` where it is given.
        Wait = "wait",
        /// Try again later.
        RetryLater = "retry_later",
        /// Resume the operation by its intent or record, which sends the same key, or settle it by hand.
        Resume = "resume",
        /// Check the account before you buy again, and settle the record.
        CheckAccount = "check_account",
        /// Wait until the other command or client that works on it has ended.
        WaitForOther = "wait_for_other",
        /// Look the operation up: `reconcile` shows candidates from the service.
        Reconcile = "reconcile",
        /// Wait for the session by its id, or start its intent again.
        WaitSession = "wait_session",
        /// Wait for the order by its number.
        WaitOrder = "wait_order",
        /// Choose a new intent, or forget this one.
        NewIntent = "new_intent",
        /// Make another client, or make it after the fork.
        NewClient = "new_client",
        /// Make a store for each client.
        NewStore = "new_store",
        /// Repair the store.
        MendStore = "mend_store",
        /// The operation took effect: read the answer from `raw`.
        ReadRaw = "read_raw",
        /// Nothing needs to be done.
        Nothing = "nothing",
    }
}

impl Advice {
    /// The advice as the end of a sentence.
    pub fn in_words(self) -> &'static str {
        match self {
            Advice::Stop => "check the account and the key before you go on",
            Advice::Reauthenticate => "check the username and the password, or the token, and log in again",
            Advice::CheckBaseUrl => "check the base URL",
            Advice::ChangeRequest => "change the request",
            Advice::ReadSession => "read the session to see where it is",
            Advice::Recharge => "recharge, then try again",
            Advice::RaiseBudget => "raise the limit, lift the pause if there is one, or buy less",
            Advice::ReadPrices => "read the prices, then change the product or the limit",
            Advice::TerminateSession => "terminate a session first",
            Advice::TerminateAgain => "terminate the session again",
            Advice::Wait => "wait before you try again",
            Advice::RetryLater => "try again later",
            Advice::Resume => "resume it by its intent or its record, or settle it once you know its outcome; do not start another one",
            Advice::CheckAccount => {
                "check the account's resources and charges before you start another one, and settle its record if it has one"
            }
            Advice::WaitForOther => "wait until the other call has ended, and check its result before you try again",
            Advice::Reconcile => "look it up with `reconcile`, then settle it; do not start another one",
            Advice::WaitSession => "wait for the session by its id, or start its intent again if it has one",
            Advice::WaitOrder => "wait for the order by its number, or read it from the list of orders",
            Advice::NewIntent => "choose a new intent, such as one with the date, or forget this one",
            Advice::NewClient => "make another client",
            Advice::NewStore => "make a store for each client",
            Advice::MendStore => "repair the store",
            Advice::ReadRaw => "read the answer from `raw`",
            Advice::Nothing => "nothing needs to be done",
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.in_words())
    }
}

/// The client's own reaction to a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Automatic {
    /// Nothing.
    No,
    /// Waits and sends the same key again, while the whole client holds back.
    Wait,
    /// Waits for the earlier request to end, with the same key, and never makes a new one.
    AwaitEarlier,
    /// Reads the price again and buys with a new key, if the caller set a limit for the price.
    UnderCap,
    /// Sends again with a new key, if the operation may be repeated: the old one replays the error.
    NewKey,
}

impl Automatic {
    /// The reaction as a sentence of the documentation.
    pub fn as_str(self) -> &'static str {
        match self {
            Automatic::No => "nothing",
            Automatic::Wait => "waits, as does the whole client, and sends the same key again",
            Automatic::AwaitEarlier => "with a key: waits for the earlier request to end, and sends the same key again",
            Automatic::UnderCap => "under the caller's own `max_unit_price`: reads the price again and buys with a new key",
            Automatic::NewKey => "sends again, with a new key if the operation has keys; a paid operation only with `retry_paid`",
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct CodeRow {
    /// The code.
    pub code: &'static str,
    /// The HTTP status that the code comes with.
    pub status: u16,
    /// The meaning, as part of a sentence.
    pub meaning: &'static str,
    /// The next step.
    pub advice: Advice,
    /// The client's own reaction.
    pub automatic: Automatic,
    /// True if the answer is the operation's own, stored for its key, after which the key can't charge any more.
    pub settles: bool,
}

impl CodeRow {
    /// The next step after a read, which has no record to resume.
    pub(crate) fn advice_of_read(&self) -> Advice {
        match self.advice {
            Advice::Resume => Advice::RetryLater,
            advice => advice,
        }
    }
}

/// Every code that the contract names.
#[rustfmt::skip]
pub const CODES: &[CodeRow] = &[
    row("AUTH_INVALID_KEY", 401, "the API key is missing or not active", Advice::Stop, Automatic::No, false),
    row("AUTH_EXPIRED_TOKEN", 401, "the token is invalid or expired", Advice::Reauthenticate, Automatic::No, false),
    row("AUTH_INSUFFICIENT_PERMISSION", 403, "the account lacks the permission", Advice::Stop, Automatic::No, false),
    row("ACCOUNT_DISABLED", 403, "the account is not active", Advice::Stop, Automatic::No, false),
    row("INVALID_REQUEST", 400, "the request is not valid", Advice::ChangeRequest, Automatic::No, true),
    row("INVALID_REFERRAL_CODE", 400, "the referral code is not valid", Advice::ChangeRequest, Automatic::No, true),
    row("ROUTE_NOT_FOUND", 404, "the API has no such path", Advice::CheckBaseUrl, Automatic::No, false),
    row("INSUFFICIENT_BALANCE", 402, "the balance does not cover the charge", Advice::Recharge, Automatic::No, true),
    row("BUDGET_EXCEEDED", 402, "a budget forbids the charge or the key is paused", Advice::RaiseBudget, Automatic::No, true),
    row("IDEMPOTENCY_CONFLICT", 409, "the idempotency key belongs to another request or to one in progress", Advice::Resume, Automatic::AwaitEarlier, false),
    row("RATE_LIMIT_EXCEEDED", 429, "too many requests", Advice::Wait, Automatic::Wait, false),
    row("TRIAL_NOT_ELIGIBLE", 429, "no further trial credit is given here", Advice::Stop, Automatic::No, true),
    row("PRODUCT_NOT_FOUND", 404, "there is no such product", Advice::ChangeRequest, Automatic::No, true),
    row("PRODUCT_OUT_OF_STOCK", 409, "the product can't be bought now", Advice::ChangeRequest, Automatic::No, true),
    row("PRICE_MISMATCH", 409, "the price changed after it was read", Advice::ReadPrices, Automatic::UnderCap, true),
    row("SESSION_NOT_FOUND", 404, "the account has no such session", Advice::ChangeRequest, Automatic::No, true),
    row("SESSION_EXPIRED", 410, "the session's status does not allow this", Advice::ReadSession, Automatic::No, true),
    row("SESSION_LIMIT_REACHED", 429, "the account has reached its session limit", Advice::TerminateSession, Automatic::No, true),
    row("BACKEND_ERROR", 502, "the resource backend failed", Advice::RetryLater, Automatic::NewKey, true),
    row("BACKEND_TIMEOUT", 504, "the resource backend did not answer in time", Advice::RetryLater, Automatic::NewKey, true),
    row("INTERNAL_ERROR", 500, "the service failed", Advice::RetryLater, Automatic::NewKey, true),
];

const fn row(code: &'static str, status: u16, meaning: &'static str, advice: Advice, automatic: Automatic, settles: bool) -> CodeRow {
    CodeRow { code, status, meaning, advice, automatic, settles }
}

/// The row of a code, where the contract names it.
pub fn code(code: &str) -> Option<&'static CodeRow> {
    CODES.iter().find(|row| row.code == code)
}

/// The meaning of a code, where the contract names it.
pub(crate) fn meaning(api: Api, code: &str) -> &'static str {
    if api == Api::Reseller {
        return match code {
            super::refusals::LOCATION => "the product is not sold in that region; the details list the regions where it is sold",
            // NOT DOCUMENTED: any other code.
            _ => "the service refused the request",
        };
    }
    self::code(code).map_or("the service refused the request with an undocumented code", |row| row.meaning)
}
