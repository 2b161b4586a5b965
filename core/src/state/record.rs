//! What survives a crash: versioned JSON without secrets.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::fingerprint::{Fingerprint, MemberDigests};
use super::names::Name;
use crate::contract::{ANY, Api, Endpoint, Json, Method, Safety, Sink, Tell, any, endpoint, json_of, stored};
use crate::engine::{Counted, SavedAge};
use crate::json::{FromJson, FromJsonError, Scanner, items, pick, read_json, text_of, whole};
use crate::time::{At, Millis};
use crate::wire::{Facts, is_key, is_target};

/// The version that this library writes, and the only one that it reads.
const VERSION: u32 = 2;
/// A record is a few hundred bytes; whatever is larger than this was not written here.
const MAX_BYTES: usize = 1 << 20;

/// A record.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(crate) struct Data {
    /// The version of the format.
    pub(crate) hopline: u32,
    /// How often something was put under its name.
    pub(crate) puts: u32,
    /// The API it belongs to.
    pub(crate) base_url: String,
    /// Whose it is.
    pub(crate) account: Account,
    /// When and by whom it was written.
    pub(crate) at: At,
    /// The caller's own name for it.
    pub(crate) intent: Option<String>,
    /// The key of the caller's own that is its name.
    pub(crate) key: Option<String>,
    /// Tells its request from another one under the same name.
    pub(crate) fingerprint: Option<Fingerprint>,
    /// Says in what another request differs.
    pub(crate) members: Option<MemberDigests>,
    /// The call that may be under way.
    pub(crate) call: Option<SavedCall>,
    /// The session.
    pub(crate) session: Option<SavedSession>,
    /// What it ended with.
    pub(crate) done: Option<Done>,
    /// Where the last renewal of a session is that has a name of its caller's.
    pub(crate) renewal: Option<Name>,
}

/// An account, known again without being named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Account {
    pub(crate) salt: String,
    pub(crate) digest: String,
}

/// A call that was about to be sent.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(crate) struct SavedCall {
    pub(crate) operation: String,
    /// Of a request that the table does not have.
    pub(crate) any: Option<(Method, Safety)>,
    pub(crate) target: String,
    pub(crate) body: Option<String>,
    /// The request held a secret and was not saved.
    pub(crate) secret: bool,
    /// The session that it changes.
    pub(crate) session_id: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) given: bool,
    pub(crate) may_have_sold: bool,
    /// Whether an earlier send had no settling answer when this was written.
    pub(crate) unanswered: bool,
    /// Whether the key is settled and the effect open all the same.
    pub(crate) spent: bool,
    /// Whether what it buys or places is followed after the answer, as `open_session` and `place_order` do.
    pub(crate) follows: bool,
    pub(crate) credentials: bool,
    pub(crate) auto_rotate: bool,
    pub(crate) ends: Vec<String>,
    /// The age of its first send, and when it was that.
    pub(crate) age: SavedAge,
    /// Since when it is in doubt, Unix milliseconds.
    pub(crate) doubt_since: Option<Millis>,
    /// What it, and earlier keys that may have bought all the same, count under the day's cap.
    pub(crate) counted: Vec<Counted>,
    /// What a list may show of it.
    pub(crate) match_fields: BTreeMap<String, String>,
    /// The order that it was accepted as: all that is left is to watch it.
    pub(crate) order_no: Option<String>,
    /// Of a renewal: whether its session was ended since.
    pub(crate) session_over: bool,
    /// Whether an app's own backend refused every send of its key, so that nothing came of it and nobody goes on with it.
    pub(crate) refused: bool,
}

/// A session of this client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct SavedSession {
    pub(crate) id: String,
    pub(crate) session_type: Option<String>,
    pub(crate) status: Option<String>,
    /// Whether its username and password are wanted.
    pub(crate) credentials: bool,
    /// Whether what is seen through it may rotate it.
    pub(crate) auto_rotate: bool,
    /// Further statuses that end it.
    pub(crate) ends: Vec<String>,
    /// Whether a person named it, and the service has not shown it yet.
    pub(crate) only_named: bool,
    /// USD, as its purchase was charged, where the service said so.
    pub(crate) charged_usd: Option<String>,
}

/// What an accepted intent is remembered by.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(crate) struct Done {
    pub(crate) operation: String,
    pub(crate) facts: Facts,
    /// Whether it is followed when the intent is started again: a session that was opened, an order that was placed.
    pub(crate) follows: bool,
    /// Of the answer what its type names and does not mark as secret, where that is short.
    pub(crate) answer: Option<Json>,
}

stored!(Data { hopline, puts, base_url, account, at, intent, key, fingerprint, members, call, session, done, renewal });
stored!(Account { salt, digest });
stored!(At { unix, client, elapsed });
stored!(SavedCall {
    operation,
    any,
    target,
    body,
    secret,
    session_id,
    key,
    given,
    may_have_sold,
    unanswered,
    spent,
    follows as "opens",
    credentials,
    auto_rotate,
    ends,
    age,
    doubt_since,
    counted,
    match_fields,
    order_no,
    session_over,
    refused,
});
stored!(SavedSession { id, session_type, status, credentials, auto_rotate, ends, only_named, charged_usd });
stored!(Done { operation, facts, follows as "opened", answer });

impl FromJson for (Method, Safety) {
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        match items(json)?.as_slice() {
            [method, safety] => Ok((Method::from_json(method)?, Safety::from_json(safety)?)),
            _ => Err(FromJsonError::here()),
        }
    }
}

impl Tell for (Method, Safety) {
    fn tell<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.json(&format!("[\"{}\",\"{}\"]", self.0.as_str(), self.1.as_str()))
    }
}

/// What a record says of itself to somebody who looks into the store, such as a test of a store or of this client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The caller's own name for it.
    pub intent: Option<String>,
    /// The operation of a call that is under way or in doubt.
    pub operation: Option<String>,
    /// The key of that call.
    pub key: Option<String>,
    /// The body of that call, where it may be sent again.
    pub body: Option<String>,
    /// The parameters of that call that a list may show, where it may not.
    pub match_fields: BTreeMap<String, String>,
    /// The session that it stands for.
    pub session_id: Option<String>,
    /// The order that it stands for.
    pub order_no: Option<String>,
}

/// Says what a record holds. `None` for what is no record of this version.
pub fn describe(data: &[u8]) -> Option<Description> {
    let data: Data = read_json(std::str::from_utf8(data).ok()?).ok()?;
    let (call, done) = (data.call, data.done);
    let of_done = |pick: fn(&Facts) -> &Option<String>| done.as_ref().and_then(|done| pick(&done.facts).clone());
    Some(Description {
        intent: data.intent,
        session_id: data.session.map(|session| session.id).or_else(|| of_done(|facts| &facts.session_id)),
        order_no: call.as_ref().and_then(|call| call.order_no.clone()).or_else(|| of_done(|facts| &facts.order_no)),
        key: call.as_ref().and_then(|call| call.key.clone()),
        body: call.as_ref().and_then(|call| call.body.clone()),
        match_fields: call.as_ref().map(|call| call.match_fields.clone()).unwrap_or_default(),
        operation: call.map(|call| call.operation),
    })
}

/// Why a record is refused. It stays in the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BadRecord {
    /// It is not what was written.
    #[error("the record is damaged and can't be read ({0})")]
    Damaged(&'static str),
    /// Another version of the library wrote it.
    #[error("the record has version {0} of the format, which this version of hopline does not read")]
    OtherVersion(u32),
    /// It belongs to another API.
    #[error("the record belongs to another base URL, `{0}`")]
    OtherApi(String),
    /// It belongs to another account.
    #[error("the record belongs to another account")]
    OtherAccount,
}

/// The intent of a record that can't be read as one: damaged, cut short after it, or of another version.
pub(crate) fn intent_of(bytes: &[u8]) -> Option<String> {
    let whole = || {
        let [intent] = pick(std::str::from_utf8(bytes).ok()?, ["intent"])?;
        text_of(intent?).map(Cow::into_owned)
    };
    whole().or_else(|| {
        // No text inside a record can hold these bytes: its quotes would be escaped.
        let member = b"\"intent\":";
        let at = bytes.windows(member.len()).position(|window| window == member)?;
        let rest = bytes.get(at.saturating_add(member.len())..)?;
        let rest = rest.utf8_chunks().next()?.valid();
        Scanner::new(rest).string().ok()?.plain().map(Cow::into_owned)
    })
}

impl BadRecord {
    /// The reason in a word.
    pub fn as_str(&self) -> &'static str {
        match self {
            BadRecord::Damaged(_) => "damaged",
            BadRecord::OtherVersion(_) => "other_version",
            BadRecord::OtherApi(_) => "other_api",
            BadRecord::OtherAccount => "other_account",
        }
    }
}

impl Data {
    pub(crate) fn version() -> u32 {
        VERSION
    }

    /// Reads a record and checks all that the engine will rely on.
    pub(crate) fn read(bytes: &[u8], api: Api) -> Result<Data, BadRecord> {
        if bytes.len() > MAX_BYTES {
            return Err(BadRecord::Damaged("larger than any record"));
        }
        let text = std::str::from_utf8(bytes).ok();
        let version = text.and_then(|text| pick(text, ["hopline"])).and_then(|[version]| version?.parse().ok());
        let version: u32 = version.ok_or(BadRecord::Damaged("not a JSON object with a version"))?;
        if version != VERSION {
            return Err(BadRecord::OtherVersion(version));
        }
        let data: Data =
            read_json(text.unwrap_or_default()).map_err(|_| BadRecord::Damaged("a member is missing or has the wrong type"))?;
        if data.call.is_none() && data.session.is_none() && data.done.is_none() && data.renewal.is_none() {
            return Err(BadRecord::Damaged("neither a call nor a session"));
        }
        let is_a_record = data.call.is_some() || data.session.is_some() || data.done.is_some() || data.fingerprint.is_some();
        if data.renewal.as_ref().is_some_and(|marked| is_a_record || !marked.is_findable()) {
            return Err(BadRecord::Damaged("its marker is none"));
        }
        if data.call.as_ref().is_some_and(|call| !call.is_sound(api))
            || data
                .done
                .as_ref()
                .is_some_and(|done| done.operation != ANY && endpoint(&done.operation).is_none_or(|known| known.api != api))
        {
            return Err(BadRecord::Damaged("its call is none of this library's"));
        }
        let sessions = [data.session.as_ref().map(|session| &session.id), data.call.as_ref().and_then(|call| call.session_id.as_ref())];
        if sessions.into_iter().flatten().any(|id| matches!(id.as_str(), "" | "." | "..")) {
            return Err(BadRecord::Damaged("its session has no id"));
        }
        let call = data.call.as_ref();
        let mut counted = call.into_iter().flat_map(|call| &call.counted);
        if counted.any(|counted| counted.usd.0 < rust_decimal::Decimal::ZERO) {
            return Err(BadRecord::Damaged("what it counts under the day's cap is below 0"));
        }
        if (data.intent.is_some() || data.key.is_some()) != data.fingerprint.is_some() {
            return Err(BadRecord::Damaged("its name has no request"));
        }
        Ok(data)
    }

    /// The call that an app's own backend refused, where it is no more than that.
    pub(crate) fn refused(&self) -> Option<&SavedCall> {
        self.call.as_ref().filter(|call| call.refused)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        json_of(self).into_bytes()
    }
}

impl SavedCall {
    pub(crate) fn endpoint(&self, api: Api) -> Option<&'static Endpoint> {
        match self.any {
            Some((method, safety)) if self.operation == ANY => Some(any(api, method, safety)),
            _ => endpoint(&self.operation).filter(|endpoint| endpoint.api == api),
        }
    }

    /// Whether it can be sent again at all.
    pub(crate) fn can_resume(&self) -> bool {
        let once = [Api::Agent, Api::Reseller]
            .into_iter()
            .any(|api| self.endpoint(api).is_some_and(|endpoint| endpoint.safety == Safety::AtMostOnce));
        !self.secret && !self.spent && !self.refused && !once
    }

    fn is_sound(&self, api: Api) -> bool {
        let key = self.key.as_deref().is_none_or(is_key);
        // A body is only ever JSON that was built here.
        let body = self.body.as_deref().is_none_or(|body| whole(body).is_ok());
        let keyed = self.endpoint(api).is_some_and(|endpoint| endpoint.safety != Safety::Keyed || self.key.is_some());
        keyed && key && body && is_target(&self.target) && self.age.ms >= 0
    }
}
