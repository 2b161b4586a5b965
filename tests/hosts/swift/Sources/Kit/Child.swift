import Foundation

#if canImport(Glibc)
    import Glibc
    private typealias Actions = posix_spawn_file_actions_t
    private let system = (pipe: Glibc.pipe, read: Glibc.read, write: Glibc.write, close: Glibc.close, kill: Glibc.kill)
#else
    import Darwin
    private typealias Actions = posix_spawn_file_actions_t?
    private let system = (pipe: Darwin.pipe, read: Darwin.read, write: Darwin.write, close: Darwin.close, kill: Darwin.kill)
#endif

/// A program that runs beside this one and is spoken with by lines. Not Foundation's `Process`: many of them at once lose each
/// other's files, and the news of each other's ends.
public final class Child: @unchecked Sendable {
    private let process: pid_t
    private let output: Int32
    private let lock = NSLock()
    /// The lock guards it; nil once it is closed.
    private var input: Int32?
    /// The output waits for one reader at a time, and the end for one waiter.
    private let reading = NSLock()
    private var rest = Data()
    private let ending = NSLock()
    private var ended: Int32?

    /// One at a time, so that none gets a copy of another's pipe.
    private static let starting = NSLock()

    public init(_ program: String, _ arguments: [String], environment: [String: String] = [:], folder: String? = nil) throws {
        Self.starting.lock()
        defer { Self.starting.unlock() }
        let (input, output) = (try Self.pipe(), try Self.pipe())
        #if canImport(Glibc)
            var actions = Actions()
        #else
            var actions: Actions = nil
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input.reads, 0)
        posix_spawn_file_actions_adddup2(&actions, output.writes, 1)
        // Other open files of this process, such as the sockets of other tests, would stay open for as long as the program runs.
        #if canImport(Glibc)
            posix_spawn_file_actions_addclosefrom_np(&actions, 3)
        #else
            for file in 3..<getdtablesize() where fcntl(file, F_GETFD) >= 0 { _ = fcntl(file, F_SETFD, FD_CLOEXEC) }
        #endif
        if let folder { posix_spawn_file_actions_addchdir_np(&actions, folder) }
        let told = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
        var (words, variables) = (([program] + arguments).map { strdup($0) } + [nil], told.map { strdup($0) } + [nil])
        defer { (words + variables).forEach { free($0) } }
        var process: pid_t = 0
        let failed = posix_spawn(&process, program, &actions, nil, &words, &variables)
        _ = (system.close(input.reads), system.close(output.writes))
        (self.process, self.input, self.output) = (process, input.writes, output.reads)
        guard failed == 0 else { throw Unmet("\(program) is started: \(String(cString: strerror(failed)))") }
    }

    deinit {
        finish()
        _ = system.close(output)
        if ended == nil && process > 0 {
            _ = system.kill(process, SIGTERM)
            let process = process
            Thread.detachNewThread { while waitpid(process, nil, 0) < 0 && errno == EINTR {} }
        }
    }

    /// The two ends of a pipe, of which no program that is started later gets a copy.
    private static func pipe() throws -> (reads: Int32, writes: Int32) {
        var ends: [Int32] = [0, 0]
        guard system.pipe(&ends) == 0 else { throw Unmet("a pipe is made: \(String(cString: strerror(errno)))") }
        ends.forEach { _ = fcntl($0, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    /// Waits for more of what it prints. False at the end.
    private func readMore() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65536)
        var count = system.read(output, &buffer, buffer.count)
        while count < 0 && errno == EINTR { count = system.read(output, &buffer, buffer.count) }
        rest += buffer.prefix(max(0, count))
        return count > 0
    }

    /// The next line that it prints; an empty one at the end.
    public func line() async -> String {
        await onOwnThread { [self] in
            reading.withLock {
                while !rest.contains(10), readMore() {}
                let line = rest.prefix { $0 != 10 }
                rest = Data(rest.dropFirst(line.count + 1))
                return String(decoding: line, as: UTF8.self)
            }
        }
    }

    /// All that it prints from here on.
    public func text() async -> String {
        await onOwnThread { [self] in
            reading.withLock {
                while readMore() {}
                defer { rest = Data() }
                return String(decoding: rest, as: UTF8.self)
            }
        }
    }

    /// Writes to its standard input.
    public func write(_ text: String) {
        lock.withLock {
            guard let input else { return }
            _ = Array(text.utf8).withUnsafeBytes { system.write(input, $0.baseAddress, $0.count) }
        }
    }

    /// Ends its standard input.
    public func finish() {
        lock.withLock {
            if let input { _ = system.close(input) }
            input = nil
        }
    }

    /// Ends it, with no chance to do anything about it.
    public func kill() {
        _ = system.kill(process, SIGKILL)
    }

    /// Waits for its end: its status, or the signal that ended it as a negative number.
    public func wait() async -> Int32 {
        await onOwnThread { [self] in
            ending.withLock {
                if let ended { return ended }
                var status: Int32 = 0
                while waitpid(process, &status, 0) < 0 && errno == EINTR {}
                let told = status & 0x7f == 0 ? status >> 8 & 0xff : -(status & 0x7f)
                ended = told
                return told
            }
        }
    }
}

/// Waits on a thread of its own: Swift has as many threads for tasks as the machine has cores, and whatever waits in one keeps it from all others.
private func onOwnThread<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: work()) }
    }
}
