//! `hopline-coverage`: which test shows each statement of the contracts, and whether it sees what it is named for.

mod contract;
mod mutate;
mod rows;
mod witness;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use contract::CONTRACTS;
use rows::{Repository, Row};

const HELP: &str = "hopline-coverage                every row and its witnesses; a row without one is a failure
hopline-coverage --run TEXT     runs the witnesses of the rows that have this text in them, one by one
hopline-coverage --mutate       changes the code that keeps a row, and expects a witness of the row to fail; for every mutation
hopline-coverage --mutate N     the same for so many of them
hopline-coverage --mutate TEXT  the same for the rows that have this text in them";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root();
    let done = Repository::read(&root).and_then(|repository| {
        let rows = repository.rows();
        match words.as_slice() {
            [] => cover(&root, &repository, &rows),
            ["--run", text] => run(&root, &rows, text),
            ["--mutate"] => mutate::run(&root, &rows, &mutate::chosen(&repository.mutations, None)?),
            ["--mutate", which] => mutate::run(&root, &rows, &mutate::chosen(&repository.mutations, Some(which))?),
            _ => Err(format!("there is no such option; these are all:\n{HELP}")),
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hopline-coverage: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Prints every row with its witnesses, and fails where something is wrong.
fn cover(root: &Path, repository: &Repository, rows: &[Row]) -> Result<(), String> {
    let mut part = "";
    for row in rows {
        if row.part != part {
            part = &row.part;
            println!("\n{part}");
        }
        let shown: Vec<String> = row.shown_by.iter().map(ToString::to_string).collect();
        println!("  {:<44} {}", row.row, if row.is_shown() { shown.join("; ") } else { "NOTHING SHOWS IT".to_owned() });
    }
    let faults = faults(root, repository, rows);
    println!("\n{} rows, {} mutations, {} faults", rows.len(), repository.mutations.len(), faults.len());
    repository.absent(root).iter().for_each(|title| println!("skipped: `{title}` is not in {CONTRACTS}, so no line was compared"));
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// All that is wrong: rows, claims, mutations, and differences from the contracts where these are at hand.
fn faults(root: &Path, repository: &Repository, rows: &[Row]) -> Vec<String> {
    let mut faults = Vec::new();
    for row in rows.iter().filter(|row| !row.is_shown()) {
        let lacks = if row.lacks.is_empty() { String::new() } else { format!("; there is no {}", row.lacks.join(", nor ")) };
        faults.push(format!("nothing shows `{row}`{lacks}"));
    }
    for contract in &repository.contracts {
        faults.extend(contract.faults(rows));
        faults.extend(contract.text(&root.join(CONTRACTS)).into_iter().flat_map(|text| contract.differences(&text)));
    }
    faults.extend(mutate::faults(root, repository, rows));
    faults
}

/// Runs every witness of the rows with that text.
fn run(root: &Path, rows: &[Row], text: &str) -> Result<(), String> {
    let mut failed = Vec::new();
    let wanted: Vec<&Row> = rows.iter().filter(|row| row.to_string().contains(text)).collect();
    if wanted.is_empty() {
        return Err(format!("no row has `{text}` in it; `cargo xtask coverage` lists them"));
    }
    for row in wanted {
        println!("{row}");
        for witness in &row.shown_by {
            println!("  {witness}");
            if !witness.passes(root)? {
                failed.push(witness.to_string());
            }
        }
        failed.extend(row.lacks.iter().cloned());
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("these fail:\n{}", failed.join("\n"))) }
}

impl Repository {
    /// The contracts whose text is not at hand.
    fn absent(&self, root: &Path) -> Vec<&str> {
        let absent = self.contracts.iter().filter(|contract| contract.text(&root.join(CONTRACTS)).is_none());
        absent.map(|contract| contract.title.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn repository() -> Repository {
        Repository::read(&root()).expect("the tests can be read")
    }

    #[test]
    fn every_row_has_its_witness_every_line_its_row_and_every_mutation_its_place() {
        let repository = repository();
        let rows = repository.rows();
        for title in repository.absent(&root()) {
            // Past the harness, which keeps what a test prints when it passes.
            _ = writeln!(std::io::stdout(), "\nskipped: `{title}` is not in {CONTRACTS}, so no line was compared");
        }
        let faults = faults(&root(), &repository, &rows);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        assert!(rows.len() > 500, "{}", rows.len());
    }

    #[test]
    fn a_witness_that_is_taken_away_leaves_a_row_that_nothing_shows() {
        let whole = repository();
        let mut fewer = whole.clone();
        let is_kept = |case: &str| !case.contains("TRIAL_NOT_ELIGIBLE") && !case.contains("create_recharge");
        fewer.cases.retain(|case| is_kept(&case.json.to_string()));
        let gaps: Vec<Row> = fewer.tabled().into_iter().filter(|row| !row.is_shown()).collect();
        assert!(gaps.iter().any(|row| row.row == "TRIAL_NOT_ELIGIBLE 429"));
        assert!(gaps.iter().filter(|row| row.part == "create_recharge").count() > 5);
        for (named, is_there) in [
            (&["vectors/keys/ours.json: a purchase whose answer was lost is sent again with the same key and the same bytes"][..], true),
            (&["hopline/lib: policy::products::tests::a_range_is_read_as_a_block_as_two_ends_or_as_one_address"], true),
            (&["vectors/keys/ours.json: no such case"], false),
            (&["vectors/keys/given.json: a purchase whose answer was lost is sent again with the same key and the same bytes"], false),
            (&["hopline/lib: client::Client::new"], false),
            (&["a purchase whose answer was lost is sent again with the same key and the same bytes"], false),
            (&[], false),
        ] {
            let mut other = whole.clone();
            other.contracts[0].rows[0].shown_by = named.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(other.stated()[0].is_shown(), is_there, "{named:?}");
        }
    }

    #[test]
    fn a_mutation_without_a_place_a_change_or_a_row_is_a_fault() {
        let repository = repository();
        let rows = repository.rows();
        let faults = |change: &dyn Fn(&mut mutate::Mutation)| {
            let mut changed = repository.clone();
            changed.mutations.first_mut().map(change);
            mutate::faults(&root(), &changed, &rows).len()
        };
        assert_eq!(faults(&|_| {}), 0);
        assert!(faults(&|mutation| mutation.text = "no such text".to_owned()) > 0);
        assert!(faults(&|mutation| mutation.text = "e".to_owned()) > 0);
        assert!(faults(&|mutation| mutation.instead.clone_from(&mutation.text)) > 0);
        assert!(faults(&|mutation| mutation.row = "Nothing: at all".to_owned()) > 0);
        let mut none = repository.clone();
        none.mutations.clear();
        assert!(mutate::faults(&root(), &none, &rows).len() > 10);
    }
}
