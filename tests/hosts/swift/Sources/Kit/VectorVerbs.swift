import Foundation
import Hopline
import HoplineCore

/// What each verb does.
extension Vectors {
    mutating func take(_ verb: String, _ step: Step) throws {
        switch verb {
        case "start": try start(step)
        case "save", "delete": try save(step)
        case "send": try send(step)
        case "resolve": try resolve(step)
        case "wait", "sleep": try wait(step)
        case "advance":
            _ = try drained()
            move(step.about)
        case "completed", "complete": try completed(step)
        case "take": try taken(step, command(step.name))
        case "notify": try notify(step)
        case "cancel": _ = try client.cancel(command: command(step.name), unixMs: unix, monotonicMs: monotonic)
        case "crash": try crash(step)
        case "put": try put(step)
        case "restore": try restore(step)
        case "resume": try name(step["as"]?.string ?? "", client.resume(record: records.value(step.name), options: (step["options"] ?? [:]).written))
        case "resume_intent": try resumeIntent(step)
        case "resume_all": try resumeAll(step)
        case "reconcile":
            let params = try JSON.object(["record": .string(records.value(step.name))]).written
            try name(step["as"]?.string ?? "", client.start(operation: "reconcile", params: params, options: "{}"))
        case "settle": try settle(step)
        case "forget": try VectorFormat.same(step["done"] ?? true, .bool(client.forget(record: records.value(step.name))), "forgotten")
        case "saved":
            let listed = client.savedList()
            try VectorFormat.noSecret("the list of what is saved", listed)
            try VectorFormat.like(step.about, named(JSON.text(listed)), "saved")
        case "observe": try observe(step)
        case "walk": try walk(step)
        case "ask": try ask(step)
        default: throw Unmet("`\(verb)` is a verb")
        }
    }

    private mutating func start(_ step: Step) throws {
        let params = try step["params_text"]?.string ?? (step["params"] ?? [:]).written
        let options = try (step["options"] ?? [:]).written
        try name(step.name, client.start(operation: step["operation"]?.string ?? "", params: params, options: options))
    }

    private mutating func save(_ step: Step) throws {
        let found = try next()
        guard case .save(let id, let record, let data) = found, (data != nil) == (step.verb == "save") else {
            throw Unmet("expected a \(step.verb) of \(step.about), came \(found)")
        }
        try records.bind(step.name, record)
        if let data {
            let text = String(decoding: data, as: UTF8.self)
            try VectorFormat.noSecret("a record", text)
            try VectorFormat.like(step["has"] ?? [:], named(JSON.text(text)), "has")
        }
        unsure[record] = .some(data)
        saves[id] = (record, data)
        try name(step, id)
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
        if answer == "failed" {
            try client.fail(step: id, kind: .store, sent: .never, unixMs: unix, monotonicMs: monotonic)
        } else if answer == "saved" {
            try client.saved(step: id, unixMs: unix, monotonicMs: monotonic)
            if let (record, data) = saves.removeValue(forKey: id) {
                unsure[record] = nil
                store[record] = data
            }
        } else if let failed = answer["failed"]?.string {
            guard let kind = kinds[failed], let sent = answer["sent"]?.string else { throw Unmet("`\(failed)` is a failure") }
            try VectorFormat.check(sent == "never" || sent == "maybe", "`\(sent)` is never or maybe")
            try client.fail(step: id, kind: kind, sent: sent == "never" ? .never : .maybe, unixMs: unix, monotonicMs: monotonic)
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
        try client.respond(
            step: id, status: UInt16(status), headers: pairs, body: body, truncated: answer["truncated"]?.bool ?? false, unixMs: unix,
            monotonicMs: monotonic)
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
        guard case .completed(let ended) = found, ended == expected else { throw Unmet("expected the end of \(step.about), came \(found)") }
        if step.verb == "complete" { try taken(step, ended) }
    }

    private func taken(_ step: Step, _ command: UInt32) throws {
        let taken = client.take(command: command)
        if step["nothing"] == true { return try VectorFormat.check(taken == nil, "expected nothing to take, came something") }
        switch taken {
        case nil: throw Unmet("expected a result to take, came nothing")
        case .failed(let error)?:
            try VectorFormat.noSecret("an error", error)
            guard let expected = step["error"] else { throw Unmet("expected success, came \(error)") }
            try VectorFormat.like(expected, named(JSON.text(error)), "error")
        case .answered(let answer)?:
            guard let expected = step["ok"]?.object else { throw Unmet("expected the error \(step["error"] ?? .null), came \(answer.raw)") }
            try VectorFormat.only(expected, ["facts", "raw", "raw_text", "phase"], "ok")
            try VectorFormat.like(expected["facts"] ?? [:], JSON.text(answer.facts), "facts")
            if let raw = expected["raw"] { try VectorFormat.like(raw, JSON.text(answer.raw), "raw") }
            if let text = expected["raw_text"]?.string { try VectorFormat.check(text == answer.raw, "expected the raw \(text), came \(answer.raw)") }
            if let phase = expected["phase"] { try VectorFormat.same(phase, answer.phase.map { .string($0) } ?? .null, "phase") }
        }
    }

    private func notify(_ step: Step) throws {
        while true {
            let found = client.poll(unixMs: unix, monotonicMs: monotonic)
            guard case .notify(let event) = found else { throw Unmet("expected an event like \(step.about), came \(found)") }
            try VectorFormat.noSecret("an event", event)
            if (try? VectorFormat.like(step.about, named(JSON.text(event)), "notify")) != nil { return }
        }
    }

    private mutating func put(_ step: Step) throws {
        let name = try step.name
        if records.values[name] == nil { try records.bind(name, name) }
        let record = try records.value(name)
        if let change = step["change"]?.object {
            guard let held = store[record] else { throw Unmet("`\(name)` is in the store") }
            let changed = try VectorFormat.overlay(JSON.text(String(decoding: held, as: UTF8.self)).object ?? [:], change)
            store[record] = try Data(JSON.object(changed).written.utf8)
        } else {
            store[record] = Data((step["text"]?.string ?? "").utf8)
        }
    }

    private func restore(_ step: Step) throws {
        let refused = step["refused"]?.object ?? [:]
        let held = (step.about.array ?? []).compactMap(\.string)
        let given = try (held + refused.keys.sorted()).map { name in
            let record = try records.value(name)
            guard let data = store[record] else { throw Unmet("`\(name)` is in the store") }
            return Record(id: record, data: data)
        }
        let told = try JSON.text(client.restore(records: given, sameAccount: step["same_account"]?.bool ?? false))
        try VectorFormat.same(step.about, named(told["held"] ?? .null), "held")
        let said = (told["refused"]?.array ?? []).map { (records.name($0["record"]?.string ?? ""), $0["message"] ?? .null) }
        try VectorFormat.check(said.map(\.0).sorted() == refused.keys.sorted(), "expected \(refused.keys.sorted()) to be refused, came \(said)")
        for (name, message) in said { try VectorFormat.like(["contains": refused[name] ?? .null], message, "refused.\(name)") }
    }

    private mutating func resumeAll(_ step: Step) throws {
        let (names, found) = ((step.about.array ?? []).compactMap(\.string), client.resumeAll())
        try VectorFormat.check(names.count == found.count, "expected \(names.count) commands to be resumed, came \(found.count)")
        for (name, command) in zip(names, found) { try self.name(name, command) }
    }

    private mutating func resumeIntent(_ step: Step) throws {
        let command = try client.resumeIntent(intent: step.name, options: (step["options"] ?? [:]).written)
        switch (command, step["as"]?.string, step["nothing"] == true) {
        case (let command?, let name?, false): try self.name(name, command)
        case (nil, nil, true): break
        case (let command, nil, true): throw Unmet("expected \(step.about) to stand for nothing, came command \(command ?? 0)")
        case (nil, _?, false): throw Unmet("expected \(step.about) to stand for something")
        default: throw Unmet("`resume_intent` needs one of `as` and `nothing`")
        }
    }

    private func settle(_ step: Step) throws {
        guard let how = step["as"]?.string, how == "happened" || how == "not_happened" else { throw Unmet("a doubt is settled as one of two") }
        let done = try client.settle(record: records.value(step.name), happened: how == "happened", became: step["became"]?.string)
        try VectorFormat.same(step["done"] ?? true, .bool(done), "settled")
    }

    private mutating func observe(_ step: Step) throws {
        let seen = try (step["seen"] ?? .null).written
        let told = try client.observe(sessionId: step.name, seen: seen, unixMs: unix, monotonicMs: monotonic).map(JSON.text)
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
