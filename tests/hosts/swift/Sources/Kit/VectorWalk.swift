import Foundation
import Hopline
import HoplineCore

/// A walk through a list, its pages as the script has them.
extension Vectors {
    mutating func walk(_ step: Step) throws {
        let (operation, params) = try (step["operation"]?.string ?? "", (step["params"] ?? [:]).written)
        let begin = try JSON.object([
            "operation": .string(operation), "position": beginning(step), "max_pages": step["max_pages"] ?? .null,
        ]).written
        var position: String?
        var (end, items): (JSON, [JSON]) = (.null, [])
        var failure = try refusal {
            let begun = try hostText(question: "walk", given: begin)
            position = try JSON.text(begun)["position"]?.string
            return begun
        }
        for page in step["pages"]?.array ?? [] {
            let page = Step(members: page.object ?? [:], verb: "send")
            guard let from = position, failure == nil, end == .null else { throw Unmet("expected a read of \(page.about), and the walk is over: \(end)") }
            let command = try self.begin(.start(operation: operation, params: pageParams(position: from, params: params), options: "{}"))
            try send(page)
            let found = try next()
            guard case .completed(let ended, _) = found, ended == command else { throw Unmet("expected the end of a page, came \(found)") }
            switch try take(command) {
            case .answered(let answer)?:
                let turn = try JSON.text(pageTurn(position: from, facts: answer.facts))
                position = turn["position"]?.string
                end = turn["end"] ?? .null
                // As it was written, the list may be under its other name.
                let page = try JSON.text(answer.raw)
                if end.string != "repeated_page" { items += page["items"]?.array ?? page["list"]?.array ?? [] }
            case .failed(let error)?: failure = try JSON.error(error)
            case nil: throw Unmet("a page that has ended has a result")
            }
        }
        try VectorFormat.check((failure == nil) == (step["error"] == nil), "expected the error \(step["error"] ?? .null), came \(failure ?? .null)")
        if let failure {
            try VectorFormat.noSecret("an error", failure.written)
            try VectorFormat.like(VectorFormat.inSwift(step["error"] ?? .null), named(failure), "error")
        }
        try VectorFormat.same(step["end"] ?? .null, end, "end")
        if let expected = step["items"] { try VectorFormat.like(expected, .array(items), "items") }
        let before = try walks.updateValue(position.map { .string($0) } ?? .null, forKey: step.name)
        try VectorFormat.check(before == nil, "a walk is named \(step.about) already")
    }

    /// The position where it begins; null for the first page.
    private func beginning(_ step: Step) throws -> JSON {
        guard let name = step["from"]?.string else { return step["position_text"] ?? .null }
        guard let position = walks[name], position != .null else { throw Unmet("`\(name)` is no walk to go on from") }
        return position
    }

    /// The functions that need no client.
    func ask(_ step: Step) throws {
        try VectorFormat.check((step["ok"] == nil) != (step["error"] == nil), "an answer is one of `ok` and `error`")
        var answer = ""
        let failure = try refusal {
            answer = try hostText(question: step.name, given: (step["given"] ?? .null).written)
            return answer
        }
        if let failure {
            try VectorFormat.noSecret("an error", failure.written)
            guard let expected = step["error"] else { throw Unmet("expected \(step["ok"] ?? .null), came \(failure)") }
            return try VectorFormat.like(VectorFormat.inSwift(expected), failure, "error")
        }
        guard let expected = step["ok"] else { throw Unmet("expected the error \(step["error"] ?? .null), came \(answer)") }
        try VectorFormat.same(expected, JSON.text(answer), "ok")
    }

    /// The error of the core.
    private func refusal(_ ask: () throws -> String) throws -> JSON? {
        do {
            _ = try ask()
            return nil
        } catch ClientError.Refused(let error) {
            return try JSON.error(error)
        }
    }
}
