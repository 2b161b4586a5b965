//! The lookup of an operation in doubt, in the lists of the contract. A lookup shows candidates as the service gave them and never decides.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::answer::Answered;
use super::call::{Call, CallOutcome};
use super::context::Cx;
use super::event::RecordId;
use super::exchange::Exchange;
use super::gate::Wake;
use super::machine::{Action, Input};
use super::until::stop;
use crate::collections::Map;
use crate::contract::{Candidate, Decimal, Endpoint, Json, Reconciliation, Shape, endpoint};
use crate::json::{self, plain, quoted};
use crate::policy::{LookupRead, RetryPolicy, lookups};
use crate::wire::{Built, Facts, build, items, page_size};

/// The operation of a lookup.
pub(crate) const RECONCILE: &str = "reconcile";
/// The most pages of 100 that are read of a list, and the most bytes of candidates that are kept.
const PAGES: u32 = 20;
const MAX_BYTES: usize = 4 << 20;
/// The approximate size of a candidate beside its text, in bytes: a list of 8 MiB may hold four million items.
const EACH: usize = 128;

/// The lookup of an operation.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Lookup {
    /// The known parameters of the operation.
    match_fields: BTreeMap<String, String>,
    /// The candidates. The owner of the records marks those that belong to another record.
    pub(crate) found: Reconciliation,
    /// The results of other records of the same operation.
    pub(crate) others: Vec<(String, RecordId)>,
    call: Call,
    /// The read that is under way, its page, and the digests by which its pages so far are recognized.
    read: usize,
    page: u32,
    seen: Vec<String>,
    bytes: usize,
}

impl Lookup {
    /// Returns `None` if the contract has nothing to read.
    pub(crate) fn new(
        operation: &str,
        match_fields: BTreeMap<String, String>,
        headers: Vec<(String, String)>,
        policy: RetryPolicy,
    ) -> Option<Self> {
        let found = Reconciliation { operation: operation.to_owned(), candidates: Vec::new(), complete: true };
        let (endpoint, built) = request(operation, &match_fields, 0, 1)?;
        let mut call = Call::new(Exchange::new(endpoint, built, headers, policy.timeout_ms), policy);
        call.exchange.needs_list = true;
        Some(Lookup { match_fields, found, others: Vec::new(), call, read: 0, page: 1, seen: Vec::new(), bytes: 0 })
    }

    /// The first read's operation.
    pub(crate) fn reads(&self) -> &'static str {
        self.call.exchange.endpoint.name
    }

    /// Advances the lookup with one input.
    pub(crate) fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        match self.call.read(input, cx) {
            CallOutcome::Pending(action) => action,
            CallOutcome::Cancelled => named(stop(cx)),
            // An invalid list gives no information about the operation.
            CallOutcome::Failed(..) if self.call.exchange.lacked_list => {
                self.found.complete = false;
                self.begin_next();
                self.go_on(cx)
            }
            CallOutcome::Failed(_, mut error) => {
                error.what = format!("could not read `{}`: {}", error.operation, error.what);
                named(Action::End(Err(error)))
            }
            CallOutcome::Success(_) if !cx.wanted => named(stop(cx)),
            CallOutcome::Success(answered) => self.look_at(&answered, cx),
        }
    }

    /// Takes the answer to a read: keeps the candidates, then goes on with the next page or the next read.
    fn look_at(&mut self, answered: &Answered, cx: &mut Cx<'_>) -> Action {
        // A service that ignores the page shows the same items again.
        let mark = answered.facts.page_items.clone();
        let repeated = mark.as_ref().is_some_and(|mark| self.seen.contains(mark));
        if !repeated {
            self.take_in(answered.raw.text());
            self.seen.extend(mark);
        }
        let full = self.bytes > MAX_BYTES;
        let more = answered.facts.short_page == Some(false);
        match more && self.page < PAGES && !full && !repeated {
            true => self.page += 1,
            false => {
                self.found.complete &= !more && !full;
                self.begin_next();
            }
        }
        if full { Self::end() } else { self.go_on(cx) }
    }

    /// The next read comes next, from its first page.
    fn begin_next(&mut self) {
        (self.read, self.page) = (self.read + 1, 1);
        self.seen.clear();
    }

    /// Makes the next read, if there is one.
    fn go_on(&mut self, cx: &mut Cx<'_>) -> Action {
        if let Some((endpoint, built)) = request(&self.found.operation, &self.match_fields, self.read, self.page) {
            (self.call.exchange.endpoint, self.call.exchange.built) = (endpoint, built);
            cx.subject.operation = endpoint.name;
            self.call.begin_anew(cx);
            return Action::Wake(Wake::at(cx.now()));
        }
        Self::end()
    }

    fn end() -> Action {
        Action::End(Ok(Box::new(Answered::of(Facts::default()))))
    }

    /// Keeps the items of an answer that may be the result; an answer that is not a list is one candidate as a whole.
    fn take_in(&mut self, data: &str) {
        let Some(read) = lookups(&self.found.operation).get(self.read) else { return };
        let listed = items(data).or_else(|| json::items(data).ok());
        for item in listed.unwrap_or_else(|| vec![data]) {
            let shown = json::members(item).unwrap_or_default();
            let says = |name: &str, value: &str| member(&shown, name).map(|shown| is_same(shown, value));
            let other =
                read.keys.iter().any(|(field, name)| self.match_fields.get(*field).is_some_and(|value| says(name, value) == Some(false)));
            if other {
                continue;
            }
            self.bytes = self.bytes.saturating_add(item.len() + EACH);
            if self.bytes > MAX_BYTES {
                return;
            }
            let member_of =
                |field: &str| read.keys.iter().find(|(from, _)| *from == field).map_or(field.to_owned(), |(_, name)| (*name).to_owned());
            let matched = self.match_fields.iter().filter(|(field, value)| says(&member_of(field), value) == Some(true));
            let matched = matched.map(|(field, _)| field.clone()).collect();
            self.found.candidates.push(Candidate {
                read: read.read.to_owned(),
                matched,
                item: Json::checked(item),
                became: None,
                record: None,
            });
        }
    }
}

/// The next request.
fn request(operation: &str, match_fields: &BTreeMap<String, String>, read: usize, page: u32) -> Option<(&'static Endpoint, Built)> {
    let read: &LookupRead = lookups(operation).get(read)?;
    let endpoint = endpoint(read.read)?;
    let mut params: Map<&str, Cow<'_, str>> = read.fixed.iter().map(|(to, json)| (*to, Cow::Borrowed(*json))).collect();
    for (to, from) in read.filled {
        let Some(value) = match_fields.get(*from) else { continue };
        let number = endpoint.request.field(to).is_some_and(|field| matches!(field.shape, Shape::Integer));
        params.insert(to, if number { Cow::Borrowed(value) } else { Cow::Owned(quoted(value)) });
    }
    if let Some(size) = page_size(endpoint) {
        params.insert(size, Cow::Borrowed("100"));
        params.insert("page", Cow::Owned(page.to_string()));
    }
    let members: Vec<String> = params.iter().map(|(name, json)| format!("\"{name}\":{json}")).collect();
    build(endpoint, &format!("{{{}}}", members.join(","))).ok().map(|built| (endpoint, built))
}

/// Names the lookup in an error of one of its reads.
fn named(action: Action) -> Action {
    match action {
        Action::End(Err(mut error)) => {
            error.operation = RECONCILE;
            Action::End(Err(error))
        }
        action => action,
    }
}

/// A member of an item, in snake case or in camel case.
fn member<'a>(shown: &[(Cow<'_, str>, &'a str)], name: &str) -> Option<&'a str> {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let wanted = plain(name);
    shown.iter().filter(|(known, _)| plain(known) == wanted).map(|(_, json)| *json).find(|json| *json != "null")
}

fn is_same(shown: &str, value: &str) -> bool {
    let text = plain(shown);
    let numbers = text.parse::<Decimal>().ok().zip(value.parse::<Decimal>().ok());
    text == value || numbers.is_some_and(|(one, two)| one == two)
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    fn lookup(given: &mut Given, operation: &str, fields: &[(&str, &str)]) -> Lookup {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Lookup::new(operation, fields, Vec::new(), given.service.retry).expect("there is something to read")
    }

    fn shown(lookup: &Lookup) -> Vec<&str> {
        lookup.found.candidates.iter().map(|candidate| candidate.item.text()).collect()
    }

    /// A full page of items that all may be the result.
    fn full(item: &str) -> Tell {
        let items = vec![item; 100].join(",");
        success(Box::leak(format!(r#"{{"items":[{items}]}}"#).into_boxed_str()))
    }

    #[test]
    fn an_operation_that_no_list_shows_has_no_lookup() {
        let policy = RetryPolicy::default();
        assert!(Lookup::new("report_session_event", BTreeMap::new(), Vec::new(), policy).is_none());
    }

    #[test]
    fn each_read_is_made_and_an_answer_that_is_no_list_is_a_candidate_as_a_whole() {
        let mut given = Given::agent();
        let mut lookup = lookup(&mut given, "create_recharge", &[]);
        assert_eq!(lookup.reads(), "list_transactions");
        let said = given.tell(&mut lookup, [due(), success(r#"[{"id":1}]"#), due(), success(r#"{"balance":3}"#)]);
        assert!(said[2].starts_with("send GET /billing/balance"), "{said:?}");
        assert_eq!((said[3].as_str(), shown(&lookup)), ("end: done", vec![r#"{"id":1}"#, r#"{"balance":3}"#]));
        assert!(lookup.found.complete);
    }

    #[test]
    fn an_item_that_says_otherwise_is_none_of_it_in_either_spelling_and_what_matches_is_named() {
        let mut given = Given::reseller();
        let mut lookup = lookup(&mut given, "create_user", &[("username", "ann"), ("remark", "7.0")]);
        let users = r#"{"items":[{"id":1,"username":"ann"},{"id":2,"username":"bob"},{"id":3},{"id":4,"userName":"ann","remark":7},{"id":5,"user_name":"bob"},{"id":6,"user_name":null,"userName":"bob"}]}"#;
        let said = given.tell(&mut lookup, [due(), success(users)]);
        assert!(said[0].contains("search=ann"), "{said:?}");
        let found: Vec<(usize, &str)> = lookup.found.candidates.iter().map(|one| (one.matched.len(), one.item.text())).collect();
        let expected = [(1, r#"{"id":1,"username":"ann"}"#), (0, r#"{"id":3}"#), (2, r#"{"id":4,"userName":"ann","remark":7}"#)];
        assert_eq!(found, expected);
    }

    #[test]
    fn full_pages_are_turned_until_one_is_short_repeated_or_the_last() {
        let fields = [("username", "ann")];
        let mut given = Given::reseller();
        let mut short = lookup(&mut given, "create_user", &fields);
        let said = given.tell(&mut short, [due(), full(r#"{"id":1}"#), due(), success(r#"{"items":[{"id":2}]}"#)]);
        assert!(said[0].contains("page=1&") && said[2].contains("page=2&"), "{said:?}");
        assert_eq!((said[3].as_str(), short.found.candidates.len(), short.found.complete), ("end: done", 101, true));
        // A service that ignores the page.
        let mut repeated = lookup(&mut given, "create_user", &fields);
        let said = given.tell(&mut repeated, [due(), full(r#"{"id":1}"#), due(), full(r#"{"id":1}"#)]);
        assert_eq!((said[3].as_str(), repeated.found.candidates.len(), repeated.found.complete), ("end: done", 100, false));
        // A service that begins anew after its last page.
        let mut anew = lookup(&mut given, "create_user", &fields);
        given.tell(&mut anew, [due(), full(r#"{"id":1}"#), due(), full(r#"{"id":2}"#)]);
        assert_eq!(given.tell(&mut anew, [due(), full(r#"{"id":1}"#)])[1], "end: done");
        assert_eq!((anew.found.candidates.len(), anew.found.complete), (200, false));
        // A list that never ends.
        let mut long = lookup(&mut given, "create_user", &fields);
        let item = |n| full(&format!(r#"{{"id":{n}}}"#));
        for page in 1..20 {
            assert_eq!(given.tell(&mut long, [due(), item(page)])[1], "wake", "page {page}");
        }
        assert_eq!(given.tell(&mut long, [due(), item(20)])[1], "end: done");
        assert_eq!((long.found.candidates.len(), long.found.complete), (2000, false));
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let mut given = Given::reseller();
        let mut lookup = lookup(&mut given, "create_user", &[]);
        let item = |page| format!(r#"{{"x":"{page}{}"}}"#, "x".repeat(9000));
        for page in 0..4 {
            given.tell(&mut lookup, [due(), full(&item(page))]);
            lookup.found.candidates.last_mut().expect("one was found").item = Json::default();
        }
        assert_eq!(given.tell(&mut lookup, [due(), full(&item(4))])[1], "end: done");
        assert!(lookup.bytes > MAX_BYTES && lookup.found.candidates.len() < 500 && !lookup.found.complete);
    }

    #[test]
    fn a_list_of_what_is_small_takes_no_more_room_than_another() {
        let mut given = Given::reseller();
        let mut lookup = lookup(&mut given, "create_user", &[]);
        let items = vec!["1"; 50_000].join(",");
        given.tell(&mut lookup, [due(), success(Box::leak(format!(r#"{{"items":[{items}]}}"#).into_boxed_str()))]);
        assert!(lookup.found.candidates.len() < 40_000 && !lookup.found.complete);
    }

    #[test]
    fn what_just_fits_is_kept() {
        let mut given = Given::reseller();
        let mut lookup = lookup(&mut given, "create_user", &[]);
        lookup.bytes = MAX_BYTES - EACH - r#"{"id":1}"#.len();
        assert_eq!(given.tell(&mut lookup, [due(), success(r#"{"items":[{"id":1}]}"#)])[1], "end: done");
        assert_eq!((shown(&lookup), lookup.found.complete), (vec![r#"{"id":1}"#], true));
    }

    #[test]
    fn a_read_that_fails_ends_it_and_is_named() {
        for (wanted, answer, says) in [
            (true, failure("AUTH_INVALID_KEY", 401), "end: Refused None Stop"),
            (true, lost(), "wake"),
            (false, lost(), "end: Cancelled None Nothing"),
            (false, success("[]"), "end: Cancelled None Nothing"),
        ] {
            let mut given = Given::agent();
            given.subject.operation = "list_transactions";
            let mut lookup = lookup(&mut given, "create_recharge", &[]);
            given.tell(&mut lookup, [due()]);
            given.wanted = wanted;
            assert_eq!(given.tell(&mut lookup, [answer]), [says]);
            if let Some(error) = given.error {
                assert_eq!(error.operation, RECONCILE);
                assert_eq!(error.what.starts_with("could not read `list_transactions`: "), wanted, "{}", error.what);
            }
        }
    }
}
