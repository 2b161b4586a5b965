//! The README's examples are the code that runs.

#[test]
fn the_readme_prints_the_first_example_as_it_is() {
    let readme = include_str!("../../../../README.md");
    let program = include_str!("../../../../core/examples/first.rs");
    assert!(readme.contains(&format!("```rust\n{program}```\n")), "copy core/examples/first.rs into the README");
}

/// The code of the blocks of a language, each line without its indentation.
fn blocks(text: &str, language: &str) -> Vec<Vec<String>> {
    let begin = format!("```{language}\n");
    let code = text.split(&begin).skip(1).filter_map(|rest| rest.split("```").next());
    code.map(|code| code.lines().map(|line| line.trim().to_owned()).collect()).collect()
}

#[test]
fn what_the_readme_shows_of_a_language_stands_in_that_languages_readme() {
    let readme = include_str!("../../../../README.md");
    for (language, whole) in [
        ("python", include_str!("../../../../bindings-python/README.md")),
        ("js", include_str!("../../../../bindings-wasm/README.md")),
        ("kotlin", include_str!("../../../../bindings-uniffi/kotlin/README.md")),
        ("swift", include_str!("../../../../bindings-uniffi/swift/README.md")),
    ] {
        let (shown, programs) = (blocks(readme, language), blocks(whole, language));
        assert!(!shown.is_empty() && !programs.is_empty(), "there is some {language}");
        // Such a line stands for what was left out.
        let is_gap = |line: &String| ["# …", "// …"].contains(&line.as_str());
        for part in shown.iter().flat_map(|block| block.split(is_gap)).filter(|part| !part.is_empty()) {
            let is_there = programs.iter().any(|program| program.windows(part.len()).any(|lines| lines == part));
            assert!(is_there, "copy this out of a program of the README of {language}:\n{}", part.join("\n"));
        }
    }
}
