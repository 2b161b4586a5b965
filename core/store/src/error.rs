//! The errors of stores.

use std::fmt;
use std::io;
use std::path::Path;

/// The reason why a call has no answer. Each prints as one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The folder is not one that this store may use: it has another format, or holds other files.
    Format(String),
    /// The call failed and may or may not have been done; repeat it to be sure.
    Failed(String),
    /// The call was wrong: an invalid name, a closed client, or a client that was carried into a forked process.
    Misuse(String),
}

impl Error {
    /// The error of a file or folder: the attempt, and the operating system's message.
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
