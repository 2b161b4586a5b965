//! The README's examples are the code that runs.

/// The code of the blocks of a language, each line without its indentation.
fn blocks(text: &str, language: &str) -> Vec<Vec<String>> {
    let begin = format!("```{language}\n");
    let code = text.split(&begin).skip(1).filter_map(|rest| rest.split("```").next());
    code.map(|code| code.lines().map(|line| line.trim().to_owned()).collect()).collect()
}

#[test]
fn the_first_program_of_core_is_the_example_that_is_run_and_has_twelve_lines() {
    let example = include_str!("../../../../core/examples/first.rs");
    let code: Vec<&str> = example.lines().filter(|line| !line.starts_with("//!")).collect();
    let shown = blocks(include_str!("../../../../core/README.md"), "rs");
    assert_eq!(shown.concat().join("\n").trim(), code.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n").trim());
    assert!(code.iter().filter(|line| !line.trim().is_empty()).count() <= 12);
}

#[test]
fn what_the_readme_shows_of_a_language_stands_in_that_languages_readme() {
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains("```python\n"), "the first program is Python's");
    for (language, whole) in [
        ("python", include_str!("../../../../bindings-python/README.md")),
        ("js", include_str!("../../../../bindings-wasm/README.md")),
        ("kotlin", include_str!("../../../../bindings-uniffi/kotlin/README.md")),
        ("swift", include_str!("../../../../bindings-uniffi/swift/README.md")),
    ] {
        let (shown, programs) = (blocks(readme, language), blocks(whole, language));
        assert!(!programs.is_empty(), "there is some {language}");
        // Such a line stands for what was left out.
        let is_gap = |line: &String| ["# …", "// …"].contains(&line.as_str());
        for part in shown.iter().flat_map(|block| block.split(is_gap)).filter(|part| !part.is_empty()) {
            let is_there = programs.iter().any(|program| program.windows(part.len()).any(|lines| lines == part));
            assert!(is_there, "copy this out of a program of the README of {language}:\n{}", part.join("\n"));
        }
    }
}
