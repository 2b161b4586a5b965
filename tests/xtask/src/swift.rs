//! The Swift package: its generated half, the static library, and its tests with a toolchain that is made where there is none.

use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::cargo::{bindgen, cache, is_ci, peers, printed, root, run, sandbox, target, vectors};
use crate::check::{Check, Lane, Outcome, PROGRAMS};
use crate::profile::Profile;
use crate::uniffi::{self, Kind};
use crate::{Fail, notices, paths, targets};

/// The oldest compiler that will do, and the Debian release that has one.
const OLDEST: u32 = 6;
const RELEASE: &str = "trixie";
/// The packages that are installed beside Debian's essentials; curl is for the sessions' proxies.
const PACKAGES: &str = "swiftlang,libc6-dev,libstdc++-14-dev,curl";

/// The platforms of the XCFramework, each with the Rust targets whose libraries are joined for it.
const APPLE: [&[&str]; 3] = [&["aarch64-apple-ios"], &["aarch64-apple-ios-sim"], &["aarch64-apple-darwin", "x86_64-apple-darwin"]];

const MADE: &str = "swift: the package";
const TOOLS: &str = "swift: the toolchain";

pub(crate) const CHECKS: &[Check] = &[
    Check::new(Lane::Others, TOOLS, |_| match toolchain()? {
        Toolchain::None(why) if is_ci() => Err(why.into()),
        Toolchain::None(why) => Ok(Outcome::NotRun(why)),
        _ => Ok(Outcome::ONE),
    }),
    Check::new(Lane::Others, MADE, |profile| package(profile).map(|_| Outcome::ONE))
        .needs(&[PROGRAMS, TOOLS])
        .reads(&["core", "bindings-uniffi", "tests/bindgen"])
        .makes(&["swift/Hopline"]),
    Check::new(Lane::Others, "swift: the package names no folder of this machine", |_| paths::none_in(&place()?.join("Hopline")))
        .needs(&[MADE]),
    Check::new(Lane::Others, "swift: what is measured comes to its result", |_| run(&mut measure(true)?))
        .needs(&[MADE])
        .reads(&["tests/bench/swift", "tests/bench/products.json"]),
    Check::new(Lane::Others, "swift: vectors, real HTTP, cancellation, crashes, input", |_| tests(None)).needs(&[MADE]).reads(&[
        "tests/hosts/swift",
        "tests/vectors",
        "tests/store",
        "../shared/external",
    ]),
];

/// The story of the Rust demo through the package.
pub(crate) fn demo(arguments: &[String]) -> Result<ExitCode, Fail> {
    let swift = match toolchain()? {
        Toolchain::None(why) => return Err(why.into()),
        found => found,
    };
    package(Profile::Ci)?;
    run(swift.command(&["build", "--product", "demo"])?.stdout(Stdio::null()))?;
    let mut demo = swift.command(&["run", "--skip-build", "demo"])?;
    Ok(if demo.args(arguments).status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the package, for which no Swift is needed, and returns its folder.
pub(crate) fn package(profile: Profile) -> Result<PathBuf, Fail> {
    let (package, made) = (place()?.join("Hopline"), place()?.join("made"));
    std::fs::create_dir_all(made.join("printed"))?;
    bindgen(&[Path::new("swift"), &made.join("printed")])?;
    notices::write("hopline-uniffi", &made)?;
    // Kotlin's library, since the static one is no file that uniffi can read.
    uniffi::bind("swift", &uniffi::library(Kind::Dynamic, None, profile)?, &made)?;
    let library = stripped(&uniffi::library(Kind::Static, None, profile)?)?;
    // Swift's package manager does not see that a library has changed, but that a source has, and links again.
    let mut digest = std::hash::DefaultHasher::new();
    std::fs::read(&library)?.hash(&mut digest);
    let stamp = format!(
        "/* So that programs are linked again with another library. */\nconst char hopline_library[] = \"{:016x}\";\n",
        digest.finish()
    );
    std::fs::write(made.join("library.c"), stamp)?;
    let mut kept = vec![
        (made.join(notices::FILE), notices::FILE.into()),
        (made.join("library.c"), "Sources/HoplineFFI/library.c".into()),
        (library, "lib/libhopline_uniffi.a".into()),
        (made.join("HoplineFFI.h"), "Sources/HoplineFFI/include/HoplineFFI.h".into()),
        (made.join("HoplineCore.swift"), "Sources/HoplineCore/HoplineCore.swift".into()),
    ];
    let printed = made.join("printed");
    kept.extend(files(&printed)?.into_iter().map(|inside| (printed.join(&inside), Path::new("Sources/Hopline").join(inside))));
    let hand = root().join("bindings-uniffi/swift");
    kept.extend(files(&hand)?.into_iter().map(|inside| (hand.join(&inside), inside)));
    // Unchanged files are left as they are, so that only changed ones are built again.
    for gone in files(&package).unwrap_or_default().into_iter().filter(|old| kept.iter().all(|(_, new)| new != old)) {
        std::fs::remove_file(package.join(gone))?;
    }
    for (from, inside) in kept {
        let (text, to) = (std::fs::read(from)?, package.join(inside));
        if std::fs::read(&to).ok().as_ref() != Some(&text) {
            std::fs::create_dir_all(to.parent().unwrap_or(&package))?;
            std::fs::write(to, text)?;
        }
    }
    if cfg!(target_os = "macos") {
        xcframework(&package, profile)?;
    }
    Ok(package)
}

/// Makes the XCFramework that the manifest takes on a Mac. Not run so far, since it needs one.
fn xcframework(package: &Path, profile: Profile) -> Result<(), Fail> {
    let (made, framework) = (place()?.join("made/apple"), package.join("HoplineFFI.xcframework"));
    // In a folder of the module's name: Xcode copies the headers of all frameworks of an app into one folder.
    let headers = made.join("Headers");
    std::fs::create_dir_all(headers.join("HoplineFFI"))?;
    for name in ["HoplineFFI.h", "module.modulemap"] {
        std::fs::copy(package.join("Sources/HoplineFFI/include").join(name), headers.join("HoplineFFI").join(name))?;
    }
    let mut join = Command::new("xcodebuild");
    join.arg("-create-xcframework");
    for targets in APPLE {
        let folder = made.join(targets.join("+"));
        std::fs::create_dir_all(&folder)?;
        let whole = folder.join("libhopline_uniffi.a");
        let mut lipo = Command::new("lipo");
        for target in targets {
            run(Command::new("rustup").args(["target", "add", target]))?;
            lipo.arg(uniffi::library(Kind::Static, Some(target), profile)?);
        }
        run(lipo.args(["-create", "-output"]).arg(&whole))?;
        run(Command::new("strip").arg("-S").arg(&whole))?;
        join.arg("-library").arg(whole).arg("-headers").arg(&headers);
    }
    if framework.exists() {
        std::fs::remove_dir_all(&framework)?;
    }
    run(join.arg("-output").arg(framework)).map(|_| ())
}

/// The size of the package, in bytes.
pub(crate) fn sizes() -> Result<crate::weight::Weighed, Fail> {
    let mut weighed = vec![("swift .a", std::fs::metadata(package(Profile::Release)?.join("lib/libhopline_uniffi.a"))?.len())];
    let ios = targets::IOS;
    // A target that can't be had is said by rustup, and is no reason to weigh nothing.
    if Command::new("rustup").args(["target", "add", ios]).stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        weighed.push(("iOS .a, whole", std::fs::metadata(uniffi::library(Kind::Static, Some(ios), Profile::Release)?)?.len()));
    }
    Ok(weighed)
}

/// The library without what only a debugger reads.
fn stripped(library: &Path) -> Result<PathBuf, Fail> {
    let stripped = place()?.join("made/libhopline_uniffi.a");
    std::fs::copy(library, &stripped)?;
    run(Command::new("strip").arg(if cfg!(target_os = "macos") { "-S" } else { "--strip-debug" }).arg(&stripped))?;
    Ok(stripped)
}

/// `swift test` over all tests, or over those that match a pattern, which it counts.
pub(crate) fn tests(only: Option<&str>) -> Result<Outcome, Fail> {
    let swift = toolchain()?;
    // The hand-written half has no warnings, and neither has the generated one.
    run(&mut swift.command(&["build", "--build-tests", "-Xswiftc", "-warnings-as-errors"])?)?;
    let mut tests = swift.command(&["test", "--skip-build", "-Xswiftc", "-warnings-as-errors"])?;
    let (status, text) = printed(tests.args(only.iter().flat_map(|pattern| ["--filter", pattern])))?;
    let count =
        |mark: &str| text.lines().filter(|line| line.strip_prefix(mark).is_some_and(|rest| rest.starts_with(" Test \""))).count() as u32;
    let ended = |word: &str| text.lines().filter(|line| line.contains("Test \"") && line.contains(word)).count() as u32;
    let (passed, failed, ignored) = (ended("\" passed after"), ended("\" failed after"), count("➜"));
    match status.success() {
        true if passed > 0 && failed == 0 => Ok(Outcome::Counted { passed, failed, ignored }),
        false if failed > 0 => Ok(Outcome::Counted { passed, failed, ignored }),
        _ => Err(format!("it ended with {status}").into()),
    }
}

/// The measuring program, with a package as it ships.
pub(crate) fn bench() -> Result<Command, Fail> {
    package(Profile::Release)?;
    measure(false)
}

/// The measuring program, with the package that was made: for a figure, or once for the result.
fn measure(once: bool) -> Result<Command, Fail> {
    let (swift, folder) = (toolchain()?, "tests/bench/swift");
    run(swift.command_in(folder, "bench", &["build", "-c", "release"])?.stdout(Stdio::null()))?;
    let mut measure = swift.command_in(folder, "bench", &["run", "-c", "release", "--skip-build", "bench"])?;
    measure.arg(root().join("tests/bench/products.json")).arg(env!("CARGO_PKG_VERSION")).args(once.then_some("--once"));
    Ok(measure)
}

/// Where Swift is to be had.
enum Toolchain {
    /// On the PATH.
    Here,
    /// In a Debian of its own, in that folder.
    In(PathBuf),
    /// Nowhere, and why.
    None(String),
}

impl Toolchain {
    /// `swift` in the folder of the tests, with what they need to know.
    fn command(&self, arguments: &[&str]) -> Result<Command, Fail> {
        self.command_in("tests/hosts/swift", "build", arguments)
    }

    /// `swift` in a folder of the repository; what it builds goes into a folder of that name.
    fn command_in(&self, folder: &str, built: &str, arguments: &[&str]) -> Result<Command, Fail> {
        let (tests, place) = (root().join(folder), place()?);
        let vectors = vectors()?;
        let mut command = match self {
            Toolchain::In(debian) => {
                // The mounts are this command's alone, and go with it. Inside, every path is the same as outside.
                let mut shown = vec![root().to_owned(), target()?, vectors.clone()];
                // Test data of others, where it lies beside the repository.
                shown.extend(root().parent().map(|beside| beside.join("shared/external")).filter(|folder| folder.exists()));
                for folder in &shown {
                    std::fs::create_dir_all(inside(debian, folder))?;
                }
                let mounts: Vec<String> =
                    shown.iter().map(|folder| format!("mount --bind {} {}", quoted(folder), quoted(&inside(debian, folder)))).collect();
                let script = format!(
                    "{} && exec chroot {} /usr/bin/env HOME=/ sh -c 'cd \"$0\" && exec \"$@\"' \"$0\" \"$@\"",
                    mounts.join(" && "),
                    quoted(debian)
                );
                let mut command = Command::new("unshare");
                command.args(["--mount", "--pid", "--fork"]).arg(format!("--mount-proc={}", debian.join("proc").display()));
                command.args(["sh", "-c", &script]).arg(&tests).arg("swift");
                command
            }
            _ => {
                let mut command = Command::new("swift");
                command.current_dir(&tests);
                command
            }
        };
        let (verb, rest) = arguments.split_first().ok_or("swift needs a command")?;
        command.args([verb, "--scratch-path"]).arg(place.join(built)).args(rest);
        command.env("HOPLINE_PACKAGE", place.join("Hopline")).env("HOPLINE_SANDBOX", sandbox()?).env("HOPLINE_PEERS", peers()?);
        command.env("HOPLINE_VECTORS", vectors);
        Ok(command)
    }
}

/// Finds Swift, or makes a Debian that has it.
fn toolchain() -> Result<Toolchain, Fail> {
    let told = Command::new("swift").arg("--version").stderr(Stdio::null()).output().ok();
    let version = told
        .and_then(|told| String::from_utf8(told.stdout).ok())
        .and_then(|told| told.split("Swift version ").nth(1)?.split('.').next()?.parse::<u32>().ok());
    match version {
        Some(OLDEST..) => return Ok(Toolchain::Here),
        Some(old) => return Ok(Toolchain::None(format!("Swift {old} is too old; Swift {OLDEST} or later is needed"))),
        None => {}
    }
    let sources = Path::new("/etc/apt/sources.list.d/debian.sources");
    let may = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !may || !sources.exists() {
        let why = "Swift is not installed, and to make a Debian that has it takes Debian itself and the right to mount";
        return Ok(Toolchain::None(format!("{why}; put Swift {OLDEST} or later on the PATH")));
    }
    let debian = cache()?.join(format!("swift-{RELEASE}"));
    if !debian.exists() {
        make(&debian, sources)?;
    }
    Ok(Toolchain::In(debian))
}

/// Makes the Debian under another name, so that one that broke off is not taken for a whole one.
fn make(debian: &Path, sources: &Path) -> Result<(), Fail> {
    println!("making a Debian {RELEASE} with Swift in {}, 2.5 GB, once", debian.display());
    if Command::new("mmdebstrap").arg("--version").stdout(Stdio::null()).status().is_err() {
        run(Command::new("apt-get").args(["update", "--quiet"]))?;
        run(Command::new("apt-get").args(["install", "--yes", "--quiet", "mmdebstrap"]).env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    let listed = std::fs::read_to_string(sources)?;
    let mirror = listed.lines().find_map(|line| line.strip_prefix("URIs:")?.split_whitespace().next()).ok_or("apt names no mirror")?;
    let part = debian.with_extension("part");
    if part.exists() {
        std::fs::remove_dir_all(&part)?;
    }
    std::fs::create_dir_all(debian.parent().unwrap_or(debian))?;
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--variant=apt", "--aptopt=Acquire::Languages \"none\""]);
    for unread in ["doc", "man", "locale"] {
        command.arg(format!("--dpkgopt=path-exclude=/usr/share/{unread}/*"));
    }
    // The mirror is not said, since it is nobody's business.
    if !command.arg(format!("--include={PACKAGES}")).arg(RELEASE).arg(&part).arg(mirror).status()?.success() {
        return Err("the Debian with Swift could not be made; what mmdebstrap said is above".into());
    }
    Ok(std::fs::rename(part, debian)?)
}

/// Where a folder of ours is inside the Debian.
fn inside(debian: &Path, folder: &Path) -> PathBuf {
    debian.join(folder.strip_prefix("/").unwrap_or(folder))
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Where all that is made for Swift lies.
fn place() -> Result<PathBuf, Fail> {
    Ok(target()?.join("swift"))
}

/// The files below a folder, by their paths in it.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Fail> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = PathBuf::from(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => found.extend(files(&entry.path())?.into_iter().map(|inside| name.join(inside))),
            false => found.push(name),
        }
    }
    Ok(found)
}
