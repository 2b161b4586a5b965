//! `cargo xtask demo`: a session's whole life on one machine, shown to a person and checked on the way.
//!
//! The sandbox, its proxies and its target site run inside this process, so nothing of them can be left behind. The
//sandbox's control API is asked afterwards for all that is told; a difference ends the demo with an error.

mod buyer;
mod crash;
mod life;
mod page;
mod reseller;
mod sandbox;
mod tidy;
mod web;

use std::path::PathBuf;
use std::process::ExitCode;

use hopline_sandbox::{Config, Options, serve};
use lexopt::{Arg, ValueExt};

use crate::sandbox::Sandbox;
use crate::tidy::Tidy;

/// A failed expectation, in one sentence.
type Fail = Box<dyn std::error::Error + Send + Sync>;
/// A part of the story.
type Told<T = ()> = Result<T, Fail>;

/// Fails unless something is as told.
macro_rules! ensure {
    ($holds:expr, $($said:tt)+) => { if !$holds { return Err(format!($($said)+).into()); } };
}
pub(crate) use ensure;

const HELP: &str = "\
a session's whole life, on this machine alone

  cargo xtask demo              buy, use, rotate and end a session
  cargo xtask demo --crash      kill the buyer between send and answer, and start it again
  cargo xtask demo --story S    `life` (the first), or `reseller`: a sub-user, its money and its order
  --seed N                      what ids, credentials and waiting times are drawn from; 7 by default
  --help                        this text";

enum Wanted {
    Life,
    Crash,
    Reseller,
    /// The program that `--crash` kills; it is told where its records are.
    Buyer(PathBuf),
    Help,
}

fn main() -> ExitCode {
    let told = arguments().map_err(Fail::from).and_then(|(wanted, seed)| match wanted {
        Wanted::Help => {
            println!("{HELP}");
            Ok(())
        }
        Wanted::Buyer(folder) => buyer::run(folder),
        Wanted::Life => tell(seed, life::tell),
        Wanted::Crash => tell(seed, crash::tell),
        Wanted::Reseller => tell(seed, reseller::tell),
    });
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hopline demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<(Wanted, u64), lexopt::Error> {
    let (mut wanted, mut seed) = (Wanted::Life, 7);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("crash") => wanted = Wanted::Crash,
            Arg::Long("story") => {
                let story = parser.value()?.string()?;
                wanted = match story.as_str() {
                    "life" => Wanted::Life,
                    "reseller" => Wanted::Reseller,
                    _ => return Err(format!("there is no story `{story}`; there are `life` and `reseller`").into()),
                };
            }
            Arg::Long("buyer") => wanted = Wanted::Buyer(parser.value()?.into()),
            Arg::Long("seed") => seed = parser.value()?.parse()?,
            Arg::Long("help") => wanted = Wanted::Help,
            _ => return Err(argument.unexpected()),
        }
    }
    Ok((wanted, seed))
}

/// Tells a story against a sandbox of its own, and clears up however it ends.
fn tell(seed: u64, story: fn(&Sandbox, &Tidy) -> Told) -> Told {
    let runtime = tokio::runtime::Runtime::new()?;
    let tidy = Tidy::new();
    let told = runtime.block_on(async {
        let interrupted = interrupted()?;
        let running = serve(Options::new(Config::new(seed))).await?;
        let (sandbox, own) = (Sandbox::new(running.ready().clone()), tidy.clone());
        let telling = tokio::task::spawn_blocking(move || story(&sandbox, &own));
        tokio::select! {
            told = telling => told.unwrap_or_else(|_| Err("the demo stopped in the middle".into())),
            () = interrupted => Err("interrupted; nothing was left behind".into()),
        }
    });
    tidy.up();
    // An interrupted story is still at it, and is not waited for.
    runtime.shutdown_background();
    told
}

/// Ends when somebody wants the demo to end; listens from now on.
#[cfg(unix)]
fn interrupted() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

/// Ends when somebody wants the demo to end; listens from now on.
#[cfg(windows)]
fn interrupted() -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        let _ = interrupt.recv().await;
    })
}
