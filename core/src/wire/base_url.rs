//! The address of an API, checked once.

use std::fmt;
use std::net::IpAddr;

use super::host::is_host;

/// A base URL: scheme, host, and a path that already holds the version segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseUrl(String);

/// Why a base URL is refused. None of these repeats the text, which may hold credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBaseUrl {
    /// The text is not a URL.
    #[error("the base URL must be absolute, such as `https://host/v1`")]
    NotAbsolute,
    /// The URL has a user name or a password.
    #[error("the base URL must not hold a user name or a password")]
    UserInfo,
    /// The URL has a query or a fragment.
    #[error("the base URL must not hold a query or a fragment")]
    Extra,
    /// The scheme is neither `https` nor `http`.
    #[error("the base URL must begin with `https://`, or with `http://` where that is allowed")]
    Scheme,
    /// The path has a `.` or `..` segment.
    #[error("the base URL must not hold `.` or `..` segments")]
    Dots,
    /// The URL is plain http to another machine.
    #[error(
        "the base URL must be https, since the key would travel in the clear; a loopback host may be plain http, another one only by `allow_http`"
    )]
    Plain,
}

impl BaseUrl {
    /// Reads a base URL. Plain http is refused unless the host is loopback or `allow_http` is set.
    pub fn new(text: &str, allow_http: bool) -> Result<Self, BadBaseUrl> {
        if text.contains(['#', '?']) {
            return Err(BadBaseUrl::Extra);
        }
        let (scheme, rest) = text.split_once("://").ok_or(BadBaseUrl::NotAbsolute)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(BadBaseUrl::UserInfo);
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
        let is_plain = path.bytes().all(|byte| byte > b' ' && byte != 0x7f && !b"<>`".contains(&byte));
        if !is_host(host) || !port.is_none_or(is_port) || !is_plain {
            return Err(BadBaseUrl::NotAbsolute);
        }
        if path.split('/').any(|segment| matches!(segment.replace("%2e", ".").replace("%2E", ".").as_str(), "." | "..")) {
            return Err(BadBaseUrl::Dots);
        }
        let scheme = scheme.to_ascii_lowercase();
        match scheme.as_str() {
            "https" => {}
            "http" if allow_http || is_loopback(host) => {}
            "http" => return Err(BadBaseUrl::Plain),
            _ => return Err(BadBaseUrl::Scheme),
        }
        Ok(BaseUrl(format!("{scheme}://{}{}", authority.to_ascii_lowercase(), path.trim_end_matches('/'))))
    }

    /// The URL without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_keeps_its_path_and_loses_its_last_slash() {
        let url = |text| BaseUrl::new(text, false).map(|url| url.to_string());
        assert_eq!(url("https://API.example/v1/").as_deref(), Ok("https://api.example/v1"));
        assert_eq!(url("https://api.example:8443").as_deref(), Ok("https://api.example:8443"));
        assert_eq!(url("http://127.0.0.1:80/v1").as_deref(), Ok("http://127.0.0.1:80/v1"));
        assert_eq!(url("http://[::1]:80/v1").as_deref(), Ok("http://[::1]:80/v1"));
    }

    #[test]
    fn what_is_a_base_url_is_a_uri_too() {
        assert_eq!(BaseUrl::new("HTTPS://Host/V1", false).map(|url| url.to_string()).as_deref(), Ok("https://host/V1"));
        for at in (' '..='~').filter(|at| !['#', '?', '@'].contains(at)) {
            for text in
                [format!("https://host/v{at}1"), format!("https://host:8{at}1/v1"), format!("ht{at}tps://host"), format!("https:/{at}host")]
            {
                assert!(BaseUrl::new(&text, false).is_err() || text.parse::<http::Uri>().is_ok(), "{text}");
            }
            let text = format!("https://host/v{at}1");
            let is_uri = text.parse::<http::Uri>().is_ok();
            assert_eq!(BaseUrl::new(&text, false).is_ok(), is_uri, "{text}");
        }
        for text in ["https://host:/v1", "https://host:65536", "https:host", "https:/host", "https://[::1", "https://:80"] {
            assert_eq!(BaseUrl::new(text, false), Err(BadBaseUrl::NotAbsolute), "{text}");
        }
    }

    #[test]
    fn a_base_url_that_would_mislead_is_refused() {
        let refusal = |text| BaseUrl::new(text, false).err();
        assert_eq!(refusal("api.example/v1"), Some(BadBaseUrl::NotAbsolute));
        assert_eq!(refusal(""), Some(BadBaseUrl::NotAbsolute));
        assert_eq!(refusal("https://"), Some(BadBaseUrl::NotAbsolute));
        assert_eq!(refusal("https://host:port/v1"), Some(BadBaseUrl::NotAbsolute));
        assert_eq!(refusal("https://0x7f.1/v1"), Some(BadBaseUrl::NotAbsolute));
        assert_eq!(refusal("https://127.1/v1"), Some(BadBaseUrl::NotAbsolute));
        assert_eq!(refusal("https://a%2fb/v1"), Some(BadBaseUrl::NotAbsolute));
        assert_eq!(refusal("https://user:canary@host/v1"), Some(BadBaseUrl::UserInfo));
        assert_eq!(refusal("https://host/v1?x=1"), Some(BadBaseUrl::Extra));
        assert_eq!(refusal("https://host/v1#x"), Some(BadBaseUrl::Extra));
        assert_eq!(refusal("https://host/a/../v1"), Some(BadBaseUrl::Dots));
        assert_eq!(refusal("https://host/a/%2E%2e/v1"), Some(BadBaseUrl::Dots));
        assert_eq!(refusal("ftp://host/v1"), Some(BadBaseUrl::Scheme));
        assert_eq!(refusal("http://api.example/v1"), Some(BadBaseUrl::Plain));
        assert!(BaseUrl::new("http://api.example/v1", true).is_ok());
    }
}
