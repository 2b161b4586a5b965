//! The folder's own behaviour: formats, leftovers, damage, folders that vanish, clients of one process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use hopline_store::{Claim, Clock, Decimal, Error, Folder, Memory, Page, Put, Spend, Spent, Store, Written};
use tempfile::TempDir;

const NEW: Put = Put { new: true, keep_for: None, release: false };
const DAY: u64 = 86_400_000;

fn name(number: u32) -> String {
    format!("5e.i{number:032x}")
}

fn open(folder: &Path) -> Folder {
    Folder::open(folder).expect("opens")
}

fn empty() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A clock that the test sets.
fn clock() -> (Arc<AtomicU64>, Clock) {
    let now = Arc::new(AtomicU64::new(20_000 * DAY));
    let shown = Arc::clone(&now);
    (now, Arc::new(move || shown.load(Ordering::Relaxed)))
}

fn spend(entry: &str, amount: i64, cap: i64) -> Spend<'_> {
    Spend { space: "5e", day: None, entry, amount: amount.into(), cap: Some(cap.into()) }
}

/// All files below a folder, with their content.
fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("is there") {
        let path = entry.expect("is there").path();
        if path.is_dir() { found.extend(tree(&path)) } else { found.push((path.clone(), fs::read(&path).expect("is there"))) }
    }
    found.sort();
    found
}

fn sentence(opened: Result<Folder, Error>) -> String {
    match opened {
        Err(error @ Error::Format(_)) => error.to_string(),
        Err(error) => panic!("it is of another kind: {error}"),
        Ok(_) => panic!("it was opened"),
    }
}

#[test]
fn a_folder_of_another_format_is_refused_and_left_as_it_is() {
    // Node's format and another version, which state their format; version 1 of each host, which does not; and foreign files.
    for (file, text) in [
        ("format", "hopline folder of Node 2\n"),
        ("format", "hopline folder 3\n"),
        ("format", ""),
        (".locks", ""),
        ("0123456789abcdef0123456789abcdef-r1.json", "{}"),
        ("node-0123456789abcdef/holder", "{}"),
        ("chapter-1.txt", "It was a dark and stormy night"),
    ] {
        let folder = empty();
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().expect("has one")).expect("is made");
        fs::write(path, text).expect("is written");
        let before = tree(folder.path());
        let said = sentence(Folder::open(folder.path()));
        assert!(said.contains(&format!("`{}`", folder.path().display())) && !said.ends_with('.'), "{said}");
        assert_eq!(tree(folder.path()), before, "{file}");
    }
}

#[test]
fn a_new_volume_and_a_missing_folder_become_stores() {
    let folder = empty();
    fs::create_dir(folder.path().join("lost+found")).expect("is made");
    drop(open(folder.path()));
    let missing = folder.path().join("lost+found/a/b");
    drop(open(&missing));
    assert_eq!(fs::read_to_string(missing.join("format")).expect("is there"), "hopline folder 2\n");
}

#[test]
fn clients_that_open_an_empty_folder_at_once_open_one_store() {
    for _ in 0..200 {
        let folder = empty();
        let clients: Vec<Folder> = thread::scope(|scope| {
            let opening: Vec<_> = (0..4).map(|_| scope.spawn(|| open(folder.path()))).collect();
            opening.into_iter().map(|opening| opening.join().expect("opens")).collect()
        });
        let claimed = clients.iter().filter(|client| matches!(client.claim(&[&name(1)], 1), Ok(Claim::Claimed(_)))).count();
        assert_eq!(claimed, 1);
        drop(clients);
        let files = fs::read_dir(folder.path()).expect("is there").count();
        assert_eq!(files, 5, "format, locks, names, drafts, spent");
    }
}

#[cfg(unix)]
#[test]
fn one_folder_under_two_names_is_one_store() {
    let folder = empty();
    let link = folder.path().join("link");
    let real = folder.path().join("real");
    let first = open(&real);
    std::os::unix::fs::symlink(&real, &link).expect("is made");
    let second = open(&link);
    assert_eq!(first.put(&name(1), b"1", &NEW), Ok(Written::Done));
    assert_eq!(second.claim(&[&name(1)], 1), Ok(Claim::Busy(Some(b"1".to_vec()))));
    // A closing client does not take the locks of another away.
    drop(second);
    drop(open(&link));
    assert_eq!(open(&real).claim(&[&name(1)], 1), Ok(Claim::Busy(Some(b"1".to_vec()))));
}

#[cfg(unix)]
#[test]
fn nothing_is_readable_to_others() {
    use std::os::unix::fs::PermissionsExt;

    let folder = empty();
    let store = folder.path().join("store");
    let client = open(&store);
    assert_eq!(client.put(&name(1), b"1", &NEW), Ok(Written::Done));
    assert_eq!(client.spend(&spend("aa", 1, 1)), Ok(Spent::Granted { day: today() }));
    let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
    let files = tree(&store);
    assert!(files.len() > 2);
    for (path, _) in files {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        path.ancestors().skip(1).take_while(|above| above.starts_with(&store)).for_each(|above| assert_eq!(mode(above), 0o700));
    }
}

fn today() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("is later");
    now.as_secs().div_euclid(86_400) as i64
}

#[test]
fn calls_on_a_folder_that_has_vanished_fail_and_do_not_make_it_anew() {
    let folder = empty();
    let store = folder.path().join("store");
    let client = open(&store);
    assert_eq!(client.put(&name(1), b"1", &NEW), Ok(Written::Done));
    fs::remove_dir_all(&store).expect("is removed");
    let fail_all = || {
        let said = format!("the folder `{}` was removed or replaced", store.display());
        let failed = || Error::Failed(said.clone());
        assert_eq!(client.claim(&[&name(1)], 1), Err(failed()));
        assert_eq!(client.put(&name(1), b"2", &NEW), Err(failed()));
        assert_eq!(client.delete(&name(1)), Err(failed()));
        assert_eq!(client.list("5e", None, false), Err(failed()));
        assert_eq!(client.release(None), Err(failed()));
        assert_eq!(client.spend(&spend("aa", 1, 1)), Err(failed()));
    };
    fail_all();
    assert!(!store.exists());
    // A new folder in its place has another identity.
    let other = open(&store);
    fail_all();
    assert_eq!(other.put(&name(1), b"3", &NEW), Ok(Written::Done));
    drop(client);
    assert_eq!(open(&store).claim(&[&name(1)], 1), Ok(Claim::Busy(Some(b"3".to_vec()))));
}

#[test]
fn a_name_that_cannot_be_read_is_neither_owned_nor_made_anew() {
    let folder = empty();
    let [first, second] = [(); 2].map(|()| open(folder.path()));
    let path = folder.path().join("names/5e/i00").join(name(1));
    fs::create_dir_all(&path).expect("is made");
    for _ in 0..2 {
        for came in
            [first.claim(&[&name(1)], 1).map(drop), first.put(&name(1), b"1", &NEW).map(drop), first.list("5e", None, false).map(drop)]
        {
            assert!(
                matches!(&came, Err(Error::Failed(said)) if said.starts_with(&format!("could not read `{}`", path.display()))),
                "{came:?}"
            );
        }
    }
    fs::remove_dir(&path).expect("is there");
    assert_eq!(second.claim(&[&name(1)], 1), Ok(Claim::Claimed(vec![(name(1), None)])));
}

#[test]
fn leftovers_of_a_crash_are_removed_by_whoever_opens_the_folder_an_hour_later() {
    let folder = empty();
    let owner = open(folder.path());
    assert_eq!(owner.put(&name(3), b"3", &NEW), Ok(Written::Done));
    let draft = |number: u32, age: u64| {
        let path = folder.path().join("drafts").join(format!("{}.7", name(number)));
        let file = File::create(&path).expect("is made");
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).expect("is set");
        path
    };
    let (old, young, owned) = (draft(1, 4000), draft(2, 60), draft(3, 4000));
    let client = open(folder.path());
    assert_eq!([old.exists(), young.exists(), owned.exists()], [false, true, true]);
    // None of these files is taken for a record.
    let names = client.list("5e", None, false).map(|page| page.entries.len());
    assert_eq!((names, client.claim(&[&name(1), &name(2)], 2)), (Ok(1), Ok(Claim::Claimed(vec![(name(1), None), (name(2), None)]))));
}

#[test]
fn what_is_kept_no_longer_goes_without_anybody_who_lists_it() {
    let (now, clock) = clock();
    let folder = empty();
    let client = Folder::with_clock(folder.path(), clock).expect("opens");
    // All of one group: their hashes begin with the same two digits.
    let name = |number: u32| format!("5e.i00{number:030x}");
    let kept = Put { new: true, keep_for: Some(Duration::from_secs(1)), release: true };
    let files = || tree(&folder.path().join("names")).len();
    for number in 1..=20 {
        assert_eq!(client.put(&name(number), b"{}", &kept), Ok(Written::Done));
    }
    assert_eq!(client.put(&name(21), b"{}", &Put { release: false, ..kept }), Ok(Written::Done));
    assert_eq!(client.put(&name(22), b"{}", &Put { new: true, ..Put::default() }), Ok(Written::Done));
    now.fetch_add(2_000, Ordering::Relaxed);
    assert_eq!(files(), 22);
    // One name in 256 looks after its group.
    assert_eq!(client.put(&name(0x100), b"{}", &kept), Ok(Written::Done));
    assert_eq!(files(), 3, "what is owned, what is kept for good, and the new one");
    // A claim removes its own expired records.
    now.fetch_add(2_000, Ordering::Relaxed);
    assert_eq!(client.claim(&[&name(0x100)], 1), Ok(Claim::Claimed(vec![(name(0x100), None)])));
    assert_eq!(files(), 2);
}

#[test]
fn files_of_a_system_in_the_folders_of_a_store_are_passed_over() {
    let folder = empty();
    let client = open(folder.path());
    assert_eq!(client.put(&name(1), b"1", &NEW), Ok(Written::Done));
    assert_eq!(client.spend(&spend("aa", 1, 1)), Ok(Spent::Granted { day: today() }));
    for place in ["names", "names/5e", "names/5e/i00", "spent", "spent/5e", "drafts", "locks", "."] {
        fs::write(folder.path().join(place).join(".DS_Store"), "Bud1").expect("is written");
    }
    let Ok(Page { entries, more: false }) = open(folder.path()).list("5e", None, false) else { panic!("it lists") };
    assert_eq!(entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>(), [name(1)]);
    assert_eq!(client.spend(&spend("bb", 1, 1)), Ok(Spent::Over { day: today(), total: Decimal::ONE }));
}

#[test]
fn a_last_line_that_was_cut_off_never_counted() {
    let folder = empty();
    let spent = |client: &Folder, entry| client.spend(&spend(entry, 4, 10));
    let client = open(folder.path());
    let granted = Ok(Spent::Granted { day: today() });
    assert_eq!(spent(&client, "aa"), granted);
    let path = folder.path().join("spent/5e").join(today().to_string());
    let whole = fs::read(&path).expect("is there");
    for cut in [&b"bb 4"[..], b"bb 4 0000000000000000", b"\0\0\0\0", &whole[..whole.len() - 1]] {
        fs::write(&path, [&whole, cut].concat()).expect("is written");
        assert_eq!(open(folder.path()).spend(&spend("dd", 7, 10)), Ok(Spent::Over { day: today(), total: Decimal::from(4) }));
        assert_eq!(fs::read(&path).expect("is there"), whole, "it has gone");
    }
    fs::write(&path, [&whole, &b"bb 4"[..]].concat()).expect("is written");
    assert_eq!(spent(&client, "ee"), granted);
    assert_eq!(spent(&open(folder.path()), "ff"), Ok(Spent::Over { day: today(), total: Decimal::from(8) }));
}

#[test]
fn any_bit_of_what_was_spent_that_is_changed_is_an_error_and_grants_nothing() {
    let folder = empty();
    let client = open(folder.path());
    for entry in ["aa", "bb"] {
        assert_eq!(client.spend(&spend(entry, 1, 10)), Ok(Spent::Granted { day: today() }));
    }
    let path = folder.path().join("spent/5e").join(today().to_string());
    let whole = fs::read(&path).expect("is there");
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).expect("is written");
        let Err(Error::Failed(said)) = open(folder.path()).spend(&spend("dd", 1, 10)) else { panic!("it was granted, with bit {bit}") };
        assert!(said.starts_with(&format!("could not read `{}`", path.display())), "{said}");
        assert_eq!(fs::read(&path).expect("is there"), bytes);
    }
}

#[test]
fn days_that_are_long_over_are_removed() {
    let (now, clock) = clock();
    let folder = empty();
    let client = Folder::with_clock(folder.path(), clock).expect("opens");
    for day in [0, 1, 34] {
        now.store((20_000 + day) * DAY, Ordering::Relaxed);
        assert_eq!(client.spend(&spend("aa", 1, 10)), Ok(Spent::Granted { day: 20_000 + day as i64 }));
    }
    now.store(20_036 * DAY, Ordering::Relaxed);
    assert_eq!(client.spend(&spend("aa", 1, 10)), Ok(Spent::Granted { day: 20_036 }));
    let days: Vec<_> = tree(folder.path().join("spent/5e").as_path()).into_iter().map(|(path, _)| path).collect();
    assert_eq!(days, ["20001", "20034", "20036"].map(|day| folder.path().join("spent/5e").join(day)));
}

#[test]
fn threads_of_one_client_and_of_several_count_together() {
    let folder = empty();
    let [first, second] = [(); 2].map(|()| open(folder.path()));
    let granted: usize = thread::scope(|scope| {
        let spending: Vec<_> = (0..8)
            .map(|thread| {
                let client = if thread < 4 { &first } else { &second };
                scope.spawn(move || {
                    let entries = (0..20).map(|number| format!("{thread}{number:02}"));
                    entries.filter(|entry| matches!(client.spend(&spend(entry, 3, 100)), Ok(Spent::Granted { .. }))).count()
                })
            })
            .collect();
        spending.into_iter().map(|spending| spending.join().expect("ends")).sum()
    });
    assert_eq!(granted, 33);
    assert_eq!(second.spend(&spend("ff", 2, 100)), Ok(Spent::Over { day: today(), total: Decimal::from(99) }));
}

#[test]
fn a_client_that_is_closed_or_asked_for_what_is_no_name_says_so() {
    let folder = empty();
    let stores: [Box<dyn Store>; 2] = [Box::new(open(folder.path())), Box::new(Memory::new())];
    for store in stores {
        let is_misuse = |came: Result<(), Error>| matches!(came, Err(Error::Misuse(said)) if !said.is_empty());
        for wrong in ["", "5e", "../../etc.i0", "5e.i0", "5E.i00000000000000000000000000000000"] {
            assert!(is_misuse(store.claim(&[wrong], 1).map(drop)), "{wrong}");
            assert!(is_misuse(store.put(wrong, b"", &NEW).map(drop)), "{wrong}");
            assert!(is_misuse(store.delete(wrong).map(drop)), "{wrong}");
            assert!(is_misuse(store.release(Some(&[wrong]))), "{wrong}");
        }
        assert!(is_misuse(store.list("..", None, false).map(drop)));
        assert!(is_misuse(store.spend(&Spend { space: "..", ..spend("aa", 1, 1) }).map(drop)));
        assert!(is_misuse(store.spend(&spend("../aa", 1, 1)).map(drop)));
        assert!(is_misuse(store.spend(&spend("aa", -1, 1)).map(drop)));
        store.close();
        store.close();
        assert!(is_misuse(store.claim(&[&name(1)], 1).map(drop)));
        assert!(is_misuse(store.put(&name(1), b"", &NEW).map(drop)));
        assert!(is_misuse(store.delete(&name(1)).map(drop)));
        assert!(is_misuse(store.release(None)));
        assert!(is_misuse(store.list("5e", None, false).map(drop)));
        assert!(is_misuse(store.spend(&spend("aa", 1, 1)).map(drop)));
    }
}

#[test]
fn a_name_given_twice_is_one_name_and_none_is_claimed_where_none_is_wanted() {
    let folder = empty();
    let stores: [Box<dyn Store>; 2] = [Box::new(open(folder.path())), Box::new(Memory::new())];
    for store in stores {
        assert_eq!(store.claim(&[&name(1), &name(1)], 2), Ok(Claim::Claimed(vec![(name(1), None)])));
        assert_eq!(store.claim(&[], 1), Ok(Claim::Claimed(Vec::new())));
        assert_eq!(store.claim(&[&name(2)], 0), Ok(Claim::Claimed(Vec::new())));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_keeps_no_file_open_once_its_clients_are_closed() {
    let folder = empty();
    let is_ours = |path: &PathBuf| path.starts_with(folder.path());
    let opened = || {
        fs::read_dir("/proc/self/fd").expect("is there").flatten().filter_map(|fd| fs::read_link(fd.path()).ok()).filter(is_ours).count()
    };
    let [first, second] = [(); 2].map(|()| open(folder.path()));
    let both = opened();
    drop(first);
    assert_eq!(opened(), both);
    drop(second);
    assert_eq!((both > 0, opened()), (true, 0));
}
