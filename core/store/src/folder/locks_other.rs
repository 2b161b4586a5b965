//! Ownership of names where there are no record locks: a file for each owned name, locked as long as it is owned.
//!
//! Windows takes a lock back when the handle is closed or its process ends, and gives it to one handle only, so that clients of one process
//! need no table. Looking at a lock means locking it for a moment, so every look, take and release has its turn.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Whose;

/// The locks of one client.
pub(super) struct Locks {
    folder: PathBuf,
    /// `None` once the client is closed.
    owned: Mutex<Option<HashMap<String, File>>>,
}

/// The reason why no lock can be used.
pub(super) enum Unusable {
    Closed,
    #[allow(dead_code, reason = "only Unix forks")]
    Forked,
    Gone,
}

impl Locks {
    /// The locks in a folder, for one more client.
    pub(super) fn open(folder: &Path) -> io::Result<Locks> {
        let locks = Locks { folder: folder.to_owned(), owned: Mutex::new(Some(HashMap::new())) };
        locks.turn().map(|_| locks)
    }

    /// Returns an error if the locks can't be used.
    pub(super) fn check(&self) -> Result<(), Unusable> {
        if self.owned().is_none() {
            Err(Unusable::Closed)
        } else if !self.folder.is_dir() {
            Err(Unusable::Gone)
        } else {
            Ok(())
        }
    }

    /// Takes a name unless another client has it, and says whether this one has it now.
    pub(super) fn take(&self, name: &str) -> io::Result<bool> {
        let mut owned = self.owned();
        let owned = owned.as_mut().ok_or_else(|| io::Error::other("this client of the store is closed"))?;
        if owned.contains_key(name) {
            return Ok(true);
        }
        let _turn = self.turn()?;
        let file = open(&self.folder.join(name))?;
        let is_taken = try_lock(&file)?;
        if is_taken {
            owned.insert(name.to_owned(), file);
        }
        Ok(is_taken)
    }

    /// Releases a name of this client.
    pub(super) fn give(&self, name: &str) -> io::Result<()> {
        let mut owned = self.owned();
        let Some(file) = owned.as_mut().and_then(|owned| owned.remove(name)) else { return Ok(()) };
        let _turn = self.turn()?;
        self.remove(name, file);
        Ok(())
    }

    /// Releases all names.
    pub(super) fn give_all(&self) -> io::Result<()> {
        let mut owned = self.owned();
        let Some(owned) = owned.as_mut() else { return Ok(()) };
        let _turn = self.turn()?;
        owned.drain().for_each(|(name, file)| self.remove(&name, file));
        Ok(())
    }

    /// Returns true if this client owns a name.
    pub(super) fn is_mine(&self, name: &str) -> bool {
        self.owned().as_ref().is_some_and(|owned| owned.contains_key(name))
    }

    /// Returns the owner of a name.
    pub(super) fn whose(&self, name: &str) -> io::Result<Whose> {
        if self.is_mine(name) {
            return Ok(Whose::Mine);
        }
        let _turn = self.turn()?;
        let file = match OpenOptions::new().read(true).write(true).open(self.folder.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Whose::Free),
            Err(error) => return Err(error),
        };
        if !try_lock(&file)? {
            return Ok(Whose::Other);
        }
        // The owner has died.
        self.remove(name, file);
        Ok(Whose::Free)
    }

    /// Releases all names, for good.
    pub(super) fn close(&self) {
        let mut owned = self.owned();
        let _turn = self.turn();
        if let Some(owned) = owned.take() {
            owned.into_iter().for_each(|(name, file)| self.remove(&name, file));
        }
    }

    fn owned(&self) -> MutexGuard<'_, Option<HashMap<String, File>>> {
        // No code that could panic runs while the lock is held.
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn, which ends when the file is closed.
    fn turn(&self) -> io::Result<File> {
        let file = open(&self.folder.join("turn"))?;
        file.lock()?;
        Ok(file)
    }

    /// Unlocks and removes the file of a name. INVARIANT: this client has its turn, so no other client has opened the file meanwhile.
    fn remove(&self, name: &str, file: File) {
        drop(file);
        // A file that can't be removed is unlocked all the same.
        let _ = fs::remove_file(self.folder.join(name));
    }
}

fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_has_a_name_until_it_lets_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let [first, second] = [(); 2].map(|()| Locks::open(folder.path()).expect("opens"));
        let whose = |locks: &Locks| locks.whose("a").expect("looks");
        assert_eq!((whose(&first), first.take("a").expect("takes"), first.take("a").expect("takes")), (Whose::Free, true, true));
        assert_eq!((second.take("a").expect("looks"), first.is_mine("a"), second.is_mine("a")), (false, true, false));
        assert_eq!((whose(&first), whose(&second)), (Whose::Mine, Whose::Other));
        second.give("a").expect("is not its own");
        assert!(!second.take("a").expect("looks"));
        first.give("a").expect("gives");
        assert_eq!((whose(&first), second.take("a").expect("takes"), whose(&first)), (Whose::Free, true, Whose::Other));
        assert!(first.take("b").expect("takes") && second.take("c").expect("takes"));
        second.give_all().expect("gives");
        assert!(first.take("a").expect("takes") && !second.take("b").expect("looks"));
        first.close();
        assert!(second.take("a").expect("takes") && second.take("b").expect("takes") && first.take("d").is_err());
        assert!(matches!((first.check(), second.check()), (Err(Unusable::Closed), Ok(()))));
    }

    #[test]
    fn what_an_owner_left_that_died_is_free_and_goes_when_somebody_looks() {
        let folder = tempfile::tempdir().expect("a folder");
        let locks = Locks::open(folder.path()).expect("opens");
        for name in ["a", "b"] {
            // A lock ends with its process; the file stays.
            File::create(folder.path().join(name)).expect("is made");
        }
        assert_eq!((locks.whose("a").expect("looks"), folder.path().join("a").exists()), (Whose::Free, false));
        assert!(locks.take("b").expect("takes"));
        locks.give_all().expect("gives");
        assert_eq!(fs::read_dir(folder.path()).expect("is there").count(), 1, "the turn");
        fs::remove_dir_all(folder.path()).expect("is there");
        assert!(matches!(locks.check(), Err(Unusable::Gone)));
    }
}
