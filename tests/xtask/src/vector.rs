//! `cargo xtask vector`: a few of the shared vectors by themselves.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::Fail;
use crate::cargo::{built, target, vectors};

/// The test that runs the vectors, in each host.
const RUNNERS: &[(&str, &str)] = &[
    ("rust", "every_vector_holds"),
    ("python", "test_a_case_goes"),
    ("node", "every vector holds"),
    ("browser", "every vector holds in a page"),
    ("kotlin", "VectorTest"),
    ("swift", "VectorTests"),
];

/// Runs the vectors that have the words in their names, in Rust or in the host that is named.
pub(crate) fn command(arguments: &[String]) -> Result<ExitCode, Fail> {
    let (words, host) = match arguments {
        [words] => (words, "rust"),
        [words, host] => (words, host.as_str()),
        _ => return Err("say which vectors, by words of their names: `cargo xtask vector \"a lost answer\"`".into()),
    };
    let hosts: Vec<&str> = RUNNERS.iter().map(|(host, _)| *host).collect();
    let runner = RUNNERS.iter().find(|(known, _)| *known == host);
    let (_, test) = runner.ok_or_else(|| format!("`{host}` runs no vectors; the hosts that do are: {}", hosts.join(", ")))?;
    let chosen = target()?.join("xtask/vectors");
    if chosen.exists() {
        std::fs::remove_dir_all(&chosen)?;
    }
    if copy(&vectors()?, &chosen, words)? == 0 {
        return Err(format!("no vector has `{words}` in its name").into());
    }
    let status = Command::new(built("xtask")?).args(["only", host, test]).env("HOPLINE_VECTORS", chosen).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Copies a folder of vectors, of each file only the cases that have the words in their names, and says how many there are.
fn copy(from: &Path, to: &Path, words: &str) -> Result<usize, Fail> {
    let mut found = 0;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            found += copy(&path, &to, words)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            // Each case as it is written, since numbers are texts here.
            let mut file: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
            let mut cases: Vec<Box<RawValue>> = serde_json::from_str(file["cases"].get())?;
            cases.retain(|case| name(case).contains(words));
            if !cases.is_empty() {
                println!("{}", path.display());
                cases.iter().for_each(|case| println!("    {}", name(case)));
                found += cases.len();
                file.insert("cases".to_owned(), to_raw_value(&cases)?);
                std::fs::create_dir_all(to.parent().unwrap_or(from))?;
                std::fs::write(to, serde_json::to_string(&file)?)?;
            }
        }
    }
    Ok(found)
}

fn name(case: &RawValue) -> String {
    let case: Option<Value> = serde_json::from_str(case.get()).ok();
    case.and_then(|case| Some(case["name"].as_str()?.to_owned())).unwrap_or_default()
}
