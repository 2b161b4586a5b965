//! The two as a program: it prints one line of JSON when it is ready, and serves until its standard input ends.

use std::io::Write;
use std::process::ExitCode;

use hopline_peers::{Options, serve};
use lexopt::{Arg, Parser, ValueExt};

const HELP: &str = "\
an odd server and recording proxies, on loopback, until standard input ends

  --service URL      the service that the odd server relays to, such as http://127.0.0.1:8080; without it there is no odd server
  --tls FOLDER       the proxies over TLS, too, and targets over TLS behind them; the authority's certificate is written there
  --help             this text";

#[tokio::main]
async fn main() -> ExitCode {
    let options = match read(Parser::from_env()) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => return fail(2, &error),
    };
    match run(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &error),
    }
}

async fn run(options: Options) -> std::io::Result<()> {
    let running = serve(options).await?;
    let line = serde_json::to_string(running.ready())?;
    writeln!(std::io::stdout(), "{line}").and_then(|()| std::io::stdout().flush())?;
    // A thread of its own reads: the runtime would wait for a read of standard input before it let the program end.
    let (gone, heard) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = gone.send(());
    });
    let _ = heard.await;
    Ok(())
}

fn read(mut parser: Parser) -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("service") => options.service = Some(parser.value()?.string()?),
            Arg::Long("tls") => options.tls = Some(parser.value()?.into()),
            Arg::Long("help") => return Ok(None),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Some(options))
}

fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("hopline-peers: {error}");
    ExitCode::from(code)
}
