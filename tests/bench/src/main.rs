//! The costs of Hopline, in Rust: `cargo xtask bench rust` runs it and writes its lines into a table.
//!
//! With `--once` each work is done once and with little, to see that it comes to its result.

mod list;
mod many;
mod pools;
mod records;
mod rounds;
mod service;
mod spending;

use std::collections::BTreeMap;

use rounds::{Row, Scale};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scale = if std::env::args().any(|argument| argument == "--once") { Scale::Once } else { Scale::Full };
    let versions = ["hopline", "serde_json"].map(|name| (name, locked(name)));
    println!("{}", serde_json::json!({ "versions": BTreeMap::from(versions), "rows": measure(scale)? }));
    Ok(())
}

/// The version of a crate, as the lock file has it.
fn locked(name: &str) -> &'static str {
    let after = |text: &'static str, words: &str| text.split_once(words).map_or("unknown", |(_, rest)| rest);
    let version = after(after(include_str!("../../../Cargo.lock"), &format!("name = \"{name}\"\n")), "version = \"");
    version.split('"').next().unwrap_or(version)
}

fn measure(scale: Scale) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    Ok([
        many::memory(scale),
        many::events(scale),
        pools::pools(scale),
        list::list(scale),
        records::purchase(scale)?,
        spending::at_once(scale),
    ]
    .into_iter()
    .flatten()
    .collect())
}

/// A number with blanks between thousands.
fn spaced(number: u32) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let (head, tail) = digits.split_at(first);
    let groups = tail.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    Some(head.to_owned()).filter(|head| !head.is_empty()).into_iter().chain(groups).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_work_comes_to_its_result() {
        let rows = measure(Scale::Once).unwrap();
        assert!(rows.len() > 20 && rows.iter().flat_map(|row| &row.figures).all(|figure| *figure > 0.0));
    }

    #[test]
    fn versions_are_those_of_the_lock_file() {
        assert_eq!(locked("hopline"), env!("CARGO_PKG_VERSION"));
        assert_eq!(locked("no-such-crate"), "unknown");
    }

    #[test]
    fn thousands_are_told_apart() {
        assert_eq!([0, 100, 1_000, 10_000, 100_000].map(spaced), ["0", "100", "1 000", "10 000", "100 000"]);
    }
}
