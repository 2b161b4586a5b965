//! A process that is forked, which only a system call can show.
#![cfg(unix)]
#![allow(unsafe_code, reason = "fork is unsafe in a program that has threads; the children here call nothing but this crate and exit")]

use std::fs;
use std::path::Path;

use hopline_store::{Claim, Error, Folder, Put, Store, Written};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pause};

const FIRST: &str = "5e.i00000000000000000000000000000001";
const SECOND: &str = "5e.i00000000000000000000000000000002";

/// Runs a function in a forked child, which exits with its result.
fn forked(run: impl FnOnce() -> i32) -> Pid {
    // SAFETY: see above. glibc, musl and Apple's library keep memory allocation whole over a fork.
    match unsafe { fork() }.expect("forks") {
        ForkResult::Parent { child } => child,
        // Without unwinding, and without what the parent would do at its end.
        ForkResult::Child => unsafe { nix::libc::_exit(run()) },
    }
}

/// Waits until a file is there.
fn wait_for(path: &Path) -> String {
    loop {
        match fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => std::thread::yield_now(),
        }
    }
}

#[test]
fn an_owner_that_is_killed_frees_its_names_though_its_forked_child_lives() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, said) = (folder.path().join("store"), folder.path().join("said"));
    let client = Folder::open(&store).expect("opens");
    let owner = forked(|| {
        let Ok(own) = Folder::open(&store) else { return 1 };
        let Ok(Written::Done) = own.put(FIRST, b"{}", &Put { new: true, ..Put::default() }) else { return 2 };
        let child = forked(|| {
            pause();
            0
        });
        fs::write(&said, format!("{child}\n")).map_or(3, |()| {
            pause();
            0
        })
    });
    let grandchild = Pid::from_raw(wait_for(&said).parse().expect("is a number"));
    assert_eq!(client.claim(&[FIRST], 1), Ok(Claim::Busy(Some(b"{}".to_vec()))));
    kill(owner, Signal::SIGKILL).expect("it lives");
    assert_eq!(waitpid(owner, None), Ok(WaitStatus::Signaled(owner, Signal::SIGKILL, false)));
    let claimed = client.claim(&[FIRST], 1);
    // Signal 0 only tests whether the process lives.
    let lives = kill(grandchild, None);
    kill(grandchild, Signal::SIGKILL).expect("it lives");
    assert_eq!((claimed, lives), (Ok(Claim::Claimed(vec![(FIRST.to_owned(), Some(b"{}".to_vec()))])), Ok(())));
}

#[test]
fn a_forked_child_has_nothing_of_its_parents_and_may_open_the_folder_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let parent = Folder::open(folder.path()).expect("opens");
    assert_eq!(parent.put(FIRST, b"1", &Put { new: true, ..Put::default() }), Ok(Written::Done));
    let child = forked(|| {
        let is_misuse = |came: Result<Written, Error>| matches!(came, Err(Error::Misuse(_)));
        if !is_misuse(parent.put(FIRST, b"2", &Put::default())) || !is_misuse(parent.delete(FIRST)) {
            return 1;
        }
        if !matches!(parent.release(None), Err(Error::Misuse(_))) {
            return 2;
        }
        // Closing or dropping the client in the child is no error and releases nothing.
        parent.close();
        let Ok(own) = Folder::open(folder.path()) else { return 3 };
        if own.claim(&[FIRST], 1) != Ok(Claim::Busy(Some(b"1".to_vec()))) {
            return 4;
        }
        if own.claim(&[SECOND], 1) != Ok(Claim::Claimed(vec![(SECOND.to_owned(), None)])) {
            return 5;
        }
        own.close();
        0
    });
    assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
    assert_eq!(parent.put(FIRST, b"3", &Put::default()), Ok(Written::Done));
    let after = Folder::open(folder.path()).expect("opens");
    assert_eq!(after.claim(&[FIRST, SECOND], 2), Ok(Claim::Claimed(vec![(SECOND.to_owned(), None)])));
}

#[test]
fn a_folder_may_be_closed_and_opened_again_though_a_forked_child_lives() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Folder::open(folder.path()).expect("opens");
    let child = forked(|| {
        pause();
        0
    });
    first.close();
    let again = Folder::open(folder.path());
    kill(child, Signal::SIGKILL).expect("it lives");
    assert_eq!(waitpid(child, None), Ok(WaitStatus::Signaled(child, Signal::SIGKILL, false)));
    assert_eq!(again.expect("opens").claim(&[FIRST], 1), Ok(Claim::Claimed(vec![(FIRST.to_owned(), None)])));
}
