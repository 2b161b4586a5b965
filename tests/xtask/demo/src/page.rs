//! How the story looks: aligned rows, one line that moves while something is waited for, colour only for a person.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stdout};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Where the story is written.
#[derive(Clone, Copy)]
pub(crate) struct Page {
    /// True if a line can be written over.
    live: bool,
    colour: bool,
}

/// The tone of a row: plain, good or bad.
#[derive(Clone, Copy)]
pub(crate) enum Tone {
    Plain,
    Good,
    Bad,
}

impl Page {
    pub(crate) fn new() -> Self {
        let live = stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let colour = live && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Page { live, colour }
    }

    pub(crate) fn title(self, text: &str) {
        println!("\n{}\n", self.paint("1", text));
    }

    pub(crate) fn row(self, label: &str, text: impl Display) {
        self.toned(Tone::Plain, label, text);
    }

    pub(crate) fn toned(self, tone: Tone, label: &str, text: impl Display) {
        let label = format!("{label:<11}");
        let label = match tone {
            Tone::Plain => self.paint("2", &label),
            Tone::Good => self.paint("32", &label),
            Tone::Bad => self.paint("33", &label),
        };
        println!("  {label}{text}");
    }

    /// A line of its own, for the summary.
    pub(crate) fn line(self, text: impl Display) {
        println!("  {text}");
    }

    pub(crate) fn faint(self, text: &str) {
        println!("  {}", self.paint("2", text));
    }

    pub(crate) fn gap(self) {
        println!();
    }

    /// Waits, and shows that it does.
    pub(crate) fn wait(self, label: &str, since: Instant, wait: Duration) {
        if !self.live {
            if wait >= Duration::from_millis(500) {
                self.row(label, format!("asking again in {}", seconds(wait)));
            }
            return sleep(wait);
        }
        let end = Instant::now() + wait;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            let label = self.paint("2", &format!("{label:<11}"));
            print!("\r  {label}{} ", seconds(since.elapsed()));
            let _ = stdout().flush();
            sleep(left.min(Duration::from_millis(100)));
        }
        print!("\r\x1b[K");
        let _ = stdout().flush();
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// How long something took.
pub(crate) fn took(time: Duration) -> String {
    if time < Duration::from_secs(1) { format!("{} ms", time.as_millis()) } else { seconds(time) }
}

pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
