//! `cargo xtask bench [HOST…]`: what Hopline costs beside its peers, in one run, as the tables of `tests/bench/README.md`.
//!
//! Each host has a program below `tests/bench` that measures and prints one line of JSON: the versions of all, and rows. What all do
//! alike is in `tests/bench/README.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;

use crate::cargo::{cargo, root, run, target};
use crate::{Fail, node, python};

/// A host, and what measures there.
type Host = (&'static str, fn() -> Result<Command, Fail>);

const HOSTS: &[Host] = &[("rust", rust), ("python", python::bench), ("node", node::bench)];

/// Measures in all hosts, or in those named, and writes their tables anew.
pub(crate) fn command(arguments: &[String]) -> Result<ExitCode, Fail> {
    let known: Vec<&str> = HOSTS.iter().map(|(name, _)| *name).collect();
    if let Some(stranger) = arguments.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("nothing is measured in `{stranger}`; the hosts are: {}", known.join(", ")).into());
    }
    let page = root().join("tests/bench/README.md");
    for (name, program) in HOSTS.iter().filter(|(name, _)| arguments.is_empty() || arguments.iter().any(|given| given == name)) {
        let told = told(&mut program()?)?;
        let table = format!("{}\n\n{}", circumstances(&told)?, table(&told)?);
        println!("{name}\n\n{table}");
        std::fs::write(&page, replaced(&std::fs::read_to_string(&page)?, name, &table)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn rust() -> Result<Command, Fail> {
    run(&mut cargo(&["build", "--profile", "bench", "--package", "hopline-bench"]))?;
    // Cargo keeps what is built to be measured where it keeps what ships.
    Ok(Command::new(target()?.join("release/hopline-bench").with_extension(std::env::consts::EXE_EXTENSION)))
}

/// What a program has measured.
fn told(program: &mut Command) -> Result<Value, Fail> {
    let ended = program.stderr(Stdio::inherit()).output()?;
    if !ended.status.success() {
        return Err(format!("what measures ended with {}; what it said is above", ended.status).into());
    }
    Ok(serde_json::from_slice(&ended.stdout)?)
}

/// When, on what kind of machine, and with which versions.
fn circumstances(told: &Value) -> Result<String, Fail> {
    let date = String::from_utf8(Command::new("date").arg("+%Y-%m-%d").output()?.stdout)?;
    let cores = std::thread::available_parallelism()?;
    let processor = processor().unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let versions: BTreeMap<String, String> = serde_json::from_value(told["versions"].clone())?;
    let versions: Vec<String> = versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    Ok(format!("{}, {} on {cores} cores ({processor}); {}.", date.trim(), std::env::consts::OS, versions.join(", ")))
}

/// The processor's kind, where the system tells it.
fn processor() -> Option<String> {
    let told = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("model name"))?;
    Some(line.trim_start_matches([':', '\t', ' ']).to_owned())
}

/// The rows, as a table of Markdown.
fn table(told: &Value) -> Result<String, Fail> {
    let mut table = "| Work | Hopline | Beside it | Ratio (quartiles) | Goal |\n|---|---:|---|---:|---|\n".to_owned();
    for row in told["rows"].as_array().ok_or("what measures gave no rows")? {
        let number = |value: &Value| value.as_f64().ok_or("what measures gave a row without a number");
        let (work, figure) = (row["work"].as_str().unwrap_or_default(), number(&row["figure"])?);
        let unit = row["unit"].as_str().unwrap_or_default();
        let (mut other, mut ratio, mut judged) = (String::new(), String::new(), figure);
        if let Some(beside) = row.get("beside") {
            let [low, middle, high] = ["low", "ratio", "high"].map(|part| number(&beside[part]));
            judged = middle?;
            other = format!("{}: {} {unit}", beside["what"].as_str().unwrap_or_default(), short(number(&beside["figure"])?));
            ratio = format!("{judged:.2} ({:.2} to {:.2})", low?, high?);
        }
        let goal = row.get("goal").map(number).transpose()?.map(|most| {
            let verdict = if judged <= most { "met" } else { "missed" };
            format!("≤ {most}: {verdict}")
        });
        writeln!(table, "| {work} | {} {unit} | {other} | {ratio} | {} |", short(figure), goal.unwrap_or_default())?;
    }
    Ok(table)
}

/// A number with about three digits that count.
fn short(number: f64) -> String {
    let places = if number >= 100.0 { 0 } else { usize::from(number < 10.0) + 1 };
    format!("{number:.places$}")
}

/// The page with another table under a host's heading.
fn replaced(page: &str, host: &str, table: &str) -> Result<String, Fail> {
    let heading = format!("\n## {host}\n");
    let begin = page.find(&heading).ok_or_else(|| format!("tests/bench/README.md has no heading for {host}"))? + heading.len();
    let end = page[begin..].find("\n## ").map_or(page.len(), |at| begin + at);
    Ok(format!("{}\n{table}{}", &page[..begin], &page[end..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_takes_the_place_of_that_hosts_table_only() {
        let page = "# Page\n\n## python\n\nold\n\n## rust\n\nold\n";
        assert_eq!(replaced(page, "python", "new\n").unwrap(), "# Page\n\n## python\n\nnew\n\n## rust\n\nold\n");
        assert_eq!(replaced(page, "rust", "new\n").unwrap(), "# Page\n\n## python\n\nold\n\n## rust\n\nnew\n");
        assert!(replaced(page, "swift", "new\n").is_err());
    }

    #[test]
    fn the_median_ratio_meets_a_goal_or_misses_it_and_without_one_the_figure_does() {
        let row = |ratio: f64| {
            json!({ "rows": [{ "work": "w", "figure": 12.5, "unit": "µs", "goal": 1.5,
                "beside": { "what": "peer", "figure": 10.0, "low": 1.0, "ratio": ratio, "high": 3.0 } }] })
        };
        assert!(table(&row(1.5)).unwrap().ends_with("| w | 12.5 µs | peer: 10.0 µs | 1.50 (1.00 to 3.00) | ≤ 1.5: met |\n"));
        assert!(table(&row(1.51)).unwrap().ends_with("| ≤ 1.5: missed |\n"));
        let alone = |figure: u32| table(&json!({ "rows": [{ "work": "w", "figure": figure, "unit": "B", "goal": 512 }] })).unwrap();
        assert!(alone(512).ends_with("| w | 512 B |  |  | ≤ 512: met |\n"));
        assert!(alone(513).ends_with("| ≤ 512: missed |\n"));
    }
}
