import Foundation

internal import HoplineCore

/// The store of one client, in the form that the core calls.
final class StoreHandle: Sendable {
    private struct Given {
        weak var store: (any Store)?
    }

    private static let lock = NSLock()
    /// The stores that clients have or had; the lock guards them. Two clients with one store would own each other's names.
    nonisolated(unsafe) private static var given: [Given] = []

    private let store: any Store
    private let patience = Patience()

    /// Nil if the store was given to a client before.
    init?(_ store: any Store) {
        self.store = store
        let isNew = Self.lock.withLock {
            Self.given.removeAll { $0.store == nil }
            if Self.given.contains(where: { $0.store === store }) { return false }
            Self.given.append(Given(store: store))
            return true
        }
        guard isNew else { return nil }
    }

    /// Reports claims that have ended to `lost`.
    func onLost(_ lost: @escaping @Sendable ([String]?) -> Void) {
        store.onLost(lost)
    }

    /// Returns true if a request may be sent under a name of this client's.
    func vouches() async -> Bool {
        await store.vouches()
    }

    /// The store's answer, and its message if it failed.
    func ask(_ call: StoreCall) async -> (answer: StoreAnswer, said: String?) {
        switch await patience.within({ await self.ended(call) }) {
        case .success(let ended): ended
        case .failure(let impatience): (impatience.isMade ? .failed : .never, impatience.said)
        }
    }

    private func ended(_ call: StoreCall) async -> (answer: StoreAnswer, said: String?) {
        do {
            return (try await answer(call), nil)
        } catch {
            return ((error as? StoreFailure)?.isNotOpened == true ? .never : .failed, Self.said(error))
        }
    }

    /// Releases all names.
    func release() async -> Result<Void, HoplineError> {
        do {
            return .success(try await store.release(nil))
        } catch {
            return .failure(Self.notReleased(Self.said(error)))
        }
    }

    static func notReleased(_ said: String) -> HoplineError {
        HoplineError(
            .store, "suspend", "the store may not have let go of everything: \(said)", advice: .mendStore,
            say: "close the client before the app is suspended")
    }

    /// Releases all names, and closes the store.
    func close() async {
        // A name that can't be released ends with the store.
        try? await store.release(nil)
        await store.close()
    }

    private func answer(_ call: StoreCall) async throws -> StoreAnswer {
        switch call {
        case .claim(let names, let most):
            switch try await store.claim(names, most: Int(most)) {
            case .claimed(let claimed): .claimed(names: claimed.map { ClaimedName(name: $0.name, data: $0.data) })
            case .busy(let data): .busy(data: data)
            }
        case .put(let name, let data, let new, let keepFor, let release):
            try await written(store.put(name, data, how: StorePut(new: new, keepFor: keepFor.map { .milliseconds($0) }, release: release)))
        case .delete(let name):
            try await written(store.delete(name))
        case .release(let names):
            try await released(names)
        case .list(let space, let after, let open):
            try await listed(store.list(space, after: after, open: open))
        case .spend(let space, let day, let entry, let usd, let cap):
            try await spent(StoreSpend(space: space, day: day.map { Int($0) }, entry: entry, amount: money(usd), cap: cap.map(money)))
        }
    }

    private func written(_ written: StoreWritten) -> StoreAnswer {
        written == .done ? .done : .lost
    }

    private func released(_ names: [String]?) async throws -> StoreAnswer {
        try await store.release(names)
        return .done
    }

    private func listed(_ page: StorePage) -> StoreAnswer {
        .listed(entries: page.entries.map { ListedName(name: $0.name, data: $0.data, whose: $0.whose.core) }, more: page.more)
    }

    private func spent(_ spend: StoreSpend) async throws -> StoreAnswer {
        switch try await store.spend(spend) {
        case .granted(let day): .granted(day: Int64(day))
        case .over(let day, let total): .over(day: Int64(day), total: total.description)
        }
    }

    /// The message of a store's failure; of an error that may hold anything only the type.
    static func said(_ error: any Error) -> String {
        (error as? StoreFailure)?.description ?? "\(type(of: error))"
    }
}

/// An amount as the core writes it, in USD.
func money(_ text: String) throws(StoreFailure) -> Decimal {
    guard let found = amount(text) else { throw StoreFailure("`\(text)` is not an amount") }
    return found
}
