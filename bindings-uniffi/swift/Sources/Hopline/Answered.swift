import Foundation

internal import HoplineCore

/// The answer of a command, before it is read as a type.
struct Answered {
    let facts: String
    let phase: Phase?
    private let answer: Answer

    /// The answer, or the error that the command ended with.
    init(_ ended: Driver.Ended) throws(HoplineError) {
        switch ended.taken {
        case .answered(let answer)?:
            (self.answer, facts, phase) = (answer, answer.facts, answer.phase.flatMap { Phase(rawValue: $0) })
        case .failed(let packed)?:
            var error = HoplineError(packed: packed)
            // The store's message about one record is only a part of the store's own failures.
            let note = error.kind == .store ? ended.store : ended.transport
            if error.effect != .done { error.notes = [note].compactMap { $0 } }
            throw error
        case nil:
            throw .unheard("the core has no result")
        }
    }

    /// The typed answer.
    func reply<Value: Packable>(_ operation: String) throws(HoplineError) -> Reply<Value> {
        let value = Packed.read(answer.packed) { packed in
            Value.type.isEmpty || packed.text() == Value.type ? Value(&packed) : nil
        }
        guard let value else {
            throw HoplineError(packed: misfit(operation: operation, facts: facts, raw: answer.raw, place: "it is the answer of another operation"))
        }
        return Reply(value: value, raw: Raw(text: answer.raw), requestId: answer.requestId, phase: phase)
    }

    /// Returns true if the answer is of that type.
    func holds<Value: Packable>(_ type: Value.Type) -> Bool {
        Packed.read(answer.packed) { $0.text() == type.type }
    }

    /// Of an intent that was resumed: true if the intent is not known.
    var isNothing: Bool { answer.nothing }

    /// Of `saved`: a page.
    var page: SavedPage { Packed.read(savedPage(raw: answer.raw), SavedPage.init) }

    /// Of `settle` and `forget`: true if there was something to do.
    var isDone: Bool { answer.raw == "true" }

    /// Of `resume_all`: the commands that have ended as its parts.
    var parts: [UInt32] { answer.raw.split { !$0.isNumber }.compactMap { UInt32($0) } }

    /// The answer as a session at the end of its wait.
    func session(_ operation: String, _ client: AgentClient) throws(HoplineError) -> OpenSession {
        let session: Reply<Session> = try reply(operation)
        let known = try? JSONDecoder().decode([String: JSONText].self, from: Data(facts.utf8))
        return client.opened(session, operation, chargedUsd: known?["charged_usd"]?.text.flatMap { Decimal(string: $0) })
    }

    /// The answer as an order at the end of its wait.
    func order() throws(HoplineError) -> OrderReply {
        let order: Reply<StaticOrder> = try reply("create_static_order")
        return OrderReply(orderNo: order.orderNo, phase: phase ?? .unknown, order: order)
    }
}

/// A member of some JSON, if it is a text.
private struct JSONText: Decodable {
    let text: String?

    init(from decoder: any Decoder) throws {
        text = try? decoder.singleValueContainer().decode(String.self)
    }
}
