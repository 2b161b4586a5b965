//! The comparison of a start with the request of its intent, or of its caller's own key: whether they are equal, and where they differ.

use crate::client::jobs::job::Entry;
use crate::client::requests::Start;
use crate::contract::agent::CreateSession;
use crate::contract::{ANY, Endpoint, FieldPlace, Operation, json_of};
use crate::engine::{Phase, RecordId, Then, phase_of};
use crate::policy::{Advice, Error};
use crate::state::{Data, Fingerprint, MemberDigests};
use crate::wire::{Built, members};

/// The request under a name, as far as it is known.
#[derive(Default)]
struct Other<'a> {
    digests: Option<&'a MemberDigests>,
    session_id: Option<&'a str>,
    /// True if it bought that session, and did not change it.
    bought: bool,
    status: Option<&'a str>,
    is_over: bool,
    order_no: Option<&'a str>,
    state: State,
}

#[derive(Default, Clone, Copy)]
enum State {
    #[default]
    Accepted,
    InDoubt,
    UnderWay,
}

/// The fingerprint of a request, by which it is distinguished from another one under its name.
pub(crate) fn fingerprint(endpoint: &Endpoint, built: &Built, then: Then) -> Fingerprint {
    // Without the account, whose key may change; and without a secret, which a digest of a short text would give away.
    let match_fields = || (!built.match_fields.is_empty()).then(|| json_of(&built.match_fields));
    let plain = if built.secret { match_fields() } else { built.body.clone() };
    let [name, opens] = kind_of(endpoint, then);
    Fingerprint::of(&[name, opens, &built.target, plain.as_deref().unwrap_or_default()])
}

fn kind_of(endpoint: &Endpoint, then: Then) -> [&'static str; 2] {
    [if endpoint.name == ANY { endpoint.method.as_str() } else { endpoint.name }, if then == Then::Follow { "open" } else { "call" }]
}

/// The digests that say where a request differs from another one: its kind, its target, each member of its body.
pub(crate) fn digests(endpoint: &Endpoint, built: &Built, then: Then) -> MemberDigests {
    let given = built.body.as_deref().and_then(|body| members(body).ok()).unwrap_or_default();
    let kind = kind_of(endpoint, then).concat();
    let value = |name| given.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    let of_fields = in_body(endpoint).map(|(name, is_secret)| value(name).filter(|_| !is_secret).unwrap_or_default());
    MemberDigests::of([kind.as_str(), &built.target].into_iter().chain(of_fields))
}

/// The members of a body in the order of the table, and whether they hold a secret.
fn in_body(endpoint: &Endpoint) -> impl Iterator<Item = (&'static str, bool)> {
    let fields = endpoint.request.fields.iter().filter(|field| field.place == FieldPlace::Body);
    fields.map(|field| (field.name, field.shape.has_secrets()))
}

/// The refusal of a start whose name stands for what a record says.
pub(crate) fn other_than_record(start: &Start, data: &Data, record: Option<RecordId>) -> Error {
    let digests = data.members.as_ref();
    let other = match (&data.session, &data.call, &data.done) {
        (Some(session), ..) => Other {
            session_id: Some(&session.id),
            bought: true,
            status: session.status.as_deref(),
            is_over: session.is_over(),
            ..Other::default()
        },
        (_, Some(call), _) => Other {
            order_no: call.order_no.as_deref(),
            session_id: call.session_id.as_deref(),
            state: if call.order_no.is_some() { State::Accepted } else { State::InDoubt },
            ..Other::default()
        },
        (_, _, Some(done)) => Other {
            session_id: done.facts.session_id.as_deref(),
            bought: done.operation == CreateSession::ENDPOINT.name,
            status: done.facts.status.as_deref(),
            is_over: phase_of(done.facts.status.as_deref(), &[]) == Phase::Ended,
            order_no: done.facts.order_no.as_deref(),
            ..Other::default()
        },
        _ => Other::default(),
    };
    refusal(start, &Other { digests, ..other }, record)
}

/// The refusal of a start whose name stands for what a job is at work on.
pub(crate) fn other_than_job(start: &Start, entry: &Entry, status: Option<&str>, record: Option<RecordId>) -> Error {
    let other = Other {
        digests: entry.record.bought_as.as_ref().map(|known| &known.members),
        session_id: entry.subject.session_id.as_deref(),
        bought: entry.subject.operation == CreateSession::ENDPOINT.name,
        status,
        is_over: false,
        order_no: entry.subject.order_no.as_deref(),
        state: State::UnderWay,
    };
    refusal(start, &other, record)
}

/// The refusal of a start whose intent, or caller's own key, has another request.
fn refusal(start: &Start, other: &Other<'_>, record: Option<RecordId>) -> Error {
    let (endpoint, is_intent) = (start.endpoint, start.options.intent.is_some());
    let (field, stands_for, one) =
        if is_intent { ("intent", "stands for", "an intent") } else { ("idempotency_key", "belongs to", "a key") };
    let with = differences(start, other.digests);
    let session = other.session_id.filter(|_| other.bought);
    let status = other.status.map(|status| format!(" (`{status}`)")).unwrap_or_default();
    let which = match (session, other.state) {
        (Some(id), _) if other.is_over => format!(": the session `{id}`, bought {with}, is over{status}"),
        (Some(id), _) => format!(": the session `{id}`, bought {with}, may not be over{status}; another session needs {one} of its own"),
        (None, State::InDoubt) => format!(", {with}, which may have been done"),
        (None, State::UnderWay) => format!(", {with}, which is under way"),
        (None, State::Accepted) => format!(", {with}, which was accepted"),
    };
    let advice = match is_intent {
        false => Advice::ChangeRequest,
        // A resume of the intent would only say so.
        true if other.is_over => Advice::NewIntent,
        // A resume of the intent returns its result, whichever parameters it was bought with.
        true => Advice::Resume,
    };
    Error::invalid(endpoint.name, field, &format!("{stands_for} another request{which}")).with(|new| {
        new.advice = advice;
        new.intent = start.options.intent.clone();
        new.session_id = other.session_id.map(str::to_owned);
        new.order_no = other.order_no.map(str::to_owned);
        new.record = record.map(|record| record.0);
    })
}

/// The members of the body in which a request differs from what is kept of another one.
pub(crate) fn differing_members(endpoint: &Endpoint, known: &MemberDigests, own: &MemberDigests) -> Vec<&'static str> {
    let at = known.differs_at(own);
    in_body(endpoint).enumerate().filter(|(index, _)| at.contains(&index.saturating_add(2))).map(|(_, (name, _))| name).collect()
}

/// In what a start differs from the request that its name stands for.
fn differences(start: &Start, known: Option<&MemberDigests>) -> String {
    let endpoint = start.endpoint;
    let at = known.zip(start.bought_as.as_ref()).map(|(known, own)| known.differs_at(&own.members)).unwrap_or_default();
    if at.first() == Some(&0) {
        return "by another operation".to_owned();
    }
    // No write of the table has a query beside its path.
    let in_path = endpoint.request.fields.iter().filter(|field| field.place == FieldPlace::Path && at.contains(&1)).map(|field| field.name);
    let in_body = known.zip(start.bought_as.as_ref()).map(|(known, own)| differing_members(endpoint, known, &own.members));
    let names: Vec<String> = in_path.chain(in_body.unwrap_or_default()).map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "with other parameters".to_owned() } else { format!("with another {}", names.join(" and another ")) }
}
