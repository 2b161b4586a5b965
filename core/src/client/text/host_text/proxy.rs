//! A session's proxy as HTTP clients take it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::client::text::host_params::HostParams;
use crate::contract::written;
use crate::policy::{Error, HttpClient, protocol_of};
use crate::wire::{encoded, is_host, unknown_word};

/// The protocol that the HTTP client will use.
pub(super) struct Usable {
    /// None where the protocol is unknown here: then the service judges it.
    scheme: Option<&'static str>,
}
written!(Usable { scheme });

/// A proxy in every format of HTTP clients. The settings hold secrets, so they have no `Debug`.
pub(super) struct Settings {
    /// All of it, credentials included and percent-encoded.
    url: String,
    /// `http`, `https`, `socks5` or `socks5h`, as the client spells it.
    scheme: &'static str,
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
written!(Settings { url, scheme, host, port, server, username, password, authorization, curl });

/// Clients that write the login of an HTTP proxy as Latin-1, one letter a byte. A proxy reads UTF-8, so its bytes are the letters they get.
const LATIN: [&str; 3] = ["requests", "aiohttp", "java.net.http"];

/// The protocol that the service sells by default.
const DEFAULT: &str = "socks5";

/// A session that is of no use to one client was paid for all the same.
const LIVES: &str = "this session is not over: give its proxy to a client that can use it, or terminate it";

/// The proxy of a session, for a client.
pub(super) fn settings(given: &HostParams<'_>) -> Result<Settings, Error> {
    let (proxy, client) = (given.object("proxy")?, known(given, "client")?);
    // The service's own URL says how the proxy is reached: one for https sites may well be spoken to in plain HTTP.
    let full_url = proxy.text("full_url")?.unwrap_or_default();
    let named = full_url.split_once("://").and_then(|(scheme, _)| protocol_of(&scheme.to_ascii_lowercase()));
    let protocol = named.or(proxy.text("protocol")?.as_deref().and_then(protocol_of));
    let protocol = protocol.ok_or_else(|| proxy.refuse("protocol", "is missing or unknown; read the session again once it is active"))?;
    let scheme = client.speaks(protocol).map_err(|rule| given.refuse("protocol", &format!("{rule}; {LIVES}")))?;
    let (Some(host), Some(port)) = (proxy.text("host")?.filter(|host| !host.is_empty()), proxy.get("port")) else {
        return Err(proxy.refuse("host", "and port are missing, since the session was not active when it was read; wait for it"));
    };
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&host);
    let (written, host) = if bare.contains(':') { (format!("[{bare}]"), bare.to_owned()) } else { (host.clone(), host) };
    if !is_host(&written) {
        return Err(proxy.refuse("host", "is not a host name or an address"));
    }
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(|| proxy.refuse("port", "must be 1 to 65535"))?;
    let login = [proxy.text("username")?, proxy.text("password")?].map(|text| text.filter(|text| !text.is_empty()));
    let [Some(username), Some(password)] = login else {
        let rule = "and password are missing, since they were not requested; use `credentials` to open or wait for a session, \
                    `include_credentials` to read it";
        return Err(proxy.refuse("username", rule));
    };
    for (field, text) in [("username", &username), ("password", &password)] {
        let most = longest(client);
        if protocol == "socks5" && text.len() > most {
            return Err(proxy.refuse(field, &format!("is longer than the {most} bytes of a SOCKS5 login; use another protocol")));
        }
    }
    let authorization = format!("Basic {}", STANDARD.encode(format!("{username}:{password}")));
    let [username, password] = [username, password].map(|text| spelled(client, protocol, text));
    let address = format!("{written}:{port}");
    let url = format!("{scheme}://{}:{}@{address}", encoded(&username), encoded(&password));
    Ok(Settings {
        curl: format!("proxy = \"{url}\"\n"),
        url,
        scheme,
        host,
        port,
        server: format!("{scheme}://{address}"),
        authorization,
        username,
        password,
    })
}

/// A part of a login as a client has to be given it.
fn spelled(HttpClient(client, ..): &HttpClient, protocol: &str, text: String) -> String {
    let is_latin = LATIN.contains(client) && protocol != "socks5";
    if is_latin { text.bytes().map(char::from).collect() } else { text }
}

/// Refuses a session before it is bought, where the client that it is for could not use its proxy.
pub(super) fn check(given: &HostParams<'_>) -> Result<Usable, Error> {
    let client = known(given, "use_with")?;
    let protocol = protocol_of(given.text("protocol")?.as_deref().unwrap_or(DEFAULT));
    let scheme = protocol.map(|protocol| client.speaks(protocol)).transpose().map_err(|rule| given.refuse("protocol", &rule))?;
    Ok(Usable { scheme })
}

/// How long a name or a password of a SOCKS5 login may be, in bytes: 255 by RFC 1929; the SOCKS5 client of requests breaks it from 128 on.
fn longest(HttpClient(client, ..): &HttpClient) -> usize {
    if *client == "requests" { 127 } else { 255 }
}

/// The client of that name, which the caller knows as `field`.
fn known(given: &HostParams<'_>, field: &str) -> Result<&'static HttpClient, Error> {
    let name = given.text("client")?.unwrap_or_default();
    HttpClient::named(&name).ok_or_else(|| given.refuse(field, &unknown_word(&name, &HttpClient::names())))
}
