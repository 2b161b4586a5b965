//! The jar: built, put into a repository of its own, and tested from there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::cargo::{bindgen, is_ci, peers, root, run, sandbox, target, vectors};
use crate::check::{Check, Lane, Outcome, PROGRAMS};
use crate::profile::Profile;
use crate::uniffi::{self, Kind};
use crate::{Fail, junit, notices, paths};

/// The sources of the jar, and the inputs of its tests.
const PACKAGE: &[&str] = &["core", "bindings-uniffi", "tests/bindgen"];
const TESTS: &[&str] = &["tests/hosts/kotlin", "tests/vectors", "tests/store", "../shared/external"];
const MADE: &str = "kotlin: the jar";

pub(crate) const CHECKS: &[Check] = &[
    Check::new(Lane::Others, MADE, |profile| match missing()? {
        Some(why) => Ok(Outcome::NotRun(why)),
        None => install(profile).map(|()| Outcome::ONE),
    })
    .needs(&[PROGRAMS])
    .reads(PACKAGE)
    .makes(&["kotlin/repository"]),
    Check::new(Lane::Others, "kotlin: the jar names no folder of this machine", |_| paths::none_in(&unpacked()?)).needs(&[MADE]),
    Check::new(Lane::Others, "kotlin: what is measured comes to its result", |_| run(&mut measure(true)?))
        .needs(&[MADE])
        .reads(&["tests/bench/kotlin", "tests/bench/products.json"]),
    Check::new(Lane::Others, "kotlin: vectors, real HTTP, cancellation, crashes, input", |_| tests(None)).needs(&[MADE]).reads(TESTS),
];

/// The stories of the Rust demo through the package.
pub(crate) fn demo(arguments: &[String]) -> Result<ExitCode, Fail> {
    if let Some(why) = missing()? {
        return Err(why.into());
    }
    install(Profile::Ci)?;
    let mut demo = project(&["test-compile", "exec:exec"])?;
    demo.arg(format!("-Dexec.args=-cp %classpath hopline.host.Demo {}", arguments.join(" ")));
    demo.env("HOPLINE_SANDBOX", sandbox()?);
    Ok(if demo.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the package and returns its jar.
pub(crate) fn package(profile: Profile) -> Result<PathBuf, Fail> {
    if let Some(why) = missing()? {
        return Err(why.into());
    }
    generate(profile)?;
    let repository = place()?.join("repository");
    if repository.exists() {
        std::fs::remove_dir_all(&repository)?;
    }
    let mut maven = maven(&["deploy"], &root().join("bindings-uniffi/kotlin"));
    maven.arg(property("hopline.target", place()?.join("module")));
    run(maven.arg(format!("-DaltDeploymentRepository=hopline::{}", url(&repository))))?;
    jar()
}

fn jar() -> Result<PathBuf, Fail> {
    Ok(place()?.join(concat!("module/hopline-", env!("CARGO_PKG_VERSION"), ".jar")))
}

/// The jar's files.
fn unpacked() -> Result<PathBuf, Fail> {
    let unpacked = place()?.join("unpacked");
    if unpacked.exists() {
        std::fs::remove_dir_all(&unpacked)?;
    }
    std::fs::create_dir_all(&unpacked)?;
    run(Command::new("jar").args(["--extract", "--file"]).arg(jar()?).current_dir(&unpacked))?;
    Ok(unpacked)
}

/// The size of the package, in bytes.
pub(crate) fn sizes() -> Result<crate::weight::Weighed, Fail> {
    let jar = package(Profile::Release)?;
    let library = generated().join("resources").join(platform()?).join(uniffi::name());
    Ok(vec![("jar", std::fs::metadata(jar)?.len()), ("jar's library", std::fs::metadata(library)?.len())])
}

/// Prints what the jar is made of: the types and operations, the binding's own Kotlin, the native library.
fn generate(profile: Profile) -> Result<(), Fail> {
    let made = generated();
    let native = made.join("resources").join(platform()?);
    for folder in [&made.join("printed"), &made.join("binding"), &native] {
        std::fs::create_dir_all(folder)?;
    }
    let whole = uniffi::library(Kind::Dynamic, None, profile)?;
    bindgen(&[Path::new("kotlin"), &made.join("printed")])?;
    notices::write("hopline-uniffi", &made.join("resources/META-INF"))?;
    uniffi::bind("kotlin", &whole, &made.join("binding"))?;
    // The shipped library is stripped, once the boundary was read from it.
    let shipped = native.join(uniffi::name());
    std::fs::copy(&whole, &shipped)?;
    match cfg!(windows) {
        true => Ok(()),
        false => run(Command::new("strip").arg(if cfg!(target_os = "macos") { "-x" } else { "--strip-all" }).arg(shipped)).map(|_| ()),
    }
}

/// Makes the package, and takes away what Maven remembers of an earlier one.
fn install(profile: Profile) -> Result<(), Fail> {
    package(profile)?;
    let remembered = local_repository().join("dev/hopline/hopline");
    if remembered.exists() {
        std::fs::remove_dir_all(remembered)?;
    }
    Ok(())
}

/// The measuring program, with a jar as it ships.
pub(crate) fn bench() -> Result<Command, Fail> {
    install(Profile::Release)?;
    measure(false)
}

/// The measuring program, with the jar that was put into the repository: for a figure, or once for the result.
fn measure(once: bool) -> Result<Command, Fail> {
    let mut measure = maven(&["compile", "exec:exec"], &root().join("tests/bench/kotlin"));
    measure
        .arg(property("hopline.target", place()?.join("bench")))
        .arg(format!("-Dhopline.repository={}", url(&place()?.join("repository"))))
        .arg(format!("-Dhopline.scale={}", if once { "--once" } else { "" }));
    Ok(measure)
}

/// Surefire over all tests, or over those of one class or `Class#method`.
pub(crate) fn tests(only: Option<&str>) -> Result<Outcome, Fail> {
    let mut tests = project(&["test"])?;
    tests.args(only.map(|words| format!("-Dtest={words}")));
    tests.env("HOPLINE_VECTORS", vectors()?).env("HOPLINE_SANDBOX", sandbox()?).env("HOPLINE_PEERS", peers()?);
    tests.env("HOPLINE_README", root().join("bindings-uniffi/kotlin/README.md"));
    junit::counted(&place()?.join("tests/surefire-reports"), &mut tests)
}

/// The missing tool, if any, which is a failure where everything is to be checked.
fn missing() -> Result<Option<String>, Fail> {
    let why = match java() {
        None => "Java is not installed; a JDK 17 or later is needed".to_owned(),
        Some(old @ ..17) => format!("Java {old} is too old; a JDK 17 or later is needed"),
        Some(_) if !succeeds(mvn(), "--version") => "Maven is not installed".to_owned(),
        Some(_) if !cfg!(windows) && !succeeds("strip", "--version") => "`strip` of the binutils is not installed".to_owned(),
        Some(_) => return Ok(None),
    };
    if is_ci() { Err(why.into()) } else { Ok(Some(why)) }
}

/// The version of Java: 17 of `openjdk version "17.0.15"`, which is printed on standard error.
fn java() -> Option<u32> {
    let told = Command::new("java").arg("-version").output().ok()?;
    let text = String::from_utf8_lossy(&told.stderr).into_owned();
    text.split('"').nth(1)?.split(['.', '-']).next()?.parse().ok()
}

fn succeeds(program: &str, argument: &str) -> bool {
    let status = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Maven in the project of the tests.
fn project(goals: &[&str]) -> Result<Command, Fail> {
    let mut maven = maven(goals, &root().join("tests/hosts/kotlin"));
    maven
        .arg(property("hopline.target", place()?.join("tests")))
        .arg(format!("-Dhopline.repository={}", url(&place()?.join("repository"))));
    Ok(maven)
}

/// Returns Maven, as quiet as possible, and without a compiler that goes on running. The downloads stay in its own cache.
fn maven(goals: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(mvn());
    command
        .args(["--quiet", "--batch-mode", "--no-transfer-progress", "-Dstyle.color=never", "-Dkotlin.compiler.daemon=false"])
        .args(goals)
        .current_dir(folder);
    // Cargo names its own folders there, whose library JNA would take before that of the jar.
    for path in ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"] {
        command.env_remove(path);
    }
    command
}

fn mvn() -> &'static str {
    if cfg!(windows) { "mvn.cmd" } else { "mvn" }
}

/// Where Maven keeps what it has fetched.
fn local_repository() -> PathBuf {
    let home = std::env::var_os(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
    PathBuf::from(home.unwrap_or_default()).join(".m2/repository")
}

/// The folder of this platform among JNA's resources.
fn platform() -> Result<String, Fail> {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x86-64",
        "aarch64" => "aarch64",
        other => return Err(format!("nobody has tried the jar on {other}").into()),
    };
    Ok(format!("{system}-{machine}"))
}

fn property(name: &str, path: PathBuf) -> OsString {
    let mut argument = OsString::from(format!("-D{name}="));
    argument.push(path);
    argument
}

fn url(path: &Path) -> String {
    let path = path.to_string_lossy().replace('\\', "/");
    format!("file://{}{path}", if path.starts_with('/') { "" } else { "/" })
}

/// The printed files lie in the tree, where git ignores them and an editor finds them.
fn generated() -> PathBuf {
    root().join("bindings-uniffi/kotlin/gen")
}

/// Where all that is made for Kotlin lies.
fn place() -> Result<PathBuf, Fail> {
    Ok(target()?.join("kotlin"))
}
