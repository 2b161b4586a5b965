//! The English of docs and comments: a sentence begins with its subject, which is a noun. This test counts the sentences that begin with a
//! pronoun or a question word instead, such as "Whatever was sent", in sources and READMEs.

use std::path::{Path, PathBuf};

/// The words that no sentence begins with.
const OPENERS: [&str; 17] = [
    "what",
    "whatever",
    "what's",
    "who",
    "whoever",
    "whose",
    "whom",
    "which",
    "whichever",
    "whether",
    "somebody",
    "someone",
    "nobody",
    "anybody",
    "no one",
    "it",
    "it's",
];

/// The words after "the same" that show that no noun follows, as in "the same for reads".
const NO_NOUNS: [&str; 12] = ["of", "as", "in", "for", "from", "with", "when", "where", "after", "before", "is", "holds"];

/// The folders of each part, and how many of a thousand of its sentences may begin with one of `OPENERS`. No number may be raised.
const PARTS: [(&str, &[&str], usize); 10] = [
    ("core", &["core/src"], 10),
    ("the folder store", &["core/store"], 5),
    ("Python", &["bindings-python"], 20),
    ("JavaScript", &["bindings-wasm"], 10),
    ("Kotlin and Swift", &["bindings-uniffi"], 20),
    ("the sandbox", &["tests/sandbox"], 15),
    ("the proof", &["tests/world"], 5),
    ("the hosts' tests", &["tests/hosts"], 10),
    (
        "other tests and tools",
        &["tests/bench", "tests/bindgen", "tests/coverage", "tests/fuzz", "tests/peers", "tests/store", "tests/xtask"],
        15,
    ),
    ("the READMEs of the repository", &["README.md", "CHANGELOG.md", "core/README.md", "tests/README.md", "tests/vectors/README.md"], 10),
];

#[test]
fn sentences_begin_with_their_subject() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (part, folders, most) in PARTS {
        let files = folders.iter().flat_map(|folder| files(&repository.join(folder)));
        let found: Vec<(PathBuf, String)> =
            files.flat_map(|path| sentences(&path).into_iter().map(move |sentence| (path.clone(), sentence))).collect();
        assert!(found.len() > 100, "only {} sentences of {part} were read", found.len());
        let bad: Vec<String> = found
            .iter()
            .filter(|(_, sentence)| begins_badly(sentence))
            .map(|(path, sentence)| format!("{}: {sentence}", path.strip_prefix(&repository).unwrap_or(path).display()))
            .collect();
        let share = bad.len() * 1000 / found.len();
        println!("{part}: {} of {}, {share}", bad.len(), found.len());
        assert!(share <= most, "{share} of a thousand sentences of {part} begin with a pronoun:\n{}", bad.join("\n"));
    }
}

/// The hand-written sources and READMEs below a folder, or the one file of that path.
fn files(folder: &Path) -> Vec<PathBuf> {
    if folder.is_file() {
        return vec![folder.to_owned()];
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("is a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let is_generated = ["target", "node_modules", "__pycache__", "gen", "artifacts", "corpus"].contains(&name.as_str())
            || ["_told.py", "_types.py"].contains(&name.as_str())
            || name.starts_with('.')
            || name.starts_with("_sync_")
            || (name.starts_with("_async_") && name.ends_with("_operations.py"));
        if is_generated {
        } else if path.is_dir() {
            found.extend(files(&path));
        } else if path
            .extension()
            .is_some_and(|end| ["rs", "md", "py", "js", "mjs", "ts", "mts", "kt", "swift"].iter().any(|one| end == *one))
        {
            found.push(path);
        }
    }
    found
}

/// The sentences of a file's comments and docs, or of a whole README.
fn sentences(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let prose = match path.extension().and_then(|end| end.to_str()) {
        Some("md") => text,
        Some("py") => python(&text),
        _ => slashes(&text),
    };
    paragraphs(&prose).iter().flat_map(|paragraph| split(paragraph)).collect()
}

/// The text of comments that begin with slashes, or stand between `/*` and `*/`. Code ends a paragraph.
fn slashes(text: &str) -> String {
    let mut is_open = false;
    let lines = text.lines().map(str::trim).map(|line| {
        if is_open || line.starts_with("/*") {
            is_open = !line.contains("*/");
            line.trim_start_matches('/').trim_start_matches('*').trim_end_matches("*/").to_owned()
        } else if line.starts_with("//") {
            line.trim_start_matches(['/', '!']).to_owned()
        } else {
            line.split_once(" // ").map(|(_, comment)| format!("\n{comment}\n")).unwrap_or_default()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The text of comments that begin with `#`, and of strings in three quotes at the beginning of a line. Code ends a paragraph.
fn python(text: &str) -> String {
    let mut is_open = false;
    let lines = text.lines().map(str::trim).map(|line| {
        let docs = line.trim_start_matches(['r', 'f']).strip_prefix("\"\"\"");
        if is_open {
            is_open = !line.contains("\"\"\"");
            line.trim_end_matches('"').to_owned()
        } else if let Some(docs) = docs {
            is_open = !docs.contains("\"\"\"");
            format!("\n{}", docs.trim_end_matches('"'))
        } else if let Some(comment) = line.strip_prefix('#') {
            comment.to_owned()
        } else {
            line.split_once("  # ").map(|(_, comment)| format!("\n{comment}\n")).unwrap_or_default()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The paragraphs, items and cells of a text in Markdown, without its programs.
fn paragraphs(prose: &str) -> Vec<String> {
    let (mut found, mut is_program) = (vec![String::new()], false);
    for line in prose.lines() {
        let line = line.trim();
        let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
        if line.starts_with("```") {
            is_program = !is_program;
            found.push(String::new());
        } else if is_program {
        } else if line.starts_with('|') {
            found.extend(line.split('|').map(|cell| cell.trim().to_owned()));
            found.push(String::new());
        } else if line.is_empty() || line.starts_with('#') || item.is_some() {
            found.push(item.unwrap_or(line).trim_start_matches('#').trim().to_owned());
            if line.starts_with('#') {
                found.push(String::new());
            }
        } else if let Some(paragraph) = found.last_mut() {
            paragraph.push_str(if paragraph.is_empty() { "" } else { " " });
            paragraph.push_str(line);
        }
    }
    found
}

/// The sentences of a paragraph. A sentence ends before a space and no small letter, and has two words or more.
fn split(paragraph: &str) -> Vec<String> {
    let (mut found, mut begin) = (Vec::new(), 0);
    let ends = paragraph.match_indices(". ").chain(paragraph.match_indices("? ")).chain(paragraph.match_indices("! "));
    let mut ends: Vec<usize> = ends.map(|(at, _)| at + 2).filter(|at| !paragraph[*at..].starts_with(char::is_lowercase)).collect();
    ends.sort_unstable();
    for end in ends.into_iter().chain([paragraph.len()]) {
        found.push(paragraph[begin..end].trim().to_owned());
        begin = end;
    }
    found.retain(|sentence| sentence.contains(' ') && sentence.contains(char::is_alphabetic));
    found
}

fn begins_badly(sentence: &str) -> bool {
    let sentence = sentence.trim_start_matches(['(', '*', '_', '"', '[']).to_lowercase();
    let begins_with = |opener: &&str| sentence.strip_prefix(opener).is_some_and(|rest| rest.starts_with([' ', ',', ':']));
    let same = sentence.strip_prefix("the same").map(|rest| rest.split(' ').nth(1).unwrap_or_default());
    OPENERS.iter().any(begins_with) || same.is_some_and(|next| next.is_empty() || NO_NOUNS.contains(&next))
}

#[test]
fn a_sentence_of_each_kind_is_read() {
    let of = |prose: &str| paragraphs(prose).iter().flat_map(|paragraph| split(paragraph)).collect::<Vec<_>>();
    let rust = slashes(
        "/// What a call\n/// sends. It is e.g. sent once. Fine.\nlet a = 1; // who sent it\n/* whether\n * sent */\n\n// `it` is sent\n",
    );
    assert_eq!(of(&rust), ["What a call sends.", "It is e.g. sent once.", "who sent it", "whether sent", "`it` is sent"]);
    assert_eq!(of(&rust).iter().filter(|sentence| begins_badly(sentence)).count(), 4);
    let python = python("\"\"\"Nobody knows.\n\nThe same for reads.\nThe same call.\"\"\"\na = 1  # it is one\n# the call is one\n");
    assert_eq!(of(&python), ["Nobody knows.", "The same for reads.", "The same call.", "it is one", "the call is one"]);
    assert_eq!(of(&python).iter().filter(|sentence| begins_badly(sentence)).count(), 3);
    let readme = "# What to know\n\n- Which one?\n- A call is sent.\n\n| It is | (Who it is) |\n\n```\nWhat is this\n```\nEnd here.\n";
    assert_eq!(of(readme), ["What to know", "Which one?", "A call is sent.", "It is", "(Who it is)", "End here."]);
    assert_eq!(of(readme).iter().filter(|sentence| begins_badly(sentence)).count(), 4);
}
