//! The things that a story would leave behind: one folder and one process. Both go however it ends.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

/// Shared by the story and whoever interrupts it.
#[derive(Clone)]
pub(crate) struct Tidy(Arc<Mutex<Left>>);

struct Left {
    folder: PathBuf,
    child: Option<Child>,
    /// True if all is over, and nothing may begin any more.
    over: bool,
}

impl Tidy {
    pub(crate) fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("hopline-demo-{}", std::process::id()));
        Tidy(Arc::new(Mutex::new(Left { folder, child: None, over: false })))
    }

    /// A folder for this story alone.
    pub(crate) fn folder(&self) -> io::Result<PathBuf> {
        let left = self.open()?;
        std::fs::create_dir_all(&left.folder)?;
        Ok(left.folder.clone())
    }

    /// Starts a process and returns its id.
    pub(crate) fn start(&self, command: &mut Command) -> io::Result<u32> {
        let mut left = self.open()?;
        let child = left.child.insert(command.spawn()?);
        Ok(child.id())
    }

    /// How the process ended, if it did.
    pub(crate) fn ended(&self) -> io::Result<Option<ExitStatus>> {
        self.open()?.child.as_mut().map_or(Ok(None), Child::try_wait)
    }

    /// Waits for the process.
    pub(crate) fn wait(&self) -> io::Result<ExitStatus> {
        loop {
            // The lock is free meanwhile, so that an interrupt gets through.
            match self.ended()? {
                Some(status) => return Ok(status),
                None => sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Kills the process, with no chance for it to do anything about it.
    pub(crate) fn kill(&self) -> io::Result<ExitStatus> {
        let mut left = self.open()?;
        let child = left.child.as_mut().ok_or_else(|| io::Error::other("there is no process to kill"))?;
        child.kill()?;
        child.wait()
    }

    /// Clears up, for good.
    pub(crate) fn up(&self) {
        let mut left = self.lock();
        left.over = true;
        if let Some(mut child) = left.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&left.folder);
    }

    fn open(&self) -> io::Result<MutexGuard<'_, Left>> {
        let left = self.lock();
        if left.over { Err(io::Error::other("the demo is over")) } else { Ok(left) }
    }

    fn lock(&self) -> MutexGuard<'_, Left> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
