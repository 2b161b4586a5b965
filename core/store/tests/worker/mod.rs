//! Another process that has a folder open: this crate's own program.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Worker {
    child: Child,
    calls: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_hopline-store-by-hand");

impl Worker {
    pub(crate) fn open(folder: &Path) -> Worker {
        let mut worker = Worker::start(Command::new(PROGRAM).arg(folder));
        assert_eq!(worker.hear(), "open");
        worker
    }

    pub(crate) fn start(command: &mut Command) -> Worker {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let (calls, answers) = (child.stdin.take().expect("is piped"), child.stdout.take().expect("is piped"));
        Worker { child, calls, answers: BufReader::new(answers) }
    }

    /// Makes a call and returns its answer.
    pub(crate) fn ask(&mut self, call: &str) -> String {
        self.tell(&format!("{call}\n"));
        self.hear()
    }

    pub(crate) fn tell(&mut self, calls: &str) {
        self.calls.write_all(calls.as_bytes()).expect("it reads");
    }

    /// The next answer; empty when the process has ended.
    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("is text");
        line.trim_end().to_owned()
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let process = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(process, signal).expect("it lives");
    }

    /// Kills the process, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A name of the kind for intents.
pub(crate) fn name(number: u32) -> String {
    format!("5e.i{number:032x}")
}
