//! Reads the failure envelopes of the reseller API: whether a write was certainly not done.
//!
//! NOT DOCUMENTED: the form of such an envelope, and its codes, except `location_not_supported_for_product`. So the refusals here are an
//! assumption; callers who know more name the codes.

use crate::contract::Decimal;

/// The only code that the contract names.
pub(crate) const LOCATION: &str = "location_not_supported_for_product";
/// Codes of a write that was done, or will be done.
const DONE: [&str; 6] = ["ok", "success", "accepted", "processing", "pending", "queued"];
/// Words within a code, without `_` and `-`, that say that nothing was done.
const REFUSES: [&str; 12] = [
    "invalid",
    "missing",
    "required",
    "notfound",
    "notsupported",
    "insufficient",
    "exist",
    "denied",
    "forbidden",
    "notallowed",
    "disabled",
    "unauthorized",
];

/// The caller's knowledge of codes. Each is compared with the envelope's whole code as text.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Codes {
    /// The token is refused.
    pub(crate) token: Vec<String>,
    /// The write may have been done.
    pub(crate) doubt: Vec<String>,
    /// The write was not done.
    pub(crate) refusal: Vec<String>,
}

impl Codes {
    /// Returns true if an answer with the envelope refuses the token.
    pub(crate) fn refuse_token(&self, code: &str, status: u16) -> bool {
        status == 401 || has(&self.token, code)
    }

    /// Returns true if the write may have been done, whatever else the answer says; `has_data` is true if the envelope has data that is not
    /// empty.
    pub(crate) fn may_be_done(&self, code: &str, has_data: bool) -> bool {
        match () {
            () if has(&self.token, code) => false,
            () if has(&self.doubt, code) => true,
            () if has(&self.refusal, code) || code == LOCATION => false,
            () => has_data || is_zeros(code) || DONE.iter().any(|done| code.eq_ignore_ascii_case(done)),
        }
    }

    /// Returns true if a failure with that code and HTTP status certainly did nothing.
    pub(crate) fn undo(&self, code: &str, status: u16, has_data: bool) -> bool {
        if matches!(status, 408 | 409 | 425 | 429 | 500..) {
            return false;
        }
        match () {
            () if self.may_be_done(code, has_data) => false,
            () if self.refuse_token(code, status) || has(&self.refusal, code) || code == LOCATION => true,
            () => match code.parse::<Decimal>() {
                Ok(number) => matches!(status, 200 | 400..=499) && number_refuses(code, number),
                Err(_) => word_refuses(code),
            },
        }
    }
}

fn has(codes: &[String], code: &str) -> bool {
    codes.iter().any(|known| known == code)
}

fn is_zeros(code: &str) -> bool {
    code.bytes().all(|byte| matches!(byte, b'0' | b'.' | b'-' | b'+'))
}

/// Negative numbers, the HTTP statuses of success and of timeouts, and numbers that begin with 5 do not refuse: services use them for
/// failures and for success.
fn number_refuses(code: &str, number: Decimal) -> bool {
    let is = |from: i64, to: i64| number >= Decimal::from(from) && number <= Decimal::from(to);
    // `0.5e3` is 500.
    let begins_with_5 = [code, &number.to_string()].iter().any(|digits| digits.trim_start_matches(['+', '0']).starts_with('5'));
    number > Decimal::from(0) && !is(200, 202) && !is(408, 408) && !begins_with_5
}

fn word_refuses(code: &str) -> bool {
    let letters: String = code.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect();
    REFUSES.iter().any(|word| letters.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes() -> Codes {
        let codes = |codes: [&str; 2]| codes.map(str::to_owned).to_vec();
        Codes { token: codes(["401", "50014"]), doubt: codes(["1001", "no_such_order_not_found"]), refusal: codes(["5003", "C0001"]) }
    }

    /// Returns true if a code undoes a write under HTTP 200, in an envelope without data.
    fn undo(code: &str) -> bool {
        codes().undo(code, 200, false)
    }

    #[test]
    fn of_numbers_those_undo_that_no_failure_and_no_success_has() {
        for code in ["1", "10", "199", "203", "400", "404", "407", "409", "600", "1002", "40001", "10500", "0.5", "1e3", "+7", "0012"] {
            assert!(undo(code), "{code}");
        }
        for code in [
            "-1", "-200", "200", "201", "202", "200.0", "2e2", "408", "5", "500", "599", "5001", "50000", "0500", "5e2", "+500", "0.5e3",
            "0.05e5",
        ] {
            assert!(!undo(code), "{code}");
        }
        for code in ["00000", "0.0", "-0", "000", "1".repeat(40).as_str()] {
            assert!(!undo(code), "{code}");
        }
    }

    #[test]
    fn a_number_undoes_under_http_200_and_400_to_499_and_a_word_says_itself_what_it_is() {
        let under = |code: &str| [200, 201, 202, 400, 404, 422, 499].map(|status| codes().undo(code, status, false));
        assert_eq!(under("7"), [true, false, false, true, true, true, true]);
        assert_eq!(under("invalid"), [true; 7]);
    }

    #[test]
    fn of_words_those_undo_that_say_so() {
        let say =
            ["INVALID_PARAMETER", "user-not-found", "UserNotFound", "NOT_ALLOWED", "already_exists", "insufficientBalance", "Forbidden"];
        assert_eq!(say.map(undo), [true; 7]);
        let odd = ["TIMEOUT", "upstream_timed_out", "E500", "C0002", "retry_later", "exception", "busy", "not found", "error"];
        assert_eq!(odd.map(undo), [false; 9]);
        assert_eq!(["ok", "SUCCESS", "accepted", "processing", "pending", "queued"].map(undo), [false; 6]);
    }

    #[test]
    fn what_has_data_undoes_nothing_but_for_the_code_that_the_contract_names_and_those_that_the_caller_names() {
        let undo = |code: &str| codes().undo(code, 200, true);
        assert_eq!(["7", "404", "invalid", "unauthorized"].map(undo), [false; 4]);
        assert_eq!([LOCATION, "401", "50014", "C0001"].map(undo), [true; 4]);
        assert!(!codes().undo("7", 401, true) && codes().undo("7", 401, false));
    }

    #[test]
    fn the_callers_codes_come_in_their_order_before_what_is_assumed() {
        assert_eq!(["401", "50014", "5003", "C0001"].map(undo), [true; 4]);
        assert_eq!(["1001", "no_such_order_not_found"].map(undo), [false; 2]);
        // Codes are compared whole, as text.
        assert_eq!(["c0001", "C00012", "50030"].map(undo), [false; 3]);
        assert_eq!(["1001.0", "01001"].map(undo), [true; 2]);
        let both = |token: &str, doubt: &str, refusal: &str| {
            let one = |code: &str| vec![code.to_owned()];
            Codes { token: one(token), doubt: one(doubt), refusal: one(refusal) }.undo("x", 400, false)
        };
        assert_eq!([both("x", "x", "x"), both("y", "x", "x"), both("y", "y", "x"), both("y", "y", "y")], [true, false, true, false]);
    }

    #[test]
    fn nothing_is_undone_where_it_may_be_done_later() {
        for status in [408, 409, 425, 429, 500, 502, 599] {
            for code in ["401", "5003", "7", "invalid", LOCATION] {
                assert!(!codes().undo(code, status, false), "{status} {code}");
            }
        }
    }

    #[test]
    fn http_401_refuses_the_token_whatever_the_code_but_not_what_the_caller_doubts() {
        assert_eq!(["-1", "500", "expired", "7"].map(|code| codes().undo(code, 401, false)), [true; 4]);
        assert_eq!(["1001", "00000", "ok"].map(|code| codes().undo(code, 401, false)), [false; 3]);
    }
}
