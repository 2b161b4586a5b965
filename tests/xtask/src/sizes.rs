//! `cargo xtask sizes`: what the packages weigh as they ship, beside what they weighed when somebody last looked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::cargo::{programs, root};
use crate::check::Outcome;
use crate::{Fail, kotlin, node, python, swift};

/// What was measured: a name and bytes.
pub(crate) type Weighed = Vec<(&'static str, u64)>;

/// How much larger than it was something may be before it has to be said, in percent.
const MORE: u64 = 2;

/// `cargo xtask sizes [--accept]`.
pub(crate) fn command(arguments: &[String]) -> Result<ExitCode, Fail> {
    let accept = match arguments {
        [] => false,
        [option] if option == "--accept" => true,
        _ => return Err("the only option is `--accept`, which keeps what was measured in `tests/bench/sizes.txt`".into()),
    };
    programs()?;
    let (weighed, known) = (all()?, known()?);
    println!();
    for (what, bytes) in &weighed {
        let was = known.get(*what).map_or_else(String::new, |was| format!(" (was {:.1})", *was as f64 / 1000.0));
        println!("{what:<14}{:>8.1} KB{was}", *bytes as f64 / 1000.0);
    }
    if accept {
        let lines = weighed.iter().map(|(what, bytes)| format!("{what}: {bytes}\n"));
        std::fs::write(snapshot(), lines.collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether nothing is larger than it was, but for a little.
pub(crate) fn judge(weighed: &Weighed) -> Result<Outcome, Fail> {
    let known = known()?;
    let larger = weighed.iter().filter_map(|(what, bytes)| match known.get(*what) {
        Some(was) if *bytes <= was + was * MORE / 100 => None,
        Some(was) => Some(format!("{what} weighs {bytes} bytes and weighed {was}")),
        None => Some(format!("{what} weighs {bytes} bytes, and nothing says what it weighed")),
    });
    let larger: Vec<String> = larger.collect();
    match larger.as_slice() {
        [] => Ok(Outcome::ONE),
        larger => Ok(Outcome::Failed(format!(
            "{}; if that is worth it, `cargo xtask sizes --accept` keeps it in tests/bench/sizes.txt",
            larger.join("; ")
        ))),
    }
}

/// What every package weighs.
pub(crate) fn all() -> Result<Weighed, Fail> {
    Ok([node::sizes()?, python::sizes()?, kotlin::sizes()?, swift::sizes()?].concat())
}

fn snapshot() -> PathBuf {
    root().join("tests/bench/sizes.txt")
}

fn known() -> Result<BTreeMap<String, u64>, Fail> {
    let text = std::fs::read_to_string(snapshot()).unwrap_or_default();
    let line = |line: &str| -> Result<(String, u64), Fail> {
        let (what, bytes) = line.split_once(": ").ok_or_else(|| format!("`{line}` of tests/bench/sizes.txt is not a name and a number"))?;
        Ok((what.to_owned(), bytes.parse()?))
    };
    text.lines().map(line).collect()
}
