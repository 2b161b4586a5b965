import Foundation
@testable import Hopline
import HoplineCore

/// The core's packed values, as the vectors write them: members by the core's names, times in milliseconds, amounts as text.
extension JSON {
    static func error(_ packed: Data) throws -> JSON { try told(HoplineError(packed: packed)) }
    static func event(_ packed: Data) throws -> JSON { try told(Packed.read(packed, EventFields.init)) }
    static func verdict(_ packed: Data) throws -> JSON { try told(Packed.read(packed, VerdictFields.init)) }
    static func page(_ packed: Data) throws -> JSON { try told(Packed.read(packed, SavedPage.init)) }

    private static func told(_ value: Any) throws -> JSON {
        switch value {
        case let text as String: return .string(text)
        case let flag as Bool: return .bool(flag)
        case let number as Int: return .number(Decimal(number))
        case let amount as Decimal: return .string("\(amount)")
        case let time as Date: return .number(Decimal(Int((time.timeIntervalSince1970 * 1000).rounded())))
        case let span as Duration: return .number(Decimal(Int(span / .milliseconds(1))))
        case let raw as Raw: return try .text(raw.text)
        case let word as any RawRepresentable<String>: return .string(word.rawValue)
        case let items as [Any]: return try .array(items.map(told))
        case let error as HoplineError:
            // The members that the text does not show, since they may be long or hold secrets.
            let hidden: [(String?, Any)] = [
                ("operation", error.operation), ("what", error.what), ("text", error.text as Any), ("contentType", error.contentType as Any),
                ("details", error.details as Any), ("raw", error.raw as Any),
            ]
            return try members(Mirror(reflecting: error).children.filter { $0.label != "notes" } + hidden)
        default:
            let mirror = Mirror(reflecting: value)
            return mirror.displayStyle == .optional ? .null : try members(Array(mirror.children))
        }
    }

    private static func members(_ children: [Mirror.Child]) throws -> JSON {
        let names = ["isRefusedByUs": "refused_by_us", "delay": "delay_ms"]
        let pairs = try children.map { label, value in
            let snake = (label ?? "").map { $0.isUppercase ? "_\($0.lowercased())" : "\($0)" }.joined()
            return (names[label ?? ""] ?? snake, try told(value))
        }
        // As the core, which leaves out what is absent or false.
        return .object(Dictionary(pairs) { $1 }.filter { $0.value != .null && $0.value != false })
    }
}
