//! What the README prints is what runs.

#[test]
fn the_readme_prints_the_first_example_as_it_is() {
    let readme = include_str!("../../../../README.md");
    let program = include_str!("../../../../core/examples/first.rs");
    assert!(readme.contains(&format!("```rust\n{program}```\n")), "copy core/examples/first.rs into the README");
}
