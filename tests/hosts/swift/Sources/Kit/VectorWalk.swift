import Foundation
import Hopline
import HoplineCore

/// A walk through a list, its pages as the script has them.
extension Vectors {
    mutating func walk(_ step: Step) throws {
        let (operation, params) = try (step["operation"]?.string ?? "", (step["params"] ?? [:]).written)
        var position = try beginning(step, operation)
        var (end, items): (JSON, [JSON]) = (.null, [])
        var failure = try refusal { try pageParams(position: position ?? "", params: params) }
        for page in step["pages"]?.array ?? [] {
            let page = Step(members: page.object ?? [:], verb: "send")
            guard let from = position, failure == nil, end == .null else { throw Unmet("expected a read of \(page.about), and the walk is over: \(end)") }
            let command = try client.start(operation: operation, params: pageParams(position: from, params: params), options: "{}")
            try send(page)
            let found = try next()
            guard case .completed(let ended) = found, ended == command else { throw Unmet("expected the end of a page, came \(found)") }
            switch client.take(command: command) {
            case .answered(let answer)?:
                items += try JSON.text(answer.raw)["items"]?.array ?? []
                let turn = try JSON.text(pageTurn(position: from, facts: answer.facts))
                position = try turn["position"]?.written
                end = turn["end"] ?? .null
            case .failed(let error)?: failure = error
            case nil: throw Unmet("a page that has ended has a result")
            }
        }
        try VectorFormat.check((failure == nil) == (step["error"] == nil), "expected the error \(step["error"] ?? .null), came \(failure ?? "none")")
        if let failure {
            try VectorFormat.noSecret("an error", failure)
            try VectorFormat.like(step["error"] ?? .null, named(JSON.text(failure)), "error")
        }
        try VectorFormat.same(step["end"] ?? .null, end, "end")
        if let expected = step["items"] { try VectorFormat.like(expected, .array(items), "items") }
        let before = try walks.updateValue(position.map { .string($0) } ?? .null, forKey: step.name)
        try VectorFormat.check(before == nil, "a walk is named \(step.about) already")
    }

    /// Where it begins, as JSON.
    private func beginning(_ step: Step, _ operation: String) throws -> String? {
        var begin = try step["position_text"]?.string ?? JSON.object(["operation": .string(operation)]).written
        if let name = step["from"]?.string {
            guard let position = walks[name]?.string else { throw Unmet("`\(name)` is no walk to go on from") }
            begin = position
        }
        guard let most = step["max_pages"] else { return begin }
        return try JSON.object(VectorFormat.overlay(JSON.text(begin).object ?? [:], ["max_pages": most])).written
    }

    /// What needs no client.
    func ask(_ step: Step) throws {
        try VectorFormat.check((step["ok"] == nil) != (step["error"] == nil), "an answer is one of `ok` and `error`")
        var answer = ""
        let failure = try refusal {
            answer = try hostText(question: step.name, given: (step["given"] ?? .null).written)
            return answer
        }
        if let failure {
            try VectorFormat.noSecret("an error", failure)
            guard let expected = step["error"] else { throw Unmet("expected \(step["ok"] ?? .null), came \(failure)") }
            return try VectorFormat.like(expected, JSON.text(failure), "error")
        }
        guard let expected = step["ok"] else { throw Unmet("expected the error \(step["error"] ?? .null), came \(answer)") }
        try VectorFormat.same(expected, JSON.text(answer), "ok")
    }

    /// What the core says against it.
    private func refusal(_ ask: () throws -> String) throws -> String? {
        do {
            _ = try ask()
            return nil
        } catch ClientError.Refused(let error) {
            return error
        }
    }
}
