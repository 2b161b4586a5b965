import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Names that one process at a time may hold, by the operating system's locks on the bytes of one file.
///
/// A name stands for a byte of the file, far beyond its end. The system gives these locks to a process, not to a client, and
/// frees them together when it dies; so who in this process holds a name is written down here, and the file is opened once.
final class Locks: @unchecked Sendable {
    private static let guarding = NSLock()
    nonisolated(unsafe) private static var known: [String: Locks] = [:]

    private let path: String
    private let file: Int32
    private let device: UInt64
    private let inode: UInt64
    private let lock = NSLock()
    private let scan = NSLock()
    /// The lock guards them.
    private var held: Set<Int64> = []

    /// The locks of a file, one object a process.
    static func of(_ path: String) throws -> Locks {
        try guarding.withLock {
            let name = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
            if let found = known[name], found.lives(name) { return found }
            let made = try Locks(name)
            known[name] = made
            return made
        }
    }

    private init(_ path: String) throws {
        // Never closed: to close any descriptor of the file would free what others in this process hold.
        self.path = path
        file = try check(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600), path)
        var status = stat()
        _ = try check(fstat(file, &status), path)
        (device, inode) = Self.identity(status)
    }

    /// Whether the file is still there, and not another one of its name.
    private func lives(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && Self.identity(status) == (device, inode)
    }

    /// Which file it is. Apple's device numbers are signed, and negative on some network drives.
    private static func identity(_ status: stat) -> (device: UInt64, inode: UInt64) {
        (UInt64(truncatingIfNeeded: status.st_dev), UInt64(truncatingIfNeeded: status.st_ino))
    }

    /// One client at a time looks for names that nobody holds. To look is to take for a moment, and whoever takes a name for
    /// good must not find it taken by somebody who only looks.
    func scanning<Found>(_ body: () throws -> Found) throws -> Found {
        scan.lock()
        defer { scan.unlock() }
        while !(try set(F_WRLCK, at: Self.scanPlace, F_SETLKW)) {}
        defer { _ = try? set(F_UNLCK, at: Self.scanPlace, F_SETLK) }
        return try body()
    }

    /// Takes a name, unless somebody holds it, in this process or another.
    func take(_ name: String) throws -> Bool {
        try lock.withLock {
            let place = Self.place(of: name)
            guard !held.contains(place), try set(F_WRLCK, at: place, F_SETLK) else { return false }
            held.insert(place)
            return true
        }
    }

    /// Gives a name back.
    func give(_ name: String) {
        lock.withLock {
            let place = Self.place(of: name)
            held.remove(place)
            _ = try? set(F_UNLCK, at: place, F_SETLK)
        }
    }

    /// Whether somebody holds a name. Only to be asked while `scanning`.
    func isTaken(_ name: String) throws -> Bool {
        guard try take(name) else { return true }
        give(name)
        return false
    }

    private static let scanPlace: Int64 = 0

    /// FNV-1a: two names that meet in one byte would only find each other busy.
    private static func place(of name: String) -> Int64 {
        let hash = name.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return Int64(hash >> 2) + 1
    }

    /// Whether it worked: a lock that another process holds is no error.
    private func set(_ kind: Int32, at place: Int64, _ command: Int32) throws -> Bool {
        var range = flock()
        range.l_type = Int16(kind)
        range.l_whence = Int16(SEEK_SET)
        range.l_start = off_t(place)
        range.l_len = 1
        if fcntl(file, command, &range) == 0 { return true }
        if [EACCES, EAGAIN, EINTR, EDEADLK].contains(errno) { return false }
        throw Trouble(errno, path)
    }
}

/// Why a store can't do what it is asked: mostly what the operating system said, and of which file or folder.
struct Trouble: Error, CustomStringConvertible {
    let description: String

    /// What is said of a record that this client can't save or delete.
    static let taken = Trouble(description: "the record belongs to another client")

    private init(description: String) {
        self.description = description
    }

    init(_ code: Int32, _ path: String) {
        self.init(description: "\(String(cString: strerror(code))) (`\(path)`)")
    }
}

/// The result of a call of the system about that file or folder, or what went wrong.
func check(_ result: Int32, _ path: String) throws -> Int32 {
    if result < 0 { throw Trouble(errno, path) }
    return result
}
