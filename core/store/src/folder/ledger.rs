//! The ledger of spending: `spent/<space>/<day>`, a line for each time that an entry was set. The last one counts.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::calls::Call;
use super::files::{make_folder, open_for_us_alone, sorted, sync_folder};
use super::locks::Locks;
use super::record::checksum;
use crate::{Decimal, Error, Spend, Spent, is_over};

/// The number of past days that are kept. Nothing is bought on a past day, and an entry set later than this does not matter.
const DAYS: i64 = 35;
/// The longest wait for a turn: a turn takes a moment, unless its process was stopped in it.
const PATIENCE: Duration = Duration::from_secs(10);

/// One client at a time reads and writes what was spent in a space.
struct Turn<'a> {
    locks: &'a Locks,
    place: String,
}

impl<'a> Turn<'a> {
    fn wait(locks: &'a Locks, space: &str) -> io::Result<Turn<'a>> {
        let (place, begun) = (place(space), Instant::now());
        while !locks.take(&place)? {
            if begun.elapsed() > PATIENCE {
                return Err(io::Error::new(ErrorKind::TimedOut, "another process does not let go of what was spent"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(Turn { locks, place })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // If this fails, the next turn reports it.
        let _ = self.locks.give(&self.place);
    }
}

/// The spending, as far as this client has read it.
pub(super) struct Ledgers {
    root: PathBuf,
    read: Mutex<HashMap<(String, i64), Ledger>>,
}

/// The spending of one day. Files only grow, so that each line is read once.
#[derive(Default)]
struct Ledger {
    /// The position up to which the file has been read.
    read: u64,
    entries: HashMap<String, Decimal>,
    total: Decimal,
}

impl Ledgers {
    pub(super) fn new(root: PathBuf) -> Ledgers {
        Ledgers { root: root.join("spent"), read: Mutex::default() }
    }

    pub(super) fn spend(&self, spend: &Spend<'_>, today: i64, locks: &Locks, call: Call<'_>) -> Result<Spent, Error> {
        let folder = self.root.join(spend.space);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = Turn::wait(locks, spend.space).map_err(|error| Error::io("lock", &folder, &error))?;
        let last = days(&folder)?.into_iter().max();
        let day = spend.day.unwrap_or(last.map_or(today, |last| last.max(today)));
        let path = folder.join(day.to_string());
        let failed = |error: io::Error| Error::io("write", &path, &error);
        read.retain(|(_, read), _| *read >= today - 1);
        let ledger = read.entry((spend.space.to_owned(), day)).or_default();
        let mut file = match OpenOptions::new().read(true).append(true).open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        match &mut file {
            Some(file) => ledger.catch_up(file, &path)?,
            None => *ledger = Ledger::default(),
        }
        let before = ledger.entries.get(spend.entry).copied().unwrap_or_default();
        if is_over(before, ledger.total, spend.amount, spend.cap) {
            return Ok(Spent::Over { day, total: ledger.total });
        }
        let mut file = match file {
            Some(file) => file,
            None => self.begin(&folder, &path, day).map_err(failed)?,
        };
        ledger.append(&mut file, spend).map_err(failed)?;
        // Others may continue: their lines come behind, and are no safer than this one.
        drop(turn);
        drop(read);
        drop(call);
        file.sync_all().map_err(failed)?;
        Ok(Spent::Granted { day })
    }

    /// Makes the file of a day, and removes those of days long over.
    fn begin(&self, folder: &Path, path: &Path, day: i64) -> io::Result<File> {
        make_folder(folder)?;
        let file = open_for_us_alone(OpenOptions::new().read(true).append(true).create(true)).open(path)?;
        for old in days(folder).unwrap_or_default().into_iter().filter(|old| *old < day - DAYS) {
            // A file that can't be removed does no harm.
            let _ = fs::remove_file(folder.join(old.to_string()));
        }
        sync_folder(folder)?;
        Ok(file)
    }
}

impl Ledger {
    /// Reads the lines that were added. A last line without its end was never answered, and is removed; any other damage is an error, since
    /// an unknown sum may be past the cap.
    fn catch_up(&mut self, file: &mut File, path: &Path) -> Result<(), Error> {
        let failed = |error: io::Error| Error::io("read", path, &error);
        let length = file.metadata().map_err(failed)?.len();
        if length < self.read {
            *self = Ledger::default();
        }
        let mut added = Vec::new();
        file.seek(SeekFrom::Start(self.read)).map_err(failed)?;
        file.read_to_end(&mut added).map_err(failed)?;
        let lines: Vec<&[u8]> = added.split_inclusive(|byte| *byte == b'\n').collect();
        let sound = lines.iter().take_while(|line| parse(line).is_some()).count();
        if !lines[sound..].iter().all(|line| is_torn(line)) {
            let what = "its entries are damaged, so that nobody knows what was spent; once you know it, remove the file";
            return Err(Error::Failed(format!("could not read `{}`: {what}", path.display())));
        }
        for line in &lines[..sound] {
            if let Some((entry, amount)) = parse(line) {
                self.set(entry, amount);
            }
            self.read += line.len() as u64;
        }
        if self.read < length {
            file.set_len(self.read).map_err(failed)?;
        }
        Ok(())
    }

    fn append(&mut self, file: &mut File, spend: &Spend<'_>) -> io::Result<()> {
        let (entry, amount) = (spend.entry, spend.amount.normalize());
        // An entry that is set to the same amount again is there already; the disk must still confirm it.
        if self.entries.get(entry) == Some(&amount) {
            return Ok(());
        }
        let line = format!("{entry} {amount} {}\n", checksum(entry, amount.to_string().as_bytes()));
        file.write_all(line.as_bytes())?;
        self.read += line.len() as u64;
        self.set(entry, amount);
        Ok(())
    }

    fn set(&mut self, entry: &str, amount: Decimal) {
        let before = self.entries.insert(entry.to_owned(), amount).unwrap_or_default();
        self.total = self.total.saturating_sub(before).saturating_add(amount);
    }
}

/// The place where the turn of a space is locked.
pub(super) fn place(space: &str) -> String {
    format!("spent.{space}")
}

/// The entry and the amount of a whole line.
fn parse(line: &[u8]) -> Option<(&str, Decimal)> {
    let mut parts = std::str::from_utf8(line).ok()?.strip_suffix('\n')?.split(' ');
    let (entry, amount, sum) = (parts.next()?, parts.next()?, parts.next()?);
    (parts.next().is_none() && checksum(entry, amount.as_bytes()) == sum).then_some(())?;
    Some((entry, amount.parse().ok()?))
}

/// Returns true if a line is the beginning of a line: a whole line whose end was changed is not.
fn is_torn(line: &[u8]) -> bool {
    let is_whole_but_its_end = || match line {
        [line @ .., last] if *last != 0 => parse(&[line, b"\n"].concat()).is_some(),
        _ => false,
    };
    !line.ends_with(b"\n") && !is_whole_but_its_end()
}

/// The days that a space has.
fn days(folder: &Path) -> Result<Vec<i64>, Error> {
    Ok(sorted(folder)?.iter().filter_map(|name| name.parse().ok()).collect())
}
