import Foundation

#if canImport(Glibc)
    import Glibc
    private let stream = Int32(SOCK_STREAM.rawValue)
    private let quiet = Int32(MSG_NOSIGNAL)
#else
    import Darwin
    private let stream = SOCK_STREAM
    private let quiet: Int32 = 0
#endif

/// A server of raw sockets that does with each request what it is told, and keeps what it was sent. The sandbox has faults for all of
/// that. But each test would need a sandbox of its own and requests to its control, and with so many more servers for their one
/// URLSession the tests hang on Linux when they run side by side, though each of them passes alone.
public final class Wire: @unchecked Sendable {
    /// A connection to it.
    public struct Connection: Sendable {
        let socket: Int32

        /// Sends as much as the other side takes.
        @discardableResult
        public func write(_ text: String) -> Bool {
            let bytes = Array(text.utf8)
            var done = 0
            while done < bytes.count {
                let sent = bytes.withUnsafeBytes { send(socket, $0.baseAddress! + done, bytes.count - done, quiet) }
                if sent <= 0 { return false }
                done += sent
            }
            return true
        }

        /// A whole answer.
        public func answer(_ status: String, _ headers: [String] = ["content-type: application/json"], _ body: String = "") {
            write("HTTP/1.1 \(status)\r\n" + headers.map { "\($0)\r\n" }.joined() + "content-length: \(body.utf8.count)\r\n\r\n\(body)")
        }

        public func close() {
            shutdown(socket, Int32(2))
        }

        /// Breaks it off, as a machine that was started anew does.
        public func reset() {
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
            // To close is what sends the reset; the number stays taken by another descriptor, for whoever still reads it.
            let other = open("/dev/null", O_RDONLY)
            dup2(other, socket)
            _ = Self.end(other)
        }

        static func end(_ file: Int32) -> Int32 {
            #if canImport(Glibc)
                Glibc.close(file)
            #else
                Darwin.close(file)
            #endif
        }
    }

    public let port: UInt16
    private let listening: Int32
    private let lock = NSLock()
    private var requests: [String] = []
    private var opened = 0
    private let connected: @Sendable (Connection) -> Void
    private let asked: @Sendable (Connection, Int) -> Void

    /// `asked` hears of each whole request, which has a number from 1 on. A server that `refuses` has its port, and takes no connection.
    public init(
        refuses: Bool = false, connected: @escaping @Sendable (Connection) -> Void = { _ in }, asked: @escaping @Sendable (Connection, Int) -> Void = { _, _ in }
    ) throws {
        (self.connected, self.asked) = (connected, asked)
        listening = socket(AF_INET, stream, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = listening
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, length) == 0 && (refuses || listen(socket, 64) == 0) && getsockname(socket, $0, &length) == 0
            }
        }
        guard isListening else { throw Unmet("a free port") }
        port = UInt16(bigEndian: address.sin_port)
        if refuses { return }
        Thread.detachNewThread { [weak self] in
            while case let guest = accept(socket, nil, nil), guest >= 0 {
                guard let self else { break }
                self.lock.withLock { self.opened += 1 }
                Thread.detachNewThread { self.serve(Connection(socket: guest)) }
            }
            _ = Connection.end(socket)
        }
    }

    deinit {
        shutdown(listening, Int32(2))
    }

    public var url: String { "http://127.0.0.1:\(port)/v1" }
    /// Every request, head and body.
    public var seen: [String] { lock.withLock { requests } }
    public var connections: Int { lock.withLock { opened } }

    private func serve(_ connection: Connection) {
        connected(connection)
        var text = ""
        var buffer = [UInt8](repeating: 0, count: 65536)
        while case let count = recv(connection.socket, &buffer, buffer.count, 0), count > 0 {
            text += String(decoding: buffer.prefix(count), as: UTF8.self)
            guard let end = text.range(of: "\r\n\r\n") else { continue }
            let length = text[..<end.lowerBound].lowercased().components(separatedBy: "content-length: ").dropFirst().first.flatMap { Int($0.prefix { $0.isNumber }) }
            guard text[end.upperBound...].utf8.count >= length ?? 0 else { continue }
            let number = lock.withLock {
                requests.append(text)
                return requests.count
            }
            text = ""
            asked(connection, number)
        }
        _ = Connection.end(connection.socket)
    }
}
