//! Programs that are Debian packages, installed where that can be done.

use std::path::PathBuf;
use std::process::Command;

use crate::Fail;
use crate::cargo::is_ci;
use crate::check::{Check, Lane, Outcome};

/// The name of what brings nginx.
pub(crate) const NGINX: &str = "nginx, which the sandbox starts as a gateway";

pub(crate) const CHECK: Check = Check::new(Lane::Fetched, NGINX, 300, |_| nginx());

/// Without it the tests that go through a gateway are skipped, which is a failure where all is to be checked.
fn nginx() -> Result<Outcome, Fail> {
    let found = || std::env::var_os("HOPLINE_NGINX").map(PathBuf::from).or_else(|| program(&["nginx"]));
    match found().or_else(|| installed("nginx").then(found).flatten()) {
        Some(_) => Ok(Outcome::ONE),
        None => {
            let why = "nginx is not installed; HOPLINE_NGINX may name the program";
            println!("{why}");
            // The other tests go on without.
            if is_ci() { Err(why.into()) } else { Ok(Outcome::Counted { passed: 0, failed: 0, ignored: 1 }) }
        }
    }
}

/// The first program that is found by one of those names. Debian has some where only root looks.
pub(crate) fn program(names: &[&str]) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&folders).chain([PathBuf::from("/usr/sbin")]);
    folders.flat_map(|folder| names.iter().map(move |name| folder.join(name))).find(|path| path.is_file())
}

/// Installs a package of Debian's, where this is one and we may.
pub(crate) fn installed(package: &str) -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|told| told.stdout == b"0\n");
    let get = |arguments: &[&str]| {
        println!("apt-get {}", arguments.join(" "));
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command.status().is_ok_and(|status| status.success())
    };
    let install = ["install", "--yes", "--no-install-recommends", package];
    root && (get(&install) || (get(&["update"]) && get(&install)))
}
