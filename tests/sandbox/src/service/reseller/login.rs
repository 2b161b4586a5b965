//! The login, and the token that lets a request through.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::HeaderMap;
use serde::{Deserialize, Serialize};

use super::call::{Call, Owner};
use super::envelope::{forbidden, refused};
use crate::service::envelope::{Number, Refusal, Reply, raw};
use crate::service::input::{Body, required};
use crate::service::{Service, ids};

/// How long a token is good by default.
const LIFETIME_MS: i64 = 2 * 60 * 60 * 1000;

/// How tokens are given, and which are still good.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    pub(super) lifetime_ms: i64,
    /// Tokens of an earlier generation are expired, whatever they say.
    pub(super) generation: u32,
}

impl Default for Tokens {
    fn default() -> Self {
        Self { lifetime_ms: LIFETIME_MS, generation: 0 }
    }
}

#[derive(Serialize)]
struct LoggedIn<'a> {
    token: String,
    user: UserInfo<'a>,
}

#[derive(Serialize)]
struct UserInfo<'a> {
    id: u32,
    username: &'a str,
    balance: Number,
    status: &'static str,
}

/// The claims of a token.
#[derive(Serialize, Deserialize)]
struct Claims {
    sub: String,
    iat: i64,
    exp: i64,
    /// The generation of the token, and the request that it was given to.
    generation: u32,
    request: u64,
}

/// Gives a token for a user name and its password.
pub(crate) fn login(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::parse(call.body)?;
    let username = required("username", body.text("username")?)?;
    let password = required("password", body.text("password")?)?;
    let owner = service.by_login(&username, &password).ok_or_else(|| refused(401, "the user name or password is wrong"))?;
    service.check_open(owner)?;
    let token = service.token(owner, call.now_ms);
    let user = UserInfo { id: service.id_of(owner), username: &username, balance: Number(service.balance_of(owner)), status: "active" };
    Ok(Reply::new(200, &LoggedIn { token, user }))
}

impl Service {
    /// The sender of a request with a bearer token.
    pub(super) fn bearer(&self, headers: &HeaderMap, now_ms: i64) -> Result<Owner, Refusal> {
        let refuse = |message: &str| refused(401, message);
        let given = headers.get("Authorization").ok_or_else(|| refuse("the bearer token is missing"))?;
        let token = given.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
        let claims = token.and_then(|token| self.claims(token)).ok_or_else(|| refuse("the bearer token is not one of this service"))?;
        if claims.generation != self.backend.tokens.generation || now_ms >= claims.exp.saturating_mul(1000) {
            return Err(refuse("the bearer token is expired"));
        }
        let owner = claims.sub.parse().ok().and_then(|id| self.by_id(id));
        let owner = owner.ok_or_else(|| refuse("the bearer token belongs to nobody any more"))?;
        self.check_open(owner)?;
        Ok(owner)
    }

    /// Refuses whoever may not use the backend now.
    fn check_open(&self, owner: Owner) -> Result<(), Refusal> {
        if let Some(reason) = &self.accounts[owner.agent].unready {
            return Err(refused(401, format!("the account has no login to the backend: {reason}")));
        }
        let is_disabled = owner.user.is_some_and(|user| self.backend.users[user].is_disabled);
        if is_disabled || !self.accounts[owner.agent].is_active() {
            return Err(forbidden("the account is disabled"));
        }
        Ok(())
    }

    fn token(&self, owner: Owner, now_ms: i64) -> String {
        let Tokens { lifetime_ms, generation } = self.backend.tokens;
        let exp = now_ms.saturating_add(lifetime_ms).saturating_add(999).div_euclid(1000);
        let claims = Claims { sub: self.id_of(owner).to_string(), iat: now_ms.div_euclid(1000), exp, generation, request: self.requests };
        let part = |json: &str| BASE64_URL_SAFE_NO_PAD.encode(json);
        let signed = format!("{}.{}", part(r#"{"alg":"HS256","typ":"JWT"}"#), part(raw(&claims).get()));
        let signature = BASE64_URL_SAFE_NO_PAD.encode(self.signature(&signed));
        format!("{signed}.{signature}")
    }

    fn claims(&self, token: &str) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let is_own = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()? == self.signature(signed);
        let (_, claims) = signed.split_once('.').filter(|_| is_own)?;
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }

    /// As long as an HS256 signature, and no more than a mark of the seed: nothing here is worth forging.
    fn signature(&self, signed: &str) -> Vec<u8> {
        let mix = |lane, mixed, byte: u8| ids::number(mixed, ids::BEARER + lane, byte.into());
        (0..4).flat_map(|lane| signed.bytes().fold(self.config.seed, |mixed, byte| mix(lane, mixed, byte)).to_be_bytes()).collect()
    }
}
