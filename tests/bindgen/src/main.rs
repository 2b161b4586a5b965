//! `hopline-bindgen HOST FOLDER`, a build tool: writes the printed files of a host into a folder.

use std::path::Path;
use std::process::ExitCode;

use hopline_bindgen::{docs, kotlin, openapi, python, swift, typescript};

/// A part of the first line of every printed file.
const PRINTED: &str = " by hopline-bindgen. Do not edit: ";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (files, folder) = match words.as_slice() {
        ["docs", folder] => (docs::files(), folder),
        ["kotlin", folder] => (kotlin::files(), folder),
        ["python", folder] => (python::files(), folder),
        ["swift", folder] => (swift::files(), folder),
        ["typescript", folder] => (typescript::files(), folder),
        ["openapi", folder] => (openapi::files(), folder),
        #[cfg(feature = "wasm")]
        ["wasm", file, folder] => return bind(file, folder),
        #[cfg(feature = "uniffi")]
        ["uniffi", host, library, folder] => return cross(host, library, folder),
        _ => {
            eprintln!(
                "hopline-bindgen: say which host and which folder: hopline-bindgen docs|kotlin|openapi|python|swift|typescript FOLDER"
            );
            return ExitCode::FAILURE;
        }
    };
    match write(Path::new(folder), files) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hopline-bindgen: `{folder}` can't be written: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the files. A file that an earlier table had printed under another name is removed, so that nothing is there twice.
fn write(folder: &Path, files: Vec<(String, String)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let printed = || std::fs::read_to_string(&path).is_ok_and(|text| text.lines().next().is_some_and(|line| line.contains(PRINTED)));
        if files.iter().all(|(new, _)| name != new.as_str()) && printed() {
            std::fs::remove_file(path)?;
        }
    }
    files.into_iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
}

/// Makes of the compiled binding what JavaScript loads.
#[cfg(feature = "wasm")]
fn bind(file: &str, folder: &str) -> ExitCode {
    let mut bindgen = wasm_bindgen_cli_support::Bindgen::new();
    bindgen
        .input_path(file)
        .typescript(false)
        .encode_into(wasm_bindgen_cli_support::EncodeInto::Always)
        .remove_name_section(true)
        .remove_producers_section(true);
    match bindgen.web(true).and_then(|bindgen| bindgen.generate(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hopline-bindgen: `{file}` can't be bound: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Makes of the compiled and unstripped library what Kotlin or Swift call it through.
#[cfg(feature = "uniffi")]
fn cross(host: &str, library: &str, folder: &str) -> ExitCode {
    use uniffi_bindgen::bindings::{GenerateOptions, TargetLanguage, generate};

    let language = match host {
        "kotlin" => TargetLanguage::Kotlin,
        "swift" => TargetLanguage::Swift,
        _ => {
            eprintln!("hopline-bindgen: uniffi is for kotlin and swift");
            return ExitCode::FAILURE;
        }
    };
    let options =
        GenerateOptions { languages: vec![language], source: library.into(), out_dir: folder.into(), ..GenerateOptions::default() };
    match generate(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hopline-bindgen: `{library}` can't be bound: {error:#}");
            ExitCode::FAILURE
        }
    }
}
