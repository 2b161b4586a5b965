import Foundation
import Hopline
import HoplineCore

/// The action of each verb.
extension Vectors {
    mutating func take(_ verb: String, _ step: Step) throws {
        switch verb {
        case "start": try start(step)
        case "put", "delete", "claim", "release", "list", "spend": try asked(step)
        case "send": try send(step)
        case "resolve": try resolve(step)
        case "wait", "sleep": try wait(step)
        case "advance":
            _ = try drained()
            move(step.about)
        case "completed", "complete": try completed(step)
        case "take": try taken(step, command(step.name))
        case "notify": try notify(step)
        case "cancel": try act(.cancel(command: command(step.name)))
        case "crash": try crash(step)
        case "plant": try plant(step)
        case "lost": try lost(step)
        case "resume", "resume_intent", "resume_all", "reconcile", "settle", "forget": try act(verb, step)
        case "release_session":
            guard case .was(let so) = try act(.releaseSession(sessionId: step.name)) else { throw Unmet("it was followed or was not") }
            try VectorFormat.same(step["done"] ?? true, .bool(so), "released")
        case "saved": try saved(step)
        case "observe": try observe(step)
        case "walk": try walk(step)
        case "ask": try ask(step)
        default: throw Unmet("`\(verb)` is a verb")
        }
    }

    /// A case says where it wants credentials, if it gives a session to its caller.
    private func options(of step: Step) throws -> String {
        let gives = ["open_session", "wait_session"].contains(step["operation"]?.string ?? "open_session")
        guard gives, case .object(let given) = step["options"] ?? [:] else { return try (step["options"] ?? [:]).written }
        return try JSON.object(["credentials": false].merging(given) { $1 }).written
    }

    private mutating func start(_ step: Step) throws {
        let params = try step["params_text"]?.string ?? (step["params"] ?? [:]).written
        let options = try options(of: step)
        try name(step.name, begin(.start(operation: step["operation"]?.string ?? "", params: params, options: options)))
    }

    mutating func send(_ step: Step) throws {
        let found = try next()
        guard case .send(let id, let number, let request) = found else { throw Unmet("expected a send of \(step.about), came \(found)") }
        let target = request.url.hasPrefix(base) ? String(request.url.dropFirst(base.count)) : request.url
        let text = String(decoding: request.body ?? Data(), as: UTF8.self)
        let line = "\(request.method) \(target)"
        try VectorFormat.check(line == step.name, "expected a send of \(step.about), came \(line) \(text)")
        if let name = step["for"]?.string {
            try VectorFormat.check(command(name) == number, "expected a send for `\(name)`, came one for command \(number)")
        }
        for (name, value) in step["headers"]?.object ?? [:] {
            let given = request.headers.filter { $0.name == name }.map { JSON.string($0.value) }
            try VectorFormat.same(value == .null ? [] : [value], .array(given), name)
        }
        let keys = request.headers.filter { $0.name == "idempotency-key" }.map(\.value)
        try VectorFormat.check(keys.count == (step["key"] == nil ? 0 : 1), "expected the key \(step["key"] ?? .null), came \(keys)")
        for key in keys {
            try self.keys.bind(step["key"]?.string ?? "", key)
            try VectorFormat.check(sent[key, default: line + text] == line + text, "the same key was sent with other bytes")
            sent[key] = line + text
        }
        if let body = step["body"] { try VectorFormat.same(body, JSON.text(text), "body") }
        if let body = step["body_text"]?.string { try VectorFormat.check(body == text, "expected the body \(body), came \(text)") }
        if let most = step["timeout_ms"] { try VectorFormat.same(most, .number(Decimal(request.timeoutMs)), "timeout_ms") }
        if let most = step["max_body"] { try VectorFormat.same(most, .number(Decimal(request.maxBody)), "max_body") }
        if let within = step["within"] { try VectorFormat.like(within, .number(Decimal(request.sendBefore - monotonic)), "within") }
        try name(step, id)
    }

    mutating func answer(_ id: UInt32, _ answer: JSON) throws {
        if let word = answer.string {
            try storeAnswered(id, word)
        } else if let failed = answer["failed"]?.string {
            guard let kind = kinds[failed], let sent = answer["sent"]?.string else { throw Unmet("`\(failed)` is a failure") }
            try VectorFormat.check(sent == "never" || sent == "maybe", "`\(sent)` is never or maybe")
            try act(.fail(step: id, kind: kind, sent: sent == "never" ? .never : .maybe))
        } else {
            try respond(id, answer)
        }
        out.remove(id)
    }

    private func respond(_ id: UInt32, _ answer: JSON) throws {
        var headers = answer["headers"]?.object ?? [:]
        let body: Data
        if let text = answer["text"]?.string {
            body = Data(String(repeating: text, count: answer["repeat"]?.int ?? 1).utf8)
        } else if let hex = answer["hex"]?.string {
            body = try Self.bytes(hex)
        } else {
            headers["content-type"] = headers["content-type"] ?? "application/json"
            var envelope: VectorFormat.Object = ["success": .bool(answer["ok"] != nil), "data": answer["ok"] ?? .null]
            envelope["error"] = answer["error"]
            envelope["meta"] = answer["meta"]
            body = try Data(JSON.object(envelope).written.utf8)
        }
        guard let status = answer["status"]?.int ?? (answer["ok"] == nil ? nil : 200) else { throw Unmet("an answer has a status") }
        let pairs = headers.map { Header(name: $0.key, value: $0.value.string ?? "") }
        let isTruncated = answer["truncated"]?.bool ?? false
        try act(.respond(step: id, status: UInt16(status), headers: pairs, truncated: isTruncated), body)
    }

    private mutating func resolve(_ step: Step) throws {
        let isMisuse = step["misuse"]?.bool ?? false
        do {
            try answer(steps[step.name] ?? .max, step["answer"] ?? .null)
        } catch let error as ClientError {
            return try VectorFormat.check(isMisuse, "the answer was refused: \(error)")
        }
        try VectorFormat.check(!isMisuse, "expected the answer to be refused, and it was taken")
    }

    private mutating func wait(_ step: Step) throws {
        let until = try drained()
        try VectorFormat.like(step.about, until.map { .number(Decimal($0 - monotonic)) } ?? .null, step.verb)
        if step.verb == "sleep" {
            guard let until else { throw Unmet("`sleep` needs a time") }
            (unix, monotonic) = (unix + until - monotonic, until)
        }
    }

    private mutating func completed(_ step: Step) throws {
        let (found, expected) = try (next(), command(step.name))
        guard case .completed(let ended, _) = found, ended == expected else { throw Unmet("expected the end of \(step.about), came \(found)") }
        if let parts = step["parts"]?.array { try self.parts(parts, ended) }
        if step.verb == "complete" { try taken(step, ended) }
    }

    /// Names the commands that one which resumed them all is answered with.
    private mutating func parts(_ names: [JSON], _ command: UInt32) throws {
        guard case .answered(let answer)? = client.result(command: command) else { throw Unmet("expected parts, came no answer") }
        let found = try JSON.text(answer.raw).array ?? []
        try VectorFormat.check(names.count == found.count, "expected \(names.count) parts, came \(found.count)")
        for (name, part) in zip(names, found) { try self.name(name.string ?? "", UInt32(part.int ?? -1)) }
    }

    private func taken(_ step: Step, _ command: UInt32) throws {
        let taken = try take(command)
        if step["nothing"] == true { return try VectorFormat.check(taken == nil, "expected nothing to take, came something") }
        switch taken {
        case nil: throw Unmet("expected a result to take, came nothing")
        case .failed(let packed)?:
            let error = try JSON.error(packed)
            try VectorFormat.noSecret("an error", error.written)
            guard let expected = step["error"] else { throw Unmet("expected success, came \(error)") }
            try VectorFormat.like(VectorFormat.inSwift(expected), named(error), "error")
        case .answered(let answer)?:
            guard let expected = step["ok"]?.object else { throw Unmet("expected the error \(step["error"] ?? .null), came \(answer.raw)") }
            try VectorFormat.only(expected, ["facts", "raw", "raw_text", "phase"], "ok")
            try VectorFormat.like(expected["facts"] ?? [:], JSON.text(answer.facts), "facts")
            if let raw = expected["raw"] { try VectorFormat.like(raw, JSON.text(answer.raw), "raw") }
            if let text = expected["raw_text"]?.string { try VectorFormat.check(text == answer.raw, "expected the raw \(text), came \(answer.raw)") }
            if let phase = expected["phase"] { try VectorFormat.same(phase, answer.phase.map { .string($0) } ?? .null, "phase") }
        }
    }

    private mutating func notify(_ step: Step) throws {
        while true {
            switch client.poll(unixMs: unix, monotonicMs: monotonic) {
            case .notify(let packed):
                let event = try JSON.event(packed)
                try VectorFormat.noSecret("an event", event.written)
                if (try? VectorFormat.like(VectorFormat.inSwift(step.about), named(event), "notify")) != nil { return }
            case .store(let id, _, let call) where call.answersItself: try answerItself(id, call)
            case let found: throw Unmet("expected an event like \(step.about), came \(found)")
            }
        }
    }

    /// The acts of people on records: each is a command.
    private mutating func act(_ verb: String, _ step: Step) throws {
        let options = try options(of: step)
        let command =
            switch verb {
            case "resume": try begin(.resume(record: records.value(step.name), options: options))
            case "resume_intent": try begin(.resumeIntent(intent: step.name, options: options))
            case "resume_all": try begin(.resumeAll(options: options))
            case "reconcile":
                try begin(.start(operation: verb, params: JSON.object(["record": .string(records.value(step.name))]).written, options: "{}"))
            case "settle":
                try begin(
                    .settle(
                        record: records.value(step.name), happened: step["happened"] == true, became: step["became"]?.string,
                        early: step["early"] == true))
            default: try begin(.forget(record: records.value(step.name)))
            }
        try name(verb == "resume_all" ? step.name : step["as"]?.string ?? "", command)
    }

    private mutating func saved(_ step: Step) throws {
        var (entries, after): ([JSON], String?) = ([], nil)
        repeat {
            let command = try begin(.saved(after: after))
            let found = try next()
            guard case .completed(command, _) = found else { throw Unmet("expected the end of `saved`, came \(found)") }
            guard case .answered(let answer)? = try take(command) else { throw Unmet("expected a page of what is saved") }
            try VectorFormat.noSecret("the list of what is saved", answer.raw)
            let page = try JSON.page(savedPage(raw: answer.raw))
            entries += page["entries"]?.array ?? []
            after = page["after"]?.string
        } while after != nil
        let listed = entries.map(named).sorted { records.place($0["record"]?.string ?? "") < records.place($1["record"]?.string ?? "") }
        try VectorFormat.like(step.about, .array(listed), "saved")
    }

    private mutating func observe(_ step: Step) throws {
        let seen = try (step["seen"] ?? .null).written
        guard case .advice(let verdict) = try act(.observe(sessionId: step.name, seen: seen)) else { throw Unmet("it is advice") }
        let told = try verdict.map(JSON.verdict)
        try VectorFormat.same(step["verdict"] ?? .null, told?["verdict"] ?? .null, "verdict")
        try VectorFormat.same(step["reason"] ?? .null, told?["reason"] ?? .null, "reason")
        if let why = step["why"] { try VectorFormat.like(["contains": why], told?["why"] ?? .null, "why") }
        let command = told?["command"]?.int
        try VectorFormat.check((step["as"] == nil) == (command == nil), "expected a command for \(step["as"] ?? .null), came \(told ?? .null)")
        if let name = step["as"]?.string, let command { try self.name(name, UInt32(command)) }
    }
}

/// The words of the vectors for a request that failed.
private let kinds: [String: HoplineCore.FailureKind] = [
    "dns": .dns, "connect": .connect, "tls": .tls, "timeout": .timeout, "closed": .closed, "aborted": .aborted, "late": .late, "other": .other,
]
