import Foundation
import Hopline
import HoplineCore

/// Runs the shared vectors through the class of the package, not through its driver.
public struct Vectors {
    /// Runs a case; an `Unmet` says at which step it failed, what was expected and what came.
    public static func run(_ each: VectorFormat.Object) throws {
        var world: Vectors
        do {
            world = try Vectors(each)
        } catch let ClientError.Refused(packed) {
            let error = try JSON.error(packed)
            try VectorFormat.noSecret("an error", error.written)
            guard let refused = each["refused"] else { throw Unmet("the client was refused: \(error)") }
            return try VectorFormat.like(VectorFormat.inSwift(refused), error, "refused")
        }
        try VectorFormat.check(each["refused"] == nil, "expected the client to be refused, and it was not")
        let script = each["script"]?.array ?? []
        try VectorFormat.check(!script.isEmpty, "the script is empty")
        for (place, step) in script.enumerated() {
            let verb = try VectorFormat.verb(step.object ?? [:])
            do {
                try world.take(verb, Step(members: step.object ?? [:], verb: verb))
            } catch {
                throw Unmet("step \(place + 1) (\(verb)): \(error)")
            }
        }
        _ = try world.drained()
        try VectorFormat.check(world.out.isEmpty, "at the end \(world.out.count) steps were never answered")
    }

    /// A step of a script.
    struct Step {
        let members: VectorFormat.Object
        let verb: String

        subscript(name: String) -> JSON? { members[name] }

        /// The members beside the verb.
        var about: JSON { members[verb] ?? .null }

        var name: String {
            get throws {
                guard let name = about.string else { throw Unmet("`\(verb)` names something") }
                return name
            }
        }
    }

    private var options: VectorFormat.Object
    var client: Client
    var (unix, monotonic): (Int64, Int64) = (1_750_000_000_000, 1_000_000)
    var commands: [String: UInt32] = [:]
    var records = Names()
    var keys = Names()
    var steps: [String: UInt32] = [:]
    var out: Set<UInt32> = []
    /// The entries that count under the day's cap.
    var entries = Names()
    var store = CaseStore()
    /// The request of each call of the store that is out.
    var calls: [UInt32: StoreCall] = [:]
    var sent: [String: String] = [:]
    /// Where each walk stopped; null for one that is over.
    var walks: [String: JSON] = [:]
    private var crashes: UInt8 = 0

    private init(_ each: VectorFormat.Object) throws {
        options = VectorFormat.overlay(["base_url": "https://api.example/v1", "api_key": "canary-key", "store": true], each["client"]?.object ?? [:])
        if let now = each["now"] {
            (unix, monotonic) = (Int64(now["unix"]?.int ?? 0), Int64(now["monotonic"]?.int ?? 0))
        }
        client = try Self.make(options, each["entropy"]?.string, 0)
    }

    private static func make(_ options: VectorFormat.Object, _ entropy: String?, _ crashes: UInt8) throws -> Client {
        let given = JSON.object(options.filter { $0.value != .null })
        let bytes = try entropy.map(Self.bytes) ?? Data(repeating: crashes, count: 16)
        return try Client(options: given.written, entropy: bytes)
    }

    static func bytes(_ hex: String) throws -> Data {
        let digits = Array(hex)
        return try Data(stride(from: 0, to: digits.count, by: 2).map { place in
            guard let byte = UInt8(String(digits[place...min(place + 1, digits.count - 1)]), radix: 16) else { throw Unmet("`\(hex)` is hexadecimal") }
            return byte
        })
    }

    var base: String { (options["base_url"]?.string ?? "").trimming("/") }

    /// Does what a host does, without the steps that come of it: a script names them one by one.
    @discardableResult
    func act(_ what: Move, _ body: Data = Data()) throws -> MoveAnswer {
        let answer = client.act(what: what, body: body, unixMs: unix, monotonicMs: monotonic)
        if case .refused(let error) = answer { throw ClientError.Refused(error: error) }
        return answer
    }

    func begin(_ what: Move) throws -> UInt32 {
        guard case .command(let command) = try act(what) else { throw Unmet("it is a command") }
        return command
    }

    func take(_ command: UInt32) throws -> Taken? {
        let taken = client.result(command: command)
        if taken != nil { try act(.taken(commands: [command])) }
        return taken
    }

    /// The next step that is no event. Calls of the store that the script need not name are answered by it, but those of the kind
    /// that is waited for.
    mutating func next(_ isWanted: (StoreCall) -> Bool = { _ in false }) throws -> HoplineCore.Step {
        while true {
            switch client.poll(unixMs: unix, monotonicMs: monotonic) {
            case .notify(let event): try VectorFormat.noSecret("an event", JSON.event(event).written)
            case .store(let id, _, let call) where call.answersItself && !isWanted(call): try answerItself(id, call)
            case let step: return step
            }
        }
    }

    mutating func answerItself(_ id: UInt32, _ call: StoreCall) throws {
        try act(.stored(step: id, answer: store.call(call, unix)))
    }

    mutating func drained() throws -> Int64? {
        let step = try next()
        guard case .wait(let until) = step else { throw Unmet("expected nothing more to do, came \(step)") }
        return until
    }

    mutating func move(_ shift: JSON) {
        unix += Int64((shift["unix"] ?? shift).int ?? 0)
        monotonic += Int64((shift["monotonic"] ?? shift).int ?? 0)
    }

    func named(_ value: JSON) -> JSON {
        value.mapText { keys.name(records.name($0)) }
    }

    func command(_ name: String) throws -> UInt32 {
        guard let command = commands[name] else { throw Unmet("no command is named `\(name)`") }
        return command
    }

    mutating func name(_ name: String, _ command: UInt32) throws {
        try VectorFormat.check(commands.updateValue(command, forKey: name) == nil, "a command is named `\(name)` already")
    }

    mutating func name(_ step: Step, _ found: UInt32) throws {
        out.insert(found)
        if let name = step["as"]?.string {
            try VectorFormat.check(steps.updateValue(found, forKey: name) == nil, "a step is named `\(name)` already")
        }
        if let answer = step["answer"] { try self.answer(found, answer) }
    }

    mutating func crash(_ step: Step) throws {
        let crash = step.about.object ?? [:]
        try VectorFormat.only(crash, ["entropy", "client", "after", "also"], "crash")
        crashes += 1
        options = VectorFormat.overlay(options, crash["client"]?.object ?? [:])
        client = try Self.make(options, crash["entropy"]?.string, crashes)
        try store.crash((crash["also"]?.array ?? []).map { try records.value($0.string ?? "") })
        (commands, steps, out, calls) = ([:], [:], [], [:])
        move(crash["after"] ?? 0)
    }
}

extension String {
    /// Without that text at its end.
    fileprivate func trimming(_ end: String) -> String {
        hasSuffix(end) ? String(dropLast(end.count)).trimming(end) : self
    }
}
