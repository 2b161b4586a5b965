import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#else
    import Network
#endif

extension Proxy {
    /// The proxy as a URL, credentials included and percent-encoded. `socks5h` means that the proxy also looks names up.
    public func url() throws(HoplineError) -> Secret {
        try Secret(told().url)
    }

    /// The settings for curl: pass them to the standard input of `curl --config -`. As an argument, every user of the machine could read
    /// them.
    public func curl() throws(HoplineError) -> Secret {
        try Secret(told().curl)
    }

    /// The settings for curl as the standard input of a `Process` that runs `curl --config -`.
    public func curlInput() throws(HoplineError) -> Pipe {
        let (input, settings) = (Pipe(), Data(try curl().reveal().utf8))
        do {
            // A pipe holds that much before anybody reads it.
            try input.fileHandleForWriting.write(contentsOf: settings)
            try input.fileHandleForWriting.close()
        } catch {
            throw HoplineError(.invalid, "proxy", "the system gave no pipe: \(error)", advice: .retryLater, say: "nothing was sent")
        }
        return input
    }

    /// Sends the requests of a `URLSession` with this configuration through the proxy, HTTP or SOCKS5, credentials included, and never past
    /// it: a proxy that fails is an error of the request (`allowFailover` is false).
    ///
    /// On Apple's systems only. Elsewhere `URLSession` ignores proxies, so this throws and leaves the configuration as it is.
    public func configure(_ configuration: URLSessionConfiguration) throws(HoplineError) {
        let told = try told()
        #if canImport(FoundationNetworking)
            _ = told
            let what = "`protocol` is of no use here, since URLSession ignores proxies on this system; give `curl()` or `url()` to another client"
            throw HoplineError(.invalid, "proxy", what, advice: .changeRequest, say: "nothing was sent", field: "protocol")
        #else
            let endpoint = NWEndpoint.hostPort(host: NWEndpoint.Host(told.host), port: NWEndpoint.Port(rawValue: told.port) ?? .any)
            var proxy =
                switch told.scheme {
                case "http": ProxyConfiguration(httpCONNECTProxy: endpoint)
                case "https": ProxyConfiguration(httpCONNECTProxy: endpoint, tlsOptions: NWProtocolTLS.Options())
                default: ProxyConfiguration(socksv5Proxy: endpoint)
                }
            proxy.applyCredential(username: told.username, password: told.password)
            proxy.allowFailover = false
            configuration.proxyConfigurations = [proxy]
        #endif
    }

    /// The proxy in the core's formats.
    private func told() throws(HoplineError) -> Told {
        var proxy = Parameters()
        proxy.add("host", host)
        proxy.add("port", port)
        proxy.add("protocol", self.protocol)
        proxy.add("username", username)
        proxy.add("password", password)
        proxy.add("full_url", fullUrl)
        return try ask("proxy", ["client": "any", "proxy": proxy.json])
    }
}

/// A proxy in the formats of HTTP clients.
private struct Told: Decodable {
    let url: String
    let scheme: String
    let host: String
    let port: UInt16
    let username: String
    let password: String
    let curl: String
}
