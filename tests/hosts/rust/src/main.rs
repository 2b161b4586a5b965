//! `hopline-vectors FILE [CASE]`: runs the vectors of one file, or one case of them.

use std::path::Path;
use std::process::ExitCode;

use hopline_host_rust::vectors::run_case;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), case, None) = (arguments.next(), arguments.next(), arguments.next()) else {
        eprintln!("hopline-vectors: say which file of vectors, and perhaps which of its cases");
        return ExitCode::FAILURE;
    };
    let report = run_case(Path::new(&file), case.as_deref());
    report.failures.iter().for_each(|failure| println!("{failure}"));
    println!("{} cases, {} failed", report.cases, report.failures.len());
    if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
