//! `cargo xtask`: the one door for people. It says what it does, and needs nothing but Rust to begin with.

mod cargo;
mod examples;
mod test;
mod wasm;

use std::process::ExitCode;

/// What went wrong, in one sentence.
type Fail = Box<dyn std::error::Error>;

const HELP: &str = "\
cargo xtask demo [--crash] [--seed N]   a session's whole life on this machine; --crash kills the buyer in mid-purchase
cargo xtask test [HOST…]                every check and test; of all hosts, or of those named: rust
cargo xtask sandbox [OPTION…]           the services on loopback, to try things against; --help shows its options
cargo xtask help                        this text";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_else(|| "help".to_owned());
    let rest: Vec<String> = arguments.collect();
    let done = match command.as_str() {
        "demo" => cargo::run_program("hopline-demo", &rest),
        "sandbox" => cargo::run_program("hopline-sandbox", &rest),
        "test" => test::run(&rest),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        other => Err(format!("there is no command `{other}`; `cargo xtask help` lists them").into()),
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error}");
        ExitCode::FAILURE
    })
}
