//! Host names and addresses, and the texts around them.

use std::net::{Ipv4Addr, Ipv6Addr};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986 is encoded, in paths, queries and credentials alike.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text as it stands in any part of a URL.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Returns true if every client reads the host in the same way: a name of ordinary letters, or an address in its usual form. Browsers take
/// `0x7f.1` for an address and other clients for a name.
pub(crate) fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let letters = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let last = host.strip_suffix('.').unwrap_or(host).rsplit('.').next().unwrap_or_default();
    let number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.to_ascii_lowercase().starts_with("0x");
    letters && (host.parse::<Ipv4Addr>().is_ok() || !number)
}

/// The host of a URL, without its login and port; also where the scheme is left out. A name may be in letters other than those of ASCII,
/// which stay as they are; those of ASCII become lower case.
pub(crate) fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (address, ""),
    };
    let is_name = |host: &str| !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'));
    let is_one = if host.starts_with('[') { is_host(host) } else { is_name(host) };
    (is_one && port.bytes().all(|byte| byte.is_ascii_digit())).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_url_only_the_host_is_kept() {
        for (url, host) in [
            ("https://user:secret@Shop.Example:8443/a?token=1", "shop.example"),
            ("shop.example", "shop.example"),
            ("shop.example:80/a@b", "shop.example"),
            ("user:secret@shop.example", "shop.example"),
            ("http://[::1]:80/x", "[::1]"),
            ("http://a@b@shop.example\\@other.example", "shop.example"),
            ("https://B\u{fc}cher.example/", "b\u{fc}cher.example"),
        ] {
            assert_eq!(host_of(url).as_deref(), Some(host), "{url}");
        }
        for url in [
            "",
            "http://",
            "a\u{200b}b",
            "a b",
            " shop.example",
            "user:secret",
            "[::1",
            "[secret]",
            "::1",
            "/path",
            "a%20b",
            "secret@",
            "http://h:p/",
        ] {
            assert_eq!(host_of(url), None, "{url}");
        }
    }
}
