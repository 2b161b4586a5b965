//! The texts that are written down from what the core says: every sentence of an error of the vectors, in one file that a person can read from
//! top to bottom, and the table of codes in the documentation.

use std::fs;
use std::path::Path;

use hopline::policy::{CODES, CodeRow};
use hopline_host_rust::vectors::{run_directory, sentences};

/// `cargo xtask sentences` sets it: the files are written, and what changed is for `git diff` to show.
const WRITE: &str = "HOPLINE_WRITE_SENTENCES";

#[test]
fn users_are_told_what_the_file_of_sentences_says() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = tests.join("vectors/sentences.txt");
    run_directory(&tests.join("vectors"));
    let said = sentences();
    if std::env::var_os(WRITE).is_some() {
        fs::write(&file, &said).expect("the file can be written");
    }
    let known = fs::read_to_string(&file).expect("the file is there");
    let (known, said): (Vec<&str>, Vec<&str>) = (known.lines().collect(), said.lines().collect());
    let new: Vec<_> = said.iter().filter(|line| !known.contains(line)).collect();
    let gone: Vec<_> = known.iter().filter(|line| !said.contains(line)).collect();
    assert!(new.is_empty() && gone.is_empty(), "read them, then `cargo xtask sentences`\nnew: {new:#?}\ngone: {gone:#?}");
}

#[test]
fn the_documentation_shows_every_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../core/src/policy/codes.md");
    let known = fs::read_to_string(&file).expect("the file is there");
    let (head, rest) = known.split_once("|---|\n").expect("has a table");
    let tail: String = rest.lines().skip_while(|line| line.starts_with('|')).map(|line| format!("{line}\n")).collect();
    let table: String = CODES.iter().map(row).collect();
    let said = format!("{head}|---|\n{table}{tail}");
    if std::env::var_os(WRITE).is_some() {
        fs::write(&file, &said).expect("the file can be written");
    }
    let known = fs::read_to_string(&file).expect("the file is there");
    assert!(known == said, "`cargo xtask sentences` writes the table of {}, which should be\n{table}", file.display());
}

fn row(row: &CodeRow) -> String {
    let settles = if row.settles { "yes" } else { "no" };
    format!("| {} | {} | {} | {} | {} | {settles} |\n", row.code, row.status, row.meaning, row.advice, row.automatic.as_str())
}
