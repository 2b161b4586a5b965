//! Measures the calls of a purchase beside 0, 10 000 and 100 000 records: `cargo run --release -p hopline-store --example cost --
//! [FOLDER]`.
//!
//! The three folders take turns with the same work, so that a change in the machine's speed affects all alike. Each figure is the median.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use hopline_store::{Error, Folder, Memory, Put, Spend, Store};

const ROUNDS: u32 = 400;
const DATA: &[u8] = &[b'x'; 600];

type Call = (&'static str, fn(&dyn Store, &str, u32) -> Result<(), Error>);

/// The calls of a purchase under an intent, in their order, and a page of a list.
const CALLS: &[Call] = &[
    ("claim", |store, name, _| store.claim(&[name], 1).map(drop)),
    ("spend", |store, _, round| {
        let spend = Spend { space: "5e", day: None, entry: &format!("{round:x}"), amount: 1.into(), cap: Some(1_000_000.into()) };
        store.spend(&spend).map(drop)
    }),
    ("put", |store, name, _| store.put(name, DATA, &Put::default()).map(drop)),
    ("put and release", |store, name, _| store.put(name, DATA, &Put { release: true, ..Put::default() }).map(drop)),
    ("claim of what is there", |store, name, _| store.claim(&[name], 1).map(drop)),
    ("delete", |store, name, _| store.delete(name).map(drop)),
    ("claim 1 of 256, release", |store, _, round| {
        let names: Vec<String> = (0..256).map(|slot| hash('p', round * 256 + slot)).collect();
        store.claim(&names.iter().map(String::as_str).collect::<Vec<_>>(), 1)?;
        store.release(None)
    }),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root =
        std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from).join(format!("hopline-cost-{}", std::process::id()));
    let sizes = [0, 10_000, 100_000];
    let folders = sizes.iter().map(|size| Folder::open(root.join(size.to_string()))).collect::<Result<Vec<_>, _>>()?;
    let memories = sizes.map(|_| Memory::new());
    for (kind, stores) in [
        ("memory", memories.iter().map(|store| store as &dyn Store).collect::<Vec<_>>()),
        ("folder", folders.iter().map(|store| store as &dyn Store).collect()),
    ] {
        for (store, size) in stores.iter().zip(sizes) {
            fill(*store, size)?;
        }
        println!("| {kind} | beside 0 | beside 10 000 | beside 100 000 |\n|---|---:|---:|---:|");
        for (call, medians) in measure(&stores)? {
            let ratio = |median: Duration| median.as_secs_f64() / medians[0].as_secs_f64();
            println!("| {call} | {:?} | × {:.2} | × {:.2} |", medians[0], ratio(medians[1]), ratio(medians[2]));
        }
        println!();
    }
    drop(folders);
    Ok(std::fs::remove_dir_all(root)?)
}

/// Puts that many records, many at once: most of the time is the disk's.
fn fill(store: &dyn Store, size: u32) -> Result<(), Error> {
    const THREADS: u32 = 32;
    let put = |number| store.put(&hash('r', number), DATA, &Put { new: true, release: true, ..Put::default() }).map(drop);
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|first| scope.spawn(move || (first..size).step_by(THREADS as usize).try_for_each(put))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(Error::Failed("a thread ended".to_owned()))))
    })
}

/// The median of each call in each store.
fn measure(stores: &[&dyn Store]) -> Result<Vec<(&'static str, Vec<Duration>)>, Error> {
    let mut times = vec![vec![Vec::new(); stores.len()]; CALLS.len()];
    for round in 0..ROUNDS {
        for (which, store) in stores.iter().enumerate() {
            for (call, (_, make)) in CALLS.iter().enumerate() {
                let begun = Instant::now();
                make(*store, &hash('i', round), round)?;
                times[call][which].push(begun.elapsed());
            }
        }
    }
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    Ok(CALLS.iter().zip(times).map(|((call, _), times)| (*call, times.into_iter().map(median).collect())).collect())
}

/// A name with a hash that spreads as real ones do.
fn hash(kind: char, number: u32) -> String {
    let spread = u64::from(number).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("5e.{kind}{spread:016x}{number:016x}")
}
