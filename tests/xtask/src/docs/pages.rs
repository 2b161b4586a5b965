//! The pages as they are built: what they include is put in its place, and each program in them is one that tests run.

use std::path::Path;

use crate::Fail;
use crate::cargo::root;

/// The first characters of a line that includes something: `--8<-- "path"`, `--8<-- "path" 2` for the second program of a README in the block's
/// language, `--8<-- "path#Heading"` for a part of a README, or `--8<-- "printed:codes"` for what bindgen prints.
const INCLUDE: &str = "--8<-- ";
/// The languages whose blocks are programs, by the word after the fence, with the endings of their files.
const PROGRAMS: [(&str, &[&str]); 6] = [
    ("python", &["py"]),
    ("js", &["mjs", "js", "cjs"]),
    ("kotlin", &["kt"]),
    ("swift", &["swift"]),
    ("rust", &["rs"]),
    ("html", &["html"]),
];
/// The READMEs of the repository and of the packages, whose links lead to the pages.
pub(super) const READMES: [&str; 5] = [
    "README.md",
    "bindings-python/README.md",
    "bindings-wasm/README.md",
    "bindings-uniffi/kotlin/README.md",
    "bindings-uniffi/swift/README.md",
];
/// The folders and files whose programs tests run. Of a README tests run the blocks.
const RUN: [&str; 8] = [
    "core/examples",
    "core/docs/programs",
    "tests/hosts",
    "README.md",
    "bindings-python/README.md",
    "bindings-wasm/README.md",
    "bindings-uniffi/kotlin/README.md",
    "bindings-uniffi/swift/README.md",
];

/// Puts the pages together. Every file that is no page goes along as it is.
pub(super) fn assemble(sources: &Path, pages: &Path, printed: &Path) -> Result<(), Fail> {
    let known = Known::read()?;
    let mut wrong = Vec::new();
    copy(sources, pages, &mut |name, text| {
        let page = included(text, printed).map_err(|why| format!("{name}: {why}"))?;
        wrong
            .extend(blocks(&page).into_iter().filter(|block| !known.has(block)).map(|block| format!("{name}: {}", block.lines.join("\n"))));
        Ok(page)
    })?;
    if wrong.is_empty() {
        return Ok(());
    }
    let places = RUN.join(", ");
    Err(format!("no test runs these programs of the pages; put each into a file of one of {places}:\n{}", wrong.join("\n\n")).into())
}

fn copy(from: &Path, to: &Path, change: &mut impl FnMut(&str, &str) -> Result<String, Fail>) -> Result<(), Fail> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name().to_string_lossy().into_owned()))?;
        if path.is_dir() {
            if name != "programs" {
                copy(&path, &to.join(name), change)?;
            }
        } else if name.ends_with(".md") {
            std::fs::write(to.join(&name), change(&name, &std::fs::read_to_string(&path)?)?)?;
        } else if name != "zensical.toml" {
            std::fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// A page with what it includes, each line indented as the one that includes it.
fn included(page: &str, printed: &Path) -> Result<String, Fail> {
    let (mut out, mut language) = (String::new(), "");
    for line in page.lines() {
        let text = line.trim_start();
        if let Some(word) = text.strip_prefix("```") {
            language = word;
        }
        let Some(what) = text.strip_prefix(INCLUDE) else {
            out += line;
            out.push('\n');
            continue;
        };
        let indent = &line[..line.len() - text.len()];
        let (path, number) = what.trim_start_matches('"').split_once('"').ok_or_else(|| format!("`{text}` has no path in quotes"))?;
        for line in source(path, number.trim(), language, printed)?.lines() {
            if !line.is_empty() {
                out += indent;
                out += line;
            }
            out.push('\n');
        }
    }
    Ok(out)
}

fn source(path: &str, number: &str, language: &str, printed: &Path) -> Result<String, Fail> {
    if let Some((path, heading)) = path.split_once('#') {
        return part(&std::fs::read_to_string(root().join(path))?, heading).ok_or_else(|| format!("{path} has no part `{heading}`").into());
    }
    let file = match path.strip_prefix("printed:") {
        Some(name) => printed.join(name).with_extension("md"),
        None => root().join(path),
    };
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{path} can't be read: {error}"))?;
    if number.is_empty() {
        return Ok(text);
    }
    let number: usize = number.parse().map_err(|_| format!("`{number}` is no number of a program in {path}"))?;
    let found = blocks(&text).into_iter().filter(|block| block.language == language).nth(number.wrapping_sub(1));
    Ok(found.ok_or_else(|| format!("{path} has no program {number} in {language}"))?.text())
}

/// A part of a README below its heading. Links of Rust's documentation are no links elsewhere.
fn part(readme: &str, heading: &str) -> Option<String> {
    let begin = format!("\n# {heading}\n");
    let text = readme.split_once(&begin)?.1;
    let text = text.split("\n# ").next()?;
    let links: Vec<&str> = text.split("[`").collect();
    let mut out = links.first()?.to_string();
    for link in &links[1..] {
        let (name, rest) = link.split_once("`]")?;
        let rest = rest.strip_prefix('(').and_then(|target| target.split_once(')')).map_or(rest, |(_, rest)| rest);
        out += &format!("`{name}`{rest}");
    }
    Some(out)
}

/// A program in a page, without the indentation of its block.
struct Block {
    language: String,
    lines: Vec<String>,
}

impl Block {
    fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line, "\n"]).collect()
    }
}

/// The blocks of a page that are programs.
fn blocks(page: &str) -> Vec<Block> {
    let (mut found, mut open): (Vec<Block>, Option<(Block, usize)>) = (Vec::new(), None);
    for line in page.lines() {
        let text = line.trim_start();
        let Some(word) = text.strip_prefix("```") else {
            if let Some((block, indent)) = &mut open {
                block.lines.push(line.get(*indent..).unwrap_or_default().to_owned());
            }
            continue;
        };
        match open.take() {
            Some((block, _)) => found.push(block),
            None => {
                open = Some((
                    Block { language: word.split(' ').next().unwrap_or(word).to_owned(), lines: Vec::new() },
                    line.len() - text.len(),
                ))
            }
        }
    }
    found.retain(|block| PROGRAMS.iter().any(|(language, _)| block.language == *language));
    found
}

/// All programs that tests run, by their languages, each line without its indentation.
struct Known(Vec<(&'static str, Vec<String>)>);

impl Known {
    fn read() -> Result<Known, Fail> {
        let mut known = Known(Vec::new());
        for path in RUN {
            known.add(&root().join(path))?;
        }
        Ok(known)
    }

    fn add(&mut self, path: &Path) -> Result<(), Fail> {
        if path.is_dir() {
            for entry in std::fs::read_dir(path)? {
                let path = entry?.path();
                if !path.ends_with("node_modules") {
                    self.add(&path)?;
                }
            }
            return Ok(());
        }
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let of_readme = ending == "md";
        let Some((language, _)) = PROGRAMS.iter().find(|(_, endings)| of_readme || endings.contains(&ending)) else { return Ok(()) };
        // A folder of the list may be missing, a file of the list may not, and a file of tests may be any bytes.
        let Ok(text) = std::fs::read_to_string(path) else { return Ok(()) };
        if of_readme {
            for block in blocks(&text) {
                let language = PROGRAMS.iter().find(|(language, _)| block.language == *language).map_or("", |(language, _)| language);
                self.0.push((language, trimmed(block.lines.iter().map(String::as_str))));
            }
        } else {
            self.0.push((language, trimmed(text.lines())));
        }
        Ok(())
    }

    /// True if each part of a program stands in one that is run. A comment that is `…` stands for what was left out.
    fn has(&self, block: &Block) -> bool {
        let lines = trimmed(block.lines.iter().map(String::as_str));
        let is_gap = |line: &String| ["# …", "// …"].contains(&line.as_str());
        let parts = lines.split(is_gap).filter(|part| part.iter().any(|line| !line.is_empty()));
        parts.into_iter().all(|part| {
            let of_language = self.0.iter().filter(|(language, _)| *language == block.language);
            of_language.into_iter().any(|(_, program)| program.windows(part.len()).any(|lines| lines == part))
        })
    }
}

fn trimmed<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    lines.map(|line| line.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "=== \"Python\"\n\n    ```python\n    if one:\n        two()\n    ```\n\n```sh\nls\n```\n";

    #[test]
    fn the_programs_of_a_page_are_found_without_the_indentation_of_a_tab() {
        let found = blocks(PAGE);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].text(), "if one:\n    two()\n");
    }

    #[test]
    fn a_part_of_a_readme_ends_at_the_next_heading_and_has_no_links_of_rust() {
        let readme = "\n# One\nA [`Client`] and [`Encode`](a::b).\n## Two\nx\n# Three\n";
        assert_eq!(part(readme, "One").as_deref(), Some("A `Client` and `Encode`.\n## Two\nx"));
        assert!(part(readme, "Four").is_none());
    }

    #[test]
    fn a_program_is_known_by_its_lines_and_may_leave_some_out() {
        let known = Known(vec![("python", trimmed("if one:\n    two()\n    three()\nfour()".lines()))]);
        let block = |text: &str| Block { language: "python".to_owned(), lines: text.lines().map(str::to_owned).collect() };
        assert!(known.has(&block("if one:\n  two()")) && known.has(&block("if one:\n# …\nfour()")));
        assert!(!known.has(&block("if one:\n  three()")));
        assert!(!known.has(&Block { language: "js".to_owned(), ..block("if one:") }));
    }
}
