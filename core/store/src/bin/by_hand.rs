//! A folder by hand: reads one call a line and prints its answer. The names that it owns are free when it ends, however it ends.
//!
//! `cargo run -p hopline-store -- FOLDER`, then `claim NAME…`, `new NAME DATA`, `put NAME DATA`, `finish NAME DATA`, `delete NAME`,
//! `release`, `list SPACE` or `spend SPACE ENTRY AMOUNT CAP`. Data has no spaces here.

use std::io::{BufRead, Write};
use std::time::Duration;

use hopline_store::{Claim, Error, Folder, Put, Spend, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("say which folder")?;
    let mut out = std::io::stdout();
    let folder = match Folder::open(path) {
        Ok(folder) => folder,
        Err(error) => return Ok(writeln!(out, "error: {error}")?),
    };
    writeln!(out, "open")?;
    for line in std::io::stdin().lock().lines() {
        let answer = call(&folder, &line?).unwrap_or_else(|error| format!("error: {error}"));
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn call(folder: &Folder, line: &str) -> Result<String, Error> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let new = Put { new: true, ..Put::default() };
    let finish = Put { keep_for: Some(Duration::from_secs(30 * 86_400)), release: true, ..Put::default() };
    Ok(match words[..] {
        ["claim", ref names @ ..] => match folder.claim(names, names.len())? {
            Claim::Claimed(names) => {
                let shown = names.iter().map(|(name, data)| format!(" {name}={}", text(data.as_deref())));
                format!("claimed{}", shown.collect::<String>())
            }
            Claim::Busy(data) => format!("busy {}", text(data.as_deref())),
        },
        ["new", name, data] => format!("{:?}", folder.put(name, data.as_bytes(), &new)?),
        ["put", name, data] => format!("{:?}", folder.put(name, data.as_bytes(), &Put::default())?),
        ["finish", name, data] => format!("{:?}", folder.put(name, data.as_bytes(), &finish)?),
        ["delete", name] => format!("{:?}", folder.delete(name)?),
        ["release"] => folder.release(None).map(|()| "released".to_owned())?,
        ["list", space] => {
            let page = folder.list(space, None, false)?;
            page.entries.iter().map(|entry| format!("{}={}:{:?} ", entry.name, text(Some(&entry.data)), entry.whose)).collect()
        }
        ["spend", space, entry, amount, cap] => {
            let money = |text: &str| text.parse().map_err(|_| Error::Misuse(format!("`{text}` is not an amount")));
            format!("{:?}", folder.spend(&Spend { space, day: None, entry, amount: money(amount)?, cap: Some(money(cap)?) })?)
        }
        _ => return Err(Error::Misuse(format!("`{line}` is not a call"))),
    })
}

fn text(data: Option<&[u8]>) -> String {
    data.map_or("-".to_owned(), |data| String::from_utf8_lossy(data).into_owned())
}
