//! The files of a store: `names/<space>/<kind and two digits>/<name>`, and drafts of them in `drafts/`.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::record::{self, Record};
use crate::Error;
use crate::name::Name;

/// A kind and two digits.
const GROUP: usize = 3;

/// A counter that keeps two drafts of one name in one process apart.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// The files of a store.
pub(super) struct Files {
    root: PathBuf,
}

/// A file that is being written, or was when its process died.
pub(super) struct Draft {
    /// The name that it is a draft of.
    pub(super) name: String,
    path: PathBuf,
}

impl Draft {
    /// Removes the draft. A draft that can't be removed does no harm.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Files {
    pub(super) fn new(root: PathBuf) -> Files {
        Files { root }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The groups of a space, in order.
    pub(super) fn groups(&self, space: &str) -> Result<Vec<String>, Error> {
        // Some systems leave files of their own in any folder.
        Ok(sorted(&self.root.join("names").join(space))?.into_iter().filter(|group| group.len() == GROUP).collect())
    }

    /// The names of a group, in order.
    pub(super) fn names(&self, space: &str, group: &str) -> Result<Vec<String>, Error> {
        sorted(&self.root.join("names").join(space).join(group))
    }

    pub(super) fn read(&self, name: Name<'_>) -> Result<Option<Record>, Error> {
        let path = self.path(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(record::decode(&bytes))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", &path, &error)),
        }
    }

    /// Writes a name so that even a power cut leaves it old or new.
    pub(super) fn write(&self, name: Name<'_>, bytes: &[u8]) -> Result<(), Error> {
        let path = self.path(name);
        let draft = self.root.join("drafts").join(format!("{}.{}", name.as_str(), next_draft()));
        let written = self.make_group(name).and_then(|()| write_durably(&draft, bytes)).and_then(|()| fs::rename(&draft, &path));
        if let Err(error) = written {
            Draft { name: String::new(), path: draft }.remove();
            return Err(Error::io("write", &path, &error));
        }
        self.sync_group(name)
    }

    /// Deletes a name. A missing name counts as deleted.
    pub(super) fn delete(&self, name: Name<'_>) -> Result<(), Error> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Ok(()) => self.sync_group(name),
            Err(error) if error.kind() == ErrorKind::NotFound => self.sync_group(name),
            Err(error) => Err(Error::io("delete", &path, &error)),
        }
    }

    /// Drafts that were last written to so long ago.
    pub(super) fn drafts(&self, age: Duration) -> Result<Vec<Draft>, Error> {
        let folder = self.root.join("drafts");
        let is_old = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).is_ok_and(|then| elapsed(then) > age);
        let names = sorted(&folder)?.into_iter().map(|file| (folder.join(&file), file)).filter(|(path, _)| is_old(path));
        Ok(names
            .map(|(path, file)| Draft { name: file.rsplit_once('.').map_or(String::new(), |(name, _)| name.to_owned()), path })
            .collect())
    }

    fn group(&self, name: Name<'_>) -> PathBuf {
        self.root.join("names").join(name.space()).join(name.group())
    }

    fn path(&self, name: Name<'_>) -> PathBuf {
        self.group(name).join(name.as_str())
    }

    /// Makes the missing folders of a name, but not the root: a removed root must not look like an empty store.
    fn make_group(&self, name: Name<'_>) -> io::Result<()> {
        let group = self.group(name);
        if group.is_dir() {
            return Ok(());
        }
        for folder in [&self.root.join("names").join(name.space()), &group] {
            make_folder(folder)?;
        }
        Ok(())
    }

    fn sync_group(&self, name: Name<'_>) -> Result<(), Error> {
        let group = self.group(name);
        match sync_folder(&group) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("save", &group, &error)),
            _ => Ok(()),
        }
    }
}

/// A number that no other draft of this process has.
pub(super) fn next_draft() -> u64 {
    DRAFTS.fetch_add(1, Ordering::Relaxed)
}

/// Makes one folder, durably. An existing folder is fine.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    match for_us_alone(&mut DirBuilder::new()).create(path) {
        Ok(()) => sync_folder(path.parent().unwrap_or(path)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes a whole file and waits for the disk.
pub(super) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open_for_us_alone(OpenOptions::new().write(true).create(true).truncate(true)).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Flushes a folder, which keeps the names of its files; Windows can't open a folder as a file.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// The names in a folder, in order. A folder that is missing has none.
pub(super) fn sorted(folder: &Path) -> Result<Vec<String>, Error> {
    let failed = |error: &io::Error| Error::io("read", folder, error);
    let found = match fs::read_dir(folder) {
        Ok(found) => found.collect::<io::Result<Vec<_>>>().map_err(|error| failed(&error))?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(&error)),
    };
    let mut names: Vec<String> = found.into_iter().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Options for a file that other users of the machine can't read.
pub(super) fn open_for_us_alone(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

fn for_us_alone(builder: &mut DirBuilder) -> &mut DirBuilder {
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(builder, 0o700);
    builder
}

/// Makes the folder of a store, and those above it.
pub(super) fn make_root(path: &Path) -> io::Result<()> {
    for_us_alone(DirBuilder::new().recursive(true)).create(path)
}

fn elapsed(since: SystemTime) -> Duration {
    SystemTime::now().duration_since(since).unwrap_or_default()
}
