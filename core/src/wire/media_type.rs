//! Recognizes JSON by its `Content-Type`.

/// Returns true if a `Content-Type` names JSON, by the rules of browsers: `application/json`, `text/json`, or any `…+json`.
pub(super) fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim_matches([' ', '\t', '\r', '\n']);
    let Some((kind, subtype)) = essence.split_once('/') else { return false };
    if kind.is_empty() || !essence.bytes().all(|byte| byte == b'/' || is_token(byte)) || subtype.contains('/') {
        return false;
    }
    let subtype = subtype.to_ascii_lowercase();
    match kind.to_ascii_lowercase().as_str() {
        "application" | "text" if subtype == "json" => true,
        _ => subtype.len() > 5 && subtype.ends_with("+json"),
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn json_is_known_by_its_media_type() {
        for yes in ["application/json", "Application/JSON; charset=utf-8", " text/json ", "application/problem+json"] {
            assert!(is_json(yes), "{yes}");
        }
        for no in ["", "json", "text/html", "text/plain;application/json", "/json", "application/+json", "a b/x+json", "application/json/x"]
        {
            assert!(!is_json(no), "{no}");
        }
    }
}
