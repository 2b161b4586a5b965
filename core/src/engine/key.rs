//! A write's idempotency key: its age, how long it may be sent for, and the error once it may not.

use super::context::Cx;
use super::gate::Wake;
use super::machine::{Action, Grant};
use crate::contract::{Encode, Field, MemberWriter, Record, Sink};
use crate::json::{FromJson, FromJsonError, Object};
use crate::policy::{Advice, Effect, Error, KEY_WINDOW, Kind, Rule};
use crate::time::{At, Clock, Millis};

/// The age of a key at the moment of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct SavedAge {
    pub(crate) ms: Millis,
    pub(crate) at: At,
}

impl FromJson for SavedAge {
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        let object = Object::of(json)?;
        let mut age = SavedAge::default();
        let At { unix, client, elapsed, .. } = &mut age.at;
        object.need(&mut [("ms", &mut age.ms), ("unix", unix), ("client", client), ("elapsed", elapsed)])?;
        Ok(age)
    }
}

/// Writes both members as one object.
impl Encode for SavedAge {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        const RECORD: &Record = &Record::new(
            "SavedAge",
            "",
            &[Field::written("ms"), Field::written("unix"), Field::written("client"), Field::written("elapsed")],
        );
        let mut members = MemberWriter::of(RECORD, sink);
        members.member(false, &self.ms);
        members.member(false, &self.at.unix);
        members.member(false, &self.at.client);
        members.member(false, &self.at.elapsed);
        members.end()
    }
}

/// The age of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Age {
    /// The key was never saved, so it was never sent.
    Fresh,
    /// The age is counted from this point of the client's elapsed time.
    Since(Millis),
    /// The age as a record has it.
    Saved(SavedAge),
}

/// The state of a key beside its ledger.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct Key {
    pub(crate) age: Age,
    /// True if the key is settled and its effect is still open: nothing can be sent any more.
    pub(crate) settled: bool,
}

impl Key {
    pub(crate) fn new() -> Self {
        Key { age: Age::Fresh, settled: false }
    }

    fn age(self, elapsed: Millis) -> Option<Millis> {
        match self.age {
            Age::Fresh => Some(0),
            Age::Since(since) => Some(elapsed.saturating_sub(since)),
            Age::Saved(_) => None,
        }
    }

    /// Returns true if the service may have forgotten the key.
    pub(crate) fn is_too_old(self, cx: &Cx<'_>) -> bool {
        let fresh = self.age(cx.shared.clock.elapsed()).is_some_and(|age| age < KEY_WINDOW);
        !fresh && cx.shared.rules.holds(Rule::OldKeyRests)
    }

    /// The time for which the host may hold the key back after the save.
    pub(crate) fn left(self, cx: &Cx<'_>) -> Millis {
        if ![Rule::OldKeyRests, Rule::AgeAfterSave].into_iter().all(|rule| cx.shared.rules.holds(rule)) {
            return Millis::MAX;
        }
        self.age(cx.shared.clock.elapsed()).map_or(0, |age| KEY_WINDOW.saturating_sub(age))
    }

    /// Starts the key's age, before the first save.
    pub(crate) fn begin(&mut self, cx: &Cx<'_>) {
        if self.age == Age::Fresh {
            self.age = Age::Since(cx.shared.clock.elapsed());
        }
    }

    /// Returns true if the key's age waits for the service's time.
    pub(crate) fn is_restored(self) -> bool {
        matches!(self.age, Age::Saved(_))
    }

    /// Computes the age from this client's own record; another client's record waits for the service's time.
    pub(crate) fn remember_age(&mut self, cx: &Cx<'_>) {
        if let Age::Saved(saved) = self.age
            && cx.shared.clock.own_gap(saved.at).is_some()
        {
            self.take_age(cx);
        }
    }

    /// Computes the age with the service's time. Returns whether it is known.
    pub(crate) fn take_age(&mut self, cx: &Cx<'_>) -> bool {
        if let Age::Saved(saved) = self.age {
            let Some(gap) = cx.shared.clock.since(saved.at) else { return false };
            let carried = if cx.shared.rules.holds(Rule::AgeSurvives) { saved.ms.saturating_add(gap) } else { 0 };
            self.age = Age::Since(cx.shared.clock.elapsed().saturating_sub(carried));
        }
        true
    }

    /// The age for the key's record. Another client's record is kept as it is until the age is known.
    pub(crate) fn saved_age(self, clock: &Clock) -> SavedAge {
        let ms = match self.age {
            Age::Fresh => 0,
            Age::Since(since) => clock.elapsed().saturating_sub(since).max(0),
            Age::Saved(saved) => return saved,
        };
        SavedAge { ms, at: clock.at() }
    }

    /// The end of a write whose key may not be sent any more. `open`: true if one of its sends may have had an effect.
    pub(crate) fn too_old(open: bool, cx: &Cx<'_>) -> Action {
        if open {
            let what = "its key is too old to be sent again, or its age is not known";
            Action::Doubt(cx.subject.error(Kind::InDoubt, Effect::Unknown, what, Advice::CheckAccount))
        } else {
            let what = "waited until its key was too old to be sent";
            Action::Erase(cx.subject.error(Kind::Unavailable, Effect::None, what, Advice::RetryLater))
        }
    }

    /// Goes on with a restored key once the service's time was read, or ends as much in doubt as before.
    pub(crate) fn aged(&mut self, granted: Result<Grant, Error>, open: bool, cx: &mut Cx<'_>) -> Action {
        let because = match granted {
            Ok(_) if self.take_age(cx) => return Action::Wake(Wake::at(cx.now())),
            Ok(_) => return Key::too_old(open, cx),
            Err(because) => because,
        };
        let (kind, what) = match cx.wanted {
            true => (Kind::InDoubt, "was not resumed, because the service's time could not be read"),
            false => (Kind::Cancelled, "was cancelled before it was resumed"),
        };
        let mut error = cx.subject.error(kind, Effect::Unknown, what, Advice::Resume);
        error.retry_at = because.retry_at;
        error.cause = Some(because).filter(|_| cx.wanted);
        Action::Doubt(error)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    fn saved(ms: Millis, unix: Millis) -> Age {
        Age::Saved(SavedAge { ms, at: At { unix, client: 77, elapsed: 0 } })
    }

    #[test]
    fn a_key_grows_old_from_its_first_put_and_a_fresh_one_never() {
        let mut given = Given::agent();
        let mut key = Key::new();
        given.pass(KEY_WINDOW);
        assert_eq!((key.is_too_old(&given.cx()), key.left(&given.cx())), (false, KEY_WINDOW));
        key.begin(&given.cx());
        given.pass(KEY_WINDOW - 1);
        // The key is put again before each send, which makes it no younger.
        key.begin(&given.cx());
        assert_eq!((key.is_too_old(&given.cx()), key.left(&given.cx())), (false, 1));
        given.pass(1);
        assert_eq!((key.is_too_old(&given.cx()), key.left(&given.cx())), (true, 0));
    }

    #[test]
    fn a_key_follows_the_faster_clock() {
        for (unix, monotonic) in [(KEY_WINDOW, 0), (0, KEY_WINDOW), (-KEY_WINDOW, KEY_WINDOW)] {
            let mut given = Given::agent();
            let mut key = Key::new();
            key.begin(&given.cx());
            given.pass_by(unix, monotonic);
            assert!(key.is_too_old(&given.cx()), "{unix} {monotonic}");
        }
    }

    #[test]
    fn a_restored_key_is_too_old_until_its_age_is_known_and_carries_it_on() {
        let mut given = Given::agent();
        let mut key = Key { age: saved(1000, START - 5000), settled: false };
        assert!(key.is_restored() && key.is_too_old(&given.cx()));
        assert_eq!((key.left(&given.cx()), key.saved_age(&given.shared.clock).ms), (0, 1000));
        assert!(!key.take_age(&given.cx()));
        // By the service's clock the key was stored 8 s ago, by ours 5: the older age counts.
        given.shared.clock.observe_server_time(START + 3000);
        assert!(key.take_age(&given.cx()) && !key.is_restored());
        assert_eq!(key.saved_age(&given.shared.clock).ms, 9000);
        assert_eq!(key.left(&given.cx()), KEY_WINDOW - 9000);
    }

    #[test]
    fn a_key_that_was_stored_in_the_future_keeps_an_age_that_is_not_known() {
        let mut given = Given::agent();
        given.shared.clock.observe_server_time(START);
        let mut key = Key { age: saved(0, START + 3_600_000), settled: false };
        assert!(!key.take_age(&given.cx()) && key.is_too_old(&given.cx()));
    }
}
