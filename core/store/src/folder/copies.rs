//! One copy of this library at a time has a folder open in a process.
//!
//! Record locks belong to a process, so two copies, such as those of two class loaders, would both get the lock of a name. A lock of an
//! open file, which Linux has besides, tells them apart: each copy locks the byte that is a hash of their process. A forked child may keep
//! that lock, which does no harm: no other process ever has this hash.

use std::io;
use std::path::Path;

pub(super) use here::Only;

#[cfg(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64"))]
mod here {
    use std::fs::{self, File};

    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    use super::super::locks::{number_of, open, range};
    use super::{Path, io};

    /// A folder that this copy has open in this process. Must be dropped after the files in which names are locked: closing these files
    /// takes away the locks of another copy.
    pub(in super::super) struct Only {
        marked: Option<(File, libc::off_t)>,
    }

    impl Only {
        /// Takes the folder, unless another copy has it.
        pub(in super::super) fn take(folder: &Path) -> io::Result<Only> {
            let Some(id) = id() else { return Ok(Only { marked: None }) };
            let (file, byte) = (open(&folder.join("process"))?, (number_of(&id) >> 2).cast_signed());
            match fcntl(&file, FcntlArg::F_OFD_SETLK(&range(byte, libc::F_WRLCK))) {
                Ok(_) => Ok(Only { marked: Some((file, byte)) }),
                // The system is older than these locks.
                Err(Errno::EINVAL) => Ok(Only { marked: None }),
                Err(Errno::EACCES | Errno::EAGAIN) => {
                    Err(io::Error::other("another copy of this library has the folder open in this process; open it with one of them only"))
                }
                Err(error) => Err(error.into()),
            }
        }
    }

    impl Drop for Only {
        fn drop(&mut self) {
            // Closing the file does not unlock it if a forked child has it, too. A lock that can't be removed ends with the last of these
            // processes.
            if let Some((file, byte)) = &self.marked {
                let _ = fcntl(file, FcntlArg::F_OFD_SETLK(&range(*byte, libc::F_UNLCK)));
            }
        }
    }

    /// An identity that no other process has: a later process with this one's number began at another time, and others may have the same
    /// number in another container or on another machine. `None` if the system does not tell.
    fn id() -> Option<String> {
        let stat = fs::read("/proc/self/stat").ok()?;
        // The fields behind the name of the program, which may hold any bytes. The 20th is the time at which the process began.
        let (_, stat) = std::str::from_utf8(&stat[stat.iter().rposition(|byte| *byte == b')')?..]).ok()?.split_at(1);
        let began = stat.split_whitespace().nth(19)?;
        let numbered_by = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Some(format!("{} {began} {} {boot}", std::process::id(), numbered_by.display()))
    }
}

#[cfg(not(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64")))]
mod here {
    use super::{Path, io};

    /// This system can't tell the copies apart.
    pub(in super::super) struct Only;

    impl Only {
        pub(in super::super) fn take(_folder: &Path) -> io::Result<Only> {
            Ok(Only)
        }
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android"), target_pointer_width = "64"))]
mod tests {
    use super::super::{locks, locks_copy};

    #[test]
    fn a_second_copy_of_the_library_gets_a_folder_only_when_the_first_has_closed_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let [first, second] = [(); 2].map(|()| locks::Locks::open(folder.path()).expect("one copy has it as often as it likes"));
        assert!(first.take("a").is_ok_and(|taken| taken));
        for _ in 0..2 {
            let refused = locks_copy::Locks::open(folder.path()).err().expect("is refused").to_string();
            assert!(refused.starts_with("another copy of this library"), "{refused}");
        }
        first.close();
        assert!(locks_copy::Locks::open(folder.path()).is_err());
        second.close();
        let copy = locks_copy::Locks::open(folder.path()).expect("opens");
        assert!(copy.take("a").is_ok_and(|taken| taken));
        assert!(locks::Locks::open(folder.path()).is_err());
    }
}
