//! The sandbox as a program: it prints one line of JSON when it is ready, and serves until it is told to end.

use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::str::FromStr;

use hopline_sandbox::{Config, Options, serve};
use lexopt::{Arg, Parser, ValueExt};

const HELP: &str = "\
the services that Hopline talks to, on loopback

  --listen ADDRESS:PORT        where the API listens, on loopback; 127.0.0.1:0 by default, 0 being any free port
  --seed N                     what ids, credentials and provisioning times are drawn from; 0 by default
  --api-key KEY                the key to accept; drawn from the seed by default
  --balance USD                the balance to begin with; 100 by default
  --provisioning-ms A[-B]      how long a session stays creating; 1200-2500 by default
  --rate-limit N               authenticated requests a minute; 600 by default
  --session-limit N            sessions creating or active at once; 50 by default
  --gateway                    nginx in front of the API, with roads that fail
  --tls FOLDER                 the API over TLS, too; the authority's certificate is written there
  --with-parent                end when standard input ends, so that nothing is left behind when its owner dies
  --help                       this text";

/// An option's effect on the settings.
type Change = Box<dyn FnOnce(&mut Config)>;

struct Arguments {
    options: Options,
    with_parent: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match read(Parser::from_env()) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => return fail(2, &error),
    };
    match run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &error),
    }
}

async fn run(Arguments { options, with_parent }: Arguments) -> std::io::Result<()> {
    let running = serve(options).await?;
    // Listened for before the line is out, since its reader may tell the sandbox to end at once.
    let ended = end_signal()?;
    let line = serde_json::to_string(running.ready())?;
    // The starter of the sandbox may read one line and close the pipe; that is no reason to end.
    let _ = writeln!(std::io::stdout(), "{line}").and_then(|()| std::io::stdout().flush());
    tokio::select! {
        () = ended => {}
        () = parent_gone(), if with_parent => {}
    }
    Ok(())
}

fn read(mut parser: Parser) -> Result<Option<Arguments>, lexopt::Error> {
    let mut seed = 0;
    let mut changes: Vec<Change> = Vec::new();
    let mut listen = None;
    let mut with_parent = false;
    let mut gateway = false;
    let mut tls = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("listen") => listen = Some(parser.value()?.parse::<SocketAddr>()?),
            Arg::Long("seed") => seed = parser.value()?.parse()?,
            Arg::Long("api-key") => {
                let key = parser.value()?.string()?;
                changes.push(Box::new(|config| config.api_key = key));
            }
            Arg::Long("balance") => {
                let balance = parser.value()?.parse()?;
                changes.push(Box::new(move |config| config.balance = balance));
            }
            Arg::Long("provisioning-ms") => {
                let range = parser.value()?.parse_with(range)?;
                changes.push(Box::new(|config| config.provisioning_ms = range));
            }
            Arg::Long("rate-limit") => {
                let limit = parser.value()?.parse()?;
                changes.push(Box::new(move |config| config.requests_per_minute = limit));
            }
            Arg::Long("session-limit") => {
                let limit = parser.value()?.parse()?;
                changes.push(Box::new(move |config| config.session_limit = limit));
            }
            Arg::Long("gateway") => gateway = true,
            Arg::Long("tls") => tls = Some(parser.value()?.into()),
            Arg::Long("with-parent") => with_parent = true,
            Arg::Long("help") => return Ok(None),
            _ => return Err(argument.unexpected()),
        }
    }
    // The seed first: the other settings may override what is drawn from it.
    let mut config = Config::new(seed);
    for change in changes {
        change(&mut config);
    }
    let mut options = Options::new(config);
    options.listen = listen.unwrap_or(options.listen);
    (options.gateway, options.tls) = (gateway, tls);
    Ok(Some(Arguments { options, with_parent }))
}

fn range(text: &str) -> Result<std::ops::RangeInclusive<i64>, &'static str> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    match (u32::from_str(least), u32::from_str(most)) {
        (Ok(least), Ok(most)) if least <= most => Ok(least.into()..=most.into()),
        _ => Err("it must be milliseconds, or two of them as in 1200-2500"),
    }
}

/// Listens for the signals that end the program, from now on.
#[cfg(unix)]
fn end_signal() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Listens for Ctrl-C, from now on.
#[cfg(windows)]
fn end_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        let _ = interrupt.recv().await;
    })
}

/// Reads on a thread of its own: the runtime would wait for a read of standard input before it let the program end.
async fn parent_gone() {
    let (gone, heard) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = gone.send(());
    });
    let _ = heard.await;
}

fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("hopline-sandbox: {error}");
    ExitCode::from(code)
}
