//! The sandbox against its own OpenAPI document, by a tool that knows nothing of either: what the table says and what the
//! service does were written apart.

use std::path::PathBuf;
use std::process::Command;

use crate::Fail;
use crate::cargo::{printed, root, target};
use crate::check::{Check, Lane, Outcome, PROGRAMS};
use crate::examples::Sandbox;
use crate::python::{environment, missing};

/// An account that neither runs dry nor is throttled, and sessions that are ready at once.
const ACCOUNT: &[&str] =
    &["--seed", "7", "--balance", "100000000", "--rate-limit", "4000000000", "--session-limit", "4000000", "--provisioning-ms", "0"];

const READS: &[&str] = &["tests/sandbox"];

/// The checks of it, one for each API.
pub(crate) const CHECKS: &[Check] = &[
    Check::new(Lane::Others, TOOL, |_| match missing()? {
        Some(why) => Ok(Outcome::NotRun(why)),
        None => tool().map(|_| Outcome::ONE),
    })
    .reads(&["tests/sandbox/requirements.txt"])
    .makes(&["schemathesis/requirements.txt"]),
    Check::new(Lane::Python, "schemathesis: the sandbox against its openapi document of the agent API", |_| conformance(Side::Agent))
        .needs(&[PROGRAMS, TOOL])
        .reads(READS),
    Check::new(Lane::Python, "schemathesis: the sandbox against its openapi document of the reseller API", |_| conformance(Side::Reseller))
        .needs(&[PROGRAMS, TOOL])
        .reads(READS),
];

const TOOL: &str = "schemathesis itself";

/// Installs it where it is missing, and returns its Python.
fn tool() -> Result<PathBuf, Fail> {
    environment(&folder().join("requirements.txt"), &target()?.join("schemathesis"))
}

/// A side of the sandbox.
#[derive(Clone, Copy)]
enum Side {
    Agent,
    Reseller,
}

/// Runs schemathesis as its configuration in `tests/sandbox` says, and counts the requests.
fn conformance(side: Side) -> Result<Outcome, Fail> {
    let sandbox = Sandbox::start(ACCOUNT)?;
    let mut tool = Command::new(tool()?);
    let (configuration, hooks, url) = match side {
        Side::Agent => ("schemathesis.toml", "schemathesis_hooks.py", &sandbox.agent_url),
        Side::Reseller => ("schemathesis-backend.toml", "schemathesis_backend_hooks.py", &sandbox.backend_url),
    };
    let [username, password] = &sandbox.login;
    tool.args(["-m", "schemathesis.cli", "--no-color", "--config-file"]).arg(folder().join(configuration));
    tool.arg("run").arg(format!("{url}/openapi.json")).args(["--continue-on-failure", "--warnings", "off"]);
    tool.env("HOPLINE_API_KEY", &sandbox.api_key).env("SCHEMATHESIS_HOOKS", folder().join(hooks));
    tool.env("HOPLINE_BACKEND_URL", url).env("HOPLINE_USERNAME", username).env("HOPLINE_PASSWORD", password);
    tool.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("PYTHONPATH").current_dir(target()?.join("schemathesis"));
    let (status, text) = printed(&mut tool)?;
    let passed = generated(&text).ok_or_else(|| format!("it made no request, and ended with {status}"))?;
    if status.success() {
        Ok(Outcome::Counted { passed, failed: 0, ignored: 0 })
    } else {
        Err("the service and its document disagree; the cases are above".into())
    }
}

/// How many requests were made, of a line such as `1508 generated, 1508 passed, 30 skipped`.
fn generated(text: &str) -> Option<u32> {
    text.lines().find_map(|line| line.trim().split_once(" generated")?.0.parse().ok()).filter(|made| *made > 0)
}

fn folder() -> PathBuf {
    root().join("tests/sandbox")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_and_none_at_all_is_a_failure() {
        assert_eq!(generated("Test cases:\n  1508 generated, 1508 passed, 30 skipped\n"), Some(1508));
        assert_eq!(generated("  0 generated, 0 passed"), None);
        assert_eq!(generated("Error"), None);
    }
}
