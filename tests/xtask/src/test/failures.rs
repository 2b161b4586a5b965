//! The lines in which test programs say what failed, for the end of a run, where people and build machines look first.

/// The marks by which the runners begin the line of a failed test, or of its reason.
const MARKS: [&str; 9] = ["FAILED", "panicked at", "---- ", "✖", "✘", "[X]", "not ok", "error[", "error:"];
/// The lines after a mark that still belong to it: a panic's words, an assertion's two sides.
const AFTER: usize = 4;
/// The most lines of one check.
const MOST: usize = 60;

/// Returns the lines of a check's output that say what failed, the first of them where there are too many.
pub(super) fn told(printed: &str) -> Vec<&str> {
    let mut left = 0;
    let lines = printed.lines().filter(|line| {
        let is_marked = MARKS.iter().any(|mark| line.contains(mark));
        left = if is_marked { AFTER + 1 } else { left };
        let is_told = left > 0 && !line.trim().is_empty();
        left = left.saturating_sub(1);
        is_told
    });
    lines.take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_and_their_reasons_are_told_and_passed_ones_are_not() {
        let rust = "test a ... ok\ntest b ... FAILED\ntest c ... ok\n\nfailures:\n\n---- b stdout ----\n\nthread 'b' panicked at x.rs:1:\nleft: 1\n";
        assert!(told(rust).contains(&"test b ... FAILED") && told(rust).contains(&"left: 1"));
        assert!(!told(rust).contains(&"test a ... ok"));
        assert_eq!(told("✔ one (3 ms)\n✖ two (4 ms)\n"), ["✖ two (4 ms)"]);
        assert_eq!(told(&"FAILED x\n".repeat(500)).len(), MOST);
        assert!(told("test a ... ok\ntest result: ok. 1 passed; 0 failed").is_empty());
    }
}
