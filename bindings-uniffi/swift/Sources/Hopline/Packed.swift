import Foundation

/// Reads an answer that the core packed, in the format of `packed.rs`. The core has checked it against the same table that the initialisers
/// are printed from, so it is always valid; even so nothing is read beyond its end.
struct Packed {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var at = 0

    /// Reads one value.
    static func read<Value>(_ bytes: Data, _ value: (inout Packed) -> Value) -> Value {
        bytes.withUnsafeBytes { bytes in
            var packed = Packed(bytes: bytes.bindMemory(to: UInt8.self))
            return value(&packed)
        }
    }

    /// The members of a record that are there: a bit for each.
    mutating func members(_ count: Int) -> Members {
        Members(bits: whole((count + 7) / 8))
    }

    mutating func text() -> String {
        String(decoding: next(number()), as: UTF8.self)
    }

    /// A text of an error: Kotlin spells two names in another way.
    mutating func told() -> String {
        Self.inSwift(text())
    }

    static func inSwift(_ told: String) -> String {
        guard told.contains("baseUrl") || told.contains("allowHttp") else { return told }
        return told.replacingOccurrences(of: "baseUrl", with: "baseURL").replacingOccurrences(of: "allowHttp", with: "allowHTTP")
    }

    mutating func secret() -> Secret {
        Secret(text())
    }

    mutating func raw() -> Raw {
        Raw(text: text())
    }

    mutating func flag() -> Bool {
        whole(1) != 0
    }

    mutating func integer() -> Int {
        Int(truncatingIfNeeded: whole(8))
    }

    mutating func time() -> Date {
        Date(timeIntervalSince1970: Double(integer()) / 1000)
    }

    mutating func span() -> Duration {
        .milliseconds(integer())
    }

    /// Digits that fit into 64 bits are read from the bytes, which is faster than from a text.
    mutating func decimal() -> Decimal {
        let digits = next(number())
        var (unscaled, scale, isNegative, isPlain): (UInt64, Int, Bool, Bool) = (0, 0, false, digits.count <= Self.longest)
        var step = 0
        for byte in digits {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                unscaled = unscaled &* 10 &+ UInt64(byte &- UInt8(ascii: "0"))
                scale &-= step
            case UInt8(ascii: "."): step = 1
            case UInt8(ascii: "-"): isNegative = true
            // An exponent.
            default: isPlain = false
            }
        }
        guard isPlain else { return amount(String(decoding: digits, as: UTF8.self)) ?? .nan }
        return Decimal(sign: isNegative ? .minus : .plus, exponent: scale, significand: Decimal(unscaled))
    }

    /// The number of digits that always fit into 64 bits.
    private static let longest = 19

    /// A word of a list: one of the list's, or another.
    mutating func word<Word: Words>() -> Word {
        let place = number()
        return place == 0 ? Word(rawValue: text()) : Word.words[place - 1]
    }

    /// A word of a closed list.
    mutating func closed<Word: CaseIterable>() -> Word where Word.AllCases == [Word] {
        Word.allCases[number() - 1]
    }

    mutating func list<Item>(_ item: (inout Packed) -> Item) -> [Item] {
        let count = Int(whole(4))
        var items: [Item] = []
        items.reserveCapacity(count)
        for _ in 0..<count { items.append(item(&self)) }
        return items
    }

    /// A number in so many bytes.
    private mutating func whole(_ count: Int) -> UInt64 {
        let bytes = next(count)
        var whole: UInt64 = 0
        for place in 0..<count { whole |= UInt64(bytes[place]) &<< UInt64(8 &* place) }
        return whole
    }

    private mutating func number() -> Int {
        var (number, shift) = (0, 0)
        while true {
            let byte = Int(next(1)[0])
            number |= (byte & 0x7f) &<< shift
            if byte < 0x80 { return number }
            shift &+= 7
        }
    }

    private mutating func next(_ count: Int) -> UnsafeBufferPointer<UInt8> {
        precondition(count >= 0 && count <= bytes.count &- at, "an answer ends early: the package and its library are of two versions")
        defer { at &+= count }
        return UnsafeBufferPointer(start: bytes.baseAddress.map { $0 + at }, count: count)
    }
}

/// The members of a record that are there.
struct Members {
    let bits: UInt64

    func has(_ member: Int) -> Bool {
        bits >> UInt64(member) & 1 == 1
    }
}

/// A list of words that the contract names.
protocol Words: Sendable {
    static var words: [Self] { get }
    init(rawValue: String)
}

/// The value of an answer: a type of the table, or an undocumented one.
protocol Packable: Sendable {
    /// The name in the table; empty if undocumented.
    static var type: String { get }
    init(_ packed: inout Packed)
}

/// The value of an undocumented answer: read it from `raw`.
public struct Undocumented: Packable {
    static let type = ""

    /// For the answers of a fake.
    public init() {}

    init(_ packed: inout Packed) {}
}

/// Reads a number of the core, which is text, independently of the locale.
func amount(_ text: String) -> Decimal? {
    Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
}
