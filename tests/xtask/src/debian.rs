//! Programs that are Debian packages, installed where that can be done.

use std::path::PathBuf;
use std::process::Command;

use crate::Fail;
use crate::cargo::is_ci;
use crate::check::{Check, Lane, Outcome};

/// The name of what brings nginx.
pub(crate) const NGINX: &str = "nginx, which the sandbox starts as a gateway";
/// The name of what brings certutil.
pub(crate) const CERTUTIL: &str = "certutil, which tells Chromium whom to trust";

/// The name of what brings PostgreSQL.
pub(crate) const POSTGRES: &str = "PostgreSQL, whose database is a store";
/// The name of what brings PgBouncer.
pub(crate) const PGBOUNCER: &str = "PgBouncer, which stands before that database";
/// The name of what brings Redis.
pub(crate) const REDIS: &str = "Redis, through which a fleet of Celery gets its tasks";
/// The name of what brings chromedriver, and Chromium with it.
pub(crate) const CHROMEDRIVER: &str = "chromedriver, by which Selenium drives Chromium";

pub(crate) const CHECKS: [Check; 6] = [
    Check::new(Lane::Others, NGINX, |_| brought("nginx", "nginx")),
    Check::new(Lane::Others, CERTUTIL, |_| brought("certutil", "libnss3-tools")),
    Check::new(Lane::Others, POSTGRES, |_| brought("postgres", "postgresql")),
    Check::new(Lane::Others, PGBOUNCER, |_| brought("pgbouncer", "pgbouncer")),
    Check::new(Lane::Others, REDIS, |_| brought("redis-server", "redis-server")),
    Check::new(Lane::Others, CHROMEDRIVER, |_| brought("chromedriver", "chromium-driver")),
];

/// Installs a program that some tests need. Without it they are skipped, which is a failure where all is to be checked.
fn brought(name: &str, package: &str) -> Result<Outcome, Fail> {
    let variable = format!("HOPLINE_{}", name.to_uppercase().replace('-', "_"));
    let found = || std::env::var_os(&variable).map(PathBuf::from).or_else(|| program(&[name]));
    if found().or_else(|| installed(package).then(found).flatten()).is_some() {
        return Ok(Outcome::ONE);
    }
    let why = format!("{name} is not installed; {variable} may name the program");
    println!("{why}");
    // The tests that are skipped say so themselves, and the others go on without.
    if is_ci() { Err(why.into()) } else { Ok(Outcome::Counted { passed: 0, failed: 0, ignored: 0 }) }
}

/// The first program that is found by one of those names. Debian has some where only root looks.
pub(crate) fn program(names: &[&str]) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&folders).chain([PathBuf::from("/usr/sbin")]).chain(of_postgres());
    folders.flat_map(|folder| names.iter().map(move |name| folder.join(name))).find(|path| path.is_file())
}

/// The folders of PostgreSQL's own programs, one a version.
fn of_postgres() -> impl Iterator<Item = PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin"))
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
