import Foundation

internal import HoplineCore

/// A store in a folder, which any number of clients and processes of one machine may share, in Rust, Python, Kotlin and Swift alike.
///
/// The names of a client are free as soon as its process ends, however it ends, and as soon as the client is closed or dropped. The next
/// start of an intent then resumes it. While one living client uses or holds an intent, every other one gets `busy`, so that it buys once
/// among all of them.
///
/// Records hold no secrets. Never restore the folder from a backup: an older record lacks the purchases made since.
///
/// iOS ends an app that is suspended while it has a file lock in an App Group container (0xdead10cc): there, `suspend` the client before
/// the app is suspended, and `wake` it when it is back.
public final class FolderStore: Store {
    let folder: HoplineCore.Folder
    /// Calls wait for a disk, so they run on threads of their own.
    private let disk = OperationQueue()
    /// The clock, in milliseconds since 1970.
    private let now: @Sendable () -> Int64

    /// Opens a folder, which is made if it is missing. Opening writes to the disk, so don't do it on the main thread of an app.
    ///
    /// - Parameters:
    ///   - path: The folder: missing, empty, or one that this class made.
    ///   - clock: The clock; a test may give one that it moves, and the same one to its client.
    /// - Throws: A `HoplineError` of the kind `store` if the folder holds other files or can't be written.
    public convenience init(_ path: String, clock: any _Concurrency.Clock<Duration> = ContinuousClock()) throws(HoplineError) {
        let time = Time(clock)
        try self.init(path) { time.unix() }
    }

    /// Opens a folder with a clock of its own, for tests.
    init(_ path: String, now: @escaping @Sendable () -> Int64) throws(HoplineError) {
        self.now = now
        do {
            folder = try HoplineCore.Folder(path: path)
        } catch {
            throw refused("store", because: "store", ["said": StoreHandle.said(Self.failure(error))])
        }
        disk.maxConcurrentOperationCount = 4
    }

    deinit {
        // A thread of the last call may still have the folder, though its call has returned.
        folder.shutDown()
    }

    /// Opens a folder of that name in the user's Application Support, which for an app is its own.
    ///
    /// On Apple's systems the folder is excluded from backups, and readable from the first unlock of the device on, so that work in the
    /// background finds its records.
    public static func applicationSupport(_ name: String = "hopline-records") throws(HoplineError) -> FolderStore {
        let folder: URL
        do {
            folder = try place(name)
        } catch {
            throw refused("store", because: "store", ["said": "there is no folder for `\(name)`"])
        }
        return try FolderStore(folder.path)
    }

    private static func place(_ name: String) throws -> URL {
        let files = FileManager.default
        let above = try files.url(for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil, create: true)
        let folder = above.appendingPathComponent(name, isDirectory: true)
        try files.createDirectory(at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        #if canImport(Darwin)
            // Files that are made in it later have the same protection.
            try files.setAttributes([.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication], ofItemAtPath: folder.path)
            var url = folder
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            try url.setResourceValues(values)
        #endif
        return folder
    }

    public func claim(_ names: [String], most: Int) async throws -> StoreClaim {
        switch try await ask(.claim(names: names, most: UInt32(clamping: most))) {
        case .claimed(let claimed): return .claimed(claimed.map { (name: $0.name, data: $0.data) })
        case .busy(let data): return .busy(data)
        default: throw Self.strange
        }
    }

    public func put(_ name: String, _ data: Data, how: StorePut) async throws -> StoreWritten {
        try await write(.put(name: name, data: data, new: how.new, keepFor: how.keepFor?.milliseconds, release: how.release))
    }

    public func delete(_ name: String) async throws -> StoreWritten {
        try await write(.delete(name: name))
    }

    public func release(_ names: [String]?) async throws {
        _ = try await ask(.release(names: names))
    }

    public func list(_ space: String, after: String?, open: Bool) async throws -> StorePage {
        guard case .listed(let entries, let more) = try await ask(.list(space: space, after: after, open: open)) else { throw Self.strange }
        return StorePage(entries: entries.map { StorePage.Entry(name: $0.name, data: $0.data, whose: Whose($0.whose)) }, more: more)
    }

    public func spend(_ spend: StoreSpend) async throws -> StoreSpent {
        let (day, cap) = (spend.day.map { Int64($0) }, spend.cap?.description)
        switch try await ask(.spend(space: spend.space, day: day, entry: spend.entry, amount: spend.amount.description, cap: cap)) {
        case .granted(let day): return .granted(day: Int(day))
        case .over(let day, let total): return .over(day: Int(day), total: try money(total))
        default: throw Self.strange
        }
    }

    public func close() async {
        await withCheckedContinuation { continuation in
            disk.addOperation { [folder] in
                folder.shutDown()
                continuation.resume()
            }
        }
    }

    private func write(_ call: StoreCall) async throws -> StoreWritten {
        switch try await ask(call) {
        case .done: return .done
        case .lost: return .lost
        default: throw Self.strange
        }
    }

    private func ask(_ call: StoreCall) async throws -> StoreAnswer {
        let now = now()
        return try await withCheckedThrowingContinuation { continuation in
            disk.addOperation { [folder] in
                continuation.resume(with: Result { try folder.call(call: call, unixMs: now) }.mapError(Self.failure))
            }
        }
    }

    private static let strange = StoreFailure("the library and the package are of two versions")

    private static func failure(_ error: any Error) -> any Error {
        switch error as? StoreError {
        case .Format(let sentence)?, .Failed(let sentence)?, .Misuse(let sentence)?: StoreFailure(sentence)
        case nil: error
        }
    }
}

extension Whose {
    init(_ whose: HoplineCore.Whose) {
        switch whose {
        case .mine: self = .mine
        case .free: self = .free
        case .other: self = .other
        }
    }

    var core: HoplineCore.Whose {
        switch self {
        case .mine: .mine
        case .free: .free
        case .other: .other
        }
    }
}

extension Duration {
    /// Whole milliseconds, as many as fit.
    var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, isOver) = seconds.multipliedReportingOverflow(by: 1000)
        let (sum, isFull) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
        return isOver || isFull ? (seconds < 0 ? .min : .max) : sum
    }
}
