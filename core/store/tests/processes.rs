//! A folder that several processes have open: they race, are killed and are stopped.

mod worker;

use std::collections::BTreeSet;
#[cfg(unix)]
use std::fs;
#[cfg(unix)]
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;

use hopline_store::{Claim, Folder, Put, Store, Written};
#[cfg(unix)]
use nix::sys::signal::Signal;
use worker::{Worker, name};

#[test]
fn two_processes_that_race_for_a_name_never_both_get_it() {
    const ROUNDS: u32 = 1000;
    const AT_ONCE: u32 = 10;
    let folder = tempfile::tempdir().expect("a folder");
    let mut workers = [(); 2].map(|()| Worker::open(folder.path()));
    let ready = Barrier::new(workers.len());
    let race = |worker: &mut Worker| -> BTreeSet<u32> {
        let rounds = (0..ROUNDS).step_by(AT_ONCE as usize).flat_map(|first| {
            let calls: String = (first..first + AT_ONCE).map(|round| format!("claim {}\n", name(round))).collect();
            ready.wait();
            worker.tell(&calls);
            (first..first + AT_ONCE).filter(|_| worker.hear().starts_with("claimed")).collect::<Vec<_>>()
        });
        rounds.collect()
    };
    let won: Vec<BTreeSet<u32>> = thread::scope(|scope| {
        let racing: Vec<_> = workers.iter_mut().map(|worker| scope.spawn(|| race(worker))).collect();
        racing.into_iter().map(|racing| racing.join().expect("ends")).collect()
    });
    let both: Vec<_> = won[0].intersection(&won[1]).collect();
    assert_eq!(both, Vec::<&u32>::new(), "both have got them");
    assert_eq!(won[0].len() + won[1].len(), ROUNDS as usize, "somebody has got each");
    println!("{} and {} rounds won", won[0].len(), won[1].len());
}

#[test]
fn clients_that_release_and_claim_by_turns_never_lose_what_was_put() {
    const ROUNDS: u32 = 200;
    let folder = tempfile::tempdir().expect("a folder");
    // Each round adds one to the number under the name. With two owners at work, one addition would be lost.
    let add = |client: &Folder| {
        for _ in 0..ROUNDS {
            let data = loop {
                match client.claim(&[&name(1)], 1).expect("claims") {
                    Claim::Claimed(names) => break names[0].1.clone(),
                    Claim::Busy(_) => thread::yield_now(),
                }
            };
            let before: u32 = data.map_or(0, |data| String::from_utf8_lossy(&data).parse().expect("is a number"));
            let how = Put { release: true, ..Put::default() };
            assert_eq!(client.put(&name(1), (before + 1).to_string().as_bytes(), &how), Ok(Written::Done));
        }
    };
    let clients = [(); 4].map(|()| Folder::open(folder.path()).expect("opens"));
    thread::scope(|scope| clients.iter().for_each(|client| drop(scope.spawn(move || add(client)))));
    let claimed = clients[0].claim(&[&name(1)], 1);
    assert_eq!(claimed, Ok(Claim::Claimed(vec![(name(1), Some((4 * ROUNDS).to_string().into_bytes()))])));
}

#[test]
fn an_owner_that_is_killed_leaves_its_names_free_at_once_with_what_it_put_last() {
    let folder = tempfile::tempdir().expect("a folder");
    let client = Folder::open(folder.path()).expect("opens");
    let mut worker = Worker::open(folder.path());
    assert_eq!(worker.ask(&format!("claim {} {}", name(1), name(2))), format!("claimed {}=- {}=-", name(1), name(2)));
    assert_eq!(worker.ask(&format!("put {} {{}}", name(1))), "Done");
    assert_eq!(client.claim(&[&name(1), &name(2)], 2), Ok(Claim::Busy(Some(b"{}".to_vec()))));
    worker.kill();
    let claimed = client.claim(&[&name(1), &name(2)], 2);
    assert_eq!(claimed, Ok(Claim::Claimed(vec![(name(1), Some(b"{}".to_vec())), (name(2), None)])));
}

#[test]
fn an_owner_that_is_killed_at_any_point_of_a_put_leaves_the_old_data_or_the_new() {
    const PUTS: usize = 30;
    let folder = tempfile::tempdir().expect("a folder");
    let client = Folder::open(folder.path()).expect("opens");
    let data = |number: usize| format!("{number}:{}", number.to_string().repeat(400));
    for answered in 0..PUTS {
        let mut worker = Worker::open(folder.path());
        assert!(worker.ask(&format!("claim {}", name(1))).starts_with("claimed"));
        worker.tell(&(0..PUTS).map(|number| format!("put {} {}\n", name(1), data(number))).collect::<String>());
        (0..answered).for_each(|_| assert_eq!(worker.hear(), "Done"));
        // The worker is killed in the middle of a put.
        worker.kill();
        let found = client.claim(&[&name(1)], 1);
        let Ok(Claim::Claimed(found)) = found else { panic!("{found:?}") };
        let found = found[0].1.as_ref().map(|data| String::from_utf8_lossy(data).into_owned());
        let possible = (answered.saturating_sub(1)..PUTS).map(data).find(|data| found.as_ref() == Some(data));
        assert!(possible.is_some() || (found.is_none() && answered == 0), "after {answered} answers: {found:?}");
        assert_eq!(client.delete(&name(1)), Ok(Written::Done));
    }
}

#[cfg(unix)]
#[test]
fn an_owner_that_is_stopped_keeps_its_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let client = Folder::open(folder.path()).expect("opens");
    let mut worker = Worker::open(folder.path());
    assert_eq!(worker.ask(&format!("new {} 1", name(1))), "Done");
    worker.signal(Signal::SIGSTOP);
    assert_eq!(client.claim(&[&name(1)], 1), Ok(Claim::Busy(Some(b"1".to_vec()))));
    assert_eq!(client.put(&name(1), b"2", &Put { new: true, ..Put::default() }), Ok(Written::Lost));
    worker.signal(Signal::SIGCONT);
    assert_eq!(worker.ask(&format!("put {} 3", name(1))), "Done");
    worker.kill();
    assert_eq!(client.claim(&[&name(1)], 1), Ok(Claim::Claimed(vec![(name(1), Some(b"3".to_vec()))])));
}

#[cfg(unix)]
#[test]
fn an_owner_whose_locks_were_taken_away_is_told_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let client = Folder::open(folder.path()).expect("opens");
    let mut worker = Worker::open(folder.path());
    let [first, second] = [1, 2].map(name);
    assert_eq!(client.claim(&[&first, &second], 2), Ok(Claim::Claimed(vec![(first.clone(), None), (second.clone(), None)])));
    // Unix drops the locks when any code of the process closes a file that has them.
    for file in fs::read_dir(folder.path().join("locks")).expect("is there") {
        drop(fs::File::open(file.expect("is a file").path()));
    }
    assert_eq!(worker.ask(&format!("claim {first}")), format!("claimed {first}=-"));
    assert_eq!(client.put(&first, b"1", &Put::default()), Ok(Written::Lost));
    assert_eq!(worker.ask(&format!("put {first} 2")), "Done");
    assert_eq!(client.delete(&first), Ok(Written::Lost));
    assert_eq!(client.claim(&[&first], 1), Ok(Claim::Busy(Some(b"2".to_vec()))));
    // A name that no other client took meanwhile is still the worker's.
    assert_eq!(client.put(&second, b"3", &Put::default()), Ok(Written::Done));
    assert_eq!(worker.ask(&format!("claim {second}")), "busy 3");
}

#[cfg(unix)]
#[test]
fn a_write_that_fails_leaves_what_was_there() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(Folder::open(folder.path()).expect("opens"));
    // No file may be longer than a few kilobytes; a write beyond that fails as on a full disk.
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$1\"";
    let mut worker = Worker::start(Command::new("sh").args(["-c", limited]).arg(worker::PROGRAM).arg(folder.path()));
    assert_eq!(worker.hear(), "open");
    assert_eq!(worker.ask(&format!("new {} old", name(1))), "Done");
    let answer = worker.ask(&format!("put {} {}", name(1), "x".repeat(20_000)));
    assert!(answer.starts_with("error: could not write `") && answer.contains("too large"), "{answer}");
    assert_eq!(worker.ask(&format!("claim {}", name(1))), format!("claimed {}=old", name(1)));
    assert_eq!(fs::read_dir(folder.path().join("drafts")).expect("is there").count(), 0, "nothing is left behind");
    assert_eq!(worker.ask(&format!("put {} new", name(1))), "Done");
    worker.kill();
    let client = Folder::open(folder.path()).expect("opens");
    assert_eq!(client.claim(&[&name(1)], 1), Ok(Claim::Claimed(vec![(name(1), Some(b"new".to_vec()))])));
}

/// Runs a worker on a small disk of its own, which is removed when it ends. `None` if this user may not make one.
#[cfg(target_os = "linux")]
fn on_a_small_disk(folder: &std::path::Path, then: &str) -> Option<Worker> {
    let mount = "mount -t tmpfs -o size=256k,mode=700 tmpfs \"$1\"";
    let may = |rights: &&str| {
        let tried = Command::new("unshare").args([rights, "sh", "-c", mount, "sh"]).arg(folder).stderr(Stdio::null()).status();
        tried.is_ok_and(|ended| ended.success())
    };
    let Some(rights) = ["-m", "-rm"].into_iter().find(may) else {
        println!("skipped: this user may not mount a file system");
        return None;
    };
    let whole = format!("{mount} && {then} exec \"$0\" \"$1\"");
    Some(Worker::start(Command::new("unshare").args([rights, "sh", "-c", &whole]).arg(worker::PROGRAM).arg(folder)))
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_full_disk_calls_fail_and_nothing_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut worker) = on_a_small_disk(folder.path(), "") else { return };
    assert_eq!(worker.hear(), "open");
    assert_eq!(worker.ask("spend 5e aa 4 10"), worker.ask("spend 5e aa 4 10"));
    let data = "x".repeat(4_000);
    let filled = (0..200).take_while(|number| worker.ask(&format!("new {} {data}", name(*number))) == "Done").count() as u32;
    assert!((1..200).contains(&filled), "{filled}");
    let answer = worker.ask(&format!("put {} {}", name(0), "y".repeat(9_000)));
    assert!(answer.starts_with("error: could not write `") && answer.contains("No space left on device"), "{answer}");
    for number in 0..filled {
        assert_eq!(worker.ask(&format!("claim {}", name(number))), format!("claimed {}={data}", name(number)));
    }
    // A line of the ledger may still find room in the last page of its file; one more page does not.
    let spent = (0..200)
        .map(|number| worker.ask(&format!("spend 5e {number:064x} 0.01 10")))
        .take_while(|answer| answer.starts_with("Granted"))
        .count();
    assert!(spent < 200);
    assert_eq!(worker.ask(&format!("delete {}", name(1))), "Done");
    assert_eq!(worker.ask(&format!("put {} new", name(0))), "Done");
    let total = worker.ask("spend 5e bb 100 10");
    let expected = hopline_store::Decimal::new(400 + spent as i64, 2).normalize();
    assert!(total.starts_with("Over") && total.ends_with(&format!(", total: {expected} }}")), "{total}");
    assert!(worker.ask("spend 5e bb 1 10").starts_with("Granted"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_says_so_when_it_is_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut worker) = on_a_small_disk(folder.path(), "mount -o remount,ro \"$1\" &&") else { return };
    let answer = worker.hear();
    assert!(answer.starts_with("error: could not open `") && answer.contains("Read-only file system"), "{answer}");
}
