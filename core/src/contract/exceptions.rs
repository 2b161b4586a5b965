//! Exceptions of other people's HTTP clients from a request through a session's proxy: each client's class names, codes and words, as its
//! releases of 2026 raise them. `tests/vectors/texts/seen.json` holds what each of them raised for real.
//!
//! A program connects to its proxy only, and the proxy to the target. So a connection that could not be made is a failure of the proxy, and
//! a failure in TLS, or the proxy's answer as a gateway, is a failure of the target. A connection that broke off may be either's.

/// The cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Timeout,
    Proxy,
    Target,
    /// The failure may be the proxy's or the target's.
    Unknown,
}

/// The signs of a cause. One of them in one exception of a chain is enough.
pub(crate) struct Clue {
    pub(crate) cause: Cause,
    /// When the exception must have happened: `connect`, `tls`, or at any time if this is empty.
    pub(crate) during: &'static str,
    /// Names of classes, behind their package where the language has one. `*.` in front stands for any package or none, `*` at the end for any rest.
    pub(crate) names: &'static [&'static str],
    /// Codes. `*` at the end stands for any rest.
    pub(crate) codes: &'static [&'static str],
    /// Parts of the text.
    pub(crate) texts: &'static [&'static str],
}

const NONE: Clue = Clue { cause: Cause::Unknown, during: "", names: &[], codes: &[], texts: &[] };

/// The words in front of the status that a proxy answered a CONNECT with.
pub(crate) const ANSWERED: [&str; 14] = [
    // http.client, so requests and urllib3; curl, now and before 8; PySocks, impit, primp, Scrapy.
    "Tunnel connection failed: ",
    "CONNECT tunnel failed, response ",
    "Received HTTP code ",
    "Socket error: ",
    "tunnel with status code ",
    "CONNECT failed: HTTP/1.1 ",
    "[{'status': ",
    // undici, hpagent, tunnel, got-scraping.
    "Proxy response (",
    "Bad response: ",
    "statusCode=",
    "Proxy responded with ",
    // OkHttp, java.net.http, HttpURLConnection.
    "response code for CONNECT: ",
    "Tunnel failed, got: ",
    "Proxy returns \"HTTP/1.1 ",
];

/// Exceptions whose status, or the number at the start of whose text, is the proxy's answer to a CONNECT.
pub(crate) const ANSWERS: [&str; 2] = ["*.ProxyError", "aiohttp.ClientHttpProxyError"];

/// Exceptions that name a status that was not sent.
pub(crate) const WITHOUT_STATUS: [&str; 1] = ["aiohttp.HttpProcessingError"];

/// The clues. The first one that fits decides, so certain clues stand before general ones.
pub(crate) const CLUES: [Clue; 9] = [
    // The connection broke off, or a SOCKS proxy failed and does not say at what; some clients call that the proxy's fault, or TLS's.
    Clue {
        names: &["http.RemoteDisconnected", "ssl.SSLEOFError", "ssl.SSLZeroReturnError", "aiohttp.HttpProcessingError"],
        codes: &["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "UND_ERR_SOCKS5_REPLY_1"],
        texts: &[
            "closed abruptly",
            "unexpected eof",
            "terminated the handshake",
            "eneral SOCKS server failure",
            "SOCKS server general failure",
            "rejected connection - Failure",
            "connect failed with status 1",
            "GeneralServerFailure",
            ". (1)",
        ],
        ..NONE
    },
    // The proxy could not be reached, or refuses the login or the target.
    Clue {
        cause: Cause::Proxy,
        names: &["socks.SOCKS5AuthError", "socks.ProxyConnectionError"],
        codes: &["UND_ERR_SOCKS5_REPLY_2"],
        texts: &[
            "tcp connect error",
            "dns error",
            "not allowed by ruleset",
            "rejected connection - NotAllowed",
            "connect failed with status 2",
            "ConnectionNotAllowed",
            ". (2)",
        ],
        ..NONE
    },
    // A SOCKS proxy could not reach the target.
    Clue {
        cause: Cause::Target,
        codes: &["UND_ERR_SOCKS5_REPLY_*"],
        texts: &[
            "Host unreachable",
            "Network unreachable",
            "TTL expired",
            "0x05: Connection refused",
            "could not connect: Connection refused",
            "refused by destination host",
            "SOCKS: Connection refused",
            "proxy rejected connection",
            "connect failed with status ",
            "Command(",
            ". (3)",
            ". (4)",
            ". (5)",
            ". (6)",
            "ERR_SOCKS_CONNECTION_HOST_UNREACHABLE",
        ],
        ..NONE
    },
    // The proxy took the connection already.
    Clue { cause: Cause::Timeout, during: "tls", names: &["builtins.TimeoutError"], ..NONE },
    Clue {
        cause: Cause::Timeout,
        codes: &["NSURLErrorDomain -1001"],
        texts: &["Socket error: timed out", "HTTPClientError.deadlineExceeded"],
        ..NONE
    },
    // The proxy's failures, as clients name them.
    Clue {
        cause: Cause::Proxy,
        names: &[
            "*.ProxyError",
            "aiohttp.ClientProxyConnectionError",
            "*.ProxyConnectionError",
            "socksio.ProtocolError",
            "scrapy.TunnelError",
            "Socks5ProxyError",
        ],
        codes: &["UND_ERR_PRX_TLS", "curl_cffi 97", "pycurl 97", "kCFErrorDomainCFNetwork 1*", "kCFErrorDomainCFNetwork 3*"],
        texts: &[
            "ERR_PROXY_",
            "ERR_TUNNEL_CONNECTION_FAILED",
            "ERR_SOCKS_CONNECTION_FAILED",
            "ERR_MANDATORY_PROXY",
            "ERR_INVALID_AUTH_CREDENTIALS",
            "NS_ERROR_PROXY_",
            "NS_ERROR_UNKNOWN_PROXY_",
            "Proxy connection ended",
            "Socks5 Authentication failed",
            "no accepted authentication type",
            "SocksConnect(",
            "socks5 proxy rejected the credentials",
            "accepts no authentication methods",
            "TunnelUnexpectedEof",
            "proxy closed connection",
            "authenticate with proxy",
            "roxy authentication",
            "roxy Authentication",
            "No credentials provided",
            "authentication attempts",
            "tunnel connection",
            "SOCKS proxy",
            "SOCKS : authentication",
            "SOCKS: authentication",
            "HTTPClientError.proxyAuthenticationRequired",
            "HTTPClientError.invalidProxyResponse",
            "HTTPClientError.httpProxyHandshakeTimeout",
            "HTTPClientError.socksHandshakeTimeout",
        ],
        ..NONE
    },
    // TLS with the target; names that the proxy could not find; a client's own limit on connections, which proves nothing.
    Clue {
        cause: Cause::Target,
        names: &["*.SSLError", "aiohttp.ClientSSLError", "OpenSSL.Error", "javax.net.ssl.SSLException", "*.PoolTimeout"],
        codes: &[
            "EPROTO",
            "ERR_SSL_*",
            "ERR_TLS_*",
            "CERT_*",
            "DEPTH_ZERO_SELF_SIGNED_CERT",
            "SELF_SIGNED_CERT_IN_CHAIN",
            "UNABLE_TO_*",
            "curl_cffi 6",
            "curl_cffi 35",
            "curl_cffi 60",
            "pycurl 6",
            "pycurl 35",
            "pycurl 60",
            "NSURLErrorDomain -12*",
        ],
        texts: &[
            "net::ERR_CERT_",
            "net::ERR_SSL_",
            "net::ERR_NAME_NOT_RESOLVED",
            "SSL_ERROR_",
            "SEC_ERROR_",
            "NS_ERROR_UNKNOWN_HOST",
            "InvalidCertificate",
            "InvalidContentType",
            "invalid peer certificate",
        ],
        ..NONE
    },
    // A connection could not be made, in time or at all.
    Clue { cause: Cause::Proxy, during: "connect", codes: &["ETIMEDOUT"], ..NONE },
    Clue {
        cause: Cause::Proxy,
        names: &[
            "*.ConnectionRefusedError",
            "socket.gaierror",
            "*.ConnectTimeout",
            "*.NewConnectionError",
            "urllib3.ConnectTimeoutError",
            "aiohttp.ConnectionTimeoutError",
            "primp.DNSError",
            "twisted.DNSLookupError",
            "twisted.NoRouteError",
            "java.net.ConnectException",
            "java.net.NoRouteToHostException",
            "java.net.UnknownHostException",
            "java.nio.channels.UnresolvedAddressException",
            "java.net.http.HttpConnectTimeoutException",
            "*.ConnectTimeoutException",
        ],
        codes: &[
            "ECONNREFUSED",
            "EHOSTUNREACH",
            "ENETUNREACH",
            "ENOTFOUND",
            "EAI_AGAIN",
            "UND_ERR_CONNECT_TIMEOUT",
            "curl_cffi 5",
            "curl_cffi 7",
            "pycurl 5",
            "pycurl 7",
            "NSURLErrorDomain -1003",
            "NSURLErrorDomain -1004",
            "NSURLErrorDomain -1006",
        ],
        texts: &[
            "connect ECONNREFUSED",
            "getaddrinfo E",
            "(os error 111)",
            "onnect timed out",
            "failed to connect to",
            "HTTPClientError.connectTimeout",
        ],
        ..NONE
    },
];
