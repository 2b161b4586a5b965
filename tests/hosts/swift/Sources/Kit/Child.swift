import Foundation

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// A program that runs beside this one and is spoken with by lines.
public final class Child: @unchecked Sendable {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private let lock = NSLock()
    private var rest = Data()

    public init(_ program: String, _ arguments: [String], environment: [String: String] = [:], folder: String? = nil) throws {
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.currentDirectoryURL = folder.map { URL(fileURLWithPath: $0) }
        process.standardInput = input
        process.standardOutput = output
        try process.run()
    }

    deinit {
        try? input.fileHandleForWriting.close()
        if process.isRunning { process.terminate() }
    }

    /// The next line that it prints; an empty one at the end.
    public func line() async -> String {
        await onOwnThread { [self] in
            lock.withLock {
                // Not `read(upToCount:)`, which waits for all of it.
                while !rest.contains(10), case let more = output.fileHandleForReading.availableData, !more.isEmpty { rest += more }
                let line = rest.prefix { $0 != 10 }
                rest = Data(rest.dropFirst(line.count + 1))
                return String(decoding: line, as: UTF8.self)
            }
        }
    }

    /// All that it prints from here on.
    public func text() async -> String {
        await onOwnThread { [self] in
            lock.withLock {
                while case let more = output.fileHandleForReading.availableData, !more.isEmpty { rest += more }
                defer { rest = Data() }
                return String(decoding: rest, as: UTF8.self)
            }
        }
    }

    /// Writes to its standard input.
    public func write(_ text: String) {
        try? input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
    }

    /// Ends its standard input.
    public func finish() {
        try? input.fileHandleForWriting.close()
    }

    /// Ends it, with no chance to do anything about it.
    public func kill() {
        #if canImport(Glibc)
            _ = Glibc.kill(process.processIdentifier, SIGKILL)
        #else
            _ = Darwin.kill(process.processIdentifier, SIGKILL)
        #endif
    }

    /// Waits for its end: its status, or the signal that ended it as a negative number.
    public func wait() async -> Int32 {
        await onOwnThread { [self] in
            process.waitUntilExit()
            return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
        }
    }
}

/// Waits on a thread of its own: Swift has as many threads for tasks as the machine has cores, and whatever waits in one keeps it from all others.
private func onOwnThread<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: work()) }
    }
}
