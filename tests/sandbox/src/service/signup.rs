//! Opening an account: a key by mail with a trial credit, or credentials in the answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::HeaderMap;
use rust_decimal::Decimal;
use serde::Serialize;

use super::account::{Account, FIRST_AGENT};
use super::call::Call;
use super::envelope::{Code, Number, Refusal, Reply, timestamp};
use super::input::{Body, required};
use super::{Service, ids};

/// The trial credit in USD.
const TRIAL: Decimal = Decimal::ONE;
const TRIAL_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// How soon after a mail a repeat sends none.
const RECENTLY_MS: i64 = 60_000;

/// A mail with a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mail {
    /// The address that it went to.
    pub to: String,
    /// The key that it holds.
    pub api_key: String,
    /// When it was sent, in Unix milliseconds.
    pub at_ms: i64,
}

/// The requests for keys, and their sources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signups {
    /// By address in lower case; each with the place of its account.
    addresses: Vec<Signup>,
    installations: BTreeSet<String>,
    networks: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Signup {
    address: Arc<str>,
    account: usize,
    granted_at: i64,
    mailed_at: i64,
}

#[derive(Serialize)]
struct Requested {
    status: &'static str,
    claim_status: &'static str,
    trial_balance: Number,
    balance: Number,
    backend_ready: bool,
    message: &'static str,
    trial: Trial,
}

#[derive(Serialize)]
struct Trial {
    granted: bool,
    amount_usd: Number,
    expires_at: String,
}

#[derive(Serialize)]
struct Registered<'a> {
    agent_id: u32,
    api_key: &'a str,
    api_secret: String,
    backend_ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend_sync_error: Option<&'a str>,
}

#[derive(Serialize)]
struct Info<'a> {
    agent_id: u32,
    api_key_prefix: String,
    name: Option<&'a str>,
    backend_ready: bool,
}

/// Has the key of an address sent there; a new address gets an account with a trial credit first.
pub(crate) fn request_api_key(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::parse(call.body)?;
    let email = required("email", body.text("email")?)?;
    if !is_email(&email) {
        return Err(Refusal::invalid("email", "must be an email address"));
    }
    check_referral(&body)?;
    let installation = installation(call.headers)?;
    let address = email.to_ascii_lowercase();
    let known = service.signups.addresses.iter().position(|signup| *signup.address == *address);
    let (place, is_new) = match known {
        Some(place) => (place, false),
        None => (service.sign_up(&address, installation, network(call.headers), call.now_ms)?, true),
    };
    let Signup { account, granted_at, mailed_at, .. } = service.signups.addresses[place];
    let status = if !is_new && (0..RECENTLY_MS).contains(&(call.now_ms - mailed_at)) {
        "email_recently_sent"
    } else {
        service.signups.addresses[place].mailed_at = call.now_ms;
        let api_key = service.accounts[account].api_key.to_string();
        service.mails.push(Mail { to: email, api_key, at_ms: call.now_ms });
        "email_sent"
    };
    let account = &service.accounts[account];
    let expires_at = timestamp(granted_at.saturating_add(TRIAL_MS));
    let requested = Requested {
        status,
        claim_status: if is_new { "granted" } else { "already_granted" },
        trial_balance: Number(account.trial_left),
        balance: Number(account.balance),
        backend_ready: account.unready.is_none(),
        message: "the key is in the mail",
        trial: Trial { granted: true, amount_usd: Number(TRIAL), expires_at },
    };
    Ok(Reply::new(200, &requested))
}

/// Opens an account without a trial credit.
pub(crate) fn register(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::parse(call.body)?;
    let name = required("name", body.text("name")?)?;
    body.text("contact_email")?;
    check_referral(&body)?;
    let place = service.open_account();
    service.accounts[place].name = Some(Arc::from(name));
    let account = &service.accounts[place];
    let registered = Registered {
        agent_id: account.agent_id,
        api_key: &account.api_key,
        api_secret: ids::token(service.config.seed, ids::API_SECRET, place as u64),
        backend_ready: account.unready.is_none(),
        backend_sync_error: account.unready.as_deref(),
    };
    Ok(Reply::new(201, &registered))
}

pub(crate) fn info(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let account = service.account(call);
    let info = Info {
        agent_id: account.agent_id,
        api_key_prefix: masked(&account.api_key),
        name: account.name.as_deref(),
        backend_ready: account.unready.is_none(),
    };
    Ok(Reply::new(200, &info))
}

/// A key that can be recognised and not used. A short one shows nothing of itself.
fn masked(key: &str) -> String {
    let letters: Vec<char> = key.chars().collect();
    match letters.len() {
        12.. => letters[..4].iter().chain(&['…']).chain(&letters[letters.len() - 4..]).collect(),
        _ => "…".to_owned(),
    }
}

/// A referral code is the number of an account in unpadded base64url.
fn check_referral(body: &Body) -> Result<(), Refusal> {
    let Some(code) = body.text("referral_code")? else {
        return Ok(());
    };
    let decoded = BASE64_URL_SAFE_NO_PAD.decode(code).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    match decoded.and_then(|text| text.parse::<u32>().ok()) {
        Some(_) => Ok(()),
        None => Err(Refusal::new(Code::InvalidReferralCode, "referral_code could not be decoded")),
    }
}

fn installation(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    const NAME: &str = "X-Client-Installation-Id";
    let Some(value) = headers.get(NAME) else {
        return Ok(None);
    };
    let text = value.to_str().ok().filter(|text| is_uuid(text));
    text.map(|text| Some(text.to_ascii_lowercase())).ok_or_else(|| Refusal::invalid(NAME, "must be a uuid"))
}

/// The network that a request says it comes from. All come from loopback here, so without a word none is known.
fn network(headers: &HeaderMap) -> Option<String> {
    let said = headers.get("X-Forwarded-For")?.to_str().ok()?;
    said.split(',').next().map(|first| first.trim().to_owned()).filter(|first| !first.is_empty())
}

fn is_email(text: &str) -> bool {
    let plain = text.len() <= 254 && !text.chars().any(|letter| letter.is_whitespace() || letter.is_control());
    match text.rsplit_once('@') {
        Some((name, host)) => plain && !name.is_empty() && !name.contains('@') && host.split('.').all(|label| !label.is_empty()),
        None => false,
    }
}

fn is_uuid(text: &str) -> bool {
    let groups = text.split('-').map(str::len);
    groups.eq([8, 4, 4, 4, 12]) && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// The mailbox behind an address: what follows a `+` is only a label.
fn mailbox(address: &str) -> String {
    let (name, host) = address.rsplit_once('@').unwrap_or((address, ""));
    format!("{}@{host}", name.split('+').next().unwrap_or(name))
}

impl Service {
    /// Every mail, in order.
    pub fn mails(&self) -> &[Mail] {
        &self.mails
    }

    /// Makes an account with a trial credit, unless mailbox, network or installation had one.
    fn sign_up(&mut self, address: &str, installation: Option<String>, network: Option<String>, now_ms: i64) -> Result<usize, Refusal> {
        let known = &self.signups;
        let cause = if known.addresses.iter().any(|signup| mailbox(&signup.address) == mailbox(address)) {
            Some("email")
        } else if installation.as_ref().is_some_and(|id| known.installations.contains(id)) {
            Some("installation")
        } else if network.as_ref().is_some_and(|network| known.networks.contains(network)) {
            Some("network")
        } else {
            None
        };
        if let Some(cause) = cause {
            return Err(Refusal::new(Code::TrialNotEligible, format!("this {cause} had its trial credit")).detail("cause", cause));
        }
        let account = self.open_account();
        self.accounts[account].trial_left = TRIAL;
        self.credit(account, "trial_credit", TRIAL, None, now_ms);
        self.signups.installations.extend(installation);
        self.signups.networks.extend(network);
        let signup = Signup { address: Arc::from(address), account, granted_at: now_ms, mailed_at: now_ms };
        self.signups.addresses.push(signup);
        Ok(self.signups.addresses.len() - 1)
    }

    /// Opens an empty account with a key of its own. A product without a quote for the account is quoted at its present price.
    fn open_account(&mut self) -> usize {
        let place = self.accounts.len();
        let number = place as u64;
        let api_key = format!("sandbox-{}", ids::token(self.config.seed, ids::API_KEY, number));
        let agent_id = FIRST_AGENT.saturating_add(u32::try_from(place).unwrap_or(u32::MAX));
        let mut account = Account::new(agent_id, &api_key, Decimal::ZERO);
        account.quoted = self.prices.clone();
        account.unready = self.new_unready.clone();
        self.accounts.push(account);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_key_shows_four_letters_of_each_end_at_most() {
        assert_eq!(masked("sandbox-0123456789abcdef"), "sand…cdef");
        assert_eq!(masked("short-key"), "…");
    }

    #[test]
    fn addresses_and_uuids_are_told_from_other_text() {
        for good in ["a@b", "a+b@example.com", "x!#$%@sub.example.com"] {
            assert!(is_email(good), "{good}");
        }
        for bad in ["", "a", "@b", "a@", "a b@c", "a@b..c", "a@b@c", "a@.b"] {
            assert!(!is_email(bad), "{bad}");
        }
        assert!(is_uuid("123e4567-e89b-12d3-a456-426614174000"));
        assert!(!is_uuid("123e4567e89b12d3a456426614174000") && !is_uuid("123e4567-e89b-12d3-a456-42661417400g"));
    }

    #[test]
    fn labels_of_an_address_share_a_mailbox() {
        assert_eq!(mailbox("a+one@example.com"), mailbox("a@example.com"));
        assert_ne!(mailbox("a@example.com"), mailbox("b@example.com"));
    }
}
