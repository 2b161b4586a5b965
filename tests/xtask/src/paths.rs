//! A package must name no folder of the machine that built it: the compiler is told to leave them out, and a test checks.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{root, target};
use crate::check::Outcome;
use crate::{Fail, notices};

/// Lets a build that ships name its sources by short names: panics and debug data would hold this machine's folders.
/// All hosts get the same flags, so that what they share is built once.
pub(crate) fn leave_out(build: &mut Command) -> Result<&mut Command, Fail> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"))?).join(".cargo")));
    // Of two that fit, rustc takes the later one, and the target folder may lie below the root.
    let named = [(Some(root().to_owned()), "hopline"), (home, "cargo"), (Some(target()?), "target")];
    let flags = named.into_iter().filter_map(|(folder, name)| Some(format!("--remap-path-prefix={}={name}", folder?.display())));
    // The short form of SHA-256, which few bytes are hashed by.
    let flags = flags.chain(["--cfg=sha2_backend_soft=\"compact\"".to_owned()]);
    // With this separator a folder may have a blank in its name.
    Ok(build.env("CARGO_ENCODED_RUSTFLAGS", flags.collect::<Vec<_>>().join("\u{1f}")))
}

/// Looks at every file of a package, as it is after unpacking, for folders of this machine, and expects the texts of its licences among them.
pub(crate) fn none_in(package: &Path) -> Result<Outcome, Fail> {
    let home = std::env::var("HOME").or_else(|_| std::env::var("USERPROFILE")).ok().filter(|home| home.len() > 1);
    let mut folders = vec![root().display().to_string(), target()?.display().to_string()];
    folders.extend(home.map(|home| format!("{home}{}", std::path::MAIN_SEPARATOR)));
    let (files, found) = search(package, &folders)?;
    match found.as_slice() {
        _ if !files.iter().any(|file| file.ends_with(notices::FILE)) => {
            Err(format!("{} has no {}", package.display(), notices::FILE).into())
        }
        [] => Ok(Outcome::ONE),
        _ => Err(format!("the package names folders of this machine: {}", found.join(", ")).into()),
    }
}

/// The files below a folder, and which of them hold one of those texts.
fn search(folder: &Path, texts: &[String]) -> Result<(Vec<PathBuf>, Vec<String>), Fail> {
    let (mut files, mut found) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            let (more, inside) = search(&path, texts)?;
            files.extend(more);
            found.extend(inside);
            continue;
        }
        let bytes = std::fs::read(&path)?;
        let holds = |text: &String| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        found.extend(texts.iter().find(|text| holds(text)).map(|text| format!("{} has {text}", path.display())));
        files.push(path);
    }
    Ok((files, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_names_a_folder_is_found_wherever_it_lies() {
        let folder = std::env::temp_dir().join(format!("hopline-paths-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("inside")).unwrap();
        std::fs::write(folder.join("clean"), b"\0hopline/core/src/lib.rs\0").unwrap();
        std::fs::write(folder.join("inside/library"), b"\0/home/somebody/hopline/core/src/lib.rs\0").unwrap();
        let told = |text: &str| search(&folder, &[text.to_owned()]).unwrap();
        let (none, one) = (told("/home/nobody"), told("/home/somebody/hopline"));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((none.0.len(), none.1), (2, Vec::new()));
        assert_eq!(one.1.len(), 1, "{one:?}");
    }
}
