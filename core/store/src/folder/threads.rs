//! Calls of one client in two threads, one in the middle of the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};

use super::*;

const NEW: Put = Put { new: true, keep_for: None, release: false };
/// Data that is kept for one second.
const KEPT: Put = Put { new: true, keep_for: Some(Duration::from_secs(1)), release: true };

type Hook = Box<dyn FnOnce() + Send>;

/// A client whose clock runs a hook once: at the next call that reads the time, in its middle.
struct Hooked {
    client: Folder,
    hook: Arc<Mutex<Option<Hook>>>,
    now: Arc<AtomicU64>,
}

impl Hooked {
    fn open(path: &Path) -> Arc<Hooked> {
        let (now, hook) = (Arc::new(AtomicU64::new(1_750_000_000_000)), Arc::new(Mutex::new(None::<Hook>)));
        let clock: Clock = {
            let (now, hook) = (Arc::clone(&now), Arc::clone(&hook));
            Arc::new(move || {
                let hook = hook.lock().expect("no panic").take();
                hook.into_iter().for_each(|hook| hook());
                now.load(Ordering::SeqCst)
            })
        };
        Arc::new(Hooked { client: Folder::with_clock(path, clock).expect("opens"), hook, now })
    }

    /// Lets another thread make calls at the `after`th reading of the clock from now, and holds the call that reads it until they are made
    /// or wait for it.
    fn meanwhile(self: &Arc<Hooked>, after: usize, calls: impl FnOnce(&Folder) + Send + 'static) -> Arc<OnceLock<JoinHandle<()>>> {
        let thread = Arc::new(OnceLock::new());
        let (hooked, started) = (Arc::clone(self), Arc::clone(&thread));
        self.set(after, move || {
            let inner = Arc::clone(&hooked);
            let other = thread::spawn(move || calls(&inner.client));
            while hooked.client.calls.waiting() == 0 && !other.is_finished() {
                thread::yield_now();
            }
            assert!(started.set(other).is_ok(), "once");
        });
        thread
    }

    fn set(self: &Arc<Hooked>, after: usize, act: impl FnOnce() + Send + 'static) {
        let hooked = Arc::clone(self);
        let next: Hook = if after == 0 { Box::new(act) } else { Box::new(move || hooked.set(after - 1, act)) };
        *self.hook.lock().expect("no panic") = Some(next);
    }
}

fn join(thread: Arc<OnceLock<JoinHandle<()>>>) {
    let thread = Arc::into_inner(thread).and_then(OnceLock::into_inner).expect("the clock was asked");
    thread.join().expect("its calls came out");
}

/// A name of the one group.
fn name(number: u32) -> String {
    format!("5e.i00{number:030x}")
}

#[test]
fn a_sweep_neither_removes_nor_lets_go_of_what_another_thread_claims_meanwhile() {
    // The sweep reads the time when it looks at the name, and again once it has it.
    for after in [1, 2] {
        let folder = tempfile::tempdir().expect("a folder");
        let [hooked, other] = [(); 2].map(|()| Hooked::open(folder.path()));
        assert_eq!(hooked.client.put(&name(1), b"1", &KEPT), Ok(Written::Done));
        hooked.now.fetch_add(2_000, Ordering::SeqCst);
        let thread = hooked.meanwhile(after, |client| {
            assert_eq!(client.claim(&[&name(1)], 1), Ok(Claim::Claimed(vec![(name(1), None)])));
            assert_eq!(client.put(&name(1), b"2", &Put::default()), Ok(Written::Done));
        });
        assert_eq!(hooked.client.put(&name(0x100), b"3", &KEPT), Ok(Written::Done));
        join(thread);
        assert_eq!(other.client.claim(&[&name(1)], 1), Ok(Claim::Busy(Some(b"2".to_vec()))), "{after}");
    }
}

#[test]
fn a_sweep_passes_over_what_another_thread_is_about_to_claim() {
    let folder = tempfile::tempdir().expect("a folder");
    let [hooked, other] = [(); 2].map(|()| Hooked::open(folder.path()));
    assert_eq!(hooked.client.put(&name(1), b"1", &KEPT), Ok(Written::Done));
    hooked.now.fetch_add(2_000, Ordering::SeqCst);
    let [found, claimed] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    // The claim looks at its names before it takes one. If the sweep finds one whose time is over, the sweep rests until the claim has it.
    let sweep = Arc::new(OnceLock::new());
    let started = Arc::clone(&sweep);
    let (sweeping, is_claimed) = (Arc::clone(&hooked), Arc::clone(&claimed));
    hooked.set(0, move || {
        let finds = Arc::clone(&found);
        sweeping.set(1, move || {
            finds.store(true, Ordering::SeqCst);
            while !is_claimed.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        });
        let inner = Arc::clone(&sweeping);
        let sweep = thread::spawn(move || assert_eq!(inner.client.put(&name(0x100), b"2", &KEPT), Ok(Written::Done)));
        while !found.load(Ordering::SeqCst) && !sweep.is_finished() {
            thread::yield_now();
        }
        *sweeping.hook.lock().expect("no panic") = None;
        assert!(started.set(sweep).is_ok(), "once");
    });
    let came = hooked.client.claim(&[&name(1), &name(2)], 1);
    claimed.store(true, Ordering::SeqCst);
    assert_eq!(came, Ok(Claim::Claimed(vec![(name(1), None)])));
    join(sweep);
    assert_eq!(other.client.claim(&[&name(1)], 1), Ok(Claim::Busy(None)));
}

#[test]
fn a_claim_in_the_middle_of_a_put_that_lets_go_comes_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let [hooked, other] = [(); 2].map(|()| Hooked::open(folder.path()));
    let claimed = |data: &[u8]| Ok(Claim::Claimed(vec![(name(1), Some(data.to_vec()))]));
    let thread = hooked.meanwhile(0, move |client| assert_eq!(client.claim(&[&name(1)], 1), claimed(b"1")));
    assert_eq!(hooked.client.put(&name(1), b"1", &KEPT), Ok(Written::Done));
    join(thread);
    assert_eq!(other.client.claim(&[&name(1)], 1), Ok(Claim::Busy(Some(b"1".to_vec()))));
}

#[test]
fn nothing_is_let_go_of_in_the_middle_of_a_put() {
    let let_go: [fn(&Folder); 3] = [
        |client| assert_eq!(client.release(Some(&[&name(1)])), Ok(())),
        |client| assert_eq!(client.release(None), Ok(())),
        |client| client.close(),
    ];
    for let_go in let_go {
        let folder = tempfile::tempdir().expect("a folder");
        let [hooked, other] = [(); 2].map(|()| Hooked::open(folder.path()));
        let thread = hooked.meanwhile(0, move |client| {
            let_go(client);
            // A put of the old owner would overwrite the new data.
            assert_eq!(other.client.put(&name(1), b"2", &NEW), Ok(Written::Lost));
            assert_eq!(other.client.claim(&[&name(1)], 1), Ok(Claim::Claimed(vec![(name(1), Some(b"1".to_vec()))])));
        });
        assert_eq!(hooked.client.put(&name(1), b"1", &Put { release: false, ..KEPT }), Ok(Written::Done));
        join(thread);
    }
}

#[test]
fn nothing_is_let_go_of_in_the_middle_of_a_spend() {
    let spend = |client: &Folder, entry: &str| {
        client.spend(&Spend { space: "5e", day: Some(20_000), entry, amount: 1.into(), cap: Some(1.into()) })
    };
    let let_go: [fn(&Folder); 2] = [|client| assert_eq!(client.release(None), Ok(())), |client| client.close()];
    for let_go in let_go {
        let folder = tempfile::tempdir().expect("a folder");
        let [hooked, other] = [(); 2].map(|()| Hooked::open(folder.path()));
        let thread = hooked.meanwhile(0, move |client| {
            let_go(client);
            // The turn of the space was not given to others before it counted.
            let spent = spend(&other.client, "bb");
            assert!(matches!(spent, Ok(Spent::Over { total, .. }) if total == 1.into()), "{spent:?}");
        });
        assert_eq!(spend(&hooked.client, "aa"), Ok(Spent::Granted { day: 20_000 }));
        join(thread);
    }
}
