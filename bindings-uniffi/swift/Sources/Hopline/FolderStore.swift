import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Records as files in a folder that any number of clients and processes of one machine may share.
///
/// A record belongs to the client that made it for as long as its process lives; the operating system's locks say so. After a
/// crash it is free, and the next client takes it up: by its intent, its name, or with `resumeAll`. An intent that one living
/// client has is refused to every other, so that it buys once among all of them.
///
/// Records hold no secrets. Never restore the folder from a backup: an older record would forget what was bought since. Each
/// language keeps its own kind of records: give clients in another language a folder of their own.
///
/// Each open client holds locks on a file of the folder. iOS ends an app that is suspended while it holds a lock in an App Group
/// container (0xdead10cc): there, `close` the client before the app is suspended, and make a new one when it is back.
public struct FolderStore: Store {
    private let folder: @Sendable () throws -> String

    /// A store in the folder of that name, which is made when the first client opens it.
    public init(_ path: String) {
        folder = { path }
    }

    private init(_ folder: @escaping @Sendable () throws -> String) {
        self.folder = folder
    }

    /// A store in a folder of that name in the user's Application Support, which for an app is its own.
    ///
    /// On Apple's systems the folder is excluded from backups, and readable from the first time on that the device was unlocked, so
    /// that work in the background finds its records.
    public static func applicationSupport(_ name: String = "hopline-records") -> FolderStore {
        FolderStore {
            let above = try FileManager.default.url(for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil, create: true)
            let folder = above.appendingPathComponent(name, isDirectory: true)
            try makeFolder(folder.path)
            #if canImport(Darwin)
                // Files that are made in it later are protected as it is.
                try FileManager.default.setAttributes(
                    [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication], ofItemAtPath: folder.path)
                var url = folder
                var values = URLResourceValues()
                values.isExcludedFromBackup = true
                try url.setResourceValues(values)
            #endif
            return folder.path
        }
    }

    /// The store for one more client.
    public func open() throws -> any Shelf {
        let path = try folder()
        if path.isEmpty { throw Trouble(ENOENT, path) }
        try makeFolder(path)
        let shelf = FolderShelf(path, try Locks.of("\(path)/.hopline-locks"))
        try shelf.sweep()
        return shelf
    }
}

private final class FolderShelf: Shelf, @unchecked Sendable {
    private static let record = ".record", draft = ".draft"

    private let path: String
    private let locks: Locks
    private let lock = NSLock()
    /// The names that are this client's; the lock guards them.
    private var own: Set<String> = []

    init(_ path: String, _ locks: Locks) {
        self.path = path
        self.locks = locks
    }

    /// Finds out whether records could be kept, before anything is bought, and sweeps out what the dead have half written.
    func sweep() throws {
        try scanning {
            for record in try names(Self.draft) where try !locks.isTaken("record \(record)") {
                unlink("\(path)/\(record)\(Self.draft)")
            }
        }
        let probe = "\(path)/.probe-\(UInt64.random(in: 0 ... .max))"
        Glue.close(try check(Glue.open(probe, O_WRONLY | O_CREAT | O_EXCL), path))
        unlink(probe)
    }

    func keep(_ record: String, _ data: Data?) throws {
        guard let data else { return try delete(record) }
        // Before the file is there, so that nobody ever finds it free.
        guard try take("record \(record)") else { throw Trouble.taken }
        let draft = "\(path)/\(record)\(Self.draft)"
        try write(data, to: draft)
        _ = try check(rename(draft, "\(path)/\(record)\(Self.record)"), path)
        try flush(path)
    }

    /// Deletes a record. One that was refused is not this client's, and may be a living one's by now.
    private func delete(_ record: String) throws {
        let isOwn = lock.withLock { own.contains("record \(record)") }
        guard try isOwn || scanning({ try take("record \(record)") }) else { throw Trouble.taken }
        do {
            if unlink("\(path)/\(record)\(Self.record)") != 0 && errno != ENOENT { throw Trouble(errno, path) }
            try flush(path)
        } catch {
            if !isOwn { release(record) }
            throw error
        }
        release(record)
    }

    func scanning<Found>(_ body: () throws -> Found) throws -> Found {
        try locks.scanning(body)
    }

    func free() throws -> [(record: String, data: Data)] {
        var found: [(record: String, data: Data)] = []
        for record in try names(Self.record).sorted() where try !locks.isTaken("record \(record)") {
            // Its client may just have deleted it.
            if let data = try read(record) { found.append((record, data)) }
        }
        return found
    }

    func claim(_ record: String) throws -> Data? {
        guard try take("record \(record)") else { return nil }
        var data: Data?
        // What is gone or can't be read is nobody's.
        defer { if data == nil { release(record) } }
        data = try read(record)
        return data
    }

    func release(_ record: String) {
        give("record \(record)")
    }

    func claimIntent(_ intent: String) throws -> Bool {
        try take("intent \(intent)")
    }

    func releaseIntent(_ intent: String) {
        give("intent \(intent)")
    }

    func close() {
        lock.withLock {
            own.forEach(locks.give)
            own = []
        }
    }

    private func take(_ name: String) throws -> Bool {
        try lock.withLock {
            if own.contains(name) { return true }
            guard try locks.take(name) else { return false }
            own.insert(name)
            return true
        }
    }

    private func give(_ name: String) {
        lock.withLock { if own.remove(name) != nil { locks.give(name) } }
    }

    /// What files of that ending are called.
    private func names(_ ending: String) throws -> [String] {
        guard let folder = opendir(path) else { throw Trouble(errno, path) }
        defer { closedir(folder) }
        var found: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 1) { String(cString: $0) }
            }
            if name.hasSuffix(ending) { found.append(String(name.dropLast(ending.count))) }
        }
        return found
    }

    private func read(_ record: String) throws -> Data? {
        let file = Glue.open("\(path)/\(record)\(Self.record)", O_RDONLY)
        if file < 0 && errno == ENOENT { return nil }
        let handle = FileHandle(fileDescriptor: try check(file, path), closeOnDealloc: true)
        return try handle.readToEnd() ?? Data()
    }
}

/// Calls of the system under names that no method of a shelf has.
private enum Glue {
    static func open(_ path: String, _ flags: Int32) -> Int32 {
        #if canImport(Darwin)
            Darwin.open(path, flags | O_CLOEXEC, 0o600)
        #elseif canImport(Musl)
            Musl.open(path, flags | O_CLOEXEC, 0o600)
        #else
            Glibc.open(path, flags | O_CLOEXEC, 0o600)
        #endif
    }

    static func close(_ file: Int32) {
        #if canImport(Darwin)
            _ = Darwin.close(file)
        #elseif canImport(Musl)
            _ = Musl.close(file)
        #else
            _ = Glibc.close(file)
        #endif
    }
}

/// Makes a folder and those above it.
private func makeFolder(_ path: String) throws {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    guard errno == ENOENT, let above = path.range(of: "/", options: .backwards), above.lowerBound > path.startIndex else { throw Trouble(errno, path) }
    try makeFolder(String(path[..<above.lowerBound]))
    if mkdir(path, 0o700) != 0 && errno != EEXIST { throw Trouble(errno, path) }
}

/// Writes a file so that a power cut finds all of it.
private func write(_ data: Data, to path: String) throws {
    let file = try check(Glue.open(path, O_WRONLY | O_CREAT | O_TRUNC), path)
    defer { Glue.close(file) }
    try data.withUnsafeBytes { bytes in
        var done = 0
        while done < bytes.count {
            let written = systemWrite(file, bytes.baseAddress! + done, bytes.count - done)
            if written < 0 && errno == EINTR { continue }
            if written < 0 { throw Trouble(errno, path) }
            done += written
        }
    }
    try sync(file, path)
}

/// The names in a folder are kept by the folder itself.
private func flush(_ path: String) throws {
    let folder = try check(Glue.open(path, O_RDONLY), path)
    defer { Glue.close(folder) }
    try sync(folder, path)
}

private func sync(_ file: Int32, _ path: String) throws {
    #if canImport(Darwin)
        // There, only this waits for the disk itself; a file system that does not know it has fsync.
        if fcntl(file, F_FULLFSYNC) == 0 { return }
    #endif
    _ = try check(fsync(file), path)
}

private func systemWrite(_ file: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    #if canImport(Darwin)
        Darwin.write(file, bytes, count)
    #elseif canImport(Musl)
        Musl.write(file, bytes, count)
    #else
        Glibc.write(file, bytes, count)
    #endif
}
