//! What a contract itself says, line by line: rows claim each, so that none is overlooked. The contracts lie beside the
//! repository, not in it; a line is known here by a digest of its heading and its text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Row, json};

/// What a claim begins with that says why a line has nothing to show.
const NOTHING: &str = "nothing: ";

/// What `tests/coverage` says of a contract.
#[derive(Debug, Clone, Default)]
pub struct Contract {
    /// Its title.
    pub title: String,
    /// Its rows in prose: `part`, `row`, `shown_by`.
    pub rows: Vec<Value>,
    /// Which rows, as `part: row`, claim a line.
    pub claims: BTreeMap<String, Vec<String>>,
}

impl Contract {
    /// Reads `title`, `rows` and `claims`.
    pub fn read(path: &Path) -> Result<Contract, String> {
        let mut told = json(path)?;
        let lack = |what| format!("{} has no {what}", path.display());
        let Value::Array(rows) = told["rows"].take() else { return Err(lack("rows")) };
        let claims = serde_json::from_value(told["claims"].take()).map_err(|_| lack("claims: lists of texts by digest"))?;
        Ok(Contract { title: told["title"].as_str().ok_or_else(|| lack("title"))?.to_owned(), rows, claims })
    }

    /// The text of the contract among the files of a folder.
    pub fn text(&self, folder: &Path) -> Option<String> {
        let heading = format!("# {}\n", self.title);
        let files = fs::read_dir(folder).ok()?.flatten();
        files.filter_map(|file| fs::read_to_string(file.path()).ok()).find(|text| text.starts_with(&heading))
    }

    /// What is wrong between a text and the claims: a line that nobody claims, a claim of a line that is not there, and a
    /// claim by a row that is not there.
    pub fn faults(&self, text: &str, rows: &[Row]) -> Vec<String> {
        let said: BTreeMap<String, String> = lines(text).into_iter().collect();
        let unclaimed = |(key, line): (&String, &String)| {
            let claimed = self.claims.get(key).is_some_and(|claims| !claims.is_empty());
            (!claimed).then(|| format!("nobody claims {key}: {line}"))
        };
        let known = |claim: &String| {
            claim.strip_prefix(NOTHING).is_some_and(|why| !why.is_empty())
                || rows.iter().any(|row| *claim == format!("{}: {}", row.part, row.row))
        };
        let gone = self.claims.keys().filter(|key| !said.contains_key(*key)).map(|key| format!("no line is {key} any more"));
        let strangers = self.claims.iter().flat_map(|(key, claims)| claims.iter().map(move |claim| (key, claim)));
        let strangers = strangers.filter(|(_, claim)| !known(claim)).map(|(key, claim)| format!("no row is `{claim}`, which claims {key}"));
        said.iter().filter_map(unclaimed).chain(gone).chain(strangers).collect()
    }
}

/// The lines that say something, each with its digest: no headings, no heads of tables, nothing that only leads to what follows.
fn lines(text: &str) -> Vec<(String, String)> {
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
            let digest = Sha256::digest(format!("{heading}\n{line}"));
            found.push((digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect(), (*line).to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# An API\n\nIt has two rules:\n\n1. Be kind.\n2. Be quick.\n\n## Limits\n\n| Limit | Value |\n|---|---|\n| size | 3 |\n";

    fn rows() -> Vec<Row> {
        vec![Row { part: "Rules".into(), row: "kindness".into(), shown_by: None }]
    }

    fn claimed() -> Contract {
        let claims = lines(TEXT).into_iter().map(|(key, _)| (key, vec!["Rules: kindness".to_owned()])).collect();
        Contract { title: "An API".into(), rows: Vec::new(), claims }
    }

    #[test]
    fn what_says_something_is_a_line_and_the_rest_is_not() {
        assert_eq!(lines(TEXT).into_iter().map(|(_, line)| line).collect::<Vec<_>>(), ["1. Be kind.", "2. Be quick.", "| size | 3 |"]);
    }

    #[test]
    fn a_contract_all_of_whose_lines_are_claimed_has_no_faults() {
        assert_eq!(claimed().faults(TEXT, &rows()), Vec::<String>::new());
    }

    #[test]
    fn a_line_that_is_new_or_changed_a_claim_without_a_line_and_one_without_a_row_are_faults() {
        let (contract, rows) = (claimed(), rows());
        let faults = contract.faults(&format!("{TEXT}\nBe brief.\n"), &rows);
        assert!(matches!(faults.as_slice(), [fault] if fault.ends_with("Be brief.")), "{faults:?}");
        assert_eq!(contract.faults(&TEXT.replace("| 3 |", "| 4 |"), &rows).len(), 2);
        assert_eq!(contract.faults(&TEXT.replace("# Limits", "# Bounds"), &rows).len(), 2);
        assert_eq!(contract.faults(TEXT, &[]).len(), 3);
        let nobody = Contract { claims: contract.claims.keys().map(|key| (key.clone(), Vec::new())).collect(), ..contract };
        assert_eq!(nobody.faults(TEXT, &rows).len(), 3);
    }

    #[test]
    fn a_line_with_nothing_to_show_says_why() {
        let mut contract = claimed();
        let wordless = |why: &str| vec![format!("{NOTHING}{why}")];
        contract.claims.values_mut().for_each(|claims| *claims = wordless("it is a wish"));
        assert_eq!(contract.faults(TEXT, &[]), Vec::<String>::new());
        contract.claims.values_mut().for_each(|claims| *claims = wordless(""));
        assert_eq!(contract.faults(TEXT, &[]).len(), 3);
    }
}
