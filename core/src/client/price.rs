//! The price of a purchase, read from the authenticated list before anything is bought, where the caller set a limit.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Client;
use super::guard::PRICE_FIELD;
use super::job::{Job, On};
use super::outcome::{MAX_LATE, fill, what};
use super::record::Reserved;
use super::store::JobId;
use super::types::{FailureKind, Happening, Millis, Outcome, Sent};
use crate::contract::agent::{CreateSession, ListProducts, ProductFilter, ProvisioningMode, SessionType};
use crate::contract::{Decimal, Operation};
use crate::policy::{Advice, Again, Effect, Error, Judgement, Kind, Report, is_usd, jittered, times};
use crate::wire::{Answer, Facts, Verdict, build};

/// A product is looked for on this many pages of 100.
const PAGES: u32 = 20;

/// What is known of the price of a purchase.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Price {
    /// The caller's own limit for one unit.
    pub(super) cap: Option<Decimal>,
    /// What it is to cost, as the caller said.
    pub(super) said: Option<Decimal>,
    /// What the key that is sent next may be charged, by the list.
    pub(super) quote: Option<Decimal>,
    /// Whether the list was read for that key.
    pub(super) read: bool,
    pub(super) cursor: Option<String>,
    pub(super) pages: u32,
    pub(super) failures: u32,
    /// What is set aside of the day's cap for the key that is sent next, and whether that is being saved.
    pub(super) reserved: Option<Reserved>,
    pub(super) reserving: bool,
    /// What was set aside for that key until then.
    pub(super) before: Option<Reserved>,
    /// What is set aside for keys before it that may have bought all the same.
    pub(super) earlier: Option<Reserved>,
}

impl Price {
    /// What the key that is sent next may be charged, where that is known: the caller's word does not make the list's price less.
    pub(super) fn charge(&self) -> Option<Decimal> {
        let known = self.said.into_iter().chain(self.quote);
        known.reduce(|one, other| if other > one { other } else { one })
    }
}

impl Job {
    /// What is bought, if this buys a session.
    pub(super) fn purchase(&self) -> Option<CreateSession> {
        let body = self.built.as_ref().filter(|_| self.endpoint.name == CreateSession::ENDPOINT.name)?.body.as_deref()?;
        let purchase: CreateSession = serde_json::from_str(body).ok()?;
        (purchase.provisioning_mode != Some(ProvisioningMode::Existing)).then_some(purchase)
    }

    /// The caller's limit for one unit, as far as the key that is sent next has to keep it: one that was sent is asked about.
    fn limit(&self) -> Option<Decimal> {
        self.price.cap.filter(|_| self.ledger.sends == 0)
    }

    pub(super) fn needs_price(&self, guarded: bool) -> bool {
        // A key that was sent is asked about as it is, whatever things cost by now; under a daily cap it has to be counted all the same.
        let limited = self.limit().is_some();
        let uncounted = guarded && self.price.charge().is_none() && self.is_priced_by_unit();
        (limited || uncounted) && !self.price.read && self.purchase().is_some()
    }
}

impl Client {
    /// Reads the price first, if it is needed. Returns whether that is so.
    pub(super) fn price_due(&mut self, id: JobId) -> bool {
        let guarded = self.guard.is_some();
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        if !job.needs_price(guarded) {
            return false;
        }
        job.go(On::Price);
        self.read_prices(id);
        true
    }

    fn read_prices(&mut self, id: JobId) {
        let now = self.clock.monotonic();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(purchase) = job.purchase() else { return };
        let filter = match purchase.session_type {
            SessionType::Dynamic => ProductFilter::Dynamic,
            SessionType::Static => ProductFilter::Static,
            SessionType::Other(_) => ProductFilter::All,
        };
        let list = ListProducts {
            r#type: Some(filter),
            in_stock: Some(false),
            limit: Some(100),
            cursor: job.price.cursor.clone(),
            ..ListProducts::default()
        };
        let Ok(built) = build(ListProducts::ENDPOINT, &serde_json::to_string(&list).unwrap_or_default()) else { return };
        job.sent_at = now;
        job.price.pages += 1;
        let (headers, timeout, endpoint) = (job.headers.clone(), job.policy.timeout_ms, ListProducts::ENDPOINT);
        let request = self.lay_out(endpoint.method, endpoint.auth, &built, headers, timeout, Millis::MAX);
        self.push_send(id, request);
    }

    /// What a read of the prices brought.
    pub(super) fn prices_read(&mut self, id: JobId, answer: Option<Answer>, outcome: Outcome<'_>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.cancelled {
            return self.stop_cancelled(id);
        }
        let lost = match outcome {
            Outcome::Failed { kind, sent } => Some((kind, sent)),
            _ => None,
        };
        let Some(Answer { verdict: Verdict::Success(data), .. }) = &answer else {
            return self.prices_failed(id, answer.as_ref(), lost);
        };
        job.price.failures = 0;
        let Some(purchase) = job.purchase() else { return };
        match price_of(data.text(), &purchase.product_no) {
            Some((price, None)) => self.priced(id, &purchase, price),
            Some((_, Some(currency))) => self.not_priced(id, &purchase, &currency),
            None => self.not_on_page(id, &purchase, Facts::of(data.text(), None).next_cursor),
        }
    }

    /// The product is not on this page: the next one is read, if there is one and the service wants to be asked.
    fn not_on_page(&mut self, id: JobId, purchase: &CreateSession, next: Option<String>) {
        let now = self.clock.monotonic();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let repeats = next.is_some() && next == job.price.cursor;
        if next.is_some() && !repeats && job.price.pages < PAGES {
            job.price.cursor = next;
            job.go(On::Again);
            return self.set_timer(id, now);
        }
        let why = match next {
            Some(_) if repeats => "was not found before the account's list of prices names the same page again".to_owned(),
            Some(_) => format!("was not found on the first {PAGES} pages of the account's list of prices"),
            None => "is not in the account's list of prices".to_owned(),
        };
        let what = format!("was not sent, because `{}` {why}", purchase.product_no);
        let error = job.error(Kind::Refused, Effect::None, what, Advice::ReadPrices);
        self.not_bought(id, error);
    }

    /// The price is known: is it what the caller wants to pay?
    fn priced(&mut self, id: JobId, purchase: &CreateSession, price: Decimal) {
        self.notify(id, Happening::Priced { unit_price: price.to_string() });
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.price.quote = if job.is_priced_by_unit() { times(price, quantity(purchase)) } else { None };
        if let Some(cap) = job.limit().filter(|cap| price > *cap) {
            let what = format!("was not sent, because one unit costs {price} USD, above the {cap} USD that the caller pays");
            let error = job.error(Kind::Refused, Effect::None, what, Advice::ReadPrices);
            return self.not_bought(id, error);
        }
        self.go_on_priced(id);
    }

    /// The list has no price in USD: what the caller says that it costs is held against the limit instead.
    fn not_priced(&mut self, id: JobId, purchase: &CreateSession, currency: &str) {
        let Some(job) = self.jobs.get(&id) else { return };
        let Some(said) = job.price.said else {
            let product_no = &purchase.product_no;
            let what = format!("was not sent, because the price of `{product_no}` is in `{currency}` and not in USD: give `{PRICE_FIELD}`");
            let error = job.error(Kind::Invalid, Effect::None, what, Advice::ChangeRequest);
            return self.not_bought(id, Error::from(Report { field: Some(PRICE_FIELD.to_owned()), ..error.into_report() }));
        };
        if let Some(cap) = job.limit().filter(|cap| times(*cap, quantity(purchase)).is_none_or(|most| said > most)) {
            let what = format!("was not sent, because it costs {said} USD, above the {cap} USD that the caller pays for one unit");
            let error = job.error(Kind::Refused, Effect::None, what, Advice::ReadPrices);
            return self.not_bought(id, error);
        }
        self.go_on_priced(id);
    }

    fn go_on_priced(&mut self, id: JobId) {
        let now = self.clock.monotonic();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.price.read = true;
        (job.price.cursor, job.price.pages) = (None, 0);
        job.go(On::Again);
        self.set_timer(id, now);
    }

    fn prices_failed(&mut self, id: JobId, answer: Option<&Answer>, lost: Option<(FailureKind, Sent)>) {
        let (now, unix, random) = (self.clock.monotonic(), self.clock.unix(), self.entropy.jitter());
        let (hidden, passing) = (self.hidden_of(id), answer.is_none_or(|answer| self.is_passing(answer)));
        let Some(job) = self.jobs.get_mut(&id) else { return };
        // The list is begun again: a cursor may not outlive a failure.
        (job.price.cursor, job.price.pages) = (None, 0);
        if lost.is_some_and(|(kind, _)| kind == FailureKind::Late) && job.tally.late < MAX_LATE {
            job.tally.late += 1;
            job.go(On::Again);
            return self.set_timer(id, now);
        }
        job.price.failures += 1;
        let asked = answer.and_then(|answer| answer.retry_after).unwrap_or(0);
        if passing && job.price.failures < job.policy.attempts && asked <= job.policy.window_ms {
            let delay = jittered(job.policy.ceiling(job.price.failures - 1, false), random).max(asked);
            job.go(On::Again);
            return self.set_timer(id, now.saturating_add(delay));
        }
        let kind = if passing { Kind::Unavailable } else { Kind::Refused };
        let what = format!("was not sent, because the price could not be read: {}", what(self.api, answer, lost));
        let mut error = job.error(kind, Effect::None, what, Advice::RetryLater);
        if let Some(answer) = answer {
            fill(&mut error, answer, &hidden, unix);
        }
        self.not_bought(id, error);
    }

    /// Ends a purchase whose next key is not sent. Where an earlier send may have bought, it is in doubt; if that was another key,
    /// which is answered, it is not sent any more.
    pub(super) fn not_bought(&mut self, id: JobId, error: Error) {
        let Some(job) = self.jobs.get(&id) else { return };
        if !job.ledger.is_open() {
            return self.refuse(id, error);
        }
        let keep = job.ledger.unanswered;
        let (kind, effect) = (Kind::InDoubt, Effect::Unknown);
        let advice = if keep { Advice::Resume } else { Advice::CheckAccount };
        let error = Error::from(Report { kind, effect, advice, ..error.into_report() });
        self.conclude(id, Judgement { again: Again::No, kind, effect, advice, keep }, error);
    }
}

fn quantity(purchase: &CreateSession) -> Decimal {
    purchase.quantity.unwrap_or(Decimal::from(1))
}

/// The price of a product on a page of the list, and its currency where that is not USD. A product that can't be read is passed
/// over, and so is one with a price below 0.
fn price_of(data: &str, product_no: &str) -> Option<(Decimal, Option<String>)> {
    #[derive(Deserialize)]
    struct Page<'a> {
        #[serde(borrow)]
        items: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Priced<'a> {
        product_no: String,
        price: Decimal,
        #[serde(borrow)]
        currency: Option<&'a RawValue>,
    }
    let page: Page<'_> = serde_json::from_str(data).ok()?;
    let mut items = page.items.iter().filter_map(|item| serde_json::from_str::<Priced<'_>>(item.get()).ok());
    let item = items.find(|item| item.product_no == product_no && item.price >= Decimal::from(0))?;
    Some((item.price, item.currency.and_then(|currency| other_currency(currency.get()))))
}

/// A currency, from its JSON, that is not USD. Null is none at all.
fn other_currency(json: &str) -> Option<String> {
    let name = serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned());
    (!is_usd(&name) && json != "null").then(|| name.chars().take(20).collect())
}
