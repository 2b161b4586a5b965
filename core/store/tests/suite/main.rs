//! Runs the cases of `tests/store`: the folder and the memory pass, and stores that break a rule are noticed.

mod naive;
mod runner;

use std::fs;
use std::path::{Path, PathBuf};

use hopline_store::{Clock, Folder, Memory};
use naive::{Mutant, Naive};
use runner::{Subject, run};

/// A store in memory, of any kind.
struct InMemory {
    first: Memory,
}

impl Subject for InMemory {
    const CAN: &'static [&'static str] = &["leases"];

    type Client = Memory;

    fn open(&self) -> Memory {
        self.first.open()
    }

    fn end_claims(&self, client: &Memory) {
        client.end_claims();
    }
}

struct InFolder {
    folder: tempfile::TempDir,
    clock: Clock,
}

impl InFolder {
    fn file(&self, name: &str) -> PathBuf {
        let (space, rest) = name.split_once('.').expect("is a name");
        self.folder.path().join("names").join(space).join(&rest[..3]).join(name)
    }
}

impl Subject for InFolder {
    const CAN: &'static [&'static str] = &["damage", "dies"];

    type Client = Folder;

    fn open(&self) -> Folder {
        Folder::with_clock(self.folder.path(), self.clock.clone()).expect("opens")
    }

    fn damage(&self, name: &str, how: &str) {
        let (path, bytes) = (self.file(name), fs::read(self.file(name)).expect("is there"));
        let bytes = match how {
            "cut" => bytes[..bytes.len() / 2].to_owned(),
            "empty" => Vec::new(),
            _ => vec![0xff; bytes.len()],
        };
        fs::write(path, bytes).expect("writes");
    }

    /// The remains of a draft that was not written whole; `processes.rs` kills real ones at any point.
    fn die_in_put(&self, client: Folder, name: &str, data: &str) {
        fs::write(self.folder.path().join("drafts").join(format!("{name}.0")), &data[..data.len() / 2]).expect("writes");
        drop(client);
    }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/store")
}

#[test]
fn memory_does_what_every_store_must() {
    let failed = run(&data(), &|clock| InMemory { first: Memory::with_clock(clock) });
    assert_eq!(failed, Vec::<String>::new());
}

#[test]
fn a_folder_does_what_every_store_must() {
    let failed = run(&data(), &|clock| InFolder { folder: tempfile::tempdir().expect("a folder"), clock });
    assert_eq!(failed, Vec::<String>::new());
}

#[test]
fn a_store_that_breaks_no_rule_passes() {
    let failed = run(&data(), &|clock| Naive::new(clock, None));
    assert_eq!(failed, Vec::<String>::new());
}

#[test]
fn each_store_that_breaks_a_rule_is_noticed() {
    let mut unnoticed = Vec::new();
    for mutant in Mutant::ALL {
        let failed = run(&data(), &|clock| Naive::new(clock, Some(*mutant)));
        println!("{mutant:?}: {}", failed.first().map_or("unnoticed", |case| case));
        if failed.is_empty() {
            unnoticed.push(*mutant);
        }
    }
    assert_eq!(unnoticed, []);
}
