import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension Proxy {
    /// A proxy that no session showed, such as one of a static order.
    public init(host: String, port: Int, protocol: Hopline.`Protocol`, username: Secret, password: Secret) {
        self.init(host: host, port: port, protocol: `protocol`, username: username, password: password, fullUrl: nil)
    }

    /// The proxy as a URL, credentials included and percent-encoded. `socks5h` means that it also looks names up.
    public func url() throws(HoplineError) -> Secret {
        let login = try credentials()
        let encoded = [login.username, login.password].map { $0.addingPercentEncoding(withAllowedCharacters: unreserved) ?? "" }
        return try Secret("\(scheme())://\(encoded.joined(separator: ":"))@\(address())")
    }

    /// For curl: give it to the standard input of `curl --config -`. As an argument, every user could read it.
    public func curl() throws(HoplineError) -> Secret {
        try Secret("proxy = \"\(url().reveal())\"\n")
    }

    /// For `URLSession` on Apple's systems: sets the `connectionProxyDictionary`, credentials included. Where the system asks for
    /// them all the same, your session's delegate answers the challenge with `username` and `password`.
    ///
    /// It refuses what `URLSession` can't do, rather than to let it go past the proxy: to log in to a SOCKS5 proxy anywhere, and to
    /// use any proxy outside Apple's systems.
    public func configure(_ configuration: URLSessionConfiguration) throws(HoplineError) {
        if try scheme().hasPrefix("socks") {
            throw refused("protocol", "is socks5, and URLSession can't log in to a SOCKS5 proxy; buy the session with `protocol: .http`")
        }
        let login = try credentials()
        #if canImport(FoundationNetworking)
            _ = (try address(), login)
            throw refused("protocol", "is of no use here, since URLSession knows no proxies on this system; give `curl()` or `url()` to another client")
        #else
            _ = try address()
            configuration.connectionProxyDictionary = [
                "HTTPEnable": true, "HTTPProxy": host ?? "", "HTTPPort": port ?? 0,
                "HTTPSEnable": true, "HTTPSProxy": host ?? "", "HTTPSPort": port ?? 0,
                kCFProxyUsernameKey as String: login.username, kCFProxyPasswordKey as String: login.password,
            ]
        #endif
    }

    private func scheme() throws(HoplineError) -> String {
        // The service says so itself: a proxy for https may well be spoken to in plain HTTP.
        let named = fullUrl.flatMap { $0.reveal().components(separatedBy: "://").first }
        guard let scheme = named.flatMap({ schemes[$0] }) ?? self.protocol.flatMap({ schemes[$0.rawValue] }) else {
            throw refused("protocol", "is none that is known; ask for the session again once it is active")
        }
        return scheme
    }

    private func address() throws(HoplineError) -> String {
        guard let host, let port, !host.isEmpty else {
            throw refused("host", "and port are missing, since the session was not active when it was read; wait for it")
        }
        // It goes into URLs and configurations as it is.
        guard host.unicodeScalars.allSatisfy(hostly.contains), 1...65535 ~= port else { throw refused("host", "and port are none") }
        return host.contains(":") && !host.hasPrefix("[") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    private func credentials() throws(HoplineError) -> (username: String, password: String) {
        guard let username, let password else {
            let rule = "and password were not asked for; use `credentials: true` to open or wait for a session, `includeCredentials: true` to read it"
            throw refused("username", rule)
        }
        return (username.reveal(), password.reveal())
    }

    private func refused(_ field: String, _ rule: String) -> HoplineError {
        .unfit("proxy", field, rule)
    }
}

/// How what a proxy speaks stands in a URL: `h` leaves it names to look up.
private let schemes = ["socks5": "socks5h", "socks5h": "socks5h", "http": "http", "https": "https"]
private let letters = CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
private let unreserved = letters.union(CharacterSet(charactersIn: "-._~"))
private let hostly = letters.union(CharacterSet(charactersIn: "-._:[]%"))
