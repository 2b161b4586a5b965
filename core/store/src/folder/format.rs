//! The format of a folder, which a file in it states.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::files::{make_folder, make_root, next_draft, sorted, sync_folder, write_durably};
use crate::Error;

/// The file that states the format.
const FILE: &str = "format";
/// The content of the file. Node's folder has other content.
const THIS: &str = "hopline folder 2\n";
/// Files and folders that a file system creates by itself.
const NOT_OURS: &[&str] = &["lost+found", ".DS_Store"];

/// Makes the folder a store, unless it is one.
pub(super) fn open(root: &Path) -> Result<(), Error> {
    let failed = |error: &io::Error| Error::io("open", root, error);
    make_root(root).map_err(|error| failed(&error))?;
    if read(root)?.is_none() {
        let found = sorted(root)?;
        // Another process may be making the folder a store at this moment.
        let is_empty = found.iter().all(|name| NOT_OURS.contains(&name.as_str()) || name.starts_with(FILE));
        if is_empty {
            write(root).map_err(|error| failed(&error))?;
        }
    }
    match read(root)? {
        Some(text) if text == THIS.as_bytes() => {}
        Some(text) => {
            let says = String::from_utf8_lossy(&text).trim().chars().take(80).collect::<String>();
            let what = format!("the folder `{}` has the format `{says}`, not `{}`; give a folder of its own", root.display(), THIS.trim());
            return Err(Error::Format(what));
        }
        None => {
            let what = "it says no format and is not empty; it may be a store of an older version or of Node: give an empty folder";
            return Err(Error::Format(format!("the folder `{}` is not a store: {what}", root.display())));
        }
    }
    ["locks", "names", "drafts", "spent"].iter().try_for_each(|name| make_folder(&root.join(name))).map_err(|error| failed(&error))
}

fn read(root: &Path) -> Result<Option<Vec<u8>>, Error> {
    let path = root.join(FILE);
    match fs::read(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", &path, &error)),
    }
}

/// Writes the file whole or not at all, so that no process reads half of it.
fn write(root: &Path) -> io::Result<()> {
    // Two processes may write at once, in two containers even under one process id, and two threads in one nanosecond.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let draft = root.join(format!("{FILE}.{}.{}.{}", std::process::id(), now.as_nanos(), next_draft()));
    let written = write_durably(&draft, THIS.as_bytes()).and_then(|()| fs::rename(&draft, root.join(FILE)));
    if written.is_err() {
        // A full disk fails each try to open the folder, and each would leave a file.
        let _ = fs::remove_file(&draft);
    }
    written?;
    sync_folder(root)?;
    root.parent().map_or(Ok(()), sync_folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_that_could_not_be_written_leaves_no_file() {
        let root = tempfile::tempdir().expect("a folder");
        // Nothing can be renamed to a folder that holds something.
        fs::create_dir_all(root.path().join(FILE).join("x")).expect("is made");
        assert!(write(root.path()).is_err());
        assert_eq!(sorted(root.path()), Ok(vec![FILE.to_owned()]));
    }
}
