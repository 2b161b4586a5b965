//! Adds the service's own words to an error, without secrets, even if the service repeats them.

use crate::contract::{Json, Secret};
use crate::json::{self, text_of};
use crate::policy::{Error, one_line};
use crate::time::Millis;
use crate::wire::{Answer, Content, KEPT_WORD, cut, is_secret_name, names_a_secret};

/// Fills the service's own words into an error, without the `hidden` secrets.
pub(crate) fn fill(error: &mut Error, answer: &Answer, hidden: &[&Secret], unix: Millis) {
    error.status = Some(answer.status);
    error.request_id = answer.request_id.as_deref().and_then(|id| without(hidden, id));
    match &answer.content {
        Content::Failure(failure) => {
            error.code = without(hidden, &failure.code);
            error.text = shown(hidden, &failure.message);
            if let Some(words) = error.text.as_deref().and_then(|text| quoted(hidden, text)) {
                error.what.push_str(": ");
                error.what.push_str(&words);
            }
            error.details = failure.details.as_ref().and_then(|details| clean(hidden, details.text()));
        }
        Content::NoEnvelope { content_type, text, .. } => {
            error.content_type = content_type.as_deref().and_then(|text| without(hidden, text));
            // JSON anywhere in the text may be part of an answer with credentials.
            let page = text.split(['{', '[']).next().unwrap_or_default();
            let begins = |text: &str| text.chars().find(|c| !c.is_whitespace() && *c != '\u{feff}');
            error.text = without(hidden, page).filter(|text| !matches!(begins(text), None | Some('"')));
        }
        Content::Success(_) => {}
    }
    if let Some(wait) = answer.retry_after {
        error.retry_at = Some(unix.saturating_add(wait));
    }
}

/// A shorter secret may be part of any text.
const SHORTEST: usize = 6;
const REDACTED: &str = "[redacted]";
/// The part of the service's own text in the sentence, in bytes.
const KEPT_SENTENCE: usize = 240;

/// A text of the service without those secrets, ignoring case and JSON's escapes; `None` if nothing is left.
fn without(secrets: &[&Secret], text: &str) -> Option<String> {
    let escaped = |secret: &str| json::quoted(secret).get(1..).and_then(|json| json.strip_suffix('"')).map(str::to_owned);
    let mut forms: Vec<String> =
        secrets.iter().map(|secret| secret.reveal()).filter(|secret| secret.len() >= SHORTEST).map(str::to_owned).collect();
    forms.extend(forms.iter().filter_map(|secret| escaped(secret).filter(|escaped| escaped != secret)).collect::<Vec<_>>());
    // Of two forms with the same beginning the longer one goes first, so that nothing of it is left.
    let mut clean = text.to_owned();
    while let Some((longest, _)) = forms.iter().enumerate().max_by_key(|(_, form)| form.len()) {
        let form = forms.swap_remove(longest);
        clean = replaced(&clean, &form);
        // A text that was cut, never through a character, may end within a secret.
        let longest = if text.len() + 3 < KEPT_WORD { SHORTEST } else { form.len() };
        let beginnings = (SHORTEST..longest).rev().filter_map(|end| form.get(..end));
        if let Some(rest) = beginnings.filter_map(|beginning| before_end(&clean, beginning)).next() {
            clean = format!("{rest}{REDACTED}");
        }
    }
    Some(clean).filter(|text| !text.is_empty())
}

/// A text with `[redacted]` in place of a secret, ignoring ASCII case.
fn replaced(text: &str, secret: &str) -> String {
    let (folded, secret) = (text.to_ascii_lowercase(), secret.to_ascii_lowercase());
    let (mut clean, mut from) = (String::new(), 0);
    // Folding the case of ASCII moves no byte.
    for (at, found) in folded.match_indices(&secret) {
        clean.extend([text.get(from..at).unwrap_or_default(), REDACTED]);
        from = at + found.len();
    }
    clean + text.get(from..).unwrap_or_default()
}

/// The text before that end, ignoring ASCII case.
fn before_end<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    let (before, last) = text.split_at_checked(text.len().checked_sub(end.len())?)?;
    last.eq_ignore_ascii_case(end).then_some(before)
}

/// The beginning of a text of the service as part of a sentence: on one line, in quotes, without control characters.
fn quoted(secrets: &[&Secret], text: &str) -> Option<String> {
    // A secret that was broken into lines may be whole again on one line.
    let one_line = without(secrets, &one_line(text).replace('"', "'"))?;
    let words = cut(&one_line, KEPT_SENTENCE);
    let more = if words.len() < one_line.len() { "…" } else { "" };
    Some(format!("\"{words}{more}\""))
}

/// JSON of the service without those secrets, however its texts are escaped, and without the values of members with a secret's name.
fn clean(secrets: &[&Secret], json: &str) -> Option<Json> {
    let mut clean = String::new();
    push_clean(secrets, json, &mut clean)?;
    let tells = secrets.iter().any(|secret| secret.reveal().len() >= SHORTEST && clean.contains(secret.reveal()));
    if tells { None } else { clean.parse().ok() }
}

fn push_clean(secrets: &[&Secret], json: &str, into: &mut String) -> Option<()> {
    let push_text = |text: &str, into: &mut String| into.push_str(&json::quoted(&shown(secrets, text).unwrap_or_default()));
    match json.bytes().next()? {
        b'{' => {
            into.push('{');
            for (n, (name, value)) in json::members(json).ok()?.into_iter().enumerate() {
                into.push_str(if n > 0 { "," } else { "" });
                push_text(&name, into);
                into.push(':');
                match is_secret_name(&name) && value != "null" {
                    true => into.push_str(&json::quoted(REDACTED)),
                    false => push_clean(secrets, value, into)?,
                }
            }
            into.push('}');
        }
        b'[' => {
            into.push('[');
            for (n, item) in json::items(json).ok()?.into_iter().enumerate() {
                into.push_str(if n > 0 { "," } else { "" });
                push_clean(secrets, item, into)?;
            }
            into.push(']');
        }
        b'"' => push_text(&text_of(json)?, into),
        _ => into.push_str(json),
    }
    Some(())
}

/// A text of the service without those secrets; if it holds JSON with a member with a secret's name, only the part before that.
fn shown(secrets: &[&Secret], text: &str) -> Option<String> {
    match text.find(['{', '[']).and_then(|at| text.split_at_checked(at)) {
        Some((before, json)) if names_a_secret(json) => without(secrets, &format!("{before}{REDACTED}")),
        _ => without(secrets, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_as_it_is_and_as_json_escapes_it() {
        let secret = Secret::new(r#"own"secret"#);
        assert_eq!(without(&[&secret], r#"a own"secret b"#).as_deref(), Some("a [redacted] b"));
        assert_eq!(without(&[&secret], r#"a own\"secret b"#).as_deref(), Some("a [redacted] b"));
    }

    #[test]
    fn only_a_text_that_may_have_been_cut_can_end_within_a_secret() {
        let secret = Secret::new("own-secret-7");
        // A text is cut before a character of up to four bytes that would go beyond its limit.
        for (missing, end) in [(4, "own-secret"), (3, REDACTED), (0, REDACTED)] {
            let before = "x".repeat(KEPT_WORD - missing - "own-secret".len());
            let clean = without(&[&secret], &format!("{before}own-secret"));
            assert_eq!(clean, Some(format!("{before}{end}")), "{missing}");
        }
    }

    #[test]
    fn what_is_a_secret_by_its_name_is_not_shown_at_any_depth() {
        let cleaned = |json: &str| clean(&[], json).map(|json| json.text().to_owned());
        let shown = |name: &str, json: &str| format!("{{{}:{json}}}", json::quoted(name));
        for name in ["password", "proxyPassword", "auth_password", "access_token", "secret", "pwd", "full_url"] {
            for value in [r#""x""#, "12345", r#"{"a":"x"}"#, "[1]", "true"] {
                assert_eq!(cleaned(&shown(name, value)), Some(shown(name, r#""[redacted]""#)), "{name} {value}");
                let deep = format!(r#"{{"a":[{}]}}"#, shown(name, value));
                assert_eq!(cleaned(&deep), Some(format!(r#"{{"a":[{}]}}"#, shown(name, r#""[redacted]""#))), "{name} {value}");
            }
            assert_eq!(cleaned(&shown(name, "null")), Some(shown(name, "null")));
        }
        let kept = r#"{"field":"password","min":3,"a":[1.50,{"b":null}],"c":"d \"e\""}"#;
        assert_eq!(cleaned(kept).as_deref(), Some(kept));
        let within = r#"{"upstream":"failed: {\"a\":1,\"pass_pwd\":\"x\"}"}"#;
        assert_eq!(cleaned(within).as_deref(), Some(r#"{"upstream":"failed: [redacted]"}"#));
    }
}
