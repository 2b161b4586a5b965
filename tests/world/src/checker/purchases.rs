//! The result of each job: no operation is done twice, denied, invented or lost.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{Answered, Millis, Saved};
use hopline::contract::{Safety, endpoint};
use hopline::{Advice, Effect as Said, Error, Kind};
use serde_json::Value;

use super::spending::thousandths;
use super::{DEAR, DENIED, FORGOTTEN, Harm, INVENTED, LOST, REKEYED, RESENT, SWAPPED, TWICE, is_refused_start};
use crate::job::{Job, Name, Task};
use crate::service::{Effect, Response};

/// A key that an app's own backend refused is sent again for so long at least.
const STILL_YOUNG: Millis = 12 * 3_600_000;

/// A key that was sent.
#[derive(Debug, Clone, Hash)]
struct Key {
    key: String,
    /// The status of the failure that the service itself answered it with last, where that settles it.
    failed: Option<u16>,
    /// The time at which an app's own backend refused it, if that was its last answer.
    refused_at: Option<Millis>,
    /// The address that it was sent to first.
    url: String,
    /// The product that was chosen for it.
    product: Option<String>,
}

/// The purchase that the first record of a job begins, with all its keys, until a caller is told that nothing happened or a person ends it.
#[derive(Debug, Clone, Default, Hash)]
struct Purchase {
    effects: Vec<Effect>,
    keys: Vec<Key>,
    /// A caller was told that nothing happened.
    denied: bool,
    /// Nothing more is to come under it.
    closed: bool,
    /// A person ended it without looking.
    guessed: bool,
    /// A send of it without a key may have been done.
    may_have_left: bool,
    /// A record of it was put, or may have been.
    is_put: bool,
    /// The key that a record of it says, sent or not.
    kept: Option<String>,
    /// The price of the product that was chosen first, in thousandths of a dollar.
    first_price: Option<i64>,
}

impl Purchase {
    /// The last key, when an app's own backend refused that and where that key was sent, if a refusal was the last answer.
    fn refused(&self) -> Option<(String, Millis, String)> {
        let last = self.keys.last()?;
        Some((last.key.clone(), last.refused_at?, last.url.clone()))
    }

    /// The effects that no other party accounts for: a caller that allows another key after a failure has bought the purchase that failed.
    fn effects(&self, retry_paid: bool) -> impl Iterator<Item = &Effect> {
        let failed = move |effect: &Effect| {
            let at = self.keys.iter().position(|key| Some(&key.key) == effect.key.as_ref());
            retry_paid && at.is_some_and(|at| self.keys[at].failed.is_some_and(|status| status >= 500) && at + 1 < self.keys.len())
        };
        self.effects.iter().filter(move |effect| !self.guessed && !failed(effect))
    }
}

/// All that was ever done about one job.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct History {
    purchases: Vec<Purchase>,
    /// The sessions and orders that somebody was told of.
    pub(super) known: BTreeSet<String>,
    /// A caller was told that the purchase was done.
    told: bool,
    /// The prices that were last shown to one who chooses, in thousandths of a dollar.
    listed: BTreeMap<String, i64>,
    /// An order's number that was given out while the store kept everything.
    pub(super) ordered: Option<String>,
    /// The order's number that was given out, after a read that followed it.
    pub(super) followed: BTreeSet<String>,
    /// So many effects more are nobody's fault: the service has forgotten a key that the caller gave.
    excused: usize,
    /// So often a person said that it was done without looking, or dropped its record: each time it may be done once more.
    pub(super) misled: usize,
    /// So often it was started again without a name: each is one of its own.
    more: usize,
    /// The key that an app's own backend refused, and when: the next start sends the same one.
    refused: Option<(String, Millis, String)>,
    /// Two calls of it were started that nothing tells from one another, so that what is said of one does not hold for both.
    is_ambiguous: bool,
}

/// A command, and the purchase that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct About {
    pub(crate) job: usize,
    pub(crate) purchase: usize,
}

/// The list of a fresh client.
pub(crate) struct Listed<'a> {
    pub(crate) saved: &'a [Saved],
    /// The jobs that it shows to be accepted.
    pub(crate) accepted: &'a BTreeSet<usize>,
    /// The jobs that it shows an open doubt of.
    pub(crate) doubts: &'a BTreeSet<usize>,
    /// The jobs of records that it can't read.
    pub(crate) damaged: &'a BTreeSet<usize>,
}

impl History {
    /// The purchase that a start is of.
    pub(super) fn begin(&mut self, job: Job) -> usize {
        let is_own = job.name == Name::None && job.is_change();
        self.is_ambiguous |= job.name == Name::None && !is_own && !self.purchases.is_empty();
        if is_own || self.purchases.last().is_none_or(|purchase| purchase.closed) {
            self.purchases.push(Purchase::default());
        }
        self.more += usize::from(is_own && self.purchases.len() > 1);
        // A job with a key continues under it, even after a denial.
        if let Some(purchase) = self.purchases.last_mut().filter(|_| job.name == Name::Key) {
            purchase.denied = false;
        }
        self.purchases.len() - 1
    }

    /// The session of the last purchase is over, and another one may be bought.
    pub(super) fn gives_way(&mut self) {
        if let Some(last) = self.purchases.last_mut().filter(|last| !last.closed) {
            last.closed = true;
            self.more += 1;
        }
    }

    pub(super) fn puts(&mut self) {
        self.purchases.last_mut().into_iter().for_each(|purchase| purchase.is_put = true);
    }

    /// A record says which key a purchase has, unless that is an earlier one's, which is sent once more for it.
    pub(super) fn keeps(&mut self, purchase: usize, key: String) {
        if self.of_key(&key).is_none()
            && let Some(purchase) = self.purchases.get_mut(purchase)
        {
            purchase.kept = Some(key);
        }
    }

    /// Nothing is under its name: the present purchase has ended if it was put there, or the name let go of, or if that was said.
    pub(super) fn begin_anew(&mut self, was_left: bool) -> Option<usize> {
        if self.purchases.last().is_some_and(|purchase| was_left || purchase.closed || purchase.is_put) {
            self.purchases.push(Purchase::default());
        }
        self.current()
    }

    pub(super) fn current(&self) -> Option<usize> {
        self.purchases.len().checked_sub(1)
    }

    pub(super) fn is_denied(&self, purchase: usize) -> bool {
        self.purchases.get(purchase).is_some_and(|purchase| purchase.denied)
    }

    pub(super) fn has_ended(&self, purchase: usize) -> bool {
        self.purchases.get(purchase).is_some_and(|purchase| purchase.closed)
    }

    pub(super) fn of_key(&self, key: &str) -> Option<usize> {
        let is_its = |purchase: &Purchase| purchase.keys.iter().any(|sent| sent.key == key) || purchase.kept.as_deref() == Some(key);
        self.purchases.iter().rposition(is_its)
    }

    /// The service did it.
    pub(super) fn did(&mut self, purchase: usize, effect: Effect, retry_paid: bool) -> Result<(), Harm> {
        let Some(purchase) = self.purchases.get_mut(purchase) else { return Ok(()) };
        let is_repeated = effect.key.is_some() && purchase.effects.iter().any(|earlier| earlier.key == effect.key);
        purchase.effects.push(effect);
        match () {
            () if purchase.guessed => Ok(()),
            () if purchase.denied => Err(DENIED),
            () if is_repeated && self.excused == 0 => Err(TWICE),
            () if self.done(retry_paid) > self.allowed() + self.more => Err(TWICE),
            () => Ok(()),
        }
    }

    /// How often it was done, as far as nobody but the client answers for it.
    pub(super) fn done(&self, retry_paid: bool) -> usize {
        self.purchases.iter().map(|purchase| purchase.effects(retry_paid).count()).sum()
    }

    pub(super) fn was_done(&self) -> bool {
        self.purchases.iter().any(|purchase| !purchase.effects.is_empty())
    }

    /// Its record is gone. The present purchase, if nothing came of it and it goes on all the same. A purchase that needs no record is over
    /// with it: the end of a session deletes what is free of that session, and whoever waited for the name begins anew.
    pub(super) fn erased(&mut self, job: Job) -> Option<usize> {
        let at = self.current()?;
        let purchase = &mut self.purchases[at];
        let goes_on = purchase.effects.is_empty() && !purchase.closed && !purchase.guessed;
        purchase.closed |= !job.is_remembered();
        goes_on.then_some(at)
    }

    pub(super) fn found(&self, purchase: usize) -> Option<&Effect> {
        self.purchases.get(purchase)?.effects.last()
    }

    /// A key goes out. The key that it takes the place of, if the service has refused that one for good.
    pub(super) fn key_goes_out(
        &mut self,
        purchase: usize,
        job: Job,
        key: &str,
        (retry_paid, now): (bool, Millis),
        url: &str,
    ) -> Result<Option<String>, Harm> {
        let Some(purchase) = self.purchases.get_mut(purchase) else { return Ok(None) };
        // A change of another session is another request, which has a key of its own.
        let refused = self.refused.take().filter(|(_, at, to)| self.misled == 0 && now - at < STILL_YOUNG && to == url);
        if refused.is_some_and(|(refused, ..)| refused != key) {
            return Err(REKEYED);
        }
        let replaced = match purchase.keys.last() {
            Some(last) if last.key == key => return Ok(None),
            Some(last) => match last.failed {
                Some(500..) if !job.is_paid() || retry_paid => None,
                Some(400..=499) => Some(last.key.clone()),
                // A record that was dropped is there again, and goes on under its own key.
                _ if self.misled > 0 => None,
                _ => return Err(REKEYED),
            },
            None => None,
        };
        purchase.keys.push(Key { key: key.to_owned(), failed: None, refused_at: None, url: url.to_owned(), product: None });
        Ok(replaced)
    }

    /// A list of prices is shown to one who chooses.
    pub(super) fn lists(&mut self, response: &Response) {
        let listed = response.json();
        let price = |item: &Value| Some((item["product_no"].as_str()?.to_owned(), thousandths(&item["price"].to_string())?));
        let items = listed["data"]["items"].as_array().into_iter().flatten();
        self.listed.extend(items.filter_map(price));
    }

    /// A key goes out with a product that was chosen: the same each time, and one that its buyer allows.
    pub(super) fn chooses(&mut self, purchase: usize, job: Job, key: &str, body: &[u8]) -> Result<(), Harm> {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let product = body["product_no"].as_str().unwrap_or_default();
        let Some(purchase) = self.purchases.get_mut(purchase) else { return Ok(()) };
        let Some(sent) = purchase.keys.iter_mut().find(|sent| sent.key == key) else { return Ok(()) };
        match &sent.product {
            Some(known) if known == product => return Ok(()),
            Some(_) => return Err(SWAPPED),
            None => sent.product = Some(product.to_owned()),
        }
        let price = self.listed.get(product).copied().ok_or(DEAR)?;
        let first = *purchase.first_price.get_or_insert(price);
        if price > job.limit().unwrap_or(first) { Err(DEAR) } else { Ok(()) }
    }

    /// A write without a key goes out.
    pub(super) fn goes_out(&mut self, purchase: usize) -> Result<(), Harm> {
        let Some(purchase) = self.purchases.get_mut(purchase) else { return Ok(()) };
        if std::mem::replace(&mut purchase.may_have_left, true) { Err(RESENT) } else { Ok(()) }
    }

    pub(super) fn never_left(&mut self, purchase: usize) {
        self.purchases.get_mut(purchase).into_iter().for_each(|purchase| purchase.may_have_left = false);
    }

    /// A key is answered.
    pub(super) fn hears(&mut self, purchase: usize, key: &str, response: &Response, refused_at: Option<Millis>) {
        let sent = self.purchases.get_mut(purchase).and_then(|purchase| purchase.keys.iter_mut().find(|sent| sent.key == key));
        if let Some(sent) = sent {
            (sent.failed, sent.refused_at) = (response.failure(), refused_at);
        }
    }

    /// A command has ended, whether or not anybody hears of it.
    pub(super) fn ends(&mut self, purchase: usize, job: Job, result: &Result<Answered, Error>) -> Result<(), Harm> {
        // A purchase with the caller's own key, or a termination, has the same result each time. A person may delete a record too early
        // before the program dies, and the record is there again.
        let is_change = job.name == Name::None && job.is_change();
        let is_one = job.name == Name::Key
            || matches!(job.task, Task::Terminate | Task::Rotate | Task::Next)
            || is_change
            || self.purchases.iter().any(|purchase| purchase.guessed);
        let was_ever_done = self.was_done();
        let Some(purchase) = self.purchases.get_mut(purchase) else { return Ok(()) };
        let is_excused = self.excused > 0 || purchase.guessed;
        if is_own(result) {
            if !purchase.effects.is_empty() && !is_excused && job.task != Task::Terminate {
                return Err(DENIED);
            }
            // A job with a key continues under it, even after this result.
            (purchase.denied, purchase.closed) = (!self.is_ambiguous, job.name != Name::Key);
            if job.name == Name::Intent && result.as_ref().is_err_and(|error| error.kind == Kind::Refused) {
                self.refused = purchase.refused().or(self.refused.take());
            }
        }
        let is_done = result.as_ref().map_or_else(|error| error.effect, |_| Said::Done) == Said::Done;
        let was_done = if is_one { was_ever_done } else { !purchase.effects.is_empty() };
        // Renewals follow one another under the name of their session's: what somebody goes on with may be another one by then.
        let may_be_another = is_change && job.task == Task::Renew;
        if is_done && job.has_effect() && !may_be_another && !is_excused && self.misled == 0 && !was_done { Err(INVENTED) } else { Ok(()) }
    }

    /// A program finds a record which says that an app's own backend refused every send of a key. The program that put it may have died
    /// before it could say so.
    pub(super) fn finds_refused(&mut self, purchase: usize) -> Result<(), Harm> {
        let Some(purchase) = self.purchases.get_mut(purchase).filter(|purchase| !purchase.closed) else { return Ok(()) };
        if !purchase.effects.is_empty() && self.excused == 0 && !purchase.guessed {
            return Err(DENIED);
        }
        (purchase.denied, purchase.closed) = (!self.is_ambiguous, true);
        self.refused = purchase.refused().or(self.refused.take());
        Ok(())
    }

    /// A caller takes a result.
    pub(super) fn taken(&mut self, purchase: usize, job: Job, result: &Result<Answered, Error>) {
        let Some(purchase) = self.purchases.get_mut(purchase) else { return };
        let (said, session, order) = match result {
            Ok(answered) => (Said::Done, answered.facts.session_id.clone(), answered.facts.order_no.clone()),
            Err(error) => (error.effect, error.session_id.clone(), error.order_no.clone()),
        };
        if said == Said::Done {
            self.known.extend(session.into_iter().chain(order));
            self.told = true;
        }
        // Of a doubt that can't be resumed, and has no name, no record is kept: whoever took it knows.
        if said == Said::Unknown && job.name != Name::Intent && result.as_ref().is_err_and(|error| error.advice != Advice::Resume) {
            (self.told, purchase.closed) = (true, true);
        }
    }

    /// True if the session or order is a result of this job.
    pub(super) fn became(&self, id: &String) -> bool {
        self.purchases.iter().flat_map(|purchase| &purchase.effects).any(|effect| effect.id.as_ref() == Some(id))
    }

    pub(super) fn sleeps(&mut self, job: Job) {
        self.excused += usize::from(job.name == Name::Key);
    }

    pub(super) fn is_excused(&self) -> bool {
        self.excused > 0 || self.misled > 0
    }

    /// How often it may be done, with what other people than the client answer for.
    pub(super) fn allowed(&self) -> usize {
        1 + self.excused + self.misled
    }

    /// A person has dropped the record, and the key of a refused send with it, perhaps before its call has ended.
    fn refusals_are_gone(&mut self) {
        self.refused = None;
        for key in self.purchases.iter_mut().flat_map(|purchase| &mut purchase.keys) {
            key.refused_at = None;
        }
    }

    pub(super) fn settled(&mut self, purchase: usize, job: Job, happened: bool) {
        self.refusals_are_gone();
        let Some(purchase) = self.purchases.get_mut(purchase) else { return };
        // Nothing may come of it any more; what was given a key goes on under it.
        purchase.closed |= !happened;
        // And a session is ended whatever anybody settled.
        purchase.denied |= !happened && job.name != Name::Key && job.task != Task::Terminate && !self.is_ambiguous;
        self.told |= happened;
        if happened {
            self.known.extend(purchase.effects.iter().filter_map(|effect| effect.id.clone()));
        }
    }

    pub(super) fn guessed(&mut self, purchase: usize, happened: bool) {
        self.refusals_are_gone();
        let Some(purchase) = self.purchases.get_mut(purchase) else { return };
        purchase.guessed = true;
        purchase.closed |= !happened;
        self.misled += usize::from(happened);
    }

    /// An accepted operation must be known to a caller, or listed.
    pub(super) fn is_known(&self, job: Job, listed: &Listed<'_>, at: usize, retry_paid: bool) -> Result<(), Harm> {
        let shows =
            |id: &String| listed.saved.iter().any(|saved| saved.session_id.as_ref() == Some(id) || saved.order_no.as_ref() == Some(id));
        let open = self.purchases.iter().filter(|purchase| !purchase.closed).flat_map(|purchase| purchase.effects(retry_paid));
        for effect in open {
            let is_known = match effect.id.as_ref().filter(|_| job.names_what_it_gets()) {
                Some(id) => self.known.contains(id) || shows(id),
                None => self.told || listed.accepted.contains(&at),
            };
            if !is_known && !listed.doubts.contains(&at) && !self.is_excused() && job.is_remembered() {
                return Err(LOST);
            }
        }
        let is_gone = self.followed.iter().any(|order| !self.known.contains(order) && !shows(order));
        let is_excused = listed.damaged.contains(&at) || self.purchases.iter().any(|purchase| purchase.guessed);
        if is_gone && !is_excused { Err(FORGOTTEN) } else { Ok(()) }
    }
}

/// True if the error says that the purchase had no effect, and is not the error of a refused start or of a read that waits for the result.
pub(super) fn is_own(result: &Result<Answered, Error>) -> bool {
    let is_read = |operation: &str| endpoint(operation).is_some_and(|endpoint| endpoint.safety == Safety::Safe);
    result.as_ref().is_err_and(|error| error.effect == Said::None && !is_refused_start(error) && !is_read(error.operation))
}
