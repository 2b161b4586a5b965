//! The results that test programs write as JUnit's XML.

use std::path::Path;
use std::process::Command;

use roxmltree::Document;

use crate::Fail;
use crate::check::Outcome;

/// Runs a test program, and counts the cases of the report, or of every report in the folder, that it writes.
pub(crate) fn counted(reports: &Path, tests: &mut Command) -> Result<Outcome, Fail> {
    match reports {
        folder if folder.is_dir() => std::fs::remove_dir_all(folder)?,
        file if file.exists() => std::fs::remove_file(file)?,
        _ => {}
    }
    let status = tests.status()?;
    let mut files = Vec::new();
    if reports.is_dir() {
        for entry in std::fs::read_dir(reports)? {
            files.push(entry?.path());
        }
        files.retain(|path| path.extension().is_some_and(|extension| extension == "xml"));
    } else if reports.exists() {
        files.push(reports.to_owned());
    }
    let (mut passed, mut failed, mut ignored) = (0, 0, 0);
    for file in files {
        // An error may hold what a terminal obeys, which Node's reporter writes as it is and XML can't hold.
        for ended in cases(&std::fs::read_to_string(file)?.replace('\u{1b}', ""))? {
            match ended {
                Ended::Passed => passed += 1,
                Ended::Failed => failed += 1,
                Ended::Skipped => ignored += 1,
            }
        }
    }
    // A program that fails by something else than a test, or that ran none, has not shown anything.
    if passed + failed == 0 || failed == 0 && !status.success() {
        return Err(format!("it ended with {status}, and {passed} tests had passed").into());
    }
    println!("{passed} passed, {failed} failed, {ignored} skipped");
    Ok(Outcome::Counted { passed, failed, ignored })
}

#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Passed,
    Failed,
    Skipped,
}

/// How each case of a report ended.
fn cases(report: &str) -> Result<Vec<Ended>, Fail> {
    let document = Document::parse(report)?;
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    let ended = cases.map(|case| {
        let has = |names: &[&str]| case.children().any(|child| names.contains(&child.tag_name().name()));
        match () {
            () if has(&["failure", "error"]) => Ended::Failed,
            () if has(&["skipped"]) => Ended::Skipped,
            () => Ended::Passed,
        }
    });
    Ok(ended.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_is_counted_by_what_is_in_it_wherever_it_lies() {
        let report = r#"<?xml version="1.0"?><testsuites><testsuite tests="9"><testcase name="a"/><testsuite>
            <testcase name="b"><failure message="no"/></testcase></testsuite>
            <testcase name="c"><skipped/></testcase><testcase name="d"><error/></testcase></testsuite></testsuites>"#;
        assert_eq!(cases(report).unwrap(), [Ended::Passed, Ended::Failed, Ended::Skipped, Ended::Failed]);
        assert!(cases("<testsuite").is_err());
    }
}
