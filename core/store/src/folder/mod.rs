//! A store in a folder: one file a name, owned by the operating system's locks.

mod calls;
#[cfg(unix)]
mod copies;
mod files;
mod format;
mod ledger;
mod listing;
#[cfg_attr(unix, path = "locks_unix.rs")]
#[cfg_attr(not(unix), path = "locks_other.rs")]
mod locks;
// The other kind of locks is tested here too, where files can be locked in the same way.
#[cfg(all(test, unix))]
#[allow(dead_code, reason = "only its tests use it")]
mod locks_other;
// A second copy of this kind, with its own table of the process, as in a process that loads the library twice.
#[cfg(all(test, unix))]
#[path = "locks_unix.rs"]
#[allow(dead_code, clippy::duplicate_mod, reason = "only a test uses it, as the copy that it is")]
mod locks_copy;
mod record;
#[cfg(test)]
mod threads;

use std::path::Path;
use std::time::Duration;

use calls::{Call, Calls};
use files::Files;
use ledger::Ledgers;
use locks::Locks;
use record::Record;

use crate::name::{Name, check_space, check_spend, parse_all};
use crate::{Claim, Clock, Error, Page, Put, Spend, Spent, Store, Whose, Written, day_of, millis, system_clock};

/// A client of a store in a folder, which any number of clients and processes of one machine may share.
///
/// The names that the client owns are free as soon as its process ends, however it ends, or the client is closed or dropped. A forked
/// process owns nothing of its parent's: there each call is [`Error::Misuse`]; open the folder again.
pub struct Folder {
    files: Files,
    locks: Locks,
    calls: Calls,
    ledgers: Ledgers,
    clock: Clock,
}

impl Folder {
    /// Opens a folder. A missing folder is made; an empty one becomes a store.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if the folder is a store of another format or holds other files, [`Error::Failed`] if it can't be written.
    pub fn open(path: impl AsRef<Path>) -> Result<Folder, Error> {
        Folder::with_clock(path, system_clock())
    }

    /// Opens a folder with a clock of the caller's.
    ///
    /// # Errors
    ///
    /// The errors of [`Folder::open`].
    pub fn with_clock(path: impl AsRef<Path>, clock: Clock) -> Result<Folder, Error> {
        let path = std::path::absolute(path.as_ref()).map_err(|error| Error::io("find", path.as_ref(), &error))?;
        format::open(&path)?;
        let locks = Locks::open(&path.join("locks")).map_err(|error| Error::io("lock", &path.join("locks"), &error))?;
        let folder = Folder { files: Files::new(path.clone()), locks, calls: Calls::default(), ledgers: Ledgers::new(path), clock };
        folder.sweep_drafts()?;
        Ok(folder)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.files.root()
    }

    /// Begins a call about these names, once other threads of this client are done with them.
    fn begin<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Call<'_>, Error> {
        // A forked child may not wait: the thread that it would wait for does not exist in it.
        self.enter()?;
        let call = self.calls.begin(names);
        // The client may have been closed meanwhile.
        self.enter().map(|()| call)
    }

    /// Returns an error if no call may be made.
    fn enter(&self) -> Result<(), Error> {
        self.locks.check().map_err(|what| match what {
            locks::Unusable::Closed => Error::Misuse("this client of the store is closed".to_owned()),
            locks::Unusable::Forked => {
                Error::Misuse("this client of the store belongs to the process that was forked; open the folder again".to_owned())
            }
            locks::Unusable::Gone => Error::Failed(format!("the folder `{}` was removed or replaced", self.path().display())),
        })
    }

    fn now(&self) -> u64 {
        (self.clock)()
    }

    fn take(&self, name: Name<'_>) -> Result<bool, Error> {
        self.locks.take(name.as_str()).map_err(|error| self.lock_failed(&error))
    }

    fn give(&self, name: Name<'_>) -> Result<(), Error> {
        self.locks.give(name.as_str()).map_err(|error| self.lock_failed(&error))
    }

    fn whose(&self, name: Name<'_>) -> Result<Whose, Error> {
        self.locks.whose(name.as_str()).map_err(|error| self.lock_failed(&error))
    }

    fn lock_failed(&self, error: &std::io::Error) -> Error {
        Error::io("use the locks of", self.path(), error)
    }

    /// The record of a name that this client owns, or that may be free. A record whose time is over counts as missing, unless the name is
    /// owned.
    fn read_free(&self, name: Name<'_>) -> Result<Option<Record>, Error> {
        Ok(self.files.read(name)?.filter(|record| !record.has_ended(self.now())))
    }

    /// The data of a name that was just taken. If the data can't be read the name is released, as if it had not been taken.
    fn read_taken(&self, name: Name<'_>) -> Result<Option<Vec<u8>>, Error> {
        let read = self.files.read(name).and_then(|record| match record {
            Some(record) if record.has_ended(self.now()) => self.files.delete(name).map(|()| None),
            record => Ok(record.map(|record| record.data)),
        });
        read.inspect_err(|_| self.undo_take(name))
    }

    /// Releases a name after another failure, which is the one that the caller gets.
    fn undo_take(&self, name: Name<'_>) {
        let _ = self.give(name);
    }

    /// Removes the drafts of processes that died while writing. A living writer has the lock of its name; and a draft younger than an hour
    /// may belong to a client that got the name at this moment.
    fn sweep_drafts(&self) -> Result<(), Error> {
        for draft in self.files.drafts(Duration::from_secs(3600))? {
            if Name::parse(&draft.name).is_ok_and(|name| self.whose(name) == Ok(Whose::Free)) {
                draft.remove();
            }
        }
        Ok(())
    }

    /// Removes records whose time is over from the group of a name, except those that other threads of this client are working on.
    fn sweep_group(&self, name: Name<'_>) -> Result<(), Error> {
        let names = self.files.names(name.space(), name.group())?;
        for ended in names.iter().filter_map(|name| Name::parse(name).ok()) {
            let Some(_call) = self.calls.try_begin(ended.as_str()) else { continue };
            let is_free = self.whose(ended)? == Whose::Free;
            if is_free && self.files.read(ended)?.is_some_and(|record| record.has_ended(self.now())) && self.take(ended)? {
                // Deletes the record only if its time is still over, now that no other client can put it.
                self.read_taken(ended)?;
                self.give(ended)?;
            }
        }
        Ok(())
    }
}

impl Store for Folder {
    fn claim(&self, names: &[&str], most: usize) -> Result<Claim, Error> {
        let names = parse_all(names)?;
        let _call = self.begin(names.iter().map(|name| name.as_str()))?;
        let mut claimed = Vec::new();
        let mut others = Vec::new();
        for name in &names {
            if self.locks.is_mine(name.as_str()) && self.take(*name)? {
                claimed.push((name.as_str().to_owned(), self.files.read(*name)?.map(|record| record.data)));
            } else {
                others.push(*name);
            }
        }
        claimed.sort_by_key(|(_, data)| data.is_none());
        claimed.truncate(most);
        if others.len() > most - claimed.len() {
            // This is only a look: the state and the data of a name are certain once it is taken.
            let mut ranked = others.iter().map(|name| Ok((self.read_free(*name)?.is_none(), *name))).collect::<Result<Vec<_>, Error>>()?;
            ranked.sort_by_key(|(is_empty, _)| *is_empty);
            others = ranked.into_iter().map(|(_, name)| name).collect();
        }
        for name in others {
            if claimed.len() < most && self.take(name)? {
                claimed.push((name.as_str().to_owned(), self.read_taken(name)?));
            }
        }
        if !claimed.is_empty() || names.is_empty() || most == 0 {
            return Ok(Claim::Claimed(claimed));
        }
        for name in names {
            if let Some(record) = self.files.read(name)? {
                return Ok(Claim::Busy(Some(record.data)));
            }
        }
        Ok(Claim::Busy(None))
    }

    fn put(&self, name: &str, data: &[u8], how: &Put) -> Result<Written, Error> {
        let name = Name::parse(name)?;
        let _call = self.begin([name.as_str()])?;
        let was_mine = self.locks.is_mine(name.as_str());
        if !(was_mine || how.new) || !self.take(name)? {
            return Ok(Written::Lost);
        }
        if !was_mine && self.read_taken(name)?.is_some() {
            self.give(name)?;
            return Ok(Written::Lost);
        }
        let keep_until = how.keep_for.map(|length| self.now().saturating_add(millis(length)));
        self.files.write(name, &record::encode(data, keep_until))?;
        if how.release {
            self.give(name)?;
        }
        // A few puts in each thousand clean up their group, so that old records go without a search through all.
        if how.keep_for.is_some() && name.as_str().ends_with("00") {
            // A record that can't be removed now is removed another time.
            let _ = self.sweep_group(name);
        }
        Ok(Written::Done)
    }

    fn delete(&self, name: &str) -> Result<Written, Error> {
        let name = Name::parse(name)?;
        let _call = self.begin([name.as_str()])?;
        if self.locks.is_mine(name.as_str()) && self.take(name)? {
            self.files.delete(name)?;
            self.give(name)?;
            return Ok(Written::Done);
        }
        let is_there = match self.whose(name)? {
            Whose::Free => self.read_free(name)?.is_some(),
            Whose::Mine | Whose::Other => self.files.read(name)?.is_some(),
        };
        Ok(if is_there { Written::Lost } else { Written::Done })
    }

    fn release(&self, names: Option<&[&str]>) -> Result<(), Error> {
        let names = names.map(parse_all).transpose()?;
        self.enter()?;
        let Some(names) = names else {
            return self.calls.alone(|| self.enter().and_then(|()| self.locks.give_all().map_err(|error| self.lock_failed(&error))));
        };
        let _call = self.begin(names.iter().map(|name| name.as_str()))?;
        names.into_iter().filter(|name| self.locks.is_mine(name.as_str())).try_for_each(|name| self.give(name))
    }

    fn list(&self, space: &str, after: Option<&str>, open: bool) -> Result<Page, Error> {
        check_space(space)?;
        self.enter()?;
        listing::page(&self.files, &|name| self.whose(name), space, after, open, self.now())
    }

    fn spend(&self, spend: &Spend<'_>) -> Result<Spent, Error> {
        check_spend(spend)?;
        let call = self.begin([ledger::place(spend.space).as_str()])?;
        self.ledgers.spend(spend, day_of(self.now()), &self.locks, call)
    }

    fn close(&self) {
        // A forked child may not wait; it has nothing to release.
        if !matches!(self.locks.check(), Err(locks::Unusable::Forked)) {
            self.calls.alone(|| self.locks.close());
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.close();
    }
}
