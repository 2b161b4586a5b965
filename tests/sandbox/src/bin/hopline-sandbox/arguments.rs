//! The options of the program.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use hopline_sandbox::{Config, Options};
use lexopt::{Arg, Parser, ValueExt};

/// Every option is here, with its default.
pub(crate) const HELP: &str = "\
hopline-sandbox: the services that Hopline talks to, on loopback, with real proxies; its money is not real

  eval \"$(hopline-sandbox --shell)\"   starts it in the background and tells this shell where it is
  hopline-sandbox                     serves in the foreground, and prints one line of JSON when it is ready

  --shell                      serve in the background until the terminal closes; print `export` lines for a shell
  --listen ADDRESS:PORT        where the API listens, on loopback; 127.0.0.1:0 by default, 0 being any free port
  --seed N                     what ids, credentials and provisioning times are drawn from; 0 by default
  --api-key KEY                the key to accept; drawn from the seed by default
  --balance USD                the balance to begin with; 100 by default
  --provisioning-ms A[-B]      how long a session stays creating; 1200-2500 by default
  --rate-limit N               authenticated requests a minute; 600 by default
  --session-limit N            sessions creating or active at once; 50 by default
  --gateway                    nginx in front of the API, with roads that fail; off by default
  --tls FOLDER                 the API and the target site over TLS, too; the certificate to trust is written there; off by default
  --with-parent                end when standard input ends, so that nothing is left behind when its owner dies; off by default
  --with-terminal              end when the terminal closes; off by default, and on with --shell
  --version                    the version
  --help                       this text";

/// The work of a start.
pub(crate) enum Wanted {
    Help,
    Version,
    Shell,
    Serve(Arguments),
}

/// The options of a sandbox that serves.
pub(crate) struct Arguments {
    pub(crate) options: Options,
    pub(crate) with_parent: bool,
    pub(crate) with_terminal: bool,
}

/// An option's effect on the settings.
type Change = Box<dyn FnOnce(&mut Config)>;

/// Reads the options; what is wrong with them is said in one sentence.
pub(crate) fn read(mut parser: Parser) -> Result<Wanted, String> {
    let mut seed = 0;
    let mut changes: Vec<Change> = Vec::new();
    let mut listen = None;
    let (mut with_parent, mut with_terminal, mut gateway, mut shell) = (false, false, false, false);
    let mut tls: Option<PathBuf> = None;
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        let name = match argument {
            Arg::Long(name) => format!("--{name}"),
            Arg::Short(letter) => return Err(unknown(&format!("-{letter}"))),
            Arg::Value(value) => return Err(unknown(&value.to_string_lossy())),
        };
        match name.as_str() {
            "--listen" => listen = Some(value::<SocketAddr>(&mut parser, &name, "an address with a port, such as 127.0.0.1:8080")?),
            "--seed" => seed = value(&mut parser, &name, "a whole number")?,
            "--api-key" => {
                let key = text(&mut parser, &name)?;
                changes.push(Box::new(|config| config.api_key = key));
            }
            "--balance" => {
                let balance = value(&mut parser, &name, "an amount such as 12.50")?;
                changes.push(Box::new(move |config| config.balance = balance));
            }
            "--provisioning-ms" => {
                let range = range(&text(&mut parser, &name)?)?;
                changes.push(Box::new(|config| config.provisioning_ms = range));
            }
            "--rate-limit" => {
                let limit = value(&mut parser, &name, "a whole number")?;
                changes.push(Box::new(move |config| config.requests_per_minute = limit));
            }
            "--session-limit" => {
                let limit = value(&mut parser, &name, "a whole number")?;
                changes.push(Box::new(move |config| config.session_limit = limit));
            }
            "--gateway" => gateway = true,
            "--tls" => tls = Some(text(&mut parser, &name)?.into()),
            "--shell" => shell = true,
            "--with-parent" => with_parent = true,
            "--with-terminal" => with_terminal = true,
            "--version" => return Ok(Wanted::Version),
            "--help" => return Ok(Wanted::Help),
            _ => return Err(unknown(&name)),
        }
    }
    if shell {
        return if with_parent {
            Err("--shell serves in the background, so it does not go with --with-parent".to_owned())
        } else {
            Ok(Wanted::Shell)
        };
    }
    // The seed first: the other settings may override what is drawn from it.
    let mut config = Config::new(seed);
    for change in changes {
        change(&mut config);
    }
    let mut options = Options::new(config);
    options.listen = listen.unwrap_or(options.listen);
    (options.gateway, options.tls) = (gateway, tls);
    Ok(Wanted::Serve(Arguments { options, with_parent, with_terminal }))
}

/// The text after an option.
fn text(parser: &mut Parser, name: &str) -> Result<String, String> {
    let value = parser.value().map_err(|_| format!("{name} needs a value after it"))?;
    value.string().map_err(|_| format!("the value of {name} is not UTF-8"))
}

/// The value after an option.
fn value<T: std::str::FromStr<Err: Display>>(parser: &mut Parser, name: &str, kind: &str) -> Result<T, String> {
    let text = text(parser, name)?;
    text.parse().map_err(|_| format!("{name} takes {kind}, not `{text}`"))
}

fn range(text: &str) -> Result<RangeInclusive<i64>, String> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    match (least.parse::<u32>(), most.parse::<u32>()) {
        (Ok(least), Ok(most)) if least <= most => Ok(least.into()..=most.into()),
        _ => Err(format!("--provisioning-ms takes milliseconds, or two of them as in 1200-2500, not `{text}`")),
    }
}

/// Says that there is no such option, and names the nearest one.
fn unknown(given: &str) -> String {
    let likeness = |name: &str| strsim::jaro_winkler(given.trim_start_matches('-'), name.trim_start_matches('-'));
    let names = HELP.lines().filter_map(|line| line.trim_start().split(' ').next()).filter(|word| word.starts_with("--"));
    let nearest =
        names.map(|name| (likeness(name), name)).filter(|(likeness, _)| *likeness > 0.8).max_by(|one, two| one.0.total_cmp(&two.0));
    let hint = nearest.map(|(_, name)| format!("; did you mean `{name}`?")).unwrap_or_default();
    format!("there is no option `{given}`{hint} (`hopline-sandbox --help` lists them)")
}
