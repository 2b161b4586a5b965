//! `cargo xtask bench [HOST…]`: what Hopline costs beside its peers, in one run, as the tables of `tests/bench/README.md`.
//!
//! Each host has a program below `tests/bench` that measures and prints one line of JSON: the versions of all, and rows. The common
//part is in `tests/bench/README.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;

use crate::cargo::{cargo, root, run, target, world};
use crate::{Fail, browser, kotlin, node, python, swift};

/// A host, and what measures there.
type Host = (&'static str, fn() -> Result<Command, Fail>);

const HOSTS: &[Host] = &[
    ("rust", rust),
    ("python", python::bench),
    ("node", node::bench),
    ("browser", browser::bench),
    ("kotlin", kotlin::bench),
    ("swift", swift::bench),
    ("fleets", fleets),
    ("crawlers", python::crawlers),
    ("relays", python::relays),
    ("workers", workers),
    ("database", python::database),
];

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

/// Pools of several programs in virtual time.
fn fleets() -> Result<Command, Fail> {
    let mut plans = world()?;
    plans.arg("plans");
    Ok(plans)
}

/// Up to a thousand workers over one store in virtual time, with a plot.
fn workers() -> Result<Command, Fail> {
    let mut table = world()?;
    table.args(["workers", "table"]).arg(root().join("tests/bench/workers.svg"));
    Ok(table)
}

/// The output of a measuring program.
fn told(program: &mut Command) -> Result<Value, Fail> {
    let ended = program.stderr(Stdio::inherit()).output()?;
    if !ended.status.success() {
        return Err(format!("what measures ended with {}; what it said is above", ended.status).into());
    }
    // Maven puts the terminal's colours right around it, also where there are none.
    let text = String::from_utf8(ended.stdout)?;
    let (begin, end) = (text.find('{').unwrap_or_default(), text.rfind('}').map_or(text.len(), |at| at + 1));
    Ok(serde_json::from_str(&text[begin..end])?)
}

/// When, on what kind of machine, and with which versions.
fn circumstances(told: &Value) -> Result<String, Fail> {
    let date = String::from_utf8(Command::new("date").arg("+%Y-%m-%d").output()?.stdout)?;
    let commit = Command::new("git").args(["rev-parse", "--short", "HEAD"]).current_dir(root()).output()?;
    let commit = String::from_utf8(commit.stdout)?;
    let cores = std::thread::available_parallelism()?;
    let processor = processor().unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let versions: BTreeMap<String, String> = serde_json::from_value(told["versions"].clone())?;
    let versions: Vec<String> = versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let (date, commit, system) = (date.trim(), commit.trim(), std::env::consts::OS);
    Ok(format!("{date}, commit `{commit}`, {system} on {cores} cores ({processor}); {}.", versions.join(", ")))
}

/// The processor's kind, where the system tells it.
fn processor() -> Option<String> {
    let told = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("model name"))?;
    Some(line.trim_start_matches([':', '\t', ' ']).to_owned())
}

/// The rows, as a table of Markdown; where there are columns, their cells are texts.
fn table(told: &Value) -> Result<String, Fail> {
    if let Some(columns) = told.get("columns") {
        let columns: Vec<String> = serde_json::from_value(columns.clone())?;
        let rows: Vec<Vec<String>> = serde_json::from_value(told["rows"].clone())?;
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let numbers = "---:|".repeat(columns.len().saturating_sub(1));
        return Ok(format!("{}|---|{numbers}\n{}", line(&columns), rows.iter().map(|row| line(row)).collect::<String>()));
    }
    let mut table = "| Work | Hopline | Beside it | Ratio (quartiles) | Goal |\n|---|---:|---|---:|---|\n".to_owned();
    for row in told["rows"].as_array().ok_or("what measures gave no rows")? {
        let (work, own) = (row["work"].as_str().unwrap_or_default(), figures(row)?);
        let figure = quantile(&own, 0.5);
        let unit = row["unit"].as_str().unwrap_or_default();
        let (mut other, mut ratio, mut judged) = (String::new(), String::new(), figure);
        if let Some(beside) = row.get("beside") {
            let others = figures(beside)?;
            let ratios: Vec<f64> = own.iter().zip(&others).map(|(own, other)| own / other).collect();
            let [low, middle, high] = [0.25, 0.5, 0.75].map(|part| quantile(&ratios, part));
            judged = middle;
            other = format!("{}: {} {unit}", beside["what"].as_str().unwrap_or_default(), short(quantile(&others, 0.5)));
            ratio = format!("{judged:.2} ({low:.2} to {high:.2})");
        }
        let goal = [("goal", "≤"), ("least", "≥")].into_iter().find_map(|(name, sign)| {
            let goal = row.get(name)?.as_f64()?;
            let is_met = if sign == "≤" { judged <= goal } else { judged >= goal };
            Some(format!("{sign} {goal}: {}", if is_met { "met" } else { "missed" }))
        });
        writeln!(table, "| {work} | {} {unit} | {other} | {ratio} | {} |", short(figure), goal.unwrap_or_default())?;
    }
    Ok(table)
}

/// The measured figures, round by round.
fn figures(told: &Value) -> Result<Vec<f64>, Fail> {
    let figures: Vec<f64> = serde_json::from_value(told["figures"].clone())?;
    if figures.is_empty() { Err("what measures gave a row without a figure".into()) } else { Ok(figures) }
}

/// The figure below which that part of them is: half for the median.
fn quantile(figures: &[f64], part: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
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
    fn the_ratio_is_the_median_of_the_rounds_and_meets_a_goal_or_misses_it() {
        // One round was slow for both.
        let told = |most: f64| {
            json!({ "rows": [{ "work": "w", "figures": [2.0, 200.0, 3.0, 2.0, 2.0], "unit": "µs", "goal": most,
                "beside": { "what": "peer", "figures": [1.0, 100.0, 1.0, 1.0, 1.0] } }] })
        };
        assert!(table(&told(2.0)).unwrap().ends_with("| w | 2.00 µs | peer: 1.00 µs | 2.00 (2.00 to 2.00) | ≤ 2: met |\n"));
        assert!(table(&told(1.99)).unwrap().ends_with("| ≤ 1.99: missed |\n"));
    }

    #[test]
    fn a_figure_may_have_a_least_value() {
        let alone = |figure: f64| table(&json!({ "rows": [{ "work": "w", "figures": [figure], "unit": "", "least": 0.5 }] })).unwrap();
        assert!(alone(0.5).ends_with("| ≥ 0.5: met |\n"));
        assert!(alone(0.49).ends_with("| ≥ 0.5: missed |\n"));
    }

    #[test]
    fn a_table_with_columns_of_its_own_has_their_cells() {
        let told = json!({ "columns": ["Plan", "Bought"], "rows": [["a", "2"], ["b", ""]] });
        assert_eq!(table(&told).unwrap(), "| Plan | Bought |\n|---|---:|\n| a | 2 |\n| b |  |\n");
    }

    #[test]
    fn without_another_the_figure_meets_a_goal_or_misses_it() {
        let alone = |figure: u32| table(&json!({ "rows": [{ "work": "w", "figures": [figure], "unit": "B", "goal": 512 }] })).unwrap();
        assert!(alone(512).ends_with("| w | 512 B |  |  | ≤ 512: met |\n"));
        assert!(alone(513).ends_with("| ≤ 512: missed |\n"));
        assert!(table(&json!({ "rows": [{ "work": "w", "figures": [], "unit": "B" }] })).is_err());
    }
}
