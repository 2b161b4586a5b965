import Foundation

internal import HoplineCore

/// The records of one client: what its store keeps, what it holds, what it may take up. All but `keep` happens on one queue,
/// one thing after the other.
final class Records: @unchecked Sendable {
    private let queue = DispatchQueue(label: "hopline.records")
    private let shelf: any Shelf
    private let core: Client
    /// Makes a core that reads records and is asked nothing else.
    private let reader: @Sendable () throws -> Client
    private let sameAccount: Bool
    /// Whether what was spent today is taken up, too.
    private let capped: Bool
    // Only the queue touches what follows.
    /// By intent: how many calls of it are under way.
    private var running: [String: Int] = [:]
    /// The intents that are this client's.
    private var claimed: Set<String> = []
    private var isSweeping = false
    private var isClosed = false

    init(_ core: Client, _ shelf: any Shelf, sameAccount: Bool, capped: Bool, reader: @escaping @Sendable () throws -> Client) {
        (self.core, self.shelf, self.sameAccount, self.capped, self.reader) = (core, shelf, sameAccount, capped, reader)
    }

    /// Gives a record to the store. Returns what went wrong.
    func keep(_ record: String, _ data: Data?) -> String? {
        do {
            try shelf.keep(record, data)
            return nil
        } catch {
            return "the store said: \(said(error))"
        }
    }

    /// Makes an intent this client's, with the record of an earlier one that is no more.
    func enter(_ operation: String, _ intent: String) async -> HoplineError? {
        await ask(operation, intent) { [self] in
            guard try shelf.claimIntent(intent) else {
                throw HoplineError(
                    .busy, operation, "another living client of this store has this intent", advice: "wait_for_other",
                    say: "nothing was changed; wait for the other change to end", intent: intent)
            }
            claimed.insert(intent)
            running[intent, default: 0] += 1
            do {
                try takeUp { $0.intent == intent }
            } catch {
                leaveNow(intent)
                throw error
            }
        }.failure
    }

    /// A call of an intent has ended. The intent is given back once nothing is held under it any more.
    func leave(_ intent: String) {
        queue.async { [self] in leaveNow(intent) }
    }

    /// Takes up the free records that are wanted, unless another client is quicker.
    func adopt(_ operation: String, _ wanted: @escaping @Sendable (Saved) -> Bool) async -> HoplineError? {
        await ask(operation) { [self] in try takeUp(wanted) }.failure
    }

    /// Takes up what clients that are no more have spent.
    func adoptSpent() -> HoplineError? {
        queue.sync { Result { try takeUp { _ in false } }.mapError { .unusable("client", said($0)) }.failure }
    }

    /// The free records: what they hold, and which this client leaves alone.
    func free(_ operation: String) async -> Result<([Saved], [Rejected]), HoplineError> {
        await ask(operation) { [self] in try shelf.scanning { try read() } }.map { ($0.saved, $0.rejected) }
    }

    /// Gives back the intents that are neither under way nor held. Of many who ask at once, one does it for all.
    func sweep() {
        queue.async { [self] in sweepSoon() }
    }

    /// Gives everything back, after all that was asked for before.
    func close(_ then: @escaping @Sendable () -> Void) {
        queue.async { [self] in
            if !isClosed { shelf.close() }
            isClosed = true
            then()
        }
    }

    private func ask<Answer: Sendable>(
        _ operation: String, _ intent: String? = nil, _ question: @escaping @Sendable () throws -> Answer
    ) async -> Result<Answer, HoplineError> {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                if isClosed { return continuation.resume(returning: .failure(.closed(operation))) }
                let answer = Result(catching: question).mapError { error in
                    error as? HoplineError ?? .unusable(operation, said(error), intent: intent)
                }
                continuation.resume(returning: answer)
            }
        }
    }

    private func leaveNow(_ intent: String) {
        running[intent] = running[intent].flatMap { $0 > 1 ? $0 - 1 : nil }
        sweepSoon()
    }

    private func sweepSoon() {
        if isSweeping { return }
        isSweeping = true
        queue.async { [self] in
            isSweeping = false
            for intent in claimed where running[intent] == nil && !core.holdsIntent(intent: intent) {
                shelf.releaseIntent(intent)
                claimed.remove(intent)
            }
        }
    }

    private func takeUp(_ wanted: (Saved) -> Bool) throws {
        // Intents of records that were not taken up after all are given back.
        defer { sweepSoon() }
        let taken: [Record] = try shelf.scanning {
            let found = try read()
            let mine = try found.saved.filter(wanted).filter { saved in
                guard let intent = saved.intent else { return true }
                guard try shelf.claimIntent(intent) else { return false }
                claimed.insert(intent)
                return true
            }
            let names = (capped ? found.totals : []) + mine.map(\.record)
            do {
                // Read anew, now that nobody else can change them.
                return try names.compactMap { record in try shelf.claim(record).map { Record(id: record, data: $0) } }
            } catch {
                // One that stayed claimed and is not held would never be found again, and what it stands for bought anew.
                names.forEach(shelf.release)
                throw error
            }
        }
        if taken.isEmpty { return }
        try restored(core.restore(records: taken, sameAccount: sameAccount)).refused.forEach { shelf.release($0.record) }
    }

    /// The free records: what they hold, which are left alone, and those of what was spent, which no list shows.
    private func read() throws -> (saved: [Saved], rejected: [Rejected], totals: [String]) {
        let free = try shelf.free()
        if free.isEmpty { return ([], [], []) }
        let reader = try reader()
        let told = try restored(reader.restore(records: free.map { Record(id: $0.record, data: $0.data) }, sameAccount: sameAccount))
        let saved = try savedList(reader)
        return (saved, told.refused, Array(Set(told.held).subtracting(saved.map(\.record))))
    }

    private func restored(_ told: String) throws(HoplineError) -> Restored {
        try HoplineError.reading { try JSONDecoder().decode(Restored.self, from: Data(told.utf8)) }
    }

    private struct Restored: Decodable {
        let held: [String]
        let refused: [Rejected]
    }
}

/// What a core holds.
func savedList(_ core: Client) throws(HoplineError) -> [Saved] {
    try HoplineError.reading { try JSONDecoder().decode([Saved].self, from: Data(core.savedList().utf8)) }
}

/// What a store said; of a store of somebody's own only the type of its error.
func said(_ error: any Error) -> String {
    (error as? Trouble)?.description ?? "\(type(of: error))"
}

extension HoplineError {
    static func unusable(_ operation: String, _ said: String, intent: String? = nil) -> HoplineError {
        HoplineError(
            .store, operation, "the store can't be used: \(said)", advice: "mend_store", say: "nothing was changed; mend the store", intent: intent)
    }

    /// A list of the core that does not fit its type is an error. An empty list in its place would let go of what is held.
    static func reading<List>(_ read: () throws -> List) throws(HoplineError) -> List {
        do {
            return try read()
        } catch {
            throw HoplineError(
                .misuse, "saved", "the list of saved entries can't be read", say: "nothing was changed; check that the package and its library are of one version")
        }
    }

    static func closed(_ operation: String) -> HoplineError {
        HoplineError(.misuse, operation, "this client is closed", say: "nothing was changed; make another one")
    }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}
