//! What a store says when it can't do what it was asked.

use std::fmt;
use std::io;
use std::path::Path;

/// Why a call has no answer. Each prints as one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The folder is not one that this store may use: it has another format, or holds something else.
    Format(String),
    /// The call failed. It may be done, or not; repeat it to be sure.
    Failed(String),
    /// The call was wrong: a name that is not one, a client that is closed, or a client that was taken into a forked process.
    Misuse(String),
}

impl Error {
    /// What was tried with a file or folder, and what the operating system said.
    pub(crate) fn io(tried: &str, path: &Path, error: &io::Error) -> Error {
        Error::Failed(format!("could not {tried} `{}`: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::Format(sentence) | Error::Failed(sentence) | Error::Misuse(sentence)) = self;
        f.write_str(sentence)
    }
}

impl std::error::Error for Error {}
