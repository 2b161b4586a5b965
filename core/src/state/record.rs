//! Records, which survive a crash: versioned JSON without secrets.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::fingerprint::{Fingerprint, MemberDigests};
use super::names::Name;
use crate::contract::{ANY, Api, Encode, Endpoint, Json, Method, Safety, Sink, any, endpoint, json_of, stored};
use crate::engine::{Counted, Phase, SavedAge, SavedChoice, is_over_for_good, phase_of};
use crate::json::{FromJson, FromJsonError, Scanner, items, pick, read_json, text_of, whole};
use crate::time::{At, Millis};
use crate::wire::{Facts, is_key, is_target, stored_answer};

/// The version that this library writes, and the only one that it reads.
const VERSION: u32 = 2;
/// The largest record that is read. A record is a few hundred bytes, so larger data was not written here.
const MAX_BYTES: usize = 1 << 20;

/// A record.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(crate) struct Data {
    /// The version of the format.
    pub(crate) hopline: u32,
    /// The number of puts under the name.
    pub(crate) puts: u32,
    /// The base URL of the API.
    pub(crate) base_url: String,
    /// The account.
    pub(crate) account: Account,
    /// The moment of the write and its client.
    pub(crate) at: At,
    /// The intent: the caller's own name.
    pub(crate) intent: Option<String>,
    /// The key of the caller's own that the name was made from.
    pub(crate) key: Option<String>,
    /// A digest that distinguishes the request from another one under the same name.
    pub(crate) fingerprint: Option<Fingerprint>,
    /// Digests that say where another request differs.
    pub(crate) members: Option<MemberDigests>,
    /// The call that may be under way.
    pub(crate) call: Option<SavedCall>,
    /// The session.
    pub(crate) session: Option<SavedSession>,
    /// The result of the operation.
    pub(crate) done: Option<Done>,
    /// The record of the session's last renewal that has a name of its caller's.
    pub(crate) renewal: Option<Name>,
    /// The place of this purchase among those of its intent, if there was an earlier one.
    pub(crate) later: Option<LaterPurchase>,
}

/// A purchase of an intent whose earlier session was over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct LaterPurchase {
    /// The number of the intent's purchases, this one included. A first purchase has none, and counts as 1.
    pub(crate) number: u32,
    /// The session before, and its last status.
    pub(crate) last_session_id: String,
    pub(crate) last_status: Option<String>,
}

/// An account, recognizable without being named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Account {
    pub(crate) salt: String,
    pub(crate) digest: String,
}

/// A call that was about to be sent.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(crate) struct SavedCall {
    pub(crate) operation: String,
    /// The method and the safety of a request that the table does not have.
    pub(crate) any: Option<(Method, Safety)>,
    pub(crate) target: String,
    pub(crate) body: Option<String>,
    /// True if the request held a secret and was not saved.
    pub(crate) secret: bool,
    /// The session that the call changes.
    pub(crate) session_id: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) given: bool,
    pub(crate) may_have_sold: bool,
    /// True if an earlier send had no settling answer when this was written.
    pub(crate) unanswered: bool,
    /// True if the key is settled and the effect is still open.
    pub(crate) key_settled: bool,
    /// True if the result is followed after the answer, as by `open_session` and `place_order`.
    pub(crate) follows: bool,
    pub(crate) credentials: bool,
    pub(crate) auto_rotate: bool,
    pub(crate) ends: Vec<String>,
    /// The age of the first send, and the moment at which it had that age.
    pub(crate) age: SavedAge,
    /// The time since when the call is in doubt, Unix milliseconds.
    pub(crate) doubt_since: Option<Millis>,
    /// The entries under the day's cap of this key, and of earlier keys that may have bought all the same.
    pub(crate) counted: Vec<Counted>,
    /// The parameters by which a list may show the call.
    pub(crate) match_fields: BTreeMap<String, String>,
    /// The number of the accepted order, which is followed from then on.
    pub(crate) order_no: Option<String>,
    /// Of a renewal: true if its session was ended since.
    pub(crate) session_over: bool,
    /// True if an app's own backend refused every send of the key, so that nothing was done and no client resumes it.
    pub(crate) refused: bool,
    /// The choice of its product, if the client chose that.
    pub(crate) choice: Option<SavedChoice>,
}

/// A session of this client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct SavedSession {
    pub(crate) id: String,
    pub(crate) session_type: Option<String>,
    pub(crate) status: Option<String>,
    /// True if the session's username and password are wanted.
    pub(crate) credentials: bool,
    /// True if observations may rotate the session.
    pub(crate) auto_rotate: bool,
    /// Further statuses that end the session.
    pub(crate) ends: Vec<String>,
    /// True if a person named the session, and the service has not confirmed it yet.
    pub(crate) unconfirmed: bool,
    /// The charge of the purchase in USD, if the service stated it.
    pub(crate) charged_usd: Option<String>,
    /// The protocol of the proxy, as the purchase named it.
    pub(crate) protocol: Option<String>,
    /// The notes of its pool, for whoever takes it over.
    pub(crate) pool_notes: Option<String>,
    /// Of a session that a read did not find: its status before that. A start that may buy another one reads it again first.
    pub(crate) was: Option<String>,
}

/// The memory of an accepted intent.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(crate) struct Done {
    pub(crate) operation: String,
    pub(crate) facts: Facts,
    /// True if the result is followed when the intent is started again: an opened session, a placed order.
    pub(crate) follows: bool,
    /// The documented members of the answer that are not secret, if they are short.
    pub(crate) answer: Option<Json>,
}

stored!(Data { hopline, puts, base_url, account, at, intent, key, fingerprint, members, call, session, done, renewal, later });
stored!(LaterPurchase { number, last_session_id, last_status });
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
    key_settled,
    follows,
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
    choice,
});
stored!(SavedSession { id, session_type, status, credentials, auto_rotate, ends, unconfirmed, charged_usd, protocol, pool_notes, was });
stored!(Done { operation, facts, follows, answer });

impl FromJson for (Method, Safety) {
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        match items(json)?.as_slice() {
            [method, safety] => Ok((Method::from_json(method)?, Safety::from_json(safety)?)),
            _ => Err(FromJsonError::here()),
        }
    }
}

impl Encode for (Method, Safety) {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.json(&format!("[\"{}\",\"{}\"]", self.0.as_str(), self.1.as_str()))
    }
}

/// A readable summary of a record, for tools that inspect a store, such as a test of a store or of this client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The intent: the caller's own name.
    pub intent: Option<String>,
    /// The operation of a call that is under way or in doubt.
    pub operation: Option<String>,
    /// The key of that call.
    pub key: Option<String>,
    /// True if an app's own backend refused every send of that key.
    pub refused: bool,
    /// The body of that call, where it may be sent again.
    pub body: Option<String>,
    /// The parameters of that call by which a list may show it, where it may not be sent again.
    pub match_fields: BTreeMap<String, String>,
    /// The session of the record.
    pub session_id: Option<String>,
    /// The order of the record.
    pub order_no: Option<String>,
}

/// Describes a record. `None` for data that is not a record of this version.
pub fn describe(data: &[u8]) -> Option<Description> {
    let data: Data = read_json(std::str::from_utf8(data).ok()?).ok()?;
    let (call, done) = (data.call, data.done);
    let of_done = |pick: fn(&Facts) -> &Option<String>| done.as_ref().and_then(|done| pick(&done.facts).clone());
    Some(Description {
        intent: data.intent,
        session_id: data.session.map(|session| session.id).or_else(|| of_done(|facts| &facts.session_id)),
        order_no: call.as_ref().and_then(|call| call.order_no.clone()).or_else(|| of_done(|facts| &facts.order_no)),
        key: call.as_ref().and_then(|call| call.key.clone()),
        refused: call.as_ref().is_some_and(|call| call.refused),
        body: call.as_ref().and_then(|call| call.body.clone()),
        match_fields: call.as_ref().map(|call| call.match_fields.clone()).unwrap_or_default(),
        operation: call.map(|call| call.operation),
    })
}

/// The reason why a record is refused. The record stays in the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BadRecord {
    /// The data is not what was written.
    #[error("the record is damaged and can't be read ({0})")]
    Damaged(&'static str),
    /// Another version of the library wrote it.
    #[error("the record has version {0} of the format, which this version of hopline does not read")]
    OtherVersion(u32),
    /// The record belongs to another API.
    #[error("the record belongs to another base URL, `{0}`")]
    OtherApi(String),
    /// The record belongs to another account.
    #[error("the record belongs to another account")]
    OtherAccount,
}

/// Finds the intent of a record that can't be read: damaged, cut short after it, or of another version.
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

    /// Reads a record and checks everything that the engine relies on.
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

    /// The call that an app's own backend refused, if the record is only that.
    pub(crate) fn refused(&self) -> Option<&SavedCall> {
        self.call.as_ref().filter(|call| call.refused)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        json_of(self).into_bytes()
    }
}

impl SavedSession {
    /// Returns true if it was over when its record was put, by its own `ends` too.
    pub(crate) fn is_over(&self) -> bool {
        phase_of(self.status.as_deref(), &self.ends) == Phase::Ended
    }

    /// Returns true if it can never be usable again.
    pub(crate) fn is_over_for_good(&self) -> bool {
        is_over_for_good(self.status.as_deref(), self.session_type.as_deref())
    }
}

impl Done {
    /// The memory of an operation by its result, whose answer is kept where it is short.
    pub(crate) fn of(operation: &str, facts: Facts, answer: Option<&Json>) -> Done {
        let endpoint = endpoint(operation);
        let answer = endpoint.zip(answer).and_then(|(endpoint, answer)| stored_answer(&endpoint.response, answer.text()));
        Done { operation: endpoint.map_or(ANY, |endpoint| endpoint.name).to_owned(), facts, follows: false, answer }
    }

    /// Returns true if it was a session that can never be usable again.
    pub(crate) fn is_over_for_good(&self) -> bool {
        is_over_for_good(self.facts.status.as_deref(), self.facts.session_type.as_deref())
    }
}

impl SavedCall {
    pub(crate) fn endpoint(&self, api: Api) -> Option<&'static Endpoint> {
        match self.any {
            Some((method, safety)) if self.operation == ANY => Some(any(api, method, safety)),
            _ => endpoint(&self.operation).filter(|endpoint| endpoint.api == api),
        }
    }

    /// Returns true if the call may or may not have taken effect: it was neither accepted as an order nor refused by an app's own backend.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.order_no.is_none() && !self.refused
    }

    /// Returns true if the call can be sent again.
    pub(crate) fn can_resume(&self) -> bool {
        let once = [Api::Agent, Api::Reseller]
            .into_iter()
            .any(|api| self.endpoint(api).is_some_and(|endpoint| endpoint.safety == Safety::AtMostOnce));
        !self.secret && !self.key_settled && !self.refused && !once
    }

    fn is_sound(&self, api: Api) -> bool {
        let key = self.key.as_deref().is_none_or(is_key);
        // A body is always JSON that was built here.
        let body = self.body.as_deref().is_none_or(|body| whole(body).is_ok());
        let keyed = self.endpoint(api).is_some_and(|endpoint| endpoint.safety != Safety::Keyed || self.key.is_some());
        keyed && key && body && is_target(&self.target) && self.age.ms >= 0
    }
}
