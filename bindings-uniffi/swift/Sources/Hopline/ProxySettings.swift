import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#else
    import Network
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

    /// Sends what a `URLSession` of this configuration requests through the proxy, HTTP or SOCKS5, credentials included, and never
    /// past it: a proxy that fails is an error of the request (`allowFailover` is false).
    ///
    /// On Apple's systems only. Elsewhere `URLSession` ignores proxies, so this throws and leaves the configuration as it is.
    public func configure(_ configuration: URLSessionConfiguration) throws(HoplineError) {
        let (scheme, login) = try (scheme(), credentials())
        _ = try address()
        #if canImport(FoundationNetworking)
            _ = (scheme, login)
            throw refused("protocol", "is of no use here, since URLSession ignores proxies on this system; give `curl()` or `url()` to another client")
        #else
            // `address` has checked both.
            let endpoint = NWEndpoint.hostPort(
                host: NWEndpoint.Host(bareHost), port: NWEndpoint.Port(rawValue: UInt16(clamping: port ?? 0)) ?? .any)
            var proxy =
                switch scheme {
                case "http": ProxyConfiguration(httpCONNECTProxy: endpoint)
                case "https": ProxyConfiguration(httpCONNECTProxy: endpoint, tlsOptions: NWProtocolTLS.Options())
                default: ProxyConfiguration(socksv5Proxy: endpoint)
                }
            proxy.applyCredential(username: login.username, password: login.password)
            proxy.allowFailover = false
            configuration.proxyConfigurations = [proxy]
        #endif
    }

    #if !canImport(FoundationNetworking)
        /// The host without the brackets of a URL.
        private var bareHost: String { (host ?? "").trimmingCharacters(in: CharacterSet(charactersIn: "[]")) }
    #endif

    private func scheme() throws(HoplineError) -> String {
        // The service says so itself: a proxy for https may well be spoken to in plain HTTP.
        let named = fullUrl.flatMap { $0.reveal().components(separatedBy: "://").first }
        guard let scheme = named.flatMap({ schemes[$0] }) ?? self.protocol.flatMap({ schemes[$0.rawValue] }) else {
            throw refused("protocol", "is not known; read the session again once it is active")
        }
        return scheme
    }

    private func address() throws(HoplineError) -> String {
        guard let host, let port, !host.isEmpty else {
            throw refused("host", "and port are missing, since the session was not active when it was read; wait for it")
        }
        // It goes into URLs and configurations as it is.
        guard host.unicodeScalars.allSatisfy(hostly.contains), 1...65535 ~= port else { throw refused("host", "and port are invalid") }
        return host.contains(":") && !host.hasPrefix("[") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    private func credentials() throws(HoplineError) -> (username: String, password: String) {
        guard let username, let password else {
            let rule = "and password were not requested; use `credentials: true` to open or wait for a session, `includeCredentials: true` to read it"
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
