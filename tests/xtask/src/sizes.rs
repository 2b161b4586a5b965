//! `cargo xtask sizes`: what the packages weigh as they ship, beside what they weighed when somebody last looked.

use std::process::ExitCode;

use crate::cargo::programs;
use crate::weight::{Weighed, known, snapshot};
use crate::{Fail, kotlin, node, python, swift};

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

/// The sizes of all packages.
pub(crate) fn all() -> Result<Weighed, Fail> {
    Ok([node::sizes()?, python::sizes()?, kotlin::sizes()?, swift::sizes()?].concat())
}
