//! What tests are called, in each language of the hosts.

/// The names of the tests of a file, in whichever language: a `fn` or `func` that is marked as a test, a `def` that begins with
/// `test_`, and quoted or backticked titles.
pub(super) fn test_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_marked = false;
    for line in text.lines().map(str::trim) {
        let was_marked = std::mem::replace(&mut is_marked, matches!(line, "#[test]" | "@Test") || line.starts_with("#[tokio::test"));
        let title = ["test(\"", "it(\"", "@Test(\"", "fun `"].iter().find_map(|begin| line.split_once(begin).map(|(_, rest)| rest));
        let title = title.and_then(|rest| rest.split(['"', '`']).next());
        let plain = ["async def test_", "def test_", "async fn ", "fn ", "func "].iter().find_map(|begin| {
            let rest = line.strip_prefix(begin).filter(|_| was_marked || begin.contains("test_"))?;
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
            test_names(
                "    fn helper() {\n    #[test]\n    fn a_b() {\n  test(\"c d\", async () => {\n  fun `e f`() {\ndef test_g():\n    @Test\n    func h() {"
            ),
            ["a_b", "c d", "e f", "test_g", "h"]
        );
    }
}
