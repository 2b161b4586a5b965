//! The binding for Kotlin and Swift: its libraries, and what they tell of what crosses.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::Fail;
use crate::cargo::{bindgen, cargo, run, target};
use crate::paths;
use crate::profile::Profile;

/// A kind of library.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Dynamic,
    Static,
}

/// Builds the library, which is not stripped, since what crosses is described in its symbols. One kind at a time, or
/// link-time optimization is lost.
pub(crate) fn library(kind: Kind, system: Option<&str>, profile: Profile) -> Result<PathBuf, Fail> {
    let (crate_type, name) = match kind {
        Kind::Dynamic => ("cdylib", name()),
        Kind::Static => ("staticlib", "libhopline_uniffi.a".to_owned()),
    };
    let mut build = cargo(&["rustc", "--package", "hopline-uniffi", "--profile", profile.name(), "--lib", "--crate-type", crate_type]);
    build.args(system.map(|system| format!("--target={system}")));
    run(paths::leave_out(&mut build)?)?;
    Ok(target()?.join(system.unwrap_or_default()).join(profile.name()).join(name))
}

/// The file name of the dynamic library.
pub(crate) fn name() -> String {
    format!("{}hopline_uniffi{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// Writes a host's half of what crosses.
pub(crate) fn bind(host: &str, library: &Path, folder: &Path) -> Result<(), Fail> {
    bindgen(&[OsStr::new("uniffi"), OsStr::new(host), library.as_os_str(), folder.as_os_str()]).map(|_| ())
}
