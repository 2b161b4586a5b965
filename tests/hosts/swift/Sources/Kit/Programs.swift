import Foundation
import Hopline

/// A program of this package, which is built beside its tests.
public func program(_ name: String) -> String {
    let own = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    let folder = own.path.contains(".xctest/") ? own.deletingLastPathComponent().deletingLastPathComponent() : own.deletingLastPathComponent()
    return folder.appendingPathComponent(name).path
}

/// The answer to curl through a session's proxy. Outside Apple's systems `URLSession` ignores proxies.
public func curl(_ url: String, through proxy: Hopline.Proxy) async throws -> (status: Int, text: String) {
    let (ended, status, text) = try await fetch(url, through: proxy)
    guard ended == 0 else { throw Unmet("curl came through the proxy, and ended with \(ended)") }
    return (status, text)
}

/// True if a proxy refuses its credentials: with HTTP 407, or in the handshake of SOCKS5, which curl reports by ending with 97.
public func isRefused(_ url: String, through proxy: Hopline.Proxy) async throws -> Bool {
    let (ended, status, _) = try await fetch(url, through: proxy)
    return ended == 97 || ended == 0 && status == 407
}

private func fetch(_ url: String, through proxy: Hopline.Proxy) async throws -> (ended: Int32, status: Int, text: String) {
    // The password goes through curl's own standard input, where no list of processes shows it.
    let child = try Child("/usr/bin/curl", ["--silent", "--max-time", "10", "--write-out", "\n%{http_code}", "--config", "-", url])
    try child.write(proxy.curl().reveal())
    child.finish()
    let text = await child.text()
    let ended = await child.wait()
    let lines = text.split(separator: "\n")
    return (ended, lines.last.flatMap { Int($0) } ?? 0, lines.dropLast().joined(separator: "\n"))
}
