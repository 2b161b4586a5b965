//! What must be true, whatever happens: checked from what people were told and what the service did, and from nothing else.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{Answered, CommandId, Holds, Millis, Saved};
use hopline::contract::{Safety, endpoint};
use hopline::wire::Request;
use hopline::{Advice, Effect as Said, Error, Kind};

use crate::job::{Job, Name, cost};
use crate::service::{Effect, Heard, Remote, is_login};

/// It was done twice for one purchase.
pub const TWICE: &str = "it was done more often than once";
/// Somebody was told that nothing happened, and it did.
pub const DENIED: &str = "it was said that nothing happened, and it did";
/// Somebody was told that it was done, and it was not.
pub const INVENTED: &str = "it was said to be done, and it was not";
/// It was accepted, and nobody knows.
pub const LOST: &str = "it was accepted and lost without a word";
/// A write went out before its record was kept.
pub const UNSAVED: &str = "a write was sent before its record was kept";
/// One key went out with two requests.
pub const MIXED: &str = "a key was sent with two requests";
/// More was bought in a day than its cap allows.
pub const CAPPED: &str = "more was bought in a day than its cap allows";
/// A send came before the service wanted it.
pub const EARLY: &str = "a request was sent before its Retry-After";
/// An order's number was known and is known no more.
pub const FORGOTTEN: &str = "the number of an order was known and is known no more";
/// Two logins at a time.
pub const LOGINS: &str = "two logins were under way";
/// A login that was refused was sent again.
pub const REFUSED: &str = "a login was sent again after it was refused";
/// A call renewed its token twice.
pub const RENEWED: &str = "a call renewed its token twice";
/// A good token was thrown away.
pub const THROWN: &str = "a good token was thrown away";

/// What the first record of a job begins, with all its keys, until it is said that nothing happened or a person ends it.
#[derive(Debug, Clone, Default, Hash)]
struct Purchase {
    effects: Vec<Effect>,
    /// It was said that nothing happened.
    denied: bool,
    /// Nothing more is to come under it.
    closed: bool,
}

/// All that was ever done about one job.
#[derive(Debug, Clone, Default, Hash)]
struct History {
    purchases: Vec<Purchase>,
    /// The sessions and orders that somebody was told of.
    known: BTreeSet<String>,
    /// Somebody was told that it was done.
    told: bool,
    /// An order's number that was given out while the store kept everything.
    ordered: Option<String>,
    /// The same, after a read that followed it.
    followed: BTreeSet<String>,
    /// A person ended it without knowing.
    excused: usize,
}

/// A command, and the purchase that it is about.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct About {
    pub(crate) job: usize,
    pub(crate) purchase: usize,
}

/// Reads the history as it happens. Its own state is part of a world's: two worlds that are alike, and were told alike, go on alike.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Checker {
    jobs: Vec<History>,
    /// What each key was sent with.
    keyed: BTreeMap<String, u64>,
    /// From when the present client may send again, by its monotonic clock.
    hold: Option<Millis>,
    /// The newest token that the present client knows and that nobody refused, and when it ends.
    good: Option<(String, Millis)>,
    login_refused: bool,
    /// How often the token of each call was refused: by its command and what it asks for.
    renewals: BTreeMap<(CommandId, String), u32>,
    /// What a GB was shown to cost last, and what each key might cost when it was first sent.
    shown: i64,
    quotes: BTreeMap<String, i64>,
    bought: BTreeMap<i64, i64>,
    /// A save failed.
    pub(crate) unkept: bool,
}

/// How long a token is good, and how long before its end it is renewed.
const LIFETIME: Millis = 2 * 3_600_000;
const RENEWED_EARLY: Millis = 60_000;
const DAY: Millis = 24 * 3_600_000;

impl Checker {
    /// A client of a new process.
    pub(crate) fn restarted(&mut self, token: Option<&String>) {
        self.hold = None;
        self.good = token.map(|token| (token.clone(), Remote::START + LIFETIME));
        self.login_refused = false;
        self.renewals.clear();
    }

    /// A job is started, joined or gone on with.
    pub(crate) fn begun(&mut self, at: usize, job: Job) -> About {
        if self.jobs.len() <= at {
            self.jobs.resize_with(at + 1, History::default);
        }
        let history = &mut self.jobs[at];
        if history.purchases.last().is_none_or(|purchase| purchase.closed) {
            history.purchases.push(Purchase::default());
        }
        // What was given a key goes on under it, whatever was said before.
        if let Some(purchase) = history.purchases.last_mut().filter(|_| job.name == Name::Key) {
            purchase.denied = false;
        }
        About { job: at, purchase: history.purchases.len() - 1 }
    }

    /// The purchase of a job that a message is for, if there is one.
    pub(crate) fn current(&self, job: usize) -> Option<About> {
        let purchases = self.jobs.get(job)?.purchases.len();
        Some(About { job, purchase: purchases.checked_sub(1)? })
    }

    /// The service did it.
    pub(crate) fn did(&mut self, about: About, effect: Effect, cap: Option<i64>, now: Millis) -> Result<(), &'static str> {
        if let (Some(cap), Some(quote)) = (cap, effect.key.as_ref().and_then(|key| self.quotes.get(key))) {
            let day = self.bought.entry(now.div_euclid(DAY)).or_default();
            *day += quote;
            if *day > cap {
                return Err(CAPPED);
            }
        }
        let Some(history) = self.jobs.get_mut(about.job) else { return Ok(()) };
        let Some(purchase) = history.purchases.get_mut(about.purchase) else { return Ok(()) };
        purchase.effects.push(effect);
        if purchase.denied {
            return Err(DENIED);
        }
        // Under a cap the caller allows a failed purchase to be repeated.
        let done: usize = history.purchases.iter().map(|purchase| purchase.effects.len()).sum();
        if done > 1 + history.excused && cap.is_none() { Err(TWICE) } else { Ok(()) }
    }

    /// How often a job was done so far.
    pub(crate) fn done(&self, job: usize) -> usize {
        self.jobs.get(job).map_or(0, |history| history.purchases.iter().map(|purchase| purchase.effects.len()).sum())
    }

    /// What was done in the present purchase of a job.
    pub(crate) fn found(&self, job: usize) -> Option<&Effect> {
        self.jobs.get(job)?.purchases.last()?.effects.last()
    }

    /// A command has ended, whether or not anybody hears of it.
    pub(crate) fn ends(&mut self, about: About, job: Job, result: &Result<Answered, Error>) -> Result<(), &'static str> {
        let Some(history) = self.jobs.get_mut(about.job) else { return Ok(()) };
        let Some(purchase) = history.purchases.get_mut(about.purchase) else { return Ok(()) };
        if is_own(result) {
            if !purchase.effects.is_empty() && history.excused == 0 {
                return Err(DENIED);
            }
            // What was given a key goes on under it, whatever is said.
            (purchase.denied, purchase.closed) = (true, job.name != Name::Key);
        }
        let is_done = result.as_ref().map_or_else(|error| error.effect, |_| Said::Done) == Said::Done;
        // A key of the caller's own means the same thing each time.
        let was_done = match job.name {
            Name::Key => history.purchases.iter().any(|purchase| !purchase.effects.is_empty()),
            _ => !purchase.effects.is_empty(),
        };
        if is_done && job.has_effect() && history.excused == 0 && !was_done { Err(INVENTED) } else { Ok(()) }
    }

    /// Somebody takes a result.
    pub(crate) fn taken(&mut self, about: About, job: Job, result: &Result<Answered, Error>) {
        let Some(history) = self.jobs.get_mut(about.job) else { return };
        let Some(purchase) = history.purchases.get_mut(about.purchase) else { return };
        let (said, session, order) = match result {
            Ok(answered) => (Said::Done, answered.facts.session_id.clone(), answered.facts.order_no.clone()),
            Err(error) => (error.effect, error.session_id.clone(), error.order_no.clone()),
        };
        if said == Said::Done {
            history.known.extend(session.into_iter().chain(order));
            history.told = true;
        }
        // Of a doubt that can't be resumed, and has no name, no record is kept: whoever took it knows.
        if said == Said::Unknown && job.name != Name::Intent && result.as_ref().is_err_and(|error| error.advice != Advice::Resume) {
            (history.told, purchase.closed) = (true, true);
        }
    }

    /// A night has passed, in which the service forgets the keys that it was given.
    pub(crate) fn sleeps(&mut self, jobs: &[Job]) {
        for (history, _) in self.jobs.iter_mut().zip(jobs).filter(|(_, job)| job.name == Name::Key) {
            history.excused += 1;
        }
    }

    /// Whether the service has refused the login of the present client.
    pub(crate) fn login_is_refused(&self) -> bool {
        self.login_refused
    }

    /// Whether what came later is nobody's fault but a person's.
    pub(crate) fn is_excused(&self, job: usize) -> bool {
        self.jobs.get(job).is_some_and(|history| history.excused > 0)
    }

    /// A person ends a doubt. Whoever does not know may be wrong, so what comes later is excused.
    pub(crate) fn settled(&mut self, job: usize, happened: bool, knows: bool) {
        let Some(history) = self.jobs.get_mut(job) else { return };
        let Some(purchase) = history.purchases.last_mut() else { return };
        purchase.closed |= !happened;
        history.told |= happened;
        if happened {
            history.known.extend(purchase.effects.iter().filter_map(|effect| effect.id.clone()));
        }
        history.excused += usize::from(!knows);
    }

    /// An order's number is given out.
    pub(crate) fn ordered(&mut self, job: Option<usize>, number: String) {
        if let Some(history) = job.and_then(|job| self.jobs.get_mut(job)) {
            history.ordered = Some(number);
        }
    }

    /// A request goes out, by a client whose clocks show these times; no wall clock if it is wrong.
    pub(crate) fn sends(
        &mut self,
        command: CommandId,
        about: Option<(About, Job)>,
        request: &Request,
        mut others: impl Iterator<Item = bool>,
        is_kept: bool,
        (monotonic, unix): (Millis, Option<Millis>),
    ) -> Result<(), &'static str> {
        if self.hold.is_some_and(|until| monotonic < until) {
            return Err(EARLY);
        }
        if let Some(key) = request.header("idempotency-key") {
            let mut hasher = rustc_hash::FxHasher::default();
            std::hash::Hash::hash(&(request.method.as_str(), &request.url, &request.body), &mut hasher);
            let sent = std::hash::Hasher::finish(&hasher);
            if *self.keyed.entry(key.to_owned()).or_insert(sent) != sent {
                return Err(MIXED);
            }
            if let Some((_, job)) = about {
                self.quotes.entry(key.to_owned()).or_insert(cost(job, self.shown));
            }
        }
        // Its number is kept by then.
        if request.method.as_str() == "GET" && !self.unkept && is_kept {
            for history in &mut self.jobs {
                history.followed.extend(history.ordered.clone().filter(|order| request.url.contains(order.as_str())));
            }
        }
        if is_login(request) {
            return match () {
                () if others.any(|login| login) => Err(LOGINS),
                () if self.login_refused => Err(REFUSED),
                () if self.good.as_ref().is_some_and(|(_, ends)| unix.is_some_and(|unix| unix < ends - RENEWED_EARLY)) => Err(THROWN),
                () => Ok(()),
            };
        }
        // An order is looked at again and again.
        let looks = request.url.contains("/static/order/list");
        let renewed = self.renewals.get(&(command, request.url.clone()));
        if renewed.is_some_and(|times| *times > 1) && !looks { Err(RENEWED) } else { Ok(()) }
    }

    /// An answer is heard.
    pub(crate) fn hears(&mut self, command: CommandId, request: &Request, heard: &Heard, price: i64, monotonic: Millis, unix: Millis) {
        let Heard::Response { status, headers, body } = heard else { return };
        if request.url.contains("/products") && *status == 200 {
            self.shown = price;
        }
        if *status == 429 {
            let body = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
            let header = headers.iter().find(|(name, _)| name == "retry-after").and_then(|(_, value)| value.parse::<i64>().ok());
            let wait = body["error"]["details"]["retry_after"].as_i64().max(header).unwrap_or_default();
            self.hold = self.hold.max(Some(monotonic + wait * 1000));
        } else if is_login(request) {
            let body = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
            self.login_refused |= *status == 401;
            if let Some(token) = body["data"]["token"].as_str() {
                self.good = Some((token.to_owned(), unix + LIFETIME));
            }
        } else if *status == 200 {
            self.renewals.remove(&(command, request.url.clone()));
        } else if *status == 401 {
            let used = request.header("authorization").and_then(|given| given.strip_prefix("Bearer "));
            self.good.take_if(|(token, _)| Some(token.as_str()) == used);
            *self.renewals.entry((command, request.url.clone())).or_default() += 1;
        }
    }

    /// Everything that was accepted is known to somebody, or to a record that a fresh client lists.
    pub(crate) fn nothing_is_lost(
        &self,
        jobs: &[Job],
        saved: &[Saved],
        doubts: &BTreeSet<usize>,
        repeats: bool,
    ) -> Result<(), &'static str> {
        let listed = |id: &String| saved.iter().any(|saved| saved.session_id.as_ref() == Some(id) || saved.order_no.as_ref() == Some(id));
        for (at, (history, job)) in self.jobs.iter().zip(jobs).enumerate() {
            let accepted =
                saved.iter().any(|saved| saved.holds == Holds::Accepted && saved.intent.is_some() && saved.intent == job.intent());
            let open = history.purchases.iter().filter(|purchase| !purchase.closed).flat_map(|purchase| &purchase.effects);
            // Whoever allows a failed purchase to be repeated hears of the last one.
            for effect in open.skip(if repeats { self.done(at).saturating_sub(1) } else { 0 }) {
                let is_known = match effect.id.as_ref().filter(|_| Remote::names(job.task)) {
                    Some(id) => history.known.contains(id) || listed(id),
                    None => history.told || accepted,
                };
                if !is_known && !doubts.contains(&at) && history.excused == 0 {
                    return Err(LOST);
                }
            }
            if history.followed.iter().any(|order| !history.known.contains(order) && !listed(order)) {
                return Err(FORGOTTEN);
            }
        }
        Ok(())
    }
}

/// Whether an error says that nothing came of the purchase: not of the start that was refused, nor of a read that what was bought is waited for by.
fn is_own(result: &Result<Answered, Error>) -> bool {
    let is_read = |operation: &str| endpoint(operation).is_some_and(|endpoint| endpoint.safety == Safety::Safe);
    let is_refused_start = |kind| matches!(kind, Kind::Busy | Kind::Ended | Kind::Invalid | Kind::Misuse);
    result.as_ref().is_err_and(|error| error.effect == Said::None && !is_refused_start(error.kind) && !is_read(error.operation))
}
