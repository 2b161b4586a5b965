//! The price of a purchase, read from the authenticated list before anything is bought, where the caller set a limit.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Client;
use super::job::{Job, On};
use super::outcome::{MAX_LATE, fill, what};
use super::record::Reserved;
use super::store::JobId;
use super::types::{FailureKind, Happening, Millis, Outcome, Sent};
use crate::contract::agent::{CreateSession, ListProducts, ProductFilter, ProvisioningMode, SessionType};
use crate::contract::{Decimal, Operation};
use crate::policy::{Advice, Effect, Error, Kind, Report, jittered, times};
use crate::wire::{Answer, Facts, Verdict, build};

/// A product is looked for on this many pages of 100.
const PAGES: u32 = 20;

/// What is known of the price of a purchase.
#[derive(Debug, Default)]
pub(super) struct Price {
    /// The caller's own limit for one unit.
    pub(super) cap: Option<Decimal>,
    /// What it is to cost, from the caller or from the list.
    pub(super) expected: Option<Decimal>,
    /// Whether the list was read for the key that is sent next.
    pub(super) read: bool,
    pub(super) cursor: Option<String>,
    pub(super) pages: u32,
    pub(super) failures: u32,
    /// What is set aside of the day's cap, and whether that is being saved.
    pub(super) reserved: Option<Reserved>,
    pub(super) reserving: bool,
}

impl Job {
    /// What is bought, if this buys a session.
    pub(super) fn purchase(&self) -> Option<CreateSession> {
        let body = self.built.as_ref().filter(|_| self.endpoint.name == CreateSession::ENDPOINT.name)?.body.as_deref()?;
        let purchase: CreateSession = serde_json::from_str(body).ok()?;
        (purchase.provisioning_mode != Some(ProvisioningMode::Existing)).then_some(purchase)
    }

    pub(super) fn needs_price(&self, guarded: bool) -> bool {
        let wanted = self.price.cap.is_some() || (guarded && self.price.expected.is_none());
        // A key that was sent is asked about as it is, whatever things cost by now.
        wanted && !self.price.read && self.ledger.sends == 0 && !self.restored && self.purchase().is_some()
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
        match price_of(data.text(), &purchase.product_no).filter(|price| *price >= Decimal::from(0)) {
            Some(price) => self.priced(id, &purchase, price),
            None => match Facts::of(data.text(), None).next_cursor.filter(|next| job.price.cursor.as_ref() != Some(next)) {
                Some(next) if job.price.pages < PAGES => {
                    job.price.cursor = Some(next);
                    self.read_prices(id);
                }
                _ => {
                    let what = format!("was not sent, because `{}` is not in the account's list of prices", purchase.product_no);
                    self.not_bought(id, Kind::Refused, what, Advice::ReadPrices);
                }
            },
        }
    }

    /// The price is known: is it what the caller wants to pay?
    fn priced(&mut self, id: JobId, purchase: &CreateSession, price: Decimal) {
        let now = self.clock.monotonic();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.price.read = true;
        (job.price.cursor, job.price.pages) = (None, 0);
        let cap = job.price.cap;
        self.notify(id, Happening::Priced { unit_price: price.to_string() });
        if let Some(cap) = cap.filter(|cap| price > *cap) {
            let what = format!("was not sent, because one unit costs {price} USD, above the {cap} USD that the caller pays");
            return self.not_bought(id, Kind::Refused, what, Advice::ReadPrices);
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.price.expected.is_none() {
            job.price.expected = times(price, purchase.quantity.unwrap_or(Decimal::from(1)));
        }
        job.go(On::Again);
        self.set_timer(id, now);
    }

    fn prices_failed(&mut self, id: JobId, answer: Option<&Answer>, lost: Option<(FailureKind, Sent)>) {
        let (now, unix, random) = (self.clock.monotonic(), self.clock.unix(), self.entropy.jitter());
        let hidden = self.hidden_of(id);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        // The list is begun again: a cursor may not outlive a failure.
        (job.price.cursor, job.price.pages) = (None, 0);
        if lost.is_some_and(|(kind, _)| kind == FailureKind::Late) && job.tally.late < MAX_LATE {
            job.tally.late += 1;
            job.go(On::Again);
            return self.set_timer(id, now);
        }
        job.price.failures += 1;
        let passing = answer.is_none_or(|answer| matches!(answer.status, 408 | 425 | 429 | 500..=599));
        let asked = answer.and_then(|answer| answer.retry_after).unwrap_or(0);
        if passing && job.price.failures < job.policy.attempts && asked <= job.policy.window_ms {
            let delay = jittered(job.policy.ceiling(job.price.failures - 1, false), random).max(asked);
            job.go(On::Again);
            return self.set_timer(id, now.saturating_add(delay));
        }
        let (open, kind) = (job.ledger.is_open(), if passing { Kind::Unavailable } else { Kind::Refused });
        let (kind, effect) = if open { (Kind::InDoubt, Effect::Unknown) } else { (kind, Effect::None) };
        let what = format!("was not sent, because the price could not be read: {}", what(self.api, answer, lost));
        let mut error = job.error(kind, effect, what, Advice::RetryLater);
        if let Some(answer) = answer {
            fill(&mut error, answer, &hidden, unix);
        }
        if open { self.doubt(id, error) } else { self.refuse(id, error) }
    }

    /// Ends a purchase before it is sent.
    pub(super) fn not_bought(&mut self, id: JobId, kind: Kind, what: String, advice: Advice) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.ledger.is_open() {
            let error = job.error(Kind::InDoubt, Effect::Unknown, what, Advice::Resume);
            return self.doubt(id, error);
        }
        let error = job.error(kind, Effect::None, what, advice);
        self.refuse(id, Error::from(Report { attempts: job.tally.attempts, ..error.into_report() }));
    }
}

/// The price of a product on a page of the list. A product that can't be read is passed over.
fn price_of(data: &str, product_no: &str) -> Option<Decimal> {
    #[derive(Deserialize)]
    struct Page<'a> {
        #[serde(borrow)]
        items: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Priced {
        product_no: String,
        price: Decimal,
    }
    let page: Page<'_> = serde_json::from_str(data).ok()?;
    let items = page.items.iter().filter_map(|item| serde_json::from_str::<Priced>(item.get()).ok());
    items.into_iter().find(|item| item.product_no == product_no).map(|item| item.price)
}
