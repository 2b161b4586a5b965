//! The properties that must hold, checked from the results that people were given and the effects of the service, and from nothing else.

mod changes;
mod purchases;
mod spending;
#[cfg(test)]
mod tests;
mod traffic;

use std::collections::BTreeMap;

use hopline::client::{Answered, CommandId, Millis};
use hopline::wire::Request;
use hopline::{Error, Kind};

pub(crate) use purchases::{About, Listed};
pub(crate) use spending::{Total, thousandths};
pub(crate) use traffic::{Clocks, is_put_off};

use crate::job::{Job, Name, Task};
use crate::service::{Effect, Response, is_login};
use changes::Changes;
use purchases::{History, is_own};
use spending::Spending;
use traffic::{Keyed, Traffic};

/// One purchase was done twice.
pub const TWICE: &str = "it was done more often than once";
/// A purchase went on under another key before the one before was answered.
pub const REKEYED: &str = "another key was sent, and the one before it may have bought";
/// A caller was told that nothing happened, and the service did it.
pub const DENIED: &str = "it was said that nothing happened, and it did";
/// A caller was told that an operation was done, and it was not.
pub const INVENTED: &str = "it was said to be done, and it was not";
/// An operation was accepted, and no caller knows.
pub const LOST: &str = "it was accepted and lost without a word";
/// A write went out before its record was kept.
pub const UNSAVED: &str = "a write was sent before its record was kept";
/// A write without a key went out again.
pub const RESENT: &str = "a write without a key was sent again, and the one before it may have been done";
/// A write went out under a name that another client has.
pub const FOREIGN: &str = "a write was sent under a name that another client owns";
/// A name is owned by a client that neither holds nor uses it.
pub const STUCK: &str = "a name is owned by a client that has no use for it";
/// A session was forgotten that its client holds.
pub const HELD: &str = "a session was forgotten that its client holds, and that lives";
/// One key went out with two requests.
pub const MIXED: &str = "a key was sent with two requests";
/// More was bought in a day than its cap allows.
pub const CAPPED: &str = "more was bought in a day than its cap allows";
/// The possible charge of a purchase was not in the day's total of the store.
pub const UNCOUNTED: &str = "a purchase was sent before the store had a total that counts it";
/// The day's total is not what was bought.
pub const MISCOUNTED: &str = "the day's total is not what was bought and what may have been";
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
/// A session was renewed while an earlier renewal of it may have been paid.
pub const DOUBLED: &str = "a session was renewed while an earlier renewal of it may have been paid";
/// A setting was sent again after a newer one was accepted.
pub const STALE: &str = "a setting that nobody asked for again was sent after a newer one was accepted";
/// The owner of a session could not end it.
pub const KEPT: &str = "a session that its owner ends was not ended";
/// A command was refused for ever.
pub const BARRED: &str = "a command was refused as busy while nobody was at work";
/// A record of another account in the store was changed, or sent.
pub const INTRUDED: &str = "what another account has in the store was changed or sent";
/// More writes are out, or about to be, than there are places.
pub const CROWDED: &str = "more was sent at once than there are places";
/// A call was put off by what another one was told.
pub const PUT_OFF: &str = "a call was put off for longer than a service can mean, by what another one was told";
/// An accepted purchase was not told, or not with what it cost.
pub const UNTOLD: &str = "a purchase was accepted, and no event says what it cost";
/// The charge of a key was reported twice.
pub const RECHARGED: &str = "what one key cost was told twice";
/// A key went out with another product than before.
pub const SWAPPED: &str = "a key was sent with another product than the one that was chosen for it";
/// A product was chosen that is dearer than its buyer allows.
pub const DEAR: &str = "a product was chosen that is dearer than its buyer allows";
/// A good token was thrown away.
pub const THROWN: &str = "a good token was thrown away";

/// A violation, by one of the sentences above.
pub(crate) type Harm = &'static str;

/// The terms that hold for the whole world.
#[derive(Debug, Clone, Copy, Default, Hash)]
pub(crate) struct Terms {
    /// The daily cap, in thousandths of a dollar.
    pub(crate) cap: Option<i64>,
    /// True if callers allow another key for a purchase that the service failed.
    pub(crate) retry_paid: bool,
    /// True if an app's own backend stands between the programs and the service.
    pub(crate) relayed: bool,
}

/// A request that goes out.
pub(crate) struct Sending<'a> {
    pub(crate) command: CommandId,
    pub(crate) about: Option<(About, Job)>,
    pub(crate) request: &'a Request,
    /// True if another login is under way.
    pub(crate) beside_login: bool,
    /// True if no call is on its way to the store.
    pub(crate) store_is_idle: bool,
    /// The newest total that the store has.
    pub(crate) total: Option<Total>,
    pub(crate) clocks: Clocks,
    /// The time, by no program's clock.
    pub(crate) now: Millis,
}

/// Reads the history as it happens. Its own state is part of a world's: two worlds that are alike, and were told alike, go on alike.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Checker {
    terms: Terms,
    jobs: Vec<History>,
    /// Of each program, of that whose turn it is first.
    traffic: Vec<Traffic>,
    keyed: Keyed,
    spending: Spending,
    changes: Changes,
    /// A step of the store failed.
    store_failed: bool,
}

impl Checker {
    pub(crate) fn new(terms: Terms) -> Checker {
        Checker { terms, traffic: vec![Traffic::default()], ..Checker::default() }
    }

    pub(crate) fn terms(&self) -> Terms {
        self.terms
    }

    /// Another program has its turn, or has had it.
    pub(crate) fn change(&mut self, at: usize) {
        if self.traffic.len() <= at {
            self.traffic.resize_with(at + 1, Traffic::default);
        }
        self.traffic.swap(0, at);
    }

    /// A client of a new process.
    pub(crate) fn restarted(&mut self, token: Option<&String>) {
        self.changes.crashed();
        self.traffic[0].restarted(token);
        self.spending.restarted();
    }

    /// A program died.
    pub(crate) fn crashed(&mut self) {
        self.changes.crashed();
        self.spending.crashed();
    }

    /// The claims of a program have ended while it lives.
    pub(crate) fn claims_ended(&mut self) {
        self.spending.interrupted();
    }

    /// A step of the store failed, or was said to have.
    pub(crate) fn store_failed(&mut self) {
        self.store_failed = true;
    }

    /// A job is started, joined or gone on with.
    pub(crate) fn begun(&mut self, at: usize, job: Job) -> About {
        if self.jobs.len() <= at {
            self.jobs.resize_with(at + 1, History::default);
        }
        let about = About { job: at, purchase: self.jobs[at].begin(job) };
        self.changes.begun(about, job);
        about
    }

    /// The session of a job's last purchase is over, and its intent may buy the next one.
    pub(crate) fn gives_way(&mut self, job: usize) {
        if let Some(history) = self.jobs.get_mut(job) {
            history.gives_way();
        }
    }

    /// A caller resumes a record.
    pub(crate) fn resumed(&mut self, about: About) {
        self.changes.resumed(about);
    }

    /// A record of a job is put.
    pub(crate) fn puts(&mut self, job: usize) {
        if let Some(history) = self.jobs.get_mut(job) {
            history.puts();
        }
    }

    /// A record of a change that nothing else tells from another one says which key it has.
    pub(crate) fn keeps(&mut self, about: About, key: String) {
        if let Some(history) = self.jobs.get_mut(about.job) {
            history.keeps(about.purchase, key);
        }
    }

    /// Nothing was found under the name of a job: whoever waits for it begins a purchase of their own, if the one before has ended.
    pub(crate) fn begins_anew(&mut self, job: usize, was_left: bool) -> Option<About> {
        Some(About { job, purchase: self.jobs.get_mut(job)?.begin_anew(was_left)? })
    }

    /// True if a purchase has no further effect.
    pub(crate) fn has_ended(&self, about: About) -> bool {
        self.jobs.get(about.job).is_some_and(|history| history.has_ended(about.purchase))
    }

    /// True if a caller was told that nothing happened in a purchase.
    pub(crate) fn is_denied(&self, about: About) -> bool {
        self.jobs.get(about.job).is_some_and(|history| history.is_denied(about.purchase))
    }

    /// The present purchase of a job.
    pub(crate) fn current(&self, job: usize) -> Option<About> {
        Some(About { job, purchase: self.jobs.get(job)?.current()? })
    }

    /// The purchase that sent a key of its own making: that key stays its key, whoever sends it.
    pub(crate) fn of_sent_key(&self, job: usize, key: &str) -> Option<About> {
        Some(About { job, purchase: self.jobs.get(job)?.of_key(key)? })
    }

    /// The job of a key that its client made: the one that sent the key, or has it in a record.
    pub(crate) fn job_of_key(&self, jobs: &[Job], key: &str) -> Option<usize> {
        self.jobs.iter().zip(jobs).position(|(history, job)| job.name != Name::Key && history.of_key(key).is_some())
    }

    /// The purchase of a job that sent a key; the present one where none did.
    pub(crate) fn of_key(&self, job: usize, key: Option<&str>) -> Option<About> {
        let history = self.jobs.get(job)?;
        let purchase = key.and_then(|key| history.of_key(key)).or_else(|| history.current())?;
        Some(About { job, purchase })
    }

    /// The service did it.
    pub(crate) fn did(&mut self, about: About, effect: Effect) -> Result<(), Harm> {
        if let (Some(cap), Some(key)) = (self.terms.cap, &effect.key) {
            self.spending.bought(key, cap)?;
        }
        self.jobs.get_mut(about.job).map_or(Ok(()), |history| history.did(about.purchase, effect, self.terms.retry_paid))
    }

    /// How often a job was done, as far as nobody but the client answers for it.
    pub(crate) fn done(&self, job: usize) -> usize {
        self.jobs.get(job).map_or(0, |history| history.done(self.terms.retry_paid))
    }

    /// True if a job was ever done.
    pub(crate) fn was_done(&self, job: usize) -> bool {
        self.jobs.get(job).is_some_and(History::was_done)
    }

    /// The effect of a purchase.
    pub(crate) fn found(&self, about: About) -> Option<&Effect> {
        self.jobs.get(about.job)?.found(about.purchase)
    }

    /// A command has ended, whether or not anybody hears of it.
    pub(crate) fn ends(&mut self, about: About, job: Job, result: &Result<Answered, Error>) -> Result<(), Harm> {
        if is_own(result) {
            self.spending.freed(about);
        }
        self.changes.ends(about, result);
        self.jobs.get_mut(about.job).map_or(Ok(()), |history| history.ends(about.purchase, job, result))
    }

    /// A program finds a record which says that an app's own backend refused the purchase.
    pub(crate) fn finds_refused(&mut self, about: About) -> Result<(), Harm> {
        self.spending.freed(about);
        self.changes.closed(about);
        self.jobs.get_mut(about.job).map_or(Ok(()), |history| history.finds_refused(about.purchase))
    }

    /// A caller takes a result.
    pub(crate) fn taken(&mut self, about: About, job: Job, result: &Result<Answered, Error>) {
        if let Some(history) = self.jobs.get_mut(about.job) {
            history.taken(about.purchase, job, result);
        }
    }

    /// A night has passed, in which the service forgets the keys that it was given.
    pub(crate) fn sleeps(&mut self, jobs: &[Job]) {
        self.jobs.iter_mut().zip(jobs).for_each(|(history, job)| history.sleeps(*job));
    }

    /// True if the service has refused the login of the present client.
    pub(crate) fn login_is_refused(&self) -> bool {
        self.traffic[0].login_is_refused()
    }

    /// True if a job was done more often than callers and the service account for.
    pub(crate) fn is_overdone(&self, job: usize) -> bool {
        self.jobs.get(job).is_some_and(|history| history.done(self.terms.retry_paid) > history.allowed())
    }

    /// True if a party other than the client may have caused a repetition of a job.
    pub(crate) fn is_excused(&self, job: usize) -> bool {
        self.jobs.get(job).is_some_and(History::is_excused)
    }

    /// The record of a job's call is gone from the store: what comes next is a purchase of its own, if the service has done nothing.
    pub(crate) fn erased(&mut self, at: usize, job: Job) {
        if let Some(purchase) = self.jobs.get_mut(at).and_then(|history| history.erased(job)) {
            self.spending.freed(About { job: at, purchase });
            self.changes.closed(About { job: at, purchase });
        }
    }

    /// A person ends a doubt by what the service shows when no message can be under way any more.
    pub(crate) fn settled(&mut self, about: About, job: Job, happened: bool) {
        if !happened {
            self.spending.freed(about);
        }
        self.changes.closed(about);
        if let Some(history) = self.jobs.get_mut(about.job) {
            history.settled(about.purchase, job, happened);
        }
    }

    /// A person ends a doubt without looking: whatever comes of it is theirs to answer for.
    pub(crate) fn guessed(&mut self, about: About, happened: bool) {
        if !happened {
            self.spending.freed(about);
        }
        self.changes.closed(about);
        if let Some(history) = self.jobs.get_mut(about.job) {
            history.guessed(about.purchase, happened);
        }
    }

    /// A person drops the record of what was done; it may be there again, or hide another one of its name.
    pub(crate) fn dropped(&mut self, about: About) {
        self.changes.closed(about);
        if let Some(history) = self.jobs.get_mut(about.job) {
            history.guessed(about.purchase, false);
            history.misled += 1;
        }
    }

    /// A person drops a record of a job that can't be read, once they know what came of it.
    pub(crate) fn unreadable_dropped(&mut self, job: usize) {
        self.changes.unreadable_dropped(job);
    }

    /// A caller saw the sessions and orders of these records.
    pub(crate) fn saw(&mut self, ids: impl IntoIterator<Item = String>) {
        for id in ids {
            if let Some(history) = self.jobs.iter_mut().find(|history| history.became(&id)) {
                history.known.insert(id);
            }
        }
    }

    /// An order's number is given out.
    pub(crate) fn ordered(&mut self, job: Option<usize>, number: String) {
        if let Some(history) = job.and_then(|job| self.jobs.get_mut(job)) {
            history.ordered = Some(number);
        }
    }

    /// A request goes out.
    pub(crate) fn sends(&mut self, sending: &Sending<'_>) -> Result<(), Harm> {
        if let (Some(key), Some((about, job))) = (sending.request.header("idempotency-key"), sending.about) {
            if let Some(replaced) =
                self.jobs[about.job].key_goes_out(about.purchase, job, key, (self.terms.retry_paid, sending.now), &sending.request.url)?
            {
                self.spending.replaced(&replaced);
                self.changes.replaced(&replaced, key);
            }
            if job.task == Task::Choose {
                self.jobs[about.job].chooses(about.purchase, job, key, &sending.request.body)?;
            }
            if let Some(cap) = self.terms.cap.filter(|_| job.is_counted()) {
                self.spending.sends(sending, about, job, key, cap)?;
            }
        }
        if let Some((about, _)) = sending.about.filter(|(_, job)| job.is_keyless() && is_write(sending.request)) {
            self.jobs[about.job].goes_out(about.purchase)?;
        }
        if let Some((about, job)) = sending.about.filter(|_| is_write(sending.request)) {
            // A record that the store could not delete is still there.
            let harm = self.changes.sends(about, job, sending.request, self.terms.relayed);
            harm.or_else(|harm| if harm == STALE && self.store_failed { Ok(()) } else { Err(harm) })?;
        }
        // Its number is kept by then.
        if sending.request.method.as_str() == "GET" && !self.store_failed && sending.store_is_idle {
            for history in &mut self.jobs {
                history.followed.extend(history.ordered.clone().filter(|order| sending.request.url.contains(order.as_str())));
            }
        }
        self.keyed.sends(sending.request)?;
        self.traffic[0].sends(sending)
    }

    /// A response is heard, at the price and the time that the service has.
    pub(crate) fn hears(
        &mut self,
        (command, about): (CommandId, Option<About>),
        request: &Request,
        response: &Response,
        (price, now): (i64, Millis),
        clocks: Clocks,
    ) {
        if let (Some(key), Some(about)) = (request.header("idempotency-key"), about) {
            let refused_at = (self.terms.relayed && response.is_backends()).then_some(now);
            self.jobs[about.job].hears(about.purchase, key, response, refused_at);
            self.spending.hears(key, response);
            self.changes.hears(key, response, self.terms.relayed);
        }
        if let Some(about) = about.filter(|_| is_write(request) && response.is_refusal()) {
            self.never_left(about, None);
        }
        if let Some(about) = about.filter(|_| request.url.contains("/products") && response.status == 200) {
            self.spending.shows(about, price);
            self.jobs[about.job].lists(response);
        }
        self.traffic[0].hears(command, request, response, now, clocks);
    }

    /// The last request of a purchase, perhaps under a key, had no effect for certain.
    pub(crate) fn never_left(&mut self, about: About, key: Option<&str>) {
        if let Some(history) = self.jobs.get_mut(about.job) {
            history.never_left(about.purchase);
        }
        if let Some(key) = key {
            self.spending.never_left(key);
            self.changes.never_left(key);
        }
    }

    /// Everything that was accepted is known to somebody, or to a record that a fresh client lists.
    pub(crate) fn nothing_is_lost(&self, jobs: &[Job], listed: &Listed<'_>) -> Result<(), Harm> {
        let mut all = self.jobs.iter().zip(jobs).enumerate();
        all.try_for_each(|(at, (history, job))| history.is_known(*job, listed, at, self.terms.retry_paid))
    }

    /// The possible charge of each key on the day of a total, in thousandths of a dollar.
    pub(crate) fn due(&self, total: Option<Total>) -> BTreeMap<String, i64> {
        self.spending.by_key(total)
    }

    /// A client sets what an entry counts, for somebody's purchase.
    pub(crate) fn counts(&mut self, about: About, entry: &str) {
        self.spending.counts(about, entry);
    }

    /// The entries of the store must count the possible charge of each purchase, in thousandths of a dollar of a day.
    pub(crate) fn entries_are_right(&self, total: Total, entries: &BTreeMap<String, i64>, now: Millis) -> Result<(), Harm> {
        self.spending.entries_are_right(total, entries, self.store_failed, now)
    }

    /// The total that the store has is what was bought and what may have been.
    pub(crate) fn total_is_right(&self, total: Option<Total>, now: Millis) -> Result<(), Harm> {
        self.spending.is_right(total, self.store_failed, now)
    }
}

fn is_write(request: &Request) -> bool {
    request.method.as_str() != "GET" && !is_login(request)
}

/// True if the error belongs to a start that was refused, which says nothing of the purchase that it would have joined.
fn is_refused_start(error: &Error) -> bool {
    let of_its_name = matches!(error.field.as_deref(), Some("intent" | "idempotency_key"));
    matches!(error.kind, Kind::Busy | Kind::Ended | Kind::Misuse) || (error.kind == Kind::Invalid && of_its_name)
}
