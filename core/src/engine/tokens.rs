//! The tokens of the reseller API: the one in use, and the former ones, so that no error repeats one.

use std::collections::VecDeque;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rust_decimal::prelude::ToPrimitive;

use crate::contract::reseller::Login as LoginRequest;
use crate::contract::{Decimal, Operation, Secret};
use crate::json::{pick, text_of};
use crate::policy::Error;
use crate::time::Millis;

/// The operation of a login.
pub(crate) const LOGIN: &str = LoginRequest::ENDPOINT.name;
/// The number of former tokens that are remembered.
const FORMER: usize = 4;
/// A token is renewed this long before its own `exp`.
const EARLY: Millis = 60_000;

/// The state of the login.
#[derive(Clone, Default, Hash)]
pub(crate) struct Tokens {
    /// The username and the password, where the client was given them.
    pub(crate) credentials: Option<(Secret, Secret)>,
    /// The token, and the time of its renewal, in Unix milliseconds.
    token: Option<(Secret, Option<Millis>)>,
    /// True if the first token's end is still to be read: a client is made before the time is known.
    unread: bool,
    /// The last former tokens: a late answer may repeat the one of its request.
    former: VecDeque<Secret>,
    /// The number of tokens so far, which distinguishes a refused token from a newer one.
    generation: u32,
    /// The reason why the service refused the credentials: they are not sent again.
    pub(crate) refused: Option<Error>,
}

impl Tokens {
    pub(crate) fn new(credentials: Option<(Secret, Secret)>, token: Option<Secret>) -> Self {
        Tokens { credentials, unread: token.is_some(), token: token.map(|token| (token, None)), ..Tokens::default() }
    }

    pub(crate) fn token(&self) -> Option<&Secret> {
        self.token.as_ref().map(|(token, _)| token)
    }

    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns true if a send must wait for a login first.
    pub(crate) fn must_log_in(&mut self, unix: Millis) -> bool {
        if std::mem::take(&mut self.unread) {
            self.token.take().into_iter().for_each(|(token, _)| self.take(token, unix));
        }
        let usable = self.token.as_ref().is_some_and(|(_, renew_at)| renew_at.is_none_or(|at| unix < at));
        !usable && self.credentials.is_some()
    }

    /// Returns true if there is no token at all, and a login would bring one.
    pub(crate) fn is_missing(&self) -> bool {
        self.token.is_none() && self.credentials.is_some()
    }

    /// Takes the token from the answer to a login. Returns true if there was one.
    pub(crate) fn take_from(&mut self, data: &str, unix: Millis) -> bool {
        // Only the token of the answer is read: the login succeeds even if other members are invalid.
        let token = pick(data, ["token"]).and_then(|[token]| text_of(token?));
        let token = token.filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
        token.map(|token| self.take(Secret::new(token), unix)).is_some()
    }

    /// Takes a token into use. A token whose own `exp` is past already is used until it is refused.
    fn take(&mut self, token: Secret, unix: Millis) {
        let renew_at = expiry(token.reveal()).map(|ends| ends.saturating_sub(EARLY)).filter(|at| *at > unix);
        self.generation = self.generation.wrapping_add(1);
        self.drop();
        self.token = Some((token, renew_at));
        self.refused = None;
    }

    /// Gives up the token.
    pub(crate) fn drop(&mut self) {
        if let Some((token, _)) = self.token.take() {
            self.former.push_front(token);
            self.former.truncate(FORMER);
        }
    }

    /// Keeps a token that was only to be renewed early, until it is refused. Returns true if there is one.
    pub(crate) fn keep_old(&mut self) -> bool {
        self.token.as_mut().map(|(_, renew_at)| *renew_at = None).is_some()
    }

    /// The secrets that no error may repeat, even if the service does.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let (username, password) = self.credentials.as_ref().map(|(username, password)| (username, password)).unzip();
        [password, username].into_iter().flatten().chain(self.token()).chain(&self.former)
    }
}

/// The end of a token by its own `exp`, in Unix milliseconds. The claim is not verified: it only decides when to log in early.
fn expiry(token: &str) -> Option<Millis> {
    let payload = token.split('.').nth(1).filter(|payload| payload.len() <= 1 << 16)?;
    let claims = String::from_utf8(URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?).ok()?;
    let [ends] = pick(&claims, ["exp"])?;
    ends?.parse::<Decimal>().ok()?.0.checked_mul(1000.into())?.to_i64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_token_is_read_where_it_can_be() {
        let token = |payload: &str| format!("h.{}.s", URL_SAFE_NO_PAD.encode(payload));
        assert_eq!(expiry(&token(r#"{"exp":1700000000,"sub":1}"#)), Some(1_700_000_000_000));
        assert_eq!(expiry(&token(r#"{"exp":1700000000.5}"#)), Some(1_700_000_000_500));
        let never = token(r#"{"exp":1e300}"#);
        for odd in ["", "opaque", "a.b", "a.!!.c", &token("{}"), &token(r#"{"exp":"soon"}"#), &token("[]"), &never] {
            assert_eq!(expiry(odd), None, "{odd}");
        }
    }

    fn with(token: Option<&str>) -> Tokens {
        Tokens::new(Some((Secret::new("u"), Secret::new("p"))), token.map(Secret::new))
    }

    fn ends_at(unix: Millis) -> String {
        format!("h.{}.s", URL_SAFE_NO_PAD.encode(format!(r#"{{"exp":{}}}"#, unix / 1000)))
    }

    #[test]
    fn a_login_is_needed_without_a_token_and_only_with_credentials() {
        assert!(with(None).must_log_in(0) && !with(Some("opaque")).must_log_in(0));
        assert!(!Tokens::new(None, None).must_log_in(0) && !Tokens::new(None, None).is_missing());
        let mut tokens = with(Some("opaque"));
        assert!(!tokens.is_missing());
        tokens.drop();
        assert!(tokens.is_missing() && tokens.must_log_in(0));
    }

    #[test]
    fn a_token_is_renewed_a_minute_before_its_own_end_and_else_used_until_it_is_refused() {
        let mut tokens = with(Some(&ends_at(100_000)));
        assert_eq!([0, 39_999, 40_000].map(|unix| tokens.must_log_in(unix)), [false, false, true]);
        assert!(tokens.keep_old() && !tokens.must_log_in(40_000));
        // A token that is already expired by its own `exp`: the service's clock may be another.
        assert!(!with(Some(&ends_at(100_000))).must_log_in(200_000));
        // A token that would be renewed as soon as it comes: every login may bring such a one.
        assert!(!with(Some(&ends_at(100_000))).must_log_in(40_000));
    }

    #[test]
    fn a_login_brings_a_token_that_fits_a_header_and_takes_back_a_refusal() {
        let mut tokens = with(None);
        tokens.refused = Some(Error::invalid(LOGIN, "password", "is wrong"));
        for odd in ["{}", r#"{"token":""}"#, r#"{"token":"a b"}"#, r#"{"token":"a\nb"}"#, r#"{"token":7}"#, "[]"] {
            assert!(!tokens.take_from(odd, 0) && tokens.refused.is_some(), "{odd}");
        }
        assert!(tokens.take_from(r#"{"token":"t-1","user":{}}"#, 0));
        assert_eq!((tokens.token().map(Secret::reveal), tokens.generation(), tokens.refused.is_none()), (Some("t-1"), 1, true));
    }

    #[test]
    fn the_last_four_tokens_stay_secrets() {
        let mut tokens = with(Some("t-0"));
        for n in 1..=6 {
            tokens.take_from(&format!(r#"{{"token":"t-{n}"}}"#), 0);
        }
        let secrets: Vec<&str> = tokens.secrets().map(Secret::reveal).collect();
        assert_eq!(secrets, ["p", "u", "t-6", "t-5", "t-4", "t-3", "t-2"]);
    }
}
