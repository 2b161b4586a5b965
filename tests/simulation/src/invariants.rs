//! What must be true at the end of every path.

use std::collections::BTreeSet;

use hopline::client::{Answered, Client, Holds};
use hopline::contract::Method;
use hopline::{Advice, Effect, Error};

use crate::path::Scope;
use crate::story::Story;
use crate::world::World;

/// What the caller was told, over all processes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    /// Charges, each with its session, from before the story.
    pub(crate) before: usize,
    /// Sessions that were handed over.
    pub(crate) sessions: BTreeSet<String>,
    /// Something was answered.
    pub(crate) answered: bool,
    /// It was said that nothing happened, and nothing was started since.
    pub(crate) none: bool,
    /// What was said last is that nobody knows, and that there is nothing to resume.
    pub(crate) doubt: bool,
    /// The numbers of orders that were handed over.
    pub(crate) orders: BTreeSet<String>,
    /// The order that was announced last.
    pub(crate) ordered: Option<String>,
    /// Orders that were read after they were announced, by when their numbers were kept.
    pub(crate) followed: BTreeSet<String>,
    /// A save failed.
    pub(crate) unkept: bool,
    /// What was answered last.
    pub(crate) last: Option<String>,
}

impl Told {
    pub(crate) fn hear(&mut self, result: &Result<Answered, Error>) {
        match result {
            Ok(answered) => {
                (self.answered, self.doubt) = (true, false);
                self.sessions.extend(answered.facts.session_id.clone());
                self.orders.extend(answered.facts.order_no.clone());
                self.last = Some(answered.raw.text().to_owned());
            }
            Err(error) => {
                self.orders.extend(error.order_no.clone().filter(|_| error.effect == Effect::Done));
                self.none |= error.effect == Effect::None;
                self.answered |= error.effect == Effect::Done;
                self.doubt = error.effect == Effect::Unknown && error.advice != Advice::Resume;
            }
        }
    }

    /// A request goes out.
    pub(crate) fn asks(&mut self, method: Method) {
        if method == Method::Get && !self.unkept {
            self.followed.extend(self.ordered.clone());
        }
    }
}

/// Checks the end of a path.
pub(crate) fn check(scope: Scope, told: &Told, world: &mut World, client: &Client) -> Result<(), String> {
    let now = world.now.unix;
    let effects = scope.story.effects(world) - told.before;
    // With a key of the caller's own, what an earlier process did under it belongs to the same purchase.
    let ever = if scope.story == Story::CreateWithGivenKey { effects + told.before } else { effects };
    if ever > 1 {
        return Err(format!("it was done {ever} times for one intent"));
    }
    if told.none && ever > 0 {
        return Err("it was said that nothing happened, and it did".into());
    }
    // Records of what came before the story are none of its own.
    let mut saved = client.saved();
    saved.retain(|saved| saved.intent.as_deref() == scope.story.intent());
    let held: Vec<_> = saved.iter().filter(|saved| saved.holds != Holds::Accepted).collect();
    if scope.story.buys() {
        let lost: Vec<String> = world
            .service
            .sessions(now)
            .into_iter()
            .skip(told.before)
            .map(|session| session.session_id)
            .filter(|id| !told.sessions.contains(id) && !told.doubt)
            .filter(|id| !held.iter().any(|saved| saved.holds != Holds::Session || saved.session_id.as_ref() == Some(id)))
            .collect();
        if !lost.is_empty() {
            return Err(format!("accepted and lost without a word: {lost:?}"));
        }
    } else if effects > 0 && !told.doubt && !told.answered && saved.is_empty() {
        return Err("accepted and lost without a word".into());
    }
    Ok(())
}
