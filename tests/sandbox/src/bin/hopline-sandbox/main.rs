//! The sandbox as a program: it prints one line of JSON when it is ready, and serves until it is told to end.

mod arguments;
mod end;
#[cfg(unix)]
mod shell;

use std::io::Write;
use std::process::ExitCode;

use hopline_sandbox::serve;

use arguments::{Arguments, HELP, Wanted};

fn main() -> ExitCode {
    let wanted = match arguments::read(lexopt::Parser::from_env()) {
        Ok(wanted) => wanted,
        Err(error) => return fail(2, &error),
    };
    let done = match wanted {
        Wanted::Help => print(HELP),
        Wanted::Version => print(concat!("hopline-sandbox ", env!("CARGO_PKG_VERSION"))),
        #[cfg(unix)]
        Wanted::Shell => shell::start(std::env::args_os().skip(1)),
        #[cfg(not(unix))]
        Wanted::Shell => Err(std::io::Error::other("--shell needs a Unix system")),
        Wanted::Serve(arguments) => run(arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &error),
    }
}

#[tokio::main]
async fn run(Arguments { options, with_parent, with_terminal }: Arguments) -> std::io::Result<()> {
    let running = serve(options).await?;
    // Listened for before the line is out, since its reader may tell the sandbox to end at once.
    let ended = end::signal()?;
    let terminal_gone = end::terminal_gone();
    let line = serde_json::to_string(running.ready())?;
    // The starter of the sandbox may read one line and close the pipe; that is no reason to end.
    let _ = print(&line);
    tokio::select! {
        () = ended => {}
        () = end::parent_gone(), if with_parent => {}
        () = terminal_gone, if with_terminal => {}
    }
    Ok(())
}

fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush())
}

fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("hopline-sandbox: {error}");
    ExitCode::from(code)
}
