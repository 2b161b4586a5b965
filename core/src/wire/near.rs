//! The words that mistyped ones may stand for.

/// The end of a sentence about an unknown word: the known one that the caller may have meant.
pub(crate) fn meant<'a>(given: &str, mut known: impl Iterator<Item = &'a str>) -> String {
    known.find(|word| is_near(given, word)).map_or_else(String::new, |word| format!(" (did you mean `{word}`?)"))
}

/// The rule that an unknown word breaks.
pub(crate) fn unknown_word(given: &str, known: &[&str]) -> String {
    format!("must be one of `{}`{}", known.join("`, `"), meant(given, known.iter().copied()))
}

/// True if the words are the same but for case and `_`, for one letter, or for two that stand in the wrong order.
fn is_near(given: &str, known: &str) -> bool {
    if given.len() > 64 {
        return false;
    }
    let (given, known) = (bare(given), bare(known));
    let (mut given, mut known, mut same) = (given.as_slice(), known.as_slice(), 0);
    while let ([one, rest @ ..], [other, others @ ..]) = (given, known)
        && one == other
    {
        (given, known, same) = (rest, others, same + 1);
    }
    while let ([rest @ .., one], [others @ .., other]) = (given, known)
        && one == other
    {
        (given, known, same) = (rest, others, same + 1);
    }
    match (given, known) {
        ([], []) => true,
        ([_], []) | ([], [_]) | ([_], [_]) => same >= 3,
        ([one, two], [three, four]) => same >= 2 && one == four && two == three,
        _ => false,
    }
}

fn bare(word: &str) -> Vec<u8> {
    word.bytes().filter(|byte| *byte != b'_').map(|byte| byte.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_one_letter_of_case_or_of_order_is_understood_and_nothing_else() {
        let words = ["dynamic", "static", "session_type", "zh"];
        let said = |given: &str| meant(given, words.into_iter());
        for (given, word) in [
            ("dynamik", "dynamic"),
            ("Dynamic", "dynamic"),
            ("dynamc", "dynamic"),
            ("dyanmic", "dynamic"),
            ("staticc", "static"),
            ("sessionType", "session_type"),
            ("sesion_type", "session_type"),
            ("ZH", "zh"),
        ] {
            assert_eq!(said(given), format!(" (did you mean `{word}`?)"));
        }
        for given in ["", "rented", "en", "z", "dyn", "typ", &"static".repeat(20)] {
            assert_eq!(said(given), "", "{given}");
        }
    }
}
