import Foundation

internal import HoplineCore

/// What a command was answered with, before anybody has read it as a type.
struct Answered {
    let facts: String
    let phase: Phase?
    private let answer: Answer

    /// The answer, or the error that the command ended with.
    init(_ ended: Driver.Ended) throws(HoplineError) {
        switch ended.taken {
        case .answered(let answer):
            (self.answer, facts) = (answer, answer.facts)
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
    func reply<Value: Packable>(_ operation: String) throws(HoplineError) -> Reply<Value> {
        let value: Value? = answer.packed.withUnsafeBytes { bytes in
            var packed = Packed(bytes)
            return Value.type.isEmpty || packed.text() == Value.type ? Value(&packed) : nil
        }
        guard let value else {
            throw .read(misfit(operation: operation, facts: facts, raw: answer.raw, place: "it is the answer of another operation"))
        }
        return Reply(value: value, raw: Raw(text: answer.raw), requestId: answer.requestId, phase: phase)
    }

    /// Whether it is of that type.
    func holds<Value: Packable>(_ type: Value.Type) -> Bool {
        answer.packed.withUnsafeBytes { bytes in
            var packed = Packed(bytes)
            return packed.text() == type.type
        }
    }

    /// What the core itself says, such as a list of what is saved.
    func part<Value: Decodable>() throws(HoplineError) -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(answer.raw.utf8))
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

    private func read<Value: Decodable>(_ type: Value.Type, _ text: String) -> Value? {
        try? JSONDecoder().decode(type, from: Data(text.utf8))
    }
}
