//! Changes of what is there: a renewal of a session that may have been paid is not followed by another one, and no setting is sent again
//! over a newer one, unless its caller asks for it.

use std::collections::BTreeMap;

use hopline::client::Answered;
use hopline::wire::Request;
use hopline::{Effect as Said, Error};

use super::{About, DOUBLED, Harm, STALE};
use crate::job::{Job, Name, Task};
use crate::service::Response;

/// A renewal that was sent and that nobody knows the end of.
#[derive(Debug, Clone, Hash)]
struct Open {
    about: About,
    key: String,
    /// So many sends of it were not refused by an app's own backend, where there is one.
    unrefused: u32,
}

/// A setting that somebody asked for.
#[derive(Debug, Clone, Copy, Hash)]
struct Asked {
    /// How many others were asked for before.
    number: usize,
    /// So many wait for it.
    waiting: usize,
    /// True if its caller has a name for it: it undoes settings without a name, and no setting without a name is known to it.
    is_named: bool,
    /// The setting is known to be accepted.
    is_accepted: bool,
}

#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Changes {
    /// By where they are sent, which names the session.
    renewals: BTreeMap<String, Open>,
    /// How often somebody asked for a setting.
    asked: usize,
    settings: BTreeMap<About, Asked>,
    /// The newest setting that was asked for and is known to be so.
    accepted: usize,
}

impl Changes {
    /// A caller asks for something, or asks again.
    pub(super) fn begun(&mut self, about: About, job: Job) {
        if job.is_setting() {
            self.asked += 1;
            let asked = Asked { number: self.asked, waiting: 0, is_named: job.name != Name::None, is_accepted: false };
            // An accepted setting is only reported once more.
            let known = self.settings.get(&about).filter(|known| known.is_accepted).copied();
            let waiting = 1 + self.settings.get(&about).map_or(0, |known| known.waiting);
            self.settings.insert(about, Asked { waiting, ..known.unwrap_or(asked) });
        }
    }

    /// A caller resumes a setting by its record. A setting that was undone by then has no record any more.
    pub(super) fn resumed(&mut self, about: About) {
        if let Some(asked) = self.settings.get_mut(&about) {
            asked.waiting += usize::from(asked.number >= self.accepted);
        }
    }

    /// A program died. Its records are listed, and the caller that resumes one asks for it again.
    pub(super) fn crashed(&mut self) {
        self.settings.clear();
    }

    /// A write goes out; through an app's own backend, or not.
    pub(super) fn sends(&mut self, about: About, job: Job, request: &Request, relayed: bool) -> Result<(), Harm> {
        let Some(key) = request.header("idempotency-key") else { return Ok(()) };
        let is_stale = |asked: &Asked| asked.waiting == 0 && asked.number < self.accepted;
        if job.is_setting() && job.name == Name::None && self.settings.get(&about).is_some_and(is_stale) {
            return Err(STALE);
        }
        if job.task == Task::Renew {
            let new = || Open { about, key: key.to_owned(), unrefused: 0 };
            let open = self.renewals.entry(request.url.clone()).or_insert_with(new);
            open.unrefused += u32::from(relayed);
            return if open.key == key { Ok(()) } else { Err(DOUBLED) };
        }
        Ok(())
    }

    /// A key that was refused is replaced by another one of the same purchase.
    pub(super) fn replaced(&mut self, before: &str, key: &str) {
        self.renewals.values_mut().filter(|open| open.key == before).for_each(|open| key.clone_into(&mut open.key));
    }

    /// A key was answered: what is done or refused is open no more. A failure says nothing for sure, however often it is repeated.
    pub(super) fn hears(&mut self, key: &str, response: &Response, relayed: bool) {
        if relayed && response.is_backends() {
            return self.never_left(key);
        }
        let is_refused = response.failure().is_some_and(|status| status < 500 && status != 429);
        if is_refused || response.is_success() {
            self.renewals.retain(|_, open| open.key != key);
        }
    }

    /// A send of a key was not passed on by an app's own backend, or did not come so far.
    pub(super) fn never_left(&mut self, key: &str) {
        self.renewals.retain(|_, open| {
            let is_refused = open.key == key && open.unrefused > 0;
            open.unrefused -= u32::from(is_refused);
            !is_refused || open.unrefused > 0
        });
    }

    /// A command has ended, and it is known what came of it.
    pub(super) fn ends(&mut self, about: About, result: &Result<Answered, Error>) {
        if super::purchases::is_own(result) || result.as_ref().map_or_else(|error| error.effect == Said::Done, |_| true) {
            self.closed(about);
        }
        if let Some(asked) = self.settings.get_mut(&about) {
            (asked.waiting, asked.is_accepted) = (asked.waiting.saturating_sub(1), asked.is_accepted || result.is_ok());
            self.accepted = if result.is_ok() && !asked.is_named { self.accepted.max(asked.number) } else { self.accepted };
        }
    }

    /// A person has ended it, or dropped its record.
    pub(super) fn closed(&mut self, about: About) {
        self.renewals.retain(|_, open| open.about != about);
    }

    /// A person has dropped a record of a job that can't be read, whichever start of the job wrote it: a later start that was busy wrote none.
    pub(super) fn unreadable_dropped(&mut self, job: usize) {
        self.renewals.retain(|_, open| open.about.job != job);
    }
}
