//! A write: a call that changes something. This file decides when a write is sent, when it is sent again, and how it ends.
//!
//! # Guarantees
//!
//! 1. Nothing is sent before the store has the record of it ([`Action::Put`], then [`Input::Stored`]). A crash after that loses nothing.
//!    Only a termination is sent all the same if the store fails: a second termination does no harm.
//! 2. While one send of a key has no answer, the same key is sent again or none is. A new key replaces only a key that was answered.
//! 3. `Effect::None` is reported only where no send can have had an effect: the ledger is not open.
//! 4. A key is never sent once the service may have forgotten it ([`Key`]).
//!
//! # States
//!
//! A write waits for one input at a time. [`Before`] names what it waits for where the input alone does not.
//!
//! | State | Waits for | Then |
//! |---|---|---|
//! | due | `Due` | the first of these that applies: it holds back under a throttle; it ends, as the attempts or the deadline are used up, or the key is too old; it gets a token; **pricing**; **counting**; **putting** |
//! | aging: a restored key has no age yet | `Granted` | due; or in doubt, where the age stays unknown |
//! | pricing: a product is to be chosen, or a limit or a cap needs the price | `Response`s of the list | due; or it ends, as the price is above the limit |
//! | counting: a cap applies to this send | `Granted` | putting; or it ends, as the cap is reached |
//! | putting: the store writes its record | `Stored` | due, where a throttle, a login, a price or a count is needed by now; or **sent** |
//! | sent | `Response` | the next table |
//!
//! All ways lead back to due, since time passes in each state: a check is made again, never remembered. Before each send the write is put
//! again. If no caller wants it any more ([`Cx::wanted`]), the next input ends it, except while a request is out.
//!
//! # Answers
//!
//! `policy::judge` says what an answer means for the key and notes it in the [`Ledger`].
//!
//! | Answer | The key after it | Next |
//! |---|---|---|
//! | success | answered | [`WriteOutcome::Accepted`] |
//! | none: the request never left the host | as before | the same key |
//! | lost, or a page without the API's format | unanswered | the same key, where a repeat is allowed |
//! | a throttle (429) | as before | the same key, while the whole client holds back; a new key, where the 429 is a stored replay |
//! | an earlier send is still being done (409) | unanswered | the same key, slowly |
//! | the product is not to be had, or not at that price, and the client has chosen it | answered | a new key for another choice |
//! | a refusal that proves that nothing was done | answered | the write ends without effect, unless an earlier key may have sold |
//! | the supplier failed after it may have sold | answered, and `may_have_sold` | the write ends in doubt; a new key, where it costs nothing or the caller set `retry_paid` |
//! | an unknown code | unanswered | the write ends in doubt |
//!
//! # Ends
//!
//! | Action | The effect | Its record |
//! |---|---|---|
//! | [`Action::Erase`] | none | is deleted first; then the caller gets the error |
//! | [`Action::Doubt`] | unknown | stays: a resume sends the same key again, or a person settles it |
//! | [`Action::Rest`] | unknown | stays; nothing can be sent any more |
//! | [`Action::End`] with an error | unknown, the key answered | goes: the caller has no name by which to find it |
//! | [`Part::Done`] | done | is the script's, which goes on (`engine/jobs`) |

use arcstr::ArcStr;

use super::answer::Answered;
use super::call::{Call, CallOutcome, Retry};
use super::choice::{Candidate, Search, with_product};
use super::context::Cx;
use super::cost::{CountedAt, Price, Terms, Wanted};
use super::counted::Counted;
use super::event::EventKind;
use super::exchange::Exchange;
use super::gate::Wake;
use super::key::{Age, Key};
use super::machine::{Action, Grant, Input, Need, Note, Part, Stored};
use super::prices::Prices;
use crate::contract::agent::{RenewSession, TerminateSession};
use crate::contract::{ANY, Decimal, Operation, Safety};
use crate::policy::{Advice, Effect, Error, Judgement, Kind, Ledger, RetryPolicy, Rule, Rules, SESSION_NOT_FOUND, look_advice};
use crate::time::{Clock, Millis};

/// The reason of a doubt that no caller waits for any more.
const GIVEN_UP: &str = "was cancelled after it may have been sent";

/// The longest time between a write's put and its send: another client may take its name a minute after the last sign of life of this one.
const STILL_OWNED: Millis = 20 * 1000;

/// The number of puts for a store that takes longer to put a record than a grant is good for.
const SLOW_PUTS: u8 = 3;

/// A write.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Write {
    pub(crate) call: Call,
    pub(crate) key: Key,
    pub(crate) terms: Terms,
    /// True if the write came out of a record.
    pub(crate) restored: bool,
    /// The number of puts in a row that were too late for the grant.
    slow_puts: u8,
    /// True if the store failed to keep the record and the write was sent all the same, as only a termination is.
    pub(crate) unrecorded: bool,
    before: Before,
}

/// The step before the send.
#[derive(Debug, Clone, Hash)]
enum Before {
    Nothing,
    /// The price is being read.
    Pricing(Box<Prices>),
    /// The purchase is being counted under the day's cap, by that entry.
    Counting(Box<(CountedAt, String)>),
    /// The service's time is being read, for the age of a restored key.
    Aging,
}

/// The end of a write after which its script goes on.
#[derive(Debug)]
pub(crate) enum WriteOutcome {
    /// The write was accepted.
    Accepted(Box<Answered>),
    /// Of a termination: there is no such session. Only a read can tell whether this call ended it.
    NotThere(Error),
}

impl Write {
    pub(crate) fn new(exchange: Exchange, policy: RetryPolicy, ledger: Ledger, terms: Terms) -> Self {
        let mut call = Call::new(exchange, policy);
        (call.ledger, call.has_price_limit) = (ledger, terms.limit.is_some());
        Write { call, key: Key::new(), terms, restored: false, unrecorded: false, slow_puts: 0, before: Before::Nothing }
    }

    /// Takes the options of another caller that goes on with the write.
    pub(crate) fn take_options(
        &mut self,
        headers: Vec<(String, String)>,
        policy: RetryPolicy,
        limit: Option<Decimal>,
        said: Option<Decimal>,
    ) {
        self.call.take_options(headers, policy);
        self.call.has_price_limit = limit.is_some();
        (self.terms.limit, self.terms.said) = (limit, said.or(self.terms.said));
        self.terms.is_read &= self.restored;
    }

    /// Takes the limit of another caller that joins the write. A key that was sent is repeated as it is, whatever the price is by then.
    pub(crate) fn lower_limit(&mut self, limit: Option<Decimal>) {
        if let Some(limit) = limit.filter(|_| self.call.ledger.sends == 0 && !self.restored && self.terms.wanted.is_some()) {
            self.terms.lower_limit(limit);
            self.call.has_price_limit = true;
        }
    }

    /// Takes the entries of a key that certainly bought nothing: it was never sent, not on that day, or its own answer says so.
    pub(crate) fn take_unspent(&mut self) -> Vec<Counted> {
        let (ledger, was_answered) = (&self.call.ledger, self.key.settled);
        let is_unspent = !ledger.unanswered && !ledger.failed && (ledger.sends == 0 || was_answered);
        let key = ledger.key.as_deref().filter(|_| is_unspent);
        let key = key.map(str::to_owned);
        let mut unspent = self.terms.take_ahead();
        unspent.extend(key.map(|key| self.terms.take_counted(&key)).unwrap_or_default());
        unspent
    }

    /// Returns true if the key may have been sent before, so that the answer may be a replay of an earlier state.
    pub(crate) fn was_resent(&self) -> bool {
        self.call.ledger.sends > 1 || self.call.ledger.given || self.call.ledger.refused
    }

    /// Returns true if the write may be sent again at all.
    pub(crate) fn can_resume(&self, rules: Rules) -> bool {
        let whole = !(self.call.exchange.built.secret && self.restored);
        let once = self.call.exchange.endpoint.safety == Safety::AtMostOnce && rules.holds(Rule::HeldWriteRests);
        whole && !self.key.settled && !once
    }

    /// Begins with a key of that age that an app's own backend refused.
    pub(crate) fn begin_refused(&mut self, key: String, age: Millis, clock: &Clock) {
        self.call.ledger = Ledger { refused: true, ..Ledger::new(Some(key), false) };
        self.key.age = Age::Since(clock.elapsed().saturating_sub(age));
    }

    /// Goes on after a doubt: a restored key first needs its age.
    pub(crate) fn resume(&mut self, cx: &mut Cx<'_>) -> Action {
        self.call.begin_anew(cx);
        self.before = Before::Nothing;
        if !self.can_resume(cx.shared.rules) {
            let what = "can't be sent again to find out whether it took effect";
            let advice = look_advice(self.call.exchange.endpoint).unwrap_or(Advice::CheckAccount);
            return Action::Rest(cx.subject.error(Kind::InDoubt, Effect::Unknown, what, advice));
        }
        self.key.remember_age(cx);
        if self.key.is_restored() && self.call.exchange.is_keyed() {
            self.before = Before::Aging;
            return Action::Need(Need::ServerTime);
        }
        Action::Wake(Wake::at(cx.now()))
    }

    /// Replaces a settled key by a new one, which is priced and counted as the first one was.
    fn take_new_key(&mut self, cx: &mut Cx<'_>) {
        let key = cx.shared.rng.key(cx.subject.intent.as_deref());
        cx.subject.key = Some(key.as_str().into());
        let (before, may_have_sold) = (self.call.ledger.key.clone(), self.call.ledger.failed);
        self.call.ledger.replace(key);
        cx.notes.extend(self.terms.begin_key(before.as_deref().unwrap_or_default(), may_have_sold, cx.shared.rules));
    }

    /// A key was answered with this code, and the next one may be for another product.
    fn leave_product(&mut self, code: Option<&str>) {
        let Some(wanted) = &self.terms.wanted else { return };
        self.terms.choice.iter_mut().for_each(|choice| choice.begin_key(code, &wanted.product_no));
    }

    /// Advances the write with one input.
    pub(crate) fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Part<WriteOutcome> {
        match (std::mem::replace(&mut self.before, Before::Nothing), input) {
            (Before::Pricing(prices), input) => Part::Asks(self.pricing(prices, input, cx)),
            (Before::Counting(asked), Input::Granted(granted)) => Part::Asks(self.counted(*asked, granted, cx)),
            (Before::Aging, Input::Granted(granted)) => Part::Asks(self.key.aged(granted, self.call.ledger.is_open(), cx)),
            (_, Input::Stored(_) | Input::Due(_) | Input::Granted(_)) if !cx.wanted => Part::Asks(self.stop(cx)),
            (_, Input::Due(due)) => Part::Asks(self.due(due, cx)),
            // There is a token.
            (_, Input::Granted(Ok(_))) => Part::Asks(Action::Wake(Wake::at(cx.now()))),
            (_, Input::Granted(Err(error))) => {
                let ended = self.call.not_logged_in(&error, cx);
                self.called(ended, cx)
            }
            (_, Input::Stored(stored)) => Part::Asks(self.stored(stored, cx)),
            (_, Input::Response(received)) => match self.call.on_response(received, cx) {
                Ok(called) => self.called(called, cx),
                Err(failing) => {
                    let was_open = self.call.ledger.is_open();
                    self.call.chooses = self.terms.choice.as_ref().map(|choice| choice.may_choose_again());
                    let (judgement, error) = self.call.judge(&failing, cx);
                    let not_there = matches!(error.code.as_deref(), Some(SESSION_NOT_FOUND | "SESSION_EXPIRED"));
                    if was_open && not_there && self.call.exchange.endpoint.name == TerminateSession::ENDPOINT.name {
                        return Part::Done(WriteOutcome::NotThere(error));
                    }
                    match self.call.go_on(&failing, judgement, error, cx) {
                        // No caller waits any more, and the key has an answer, so a further send would find out nothing.
                        Retry::Final(CallOutcome::Cancelled) if judgement.effect == Effect::Unknown && !judgement.keep => {
                            let error = cx.subject.error(Kind::Cancelled, Effect::Unknown, GIVEN_UP, judgement.advice);
                            Part::Asks(self.conclude(judgement, error, cx))
                        }
                        Retry::Final(called) => self.called(called, cx),
                        Retry::Again(again) => {
                            if again.new_key {
                                self.leave_product(failing.code());
                                self.take_new_key(cx);
                            }
                            Part::Asks(self.call.repeat(again, cx))
                        }
                    }
                }
            },
        }
    }

    fn called(&mut self, called: CallOutcome, cx: &mut Cx<'_>) -> Part<WriteOutcome> {
        match called {
            CallOutcome::Pending(action) => Part::Asks(action),
            CallOutcome::Success(answered) => {
                let charge = answered.facts.estimated_charge_usd.as_deref().and_then(|charge| charge.parse::<Decimal>().ok());
                let counted = self.terms.take_counted(self.call.ledger.key.as_deref().unwrap_or_default());
                if let Some(charge) = charge.filter(|charge| *charge >= Decimal::from(0) && !counted.is_empty()) {
                    cx.notes.push(Note::Charged(counted, charge));
                }
                self.tell_charge(&answered, cx);
                Part::Done(WriteOutcome::Accepted(answered))
            }
            CallOutcome::Failed(judgement, error) => Part::Asks(self.conclude(judgement, error, cx)),
            CallOutcome::Cancelled => Part::Asks(self.stop(cx)),
        }
    }

    /// Reports the charge of an accepted write, in one place for all writes that spend.
    fn tell_charge(&self, answered: &Answered, cx: &mut Cx<'_>) {
        let (endpoint, facts) = (self.call.exchange.endpoint, &answered.facts);
        // For a request of the caller's own only the answer can tell.
        if endpoint.spends() || (endpoint.name == ANY && facts.estimated_charge_usd.is_some()) {
            cx.note(EventKind::Charged {
                idempotency_key: self.call.ledger.key.clone(),
                session_id: facts.session_id.clone().or_else(|| cx.subject.session_id.as_ref().map(ArcStr::to_string)),
                order_no: facts.order_no.clone(),
                charged_usd: facts.estimated_charge_usd.clone(),
            });
        }
    }

    /// Decides the next step when the write is due.
    fn due(&mut self, due: Millis, cx: &mut Cx<'_>) -> Action {
        match self.call.blocked_by(due, cx) {
            Some(CallOutcome::Pending(action)) => return action,
            Some(CallOutcome::Failed(judgement, error)) => return self.conclude(judgement, error, cx),
            Some(CallOutcome::Success(_) | CallOutcome::Cancelled) | None => {}
        }
        if self.is_too_old(cx) {
            return Key::too_old(self.call.ledger.is_open(), cx);
        }
        if let Some(need) = self.call.need(cx) {
            return Action::Need(need);
        }
        if let Some(wanted) = self.terms.wanted.as_ref().filter(|_| self.terms.must_choose()) {
            let saved = self.terms.choice.as_ref().map(|choice| choice.saved.clone()).unwrap_or_default();
            let search = Search::new(&saved, wanted.quantity, self.terms.unit_limit());
            let mut prices = Prices::choosing(wanted, search, self.call.exchange.headers.clone(), self.call.attempts.policy);
            let action = prices.read(cx);
            self.before = Before::Pricing(Box::new(prices));
            return action;
        }
        if let Some(wanted) = self.needs_price(cx) {
            let mut prices = Prices::new(wanted, self.call.exchange.headers.clone(), self.call.attempts.policy);
            let action = prices.read(cx);
            self.before = Before::Pricing(Box::new(prices));
            return action;
        }
        // The age begins before the count, since the entry is saved and sent from there.
        self.key.begin(cx);
        match self.terms.must_count(cx) {
            true => self.count(cx),
            false => self.put(cx),
        }
    }

    fn is_too_old(&self, cx: &Cx<'_>) -> bool {
        self.call.exchange.is_keyed() && self.key.is_too_old(cx)
    }

    fn needs_price(&self, cx: &Cx<'_>) -> Option<&Wanted> {
        self.terms.wanted.as_ref().filter(|_| self.terms.needs_price(self.call.ledger.sends > 0, cx))
    }

    /// Advances the reading of the price.
    fn pricing(&mut self, mut prices: Box<Prices>, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        match input {
            Input::Due(_) if !cx.wanted => return self.stop(cx),
            // Another caller goes on with the write and needs no price.
            Input::Due(due) if self.needs_price(cx).is_none() && !self.terms.must_choose() => return self.due(due, cx),
            _ => {}
        }
        let price = match prices.handle(input, cx) {
            _ if !cx.wanted => return self.stop(cx),
            Part::Asks(action) => {
                self.before = Before::Pricing(prices);
                return action;
            }
            Part::Done(_) if self.needs_price(cx).is_none() && !self.terms.must_choose() => return Action::Wake(Wake::at(cx.now())),
            Part::Done(Ok(price)) => price,
            Part::Done(Err(error)) => return self.not_sent(error, cx),
        };
        if let Some(error) = self.terms.refuses(&price, self.call.ledger.sends > 0, cx) {
            return self.not_sent(error, cx);
        }
        match price {
            Price::Usd(price) => self.terms.priced(Some(price)),
            Price::Other(_) => self.terms.priced(None),
            Price::Chosen(candidate) => self.take_product(candidate, cx),
        }
        Action::Wake(Wake::at(cx.now()))
    }

    /// Takes the product that was chosen for the next key.
    fn take_product(&mut self, candidate: Candidate, cx: &mut Cx<'_>) {
        let Candidate { price, product_no, unit } = candidate;
        let body = self.call.exchange.built.body.as_deref().and_then(|body| with_product(body, &product_no));
        self.call.exchange.built.body = body.or(self.call.exchange.built.body.take());
        self.terms.choice.iter_mut().for_each(|choice| choice.made(price, unit.clone()));
        self.terms.wanted.iter_mut().for_each(|wanted| wanted.product_no.clone_from(&product_no));
        self.terms.priced(Some(price));
        cx.note(EventKind::Chosen { product_no, unit_price: price.to_string() });
    }

    /// Counts the amount that the key may be charged under the day's cap.
    fn count(&mut self, cx: &mut Cx<'_>) -> Action {
        match self.terms.to_count(self.call.ledger.key.as_deref().unwrap_or_default(), cx) {
            Ok((entry, usd)) => {
                self.before = Before::Counting(Box::new((CountedAt::now(cx), entry.clone())));
                Action::Need(Need::Count { entry, usd })
            }
            Err(error) => self.not_sent(error, cx),
        }
    }

    fn counted(&mut self, (asked, entry): (CountedAt, String), granted: Result<Grant, Error>, cx: &mut Cx<'_>) -> Action {
        match granted {
            Ok(granted) => {
                if let Grant::Counted { day } = granted {
                    self.terms.count(entry, day, asked);
                }
                if cx.wanted { self.put(cx) } else { self.stop(cx) }
            }
            Err(error) => {
                let is_store = error.kind == Kind::Store;
                if is_store {
                    self.terms.may_count(entry, cx.day.unwrap_or_default());
                }
                match is_store {
                    _ if !cx.wanted => self.stop(cx),
                    true => self.store_failed("was not sent, because the store could not count its charge under the daily cap", cx),
                    false => self.not_sent(error, cx),
                }
            }
        }
    }

    fn put(&mut self, cx: &mut Cx<'_>) -> Action {
        if cx.shared.rules.holds(Rule::SaveBeforeSend) { Action::Put } else { self.send(cx) }
    }

    fn send(&mut self, cx: &mut Cx<'_>) -> Action {
        let late = if self.call.exchange.is_keyed() { self.key.left(cx).min(STILL_OWNED) } else { STILL_OWNED };
        let late = late.min(self.terms.counts_for(cx));
        self.terms.sent(cx.shared.rules);
        self.slow_puts = 0;
        self.call.send(late, cx)
    }

    /// Takes the outcome of storing the record.
    fn stored(&mut self, stored: Stored, cx: &mut Cx<'_>) -> Action {
        self.unrecorded = stored == Stored::Failed;
        // A second termination does no harm, and a missing one costs money.
        let passes = self.call.exchange.endpoint.name == TerminateSession::ENDPOINT.name;
        match stored {
            Stored::Done => {}
            Stored::Failed if passes => {}
            Stored::Failed => return self.store_failed("was not sent, because the store could not write its record", cx),
        }
        let waits = cx.shared.gate.until() > cx.now() || self.call.exchange.lost_token(cx);
        if waits || self.needs_price(cx).is_some() || self.terms.must_choose() {
            return Action::Wake(Wake::at(cx.now()));
        }
        if self.terms.must_count(cx) {
            self.slow_puts = self.slow_puts.saturating_add(1);
            return match self.slow_puts < SLOW_PUTS {
                true => Action::Wake(Wake::at(cx.now())),
                false => {
                    self.store_failed("was not sent, because the store takes over a minute to count its charge and write its record", cx)
                }
            };
        }
        if cx.shared.rules.holds(Rule::AgeAfterSave) && self.is_too_old(cx) {
            return Key::too_old(self.call.ledger.is_open(), cx);
        }
        self.send(cx)
    }

    fn store_failed(&mut self, what: &str, cx: &mut Cx<'_>) -> Action {
        let open = self.call.ledger.is_open();
        let effect = if open { Effect::Unknown } else { Effect::None };
        let error = cx.subject.error(Kind::Store, effect, what, Advice::MendStore);
        if open { Action::Doubt(error.not_again()) } else { Action::Erase(error) }
    }

    fn not_sent(&mut self, error: Error, cx: &mut Cx<'_>) -> Action {
        let (judgement, error) = self.call.not_sent(error, cx);
        self.conclude(judgement, error, cx)
    }

    /// Ends the write by its last judgement.
    fn conclude(&mut self, judgement: Judgement, error: Error, cx: &Cx<'_>) -> Action {
        match (judgement.effect, judgement.keep) {
            (Effect::None, _) => Action::Erase(error),
            (_, true) => Action::Doubt(error),
            // The key is settled, but money may have moved. The record stays until a person settles it: under an intent, or a job that is
            // run again would buy again; of a renewal, or the next one would pay again.
            (_, false) => {
                self.key.settled = true;
                let stays = cx.subject.named || self.call.exchange.endpoint.name == RenewSession::ENDPOINT.name;
                if stays { Action::Doubt(error) } else { Action::End(Err(error)) }
            }
        }
    }

    /// Stops a write that no caller waits for and no request of which is out: without effect if it was never sent, else in doubt.
    pub(crate) fn stop(&mut self, cx: &mut Cx<'_>) -> Action {
        if !self.call.is_open() {
            let what = "was cancelled before it had any effect";
            return Action::Erase(cx.subject.error(Kind::Cancelled, Effect::None, what, Advice::Nothing));
        }
        let advice = look_advice(self.call.exchange.endpoint).unwrap_or(Advice::Resume);
        Action::Doubt(cx.subject.error(Kind::Cancelled, Effect::Unknown, GIVEN_UP, advice))
    }
}

#[cfg(test)]
mod tests;
