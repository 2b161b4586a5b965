//! A session's proxy as HTTP clients take it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::contract::Secret;
use crate::contract::agent::{Protocol, Proxy};
use crate::policy::Error;
use crate::wire::{encoded, is_host};

/// What is asked: a proxy, and what it is for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Given {
    proxy: Proxy,
    client: String,
}

/// Before a purchase: the client that the session is for, and the protocol that is to be bought.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    client: String,
    protocol: Option<String>,
}

/// What the client will speak.
#[derive(Serialize)]
pub(super) struct Usable {
    /// None where the protocol is unknown here: then the service judges it.
    #[serde(skip_serializing_if = "Option::is_none")]
    scheme: Option<&'static str>,
}

/// A proxy in every form that a client takes. It holds secrets, so it has no `Debug`.
#[derive(Serialize)]
pub(super) struct Settings {
    /// All of it, credentials included and percent-encoded.
    url: String,
    /// `http`, `https`, `socks5` or `socks5h`, as the client spells it.
    scheme: String,
    /// An address of IPv6 is without brackets.
    host: String,
    port: u16,
    /// Scheme, host and port.
    server: String,
    username: String,
    password: String,
    /// The value of a `Proxy-Authorization` header.
    authorization: String,
    /// A configuration that `curl --config -` reads from its standard input.
    curl: String,
}

/// An HTTP client: its name, the schemes that it speaks to a proxy, and why not the others.
struct Client(&'static str, &'static [&'static str], &'static str);

/// In a URL `socks5h` leaves names for the proxy to look up; httpx does so in any case, and only its later versions know the word.
const CLIENTS: [Client; 9] = [
    Client("any", &["http", "https", "socks5h"], ""),
    Client("requests", &["http", "https", "socks5h"], ""),
    Client("httpx", &["http", "https", "socks5"], ""),
    Client("aiohttp", &["http", "https"], "aiohttp does not support SOCKS5"),
    Client("playwright", &["http", "https"], "Playwright can't log in to a SOCKS5 proxy"),
    Client("curl", &["http", "https", "socks5h"], ""),
    Client("undici", &["http", "https"], "undici supports SOCKS5 with a password only as an experiment"),
    Client("okhttp", &["http"], "OkHttp can't log in to such a proxy"),
    Client("java.net.http", &["http"], "java.net.http can't log in to such a proxy"),
];

/// The schemes that a proxy is reached by, and their protocols.
const PROTOCOLS: [(&str, &str); 4] = [("http", "http"), ("https", "https"), ("socks5", "socks5"), ("socks5h", "socks5")];

/// What the service sells where no protocol is named.
const DEFAULT: &str = "socks5";

pub(super) fn settings(given: Given) -> Result<Settings, Error> {
    let Given { proxy, client } = given;
    let refuse = |field, rule: &str| Error::invalid("proxy", field, rule);
    // The service's own URL says how the proxy is reached: one for https sites may well be spoken to in plain HTTP.
    let scheme = proxy.full_url.as_ref().and_then(|url| url.reveal().split_once("://")).map(|(scheme, _)| scheme.to_ascii_lowercase());
    let protocol = scheme.as_deref().and_then(protocol_of).or_else(|| proxy.protocol.as_ref().map(Protocol::as_str).and_then(protocol_of));
    let protocol = protocol.ok_or_else(|| refuse("protocol", "is missing or unknown; read the session again once it is active"))?;
    let scheme = speaks("proxy", known("proxy", "client", &client)?, protocol)?;
    let (Some(host), Some(port)) = (proxy.host.filter(|host| !host.is_empty()), proxy.port) else {
        return Err(refuse("host", "and port are missing, since the session was not active when it was read; wait for it"));
    };
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&host);
    let (written, host) = if bare.contains(':') { (format!("[{bare}]"), bare.to_owned()) } else { (host.clone(), host) };
    if !is_host(&written) {
        return Err(refuse("host", "is not a host name or an address"));
    }
    let port = u16::try_from(port).ok().filter(|port| *port > 0).ok_or_else(|| refuse("port", "must be 1 to 65535"))?;
    let given = |secret: Option<Secret>| secret.map(|secret| secret.reveal().to_owned()).filter(|text| !text.is_empty());
    let (Some(username), Some(password)) = (given(proxy.username), given(proxy.password)) else {
        let rule = "and password are missing, since they were not requested; use `credentials` to open or wait for a session, \
                    `include_credentials` to read it";
        return Err(refuse("username", rule));
    };
    let address = format!("{written}:{port}");
    let url = format!("{scheme}://{}:{}@{address}", encoded(&username), encoded(&password));
    Ok(Settings {
        curl: format!("proxy = \"{url}\"\n"),
        url,
        scheme: scheme.to_owned(),
        host,
        port,
        server: format!("{scheme}://{address}"),
        authorization: format!("Basic {}", STANDARD.encode(format!("{username}:{password}"))),
        username,
        password,
    })
}

/// Refuses a session before it is bought, where the client that it is for could not use its proxy.
pub(super) fn check(wanted: Wanted) -> Result<Usable, Error> {
    let client = known("open_session", "use_with", &wanted.client)?;
    let protocol = protocol_of(wanted.protocol.as_deref().unwrap_or(DEFAULT));
    let scheme = protocol.map(|protocol| speaks("open_session", client, protocol)).transpose()?;
    Ok(Usable { scheme })
}

fn known(operation: &'static str, field: &str, name: &str) -> Result<&'static Client, Error> {
    CLIENTS.iter().find(|Client(known, ..)| *known == name).ok_or_else(|| {
        let names = CLIENTS.map(|Client(name, ..)| format!("`{name}`")).join(", ");
        Error::invalid(operation, field, &format!("must be one of {names}"))
    })
}

/// The scheme by which a client speaks a protocol.
fn speaks(operation: &'static str, Client(_, schemes, why): &Client, protocol: &str) -> Result<&'static str, Error> {
    let scheme = schemes.iter().find(|scheme| protocol_of(scheme) == Some(protocol));
    scheme.copied().ok_or_else(|| {
        let rule = format!("is {protocol}, and {why}; buy the session with `protocol` http");
        Error::invalid(operation, "protocol", &rule)
    })
}

fn protocol_of(scheme: &str) -> Option<&'static str> {
    PROTOCOLS.iter().find(|(known, _)| *known == scheme).map(|(_, protocol)| *protocol)
}
