//! Interprets the exceptions of the caller's HTTP client from a request through a session's proxy.

use std::borrow::Cow;

use crate::contract::exceptions::{ANSWERED, ANSWERS, CLUES, Cause, Clue, WITHOUT_STATUS};

/// One exception of a chain, as a host passes it. The text is only compared and never kept: it may hold a login.
#[derive(Default)]
pub(crate) struct Exception<'a> {
    /// The class of the exception and its base classes.
    pub(crate) names: Vec<Cow<'a, str>>,
    pub(crate) code: Cow<'a, str>,
    /// The status of the response that the exception holds.
    pub(crate) status: Option<u16>,
    pub(crate) text: Cow<'a, str>,
    pub(crate) during: Cow<'a, str>,
}

/// The result of the interpretation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interpretation {
    /// A response with this status.
    Status(u16),
    Of(Cause),
}

/// Interprets a chain of exceptions, outermost first.
pub(crate) fn interpret(chain: &[Exception<'_>]) -> Interpretation {
    if let Some(status) = chain.iter().find_map(answered) {
        return Interpretation::Of(if status >= 500 { Cause::Target } else { Cause::Proxy });
    }
    let has_status = !chain.iter().any(|one| one.is_any(&WITHOUT_STATUS));
    if let Some(status) = chain.iter().find_map(|one| one.status).filter(|_| has_status) {
        return Interpretation::Status(status);
    }
    let known = CLUES.iter().find(|clue| chain.iter().any(|one| one.shows(clue)));
    Interpretation::Of(match known {
        Some(clue) => clue.cause,
        None if chain.iter().any(Exception::is_late) => Cause::Timeout,
        None if chain.iter().any(Exception::has_407) => Cause::Proxy,
        None => Cause::Unknown,
    })
}

/// The status that the proxy answered a CONNECT with.
fn answered(one: &Exception<'_>) -> Option<u16> {
    let behind = |mark: &&str| one.text.split(*mark).skip(1).find_map(status);
    let own = || one.status.or_else(|| status(&one.text));
    ANSWERED.iter().find_map(behind).or_else(|| if one.is_any(&ANSWERS) { own() } else { None })
}

/// The three digits that a text begins with.
fn status(text: &str) -> Option<u16> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text.get(..digits).filter(|_| digits == 3)?.parse().ok()
}

impl Exception<'_> {
    fn is_any(&self, names: &[&str]) -> bool {
        self.names.iter().any(|own| names.iter().any(|name| fits(name, own)))
    }

    fn shows(&self, clue: &Clue) -> bool {
        let is_then = clue.during.is_empty() || clue.during == self.during;
        let says = || self.is_any(clue.names) || clue.codes.iter().any(|code| fits(code, &self.code));
        is_then && (says() || clue.texts.iter().any(|part| self.text.contains(part)))
    }

    /// Returns true if the exception is a timeout, by its name, its code or its text.
    fn is_late(&self) -> bool {
        let text = [self.text.as_ref(), self.code.as_ref()].into_iter().chain(self.names.iter().map(AsRef::as_ref));
        let mut small = text.map(str::to_ascii_lowercase);
        small.any(|text| ["timeout", "timed out", "timed_out", "timedout"].iter().any(|word| text.contains(word)))
    }

    /// Returns true if the text has the number 407, and not as a part of another number or an address.
    fn has_407(&self) -> bool {
        let mut words = self.text.split(|c: char| c.is_whitespace() || "()[]{}\"'`,;<>".contains(c));
        words.any(|word| word.trim_end_matches(['.', ':']) == "407")
    }
}

/// Returns true if a name or a code matches a pattern: `*.` in front stands for any package or none, `*` at the end for any rest.
fn fits(pattern: &str, text: &str) -> bool {
    match (pattern.strip_prefix("*."), pattern.strip_suffix('*')) {
        (Some(name), _) => text.rsplit('.').next() == Some(name),
        (_, Some(start)) => text.starts_with(start),
        _ => text == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&'static str], code: &'static str, text: &'static str) -> Interpretation {
        let names = names.iter().map(|name| Cow::Borrowed(*name)).collect();
        interpret(&[Exception { names, code: code.into(), text: text.into(), ..Exception::default() }])
    }

    // `tests/vectors/texts/seen.json` has the exceptions of real clients.
    #[test]
    fn an_answer_to_a_connect_is_three_digits_behind_its_mark() {
        let text = |text| of(&["builtins.OSError"], "", text);
        assert_eq!(text("Tunnel connection failed: 407 Proxy Authentication Required"), Interpretation::Of(Cause::Proxy));
        assert_eq!(text("Tunnel connection failed: 502 Bad Gateway"), Interpretation::Of(Cause::Target));
        assert_eq!(text("Socket error: none; Socket error: 503: away"), Interpretation::Of(Cause::Target));
        for other in ["Tunnel connection failed: 5021", "Tunnel connection failed: 50", "Tunnel connection failed: "] {
            assert_eq!(text(other), Interpretation::Of(Cause::Unknown), "{other}");
        }
        assert_eq!(of(&["httpx.ProxyError"], "", "503 Service Unavailable"), Interpretation::Of(Cause::Target));
        assert_eq!(of(&["httpx.ReadError"], "", "503 Service Unavailable"), Interpretation::Of(Cause::Unknown));
    }

    #[test]
    fn names_and_codes_fit_whole_but_for_a_star() {
        assert!(fits("*.ProxyError", "requests.ProxyError") && fits("*.ProxyError", "ProxyError"));
        assert!(!fits("*.ProxyError", "requests.NoProxyError") && !fits("*.ProxyError", "ProxyError.args"));
        assert!(fits("ERR_SSL_*", "ERR_SSL_WRONG_VERSION_NUMBER") && !fits("pycurl 7", "pycurl 77"));
        assert_eq!(of(&[], "pycurl 7", ""), Interpretation::Of(Cause::Proxy));
        assert_eq!(of(&[], "pycurl 77", ""), Interpretation::Of(Cause::Unknown));
    }

    #[test]
    fn an_unknown_exception_is_never_the_targets() {
        assert_eq!(of(&["any.ReadTimeout"], "", ""), Interpretation::Of(Cause::Timeout));
        assert_eq!(of(&["any.Failure"], "ETIMEDOUT", ""), Interpretation::Of(Cause::Timeout));
        assert_eq!(of(&["any.Failure"], "", "(407)"), Interpretation::Of(Cause::Proxy));
        assert_eq!(of(&["any.Failure"], "", "https://shop.example/407"), Interpretation::Of(Cause::Unknown));
        assert_eq!(interpret(&[]), Interpretation::Of(Cause::Unknown));
    }
}
