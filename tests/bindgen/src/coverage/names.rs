//! What tests are called, in each language of the hosts.

/// The names of the tests of a file, in whichever language: `fn`, `def` and `func` names, and quoted or backticked titles.
pub(super) fn test_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in text.lines().map(str::trim) {
        let title = ["test(\"", "it(\"", "@Test(\"", "fun `"].iter().find_map(|begin| line.split_once(begin).map(|(_, rest)| rest));
        let title = title.and_then(|rest| rest.split(['"', '`']).next());
        let plain = ["async def test_", "def test_", "async fn ", "fn ", "func "].iter().find_map(|begin| {
            let rest = line.strip_prefix(begin)?;
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
            Some(if begin.contains("test_") { format!("test_{name}") } else { name.to_owned() })
        });
        names.extend(title.map(str::to_owned).or(plain));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tests_are_found_in_every_language() {
        assert_eq!(
            test_names("    fn a_b() {\n  test(\"c d\", async () => {\n  fun `e f`() {\ndef test_g():\n    func h() {"),
            ["a_b", "c d", "e f", "test_g", "h"]
        );
    }
}
