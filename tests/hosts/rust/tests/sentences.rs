//! Every sentence that an error of the vectors says, in one file that a person can read from top to bottom.

use std::fs;
use std::path::Path;

use hopline_host_rust::vectors::{run_directory, sentences};

/// `cargo xtask sentences` sets it: the file is written, and what changed is for `git diff` to show.
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
