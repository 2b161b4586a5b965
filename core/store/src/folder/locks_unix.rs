//! Ownership of names by POSIX record locks: a name is a byte, far beyond the end of a file.
//!
//! The system gives these locks to a process and takes them back when it ends, however it ends; no process id, host or boot is stored. A
//! forked child does not have them, unlike those of `flock`. The locks do not know clients, and closing any descriptor of a file gives up
//! all locks of its process on it. So each file is opened once per process, and a table says which client of this process owns what.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{self, off_t};
use sha2::{Digest, Sha256};

use super::copies::Only;
use super::files::open_for_us_alone;
use crate::Whose;

/// The number of files that the names are divided among: the system searches all locks of a file each time.
const FILES: usize = 16;

/// The locks of one client.
pub(super) struct Locks {
    process: &'static Process,
    shared: Arc<Shared>,
    client: u64,
    closed: AtomicBool,
}

/// The reason why no lock can be used.
pub(super) enum Unusable {
    Closed,
    Forked,
    Gone,
}

/// The locks that this process has in one folder.
struct Shared {
    /// The path and the identity of the first file.
    path: PathBuf,
    identity: (u64, u64),
    state: Mutex<State>,
}

struct State {
    /// Empty once the last client has closed.
    files: Vec<File>,
    only: Option<Only>,
    clients: usize,
    owners: HashMap<Place, u64>,
}

/// The place where a name is locked. Two names at one place would find each other busy; the length of a hash makes this impossible.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    file: usize,
    byte: off_t,
}

/// The folders that this process has open. A forked child begins a list of its own behind those of its parents: it has none of their locks,
/// and other threads of the parent do not exist in it.
struct Process {
    id: u32,
    folders: Mutex<Vec<Arc<Shared>>>,
    clients: AtomicU64,
    next: OnceLock<Box<Process>>,
}

impl Process {
    fn current() -> &'static Process {
        static FIRST: OnceLock<Process> = OnceLock::new();
        let id = process::id();
        let new = || Process { id, folders: Mutex::default(), clients: AtomicU64::new(0), next: OnceLock::new() };
        let mut process = FIRST.get_or_init(new);
        while process.id != id {
            process = process.next.get_or_init(|| Box::new(new()));
        }
        process
    }
}

impl Locks {
    /// The locks in a folder, for one more client.
    pub(super) fn open(folder: &Path) -> io::Result<Locks> {
        let process = Process::current();
        // Held while files are opened and closed.
        let mut folders = lock(&process.folders);
        let path = folder.join("0");
        let known = |identity| folders.iter().find(|shared| Some(shared.identity) == identity).map(Arc::clone);
        let shared = match known(identity_of(&path)) {
            Some(shared) => shared,
            None => {
                let only = Some(Only::take(folder)?);
                let files = (0..FILES).map(|n| open(&folder.join(format!("{n:x}")))).collect::<io::Result<Vec<_>>>()?;
                let found = files[0].metadata()?;
                let state = Mutex::new(State { files, only, clients: 0, owners: HashMap::new() });
                let shared = Arc::new(Shared { path, identity: (found.dev(), found.ino()), state });
                folders.push(Arc::clone(&shared));
                shared
            }
        };
        lock(&shared.state).clients += 1;
        let client = process.clients.fetch_add(1, Ordering::Relaxed);
        Ok(Locks { process, shared, client, closed: AtomicBool::new(false) })
    }

    /// Returns an error if the locks can't be used: after a fork, or if the folder was replaced.
    pub(super) fn check(&self) -> Result<(), Unusable> {
        if !self.is_here() {
            Err(Unusable::Forked)
        } else if self.closed.load(Ordering::Acquire) {
            Err(Unusable::Closed)
        } else if identity_of(&self.shared.path) != Some(self.shared.identity) {
            Err(Unusable::Gone)
        } else {
            Ok(())
        }
    }

    /// Takes a name unless another client has it, and returns true if this one has it now. A lock that is held is requested again: other
    /// code of this process may have lost it by opening and closing the file.
    pub(super) fn take(&self, name: &str) -> io::Result<bool> {
        let place = place_of(name);
        let mut state = lock(&self.shared.state);
        if state.owners.get(&place).is_some_and(|owner| *owner != self.client) {
            return Ok(false);
        }
        let taken = set(&state, place, libc::F_WRLCK)?;
        if taken {
            state.owners.insert(place, self.client);
        } else {
            state.owners.remove(&place);
        }
        Ok(taken)
    }

    /// Releases a name of this client.
    pub(super) fn give(&self, name: &str) -> io::Result<()> {
        let place = place_of(name);
        let mut state = lock(&self.shared.state);
        if state.owners.get(&place) != Some(&self.client) {
            return Ok(());
        }
        set(&state, place, libc::F_UNLCK)?;
        state.owners.remove(&place);
        Ok(())
    }

    /// Releases all names.
    pub(super) fn give_all(&self) -> io::Result<()> {
        give_all(&mut lock(&self.shared.state), self.client)
    }

    /// Returns true if this client owns a name.
    pub(super) fn is_mine(&self, name: &str) -> bool {
        lock(&self.shared.state).owners.get(&place_of(name)) == Some(&self.client)
    }

    /// Returns the owner of a name, and changes nothing.
    pub(super) fn whose(&self, name: &str) -> io::Result<Whose> {
        let place = place_of(name);
        let state = lock(&self.shared.state);
        match state.owners.get(&place) {
            Some(owner) if *owner == self.client => return Ok(Whose::Mine),
            Some(_) => return Ok(Whose::Other),
            None => {}
        }
        let mut range = range(place.byte, libc::F_WRLCK);
        fcntl(file(&state, place)?, FcntlArg::F_GETLK(&mut range))?;
        Ok(if range.l_type == libc::F_UNLCK as libc::c_short { Whose::Free } else { Whose::Other })
    }

    /// Releases all names, for good.
    pub(super) fn close(&self) {
        // A child may not even wait for a lock: the thread that held it at the fork does not exist in the child.
        if !self.is_here() || self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut folders = lock(&self.process.folders);
        let mut state = lock(&self.shared.state);
        state.clients -= 1;
        if state.clients == 0 {
            // Closing the files unlocks them as well. INVARIANT: no client of this process has a lock in them, and none can open them now.
            folders.retain(|shared| !Arc::ptr_eq(shared, &self.shared));
            state.owners.clear();
            state.files.clear();
            state.only = None;
        } else {
            // A name that could not be unlocked is no longer in the table, and the next client of this process takes it.
            let _ = give_all(&mut state, self.client);
            state.owners.retain(|_, owner| *owner != self.client);
        }
    }

    fn is_here(&self) -> bool {
        self.process.id == process::id()
    }
}

fn give_all(state: &mut State, client: u64) -> io::Result<()> {
    let own: Vec<Place> = state.owners.iter().filter(|(_, owner)| **owner == client).map(|(place, _)| *place).collect();
    for place in own {
        set(state, place, libc::F_UNLCK)?;
        state.owners.remove(&place);
    }
    Ok(())
}

/// Locks or unlocks a place, and returns whether it worked. A lock of another process is not an error.
fn set(state: &State, place: Place, kind: impl Into<libc::c_int>) -> io::Result<bool> {
    match fcntl(file(state, place)?, FcntlArg::F_SETLK(&range(place.byte, kind))) {
        Ok(_) => Ok(true),
        Err(Errno::EACCES | Errno::EAGAIN) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn file(state: &State, place: Place) -> io::Result<&File> {
    state.files.get(place.file).ok_or_else(|| io::Error::other("this client of the store is closed"))
}

/// The kind is a short number on Apple's systems.
pub(super) fn range(byte: off_t, kind: impl Into<libc::c_int>) -> libc::flock {
    libc::flock { l_type: kind.into() as libc::c_short, l_whence: libc::SEEK_SET as libc::c_short, l_start: byte, l_len: 1, l_pid: 0 }
}

pub(super) fn number_of(text: &str) -> u64 {
    Sha256::digest(text).iter().take(8).fold(0, |number: u64, byte| number << 8 | u64::from(*byte))
}

fn place_of(name: &str) -> Place {
    let number = number_of(name);
    Place { file: number as usize % FILES, byte: (number / FILES as u64) as off_t & (off_t::MAX >> 1) }
}

pub(super) fn open(path: &Path) -> io::Result<File> {
    open_for_us_alone(OpenOptions::new().read(true).write(true).create(true).truncate(false)).open(path)
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// No code that could panic runs while the locks are held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
