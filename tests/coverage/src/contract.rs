//! The text of a contract, line by line: rows claim each line, so that none is overlooked. The contracts lie beside the repository, not
//! in it. A claim quotes its line for whoever reviews it, and knows it by a digest of its heading and its text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::rows::Row;

/// Where the contracts lie, from the root of the repository.
pub(crate) const CONTRACTS: &str = "../shared/seeds";
/// The prefix of a claim that says why a line has nothing to show.
const NOTHING: &str = "nothing: ";
/// A claim quotes no more characters of its line.
const QUOTED: usize = 160;

/// The statements of a file such as `agent.json` about a contract.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contract {
    /// The title of the contract's text.
    pub(crate) title: String,
    /// The statements that no table holds.
    pub(crate) rows: Vec<Stated>,
    /// Every line, in the order of the text.
    pub(crate) claims: Vec<Claim>,
}

/// A statement in prose, and its witnesses.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stated {
    pub(crate) part: String,
    pub(crate) row: String,
    pub(crate) shown_by: Vec<String>,
}

/// A line of a contract, and the rows that show it, as `part: row`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    heading: String,
    line: String,
    digest: String,
    rows: Vec<String>,
}

impl Contract {
    /// The text of the contract among the files of a folder.
    pub(crate) fn text(&self, folder: &Path) -> Option<String> {
        let title = format!("# {}\n", self.title);
        let files = fs::read_dir(folder).ok()?.flatten();
        files.filter_map(|file| fs::read_to_string(file.path()).ok()).find(|text| text.starts_with(&title))
    }

    /// The faults of the claims by themselves: nobody or a row that is not there claims a line, or a quoted line is not the one
    /// of the digest.
    pub(crate) fn faults(&self, rows: &[Row]) -> Vec<String> {
        let known = |claim: &String| {
            claim.strip_prefix(NOTHING).is_some_and(|why| !why.is_empty()) || rows.iter().any(|row| *claim == row.to_string())
        };
        let mut faults = Vec::new();
        for Claim { heading, line, digest, rows } in &self.claims {
            if rows.is_empty() {
                faults.push(format!("nobody claims {digest}: {line}"));
            }
            faults.extend(rows.iter().filter(|row| !known(row)).map(|row| format!("no row is `{row}`, which claims {digest}: {line}")));
            // The digest of a line that is not quoted whole can be checked with the text alone.
            if !line.ends_with('…') && *digest != digest_of(heading, line) {
                faults.push(format!("{digest} is not the digest of its heading and line: {line}"));
            }
        }
        faults
    }

    /// The differences between the claims and the text: a line that is not there on the other side, or that is quoted wrongly.
    pub(crate) fn differences(&self, text: &str) -> Vec<String> {
        let said: BTreeMap<String, (&str, &str)> =
            lines(text).into_iter().map(|(heading, line)| (digest_of(heading, line), (heading, line))).collect();
        let claimed: BTreeMap<&str, &Claim> = self.claims.iter().map(|claim| (claim.digest.as_str(), claim)).collect();
        let wrong = said.iter().filter_map(|(digest, (heading, line))| match claimed.get(digest.as_str()) {
            None => Some(format!("nobody claims {digest}: {line}")),
            Some(claim) if claim.line != quoted(line) || claim.heading != *heading => {
                Some(format!("{digest} quotes another line than: {line}"))
            }
            Some(_) => None,
        });
        let gone = self.claims.iter().filter(|claim| !said.contains_key(&claim.digest));
        wrong.chain(gone.map(|claim| format!("no line is {} any more: {}", claim.digest, claim.line))).collect()
    }
}

/// The lines that say something, each with its heading: no headings, no heads of tables, nothing that only leads to what follows.
fn lines(text: &str) -> Vec<(&str, &str)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut heading = "";
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(title) = line.strip_prefix('#') {
            heading = title.trim_start_matches('#').trim();
        } else if !line.is_empty()
            && !line.ends_with(':')
            && !line.starts_with("|---")
            && !lines.get(at + 1).is_some_and(|next| next.starts_with("|---"))
        {
            found.push((heading, *line));
        }
    }
    found
}

fn digest_of(heading: &str, line: &str) -> String {
    Sha256::digest(format!("{heading}\n{line}")).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// A line as a claim quotes it: whole, or its first words.
fn quoted(line: &str) -> String {
    match line.char_indices().nth(QUOTED) {
        None => line.to_owned(),
        Some((end, _)) => format!("{} …", line[..end].rsplit_once(' ').map_or(&line[..end], |(words, _)| words)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# An API\n\nIt has two rules:\n\n1. Be kind.\n2. Be quick.\n\n## Limits\n\n| Limit | Value |\n|---|---|\n| size | 3 |\n";

    fn rows() -> Vec<Row> {
        vec![Row { part: "Rules".into(), row: "kindness".into(), shown_by: Vec::new(), lacks: Vec::new() }]
    }

    fn claimed(text: &str) -> Contract {
        let claim = |(heading, line): (&str, &str)| Claim {
            heading: heading.to_owned(),
            line: quoted(line),
            digest: digest_of(heading, line),
            rows: vec!["Rules: kindness".to_owned()],
        };
        Contract { title: "An API".into(), rows: Vec::new(), claims: lines(text).into_iter().map(claim).collect() }
    }

    #[test]
    fn what_says_something_is_a_line_and_the_rest_is_not() {
        assert_eq!(lines(TEXT), [("An API", "1. Be kind."), ("An API", "2. Be quick."), ("Limits", "| size | 3 |")]);
    }

    #[test]
    fn a_contract_all_of_whose_lines_are_claimed_has_no_faults() {
        let long = format!("{TEXT}\nIt is {}.\n", "long ".repeat(50));
        for text in [TEXT, &long] {
            assert_eq!((claimed(text).faults(&rows()), claimed(text).differences(text)), (Vec::new(), Vec::new()));
        }
    }

    #[test]
    fn a_line_that_is_new_or_changed_and_a_claim_without_a_line_are_differences() {
        let contract = claimed(TEXT);
        let new = contract.differences(&format!("{TEXT}\nBe brief.\n"));
        assert!(matches!(new.as_slice(), [new] if new.ends_with("Be brief.")), "{new:?}");
        assert_eq!(contract.differences(&TEXT.replace("| 3 |", "| 4 |")).len(), 2);
        assert_eq!(contract.differences(&TEXT.replace("# Limits", "# Bounds")).len(), 2);
    }

    #[test]
    fn a_claim_quotes_its_line_in_the_lines_own_words() {
        let mut contract = claimed(TEXT);
        contract.claims[0].line = "1. Be cruel.".to_owned();
        assert_eq!((contract.faults(&rows()).len(), contract.differences(TEXT).len()), (1, 1));
        let long = "word ".repeat(40);
        assert_eq!(quoted(&long).len(), "word ".repeat(32).len() - 1 + " …".len());
        let mut contract = claimed(&format!("# An API\n\n{long}"));
        contract.claims[0].line = "word …".to_owned();
        assert_eq!((contract.faults(&rows()).len(), contract.differences(&format!("# An API\n\n{long}")).len()), (0, 1));
    }

    #[test]
    fn a_line_that_nobody_claims_or_a_row_that_is_not_there_is_a_fault() {
        let mut contract = claimed(TEXT);
        assert_eq!(contract.faults(&[]).len(), 3);
        contract.claims.iter_mut().for_each(|claim| claim.rows.clear());
        assert_eq!(contract.faults(&rows()).len(), 3);
    }

    #[test]
    fn a_line_with_nothing_to_show_says_why() {
        let with = |why: &str| {
            let mut contract = claimed(TEXT);
            contract.claims.iter_mut().for_each(|claim| claim.rows = vec![format!("{NOTHING}{why}")]);
            contract.faults(&[]).len()
        };
        assert_eq!((with("it is a wish"), with("")), (0, 3));
    }
}
