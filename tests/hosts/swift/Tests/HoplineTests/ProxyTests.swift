import Foundation
import Hopline
import Kit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("a session's proxy, as HTTP clients want it")
struct ProxyTests {
    private func proxy(_ members: String) throws -> Hopline.Proxy {
        let told = try JSONDecoder().decode(JSON.self, from: Data("{\(members)}".utf8))
        let secret = { (name: String) in told[name]?.string.map { Secret($0) } }
        return Hopline.Proxy(
            host: told["host"]?.string, port: told["port"]?.decimal.map { NSDecimalNumber(decimal: $0).intValue }, protocol: told["protocol"]?.string.map { Hopline.`Protocol`(rawValue: $0) },
            username: secret("username"), password: secret("password"), fullUrl: secret("full_url"))
    }

    private let odd = #""username":"user@1:/","password":"canary p%ss:w@rd /?#[]é\"\\""#

    @Test("a page is fetched through the session by a name that only the proxy knows", arguments: [Hopline.`Protocol`.socks5, .http])
    func fetched(_ kind: Hopline.`Protocol`) async throws {
        let sandbox = try await Sandbox("--provisioning-ms", "0")
        let open = try await sandbox.client().openSession(
            sessionType: .dynamic, productNo: "dynamic-world", protocol: kind, credentials: true)
        let site = sandbox.ready.target_url.replacingOccurrences(of: "127.0.0.1", with: "shop.localhost")
        let came = try await curl(site, through: #require(open.proxy))
        let exit = try #require(try await sandbox.state().sessions.first?.exit)
        #expect(came.status == 200 && came.text.contains("\"\(exit)\""))
    }

    @Test("credentials survive the URL, whatever they are")
    func urls() throws {
        let url = try #require(URLComponents(string: proxy(#""host":"2001:db8::1","port":1080,"protocol":"socks5",\#(odd)"#).url().reveal()))
        #expect(url.scheme == "socks5h" && url.host == "[2001:db8::1]" && url.port == 1080)
        #expect(url.user == "user@1:/" && url.password == "canary p%ss:w@rd /?#[]é\"\\")
        for (kind, full, scheme) in [
            ("http", "", "http://"), ("https", "", "https://"), ("https", #","full_url":"http://x""#, "http://"),
            ("socks5", #","full_url":"socks5://x""#, "socks5h://"), ("http", #","full_url":"odd""#, "http://"),
        ] {
            let told = try proxy(#""host":"gate.example","port":8080,"protocol":"\#(kind)",\#(odd)\#(full)"#)
            #expect(try told.url().reveal().hasPrefix(scheme))
            #expect(try told.curl().reveal() == "proxy = \"\(told.url().reveal())\"\n")
        }
    }

    @Test("a session of URLSession goes through the proxy or not at all", arguments: ["http", "https", "socks5"])
    func configured(_ kind: String) async throws {
        let configuration = URLSessionConfiguration.ephemeral
        let proxy = try proxy(#""host":"gate.example","port":1080,"protocol":"\#(kind)",\#(odd)"#)
        #if canImport(FoundationNetworking)
            let error = try await failure { try proxy.configure(configuration) }
            #expect(error.kind == .invalid && error.effect == .none && error.message.contains("URLSession ignores proxies on this system"))
            #expect(configuration.connectionProxyDictionary == nil)
        #else
            try proxy.configure(configuration)
            #expect(configuration.proxyConfigurations.map(\.allowFailover) == [false])
        #endif
    }

    @Test("a proxy that is not complete says what to do, and no secret")
    func incomplete() async throws {
        for (members, field, said) in [
            (#""host":"h","port":1,"protocol":"socks5""#, "username", "use `credentials` to open or wait for a session"),
            (#""protocol":"http",\#(odd)"#, "host", "wait for it"), (#""host":"h","port":1,"protocol":"quic",\#(odd)"#, "protocol", "is missing or unknown"),
            (#""host":"h","port":1,\#(odd)"#, "protocol", "is missing or unknown"), (#""host":"h\"\nx","port":1,"protocol":"http",\#(odd)"#, "host", "is not a host name"),
            (#""host":"h","port":0,"protocol":"http",\#(odd)"#, "port", "1 to 65535"),
        ] {
            let proxy = try proxy(members)
            for error in [try await failure { try proxy.url() }, try await failure { try proxy.curl() }] {
                #expect(error.kind == .invalid && error.field == field && error.message.contains(said), "\(error.debugDescription)")
                #expect(!error.debugDescription.contains("canary"))
            }
            let configured = try await failure { try proxy.configure(.ephemeral) }
            #expect(configured.kind == .invalid && !configured.debugDescription.contains("canary"))
        }
    }
}
