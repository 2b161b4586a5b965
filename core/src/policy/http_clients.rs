//! The HTTP clients that programs give a session's proxy to, and the protocols that each supports.

/// An HTTP client: its name, the schemes that it speaks to a proxy, and why not the others.
pub(crate) struct HttpClient(pub(crate) &'static str, pub(crate) &'static [&'static str], pub(crate) &'static str);

/// In a URL `socks5h` leaves names for the proxy to look up; httpx does so in any case, and only its later versions know the word.
pub(crate) const HTTP_CLIENTS: [HttpClient; 12] = [
    HttpClient("any", &["http", "https", "socks5h"], ""),
    HttpClient("requests", &["http", "https", "socks5h"], ""),
    HttpClient("httpx", &["http", "https", "socks5"], ""),
    HttpClient("aiohttp", &["http", "https"], "aiohttp does not support SOCKS5"),
    HttpClient("playwright", &["http", "https"], "Playwright can't log in to a SOCKS5 proxy"),
    HttpClient("curl", &["http", "https", "socks5h"], ""),
    HttpClient("undici", &["http", "https"], "undici supports SOCKS5 with a password only as an experiment"),
    HttpClient("okhttp", &["http"], "OkHttp can't log in to such a proxy"),
    HttpClient("java.net.http", &["http"], "java.net.http can't log in to such a proxy"),
    HttpClient("urlsession", &["http", "https", "socks5"], ""),
    HttpClient("ureq", &["http"], "ureq supports SOCKS5 only with its feature `socks-proxy`"),
    HttpClient("reqwest", &["http", "https"], "reqwest supports SOCKS5 only with its feature `socks`"),
];

/// The protocol that every one of them supports, and that is chosen where the caller names only the client.
pub(crate) const CHOSEN_PROTOCOL: &str = "http";

/// The protocol of a session whose purchase names none, by the contract.
const DEFAULT_PROTOCOL: &str = "socks5";

/// The schemes that a proxy is reached by, and their protocols.
const PROTOCOLS: [(&str, &str); 4] = [("http", "http"), ("https", "https"), ("socks5", "socks5"), ("socks5h", "socks5")];

/// The protocol of a scheme, if it is known.
pub(crate) fn protocol_of(scheme: &str) -> Option<&'static str> {
    PROTOCOLS.iter().find(|(known, _)| *known == scheme).map(|(_, protocol)| *protocol)
}

impl HttpClient {
    /// The client of that name.
    pub(crate) fn named(name: &str) -> Option<&'static HttpClient> {
        HTTP_CLIENTS.iter().find(|HttpClient(known, ..)| *known == name)
    }

    /// The names of all.
    pub(crate) fn names() -> [&'static str; HTTP_CLIENTS.len()] {
        HTTP_CLIENTS.map(|HttpClient(name, ..)| name)
    }

    /// The scheme by which it speaks a protocol, or the rule that the protocol breaks.
    pub(crate) fn speaks(&self, protocol: &str) -> Result<&'static str, String> {
        let HttpClient(_, schemes, why) = self;
        let scheme = schemes.iter().find(|scheme| protocol_of(scheme) == Some(protocol)).copied();
        scheme.ok_or_else(|| format!("is {protocol}, and {why}; buy the session with `protocol` http"))
    }

    /// The reason why a session can't be used with this client that was bought with that protocol, or without one.
    pub(crate) fn can_not_use(&self, protocol: Option<&str>) -> Option<String> {
        let protocol = protocol.map_or(Some(DEFAULT_PROTOCOL), protocol_of)?;
        let HttpClient(_, schemes, why) = self;
        let is_spoken = schemes.iter().any(|scheme| protocol_of(scheme) == Some(protocol));
        (!is_spoken).then(|| format!("{protocol}, and {why}"))
    }
}
