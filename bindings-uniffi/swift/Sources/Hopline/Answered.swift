import Foundation

internal import HoplineCore

/// What a command was answered with, before anybody has read it as a type.
struct Answered {
    let facts: String
    private let raw: String
    /// The same under the names and with the words of the table, where the service wrote it in another way.
    private let view: String?
    let phase: Phase?

    /// The answer, or the error that the command ended with.
    init(_ ended: Driver.Ended) throws(HoplineError) {
        switch ended.taken {
        case .answered(let answer):
            (facts, raw, view) = (answer.facts, answer.raw, answer.view)
            phase = answer.phase.map { Phase(rawValue: $0) ?? .unknown }
        case .failed(let text):
            var error = HoplineError.read(text)
            // What a store said of one record is no part of a failure that has nothing to do with the store.
            let note = error.kind == .store ? ended.store : ended.transport
            if error.effect != .done { error.notes = [note].compactMap { $0 } }
            throw error
        }
    }

    /// The typed answer.
    func reply<Value: Decodable>(_ operation: String) throws(HoplineError) -> Reply<Value> {
        let known = read(Facts.self, facts)
        do {
            let value: Value = try JSONDecoder().decode(Value.self, from: Data((raw == "null" ? shown : view ?? raw).utf8))
            return Reply(value: value, raw: Raw(text: raw), requestId: known?.requestId, phase: phase)
        } catch {
            throw .read(misfit(operation: operation, facts: facts, raw: raw, place: place(of: error)))
        }
    }

    /// What the core itself says, such as a list of what is saved.
    func part<Value: Decodable>() throws(HoplineError) -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(raw.utf8))
        } catch {
            throw HoplineError(
                .misuse, "client", "what the core says can't be read", effect: .unknown,
                say: "check that the package and its library are of one version")
        }
    }

    /// Of an intent that was resumed: whether it stands for nothing.
    var isNothing: Bool {
        read(Facts.self, facts)?.nothing == true
    }

    /// The same of a session that was waited for.
    func session(_ operation: String, _ client: AgentClient) throws(HoplineError) -> OpenSession {
        let session: Reply<Session> = try reply(operation)
        return OpenSession(sessionId: session.sessionId, phase: phase ?? .unknown, session: session, client: client)
    }

    /// The same of an order that was waited for.
    func order() throws(HoplineError) -> OrderReply {
        let order: Reply<StaticOrder> = try reply("create_static_order")
        return OrderReply(orderNo: order.orderNo, phase: phase ?? .unknown, order: order)
    }

    /// Of a session that is gone nothing but its facts is known.
    private var shown: String {
        var members = read(JSON.self, facts)?.object ?? [:]
        members["estimated_charge_usd"] = nil
        return JSON.object(members).text
    }

    private func read<Value: Decodable>(_ type: Value.Type, _ text: String) -> Value? {
        try? JSONDecoder().decode(type, from: Data(text.utf8))
    }
}

/// Where an answer does not fit its type. The text of the error itself may hold what was read.
private func place(of error: any Error) -> String {
    func path(_ keys: [any CodingKey]) -> String {
        keys.reduce("data") { path, key in key.intValue.map { "\(path)[\($0)]" } ?? "\(path).\(key.stringValue)" }
    }
    switch error as? DecodingError {
    case .keyNotFound(let key, let context): return "`\(path(context.codingPath + [key]))`, which is missing"
    case .valueNotFound(_, let context): return "`\(path(context.codingPath))`, which is missing"
    case .typeMismatch(let type, let context): return "`\(path(context.codingPath))`, which is no \(type)"
    case .dataCorrupted(let context): return "`\(path(context.codingPath))`, which can't be read"
    default: return "`data`"
    }
}
