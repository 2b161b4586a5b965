import Foundation

internal import HoplineCore

/// Whether a product is shared static.
public func isShared(_ product: StaticProduct) -> Bool {
    shared(product.productType, product.projectList)
}

/// Whether the product of these address ranges is shared static.
public func isShared(_ product: ProductRanges) -> Bool {
    shared(product.productType, product.projectList)
}

/// Whether an order of a product must name one of its projects, in `projectId`.
public func needsProjectId(_ product: StaticProduct) -> Bool {
    isShared(product)
}

/// A range of addresses.
public struct IpRange: Sendable, Hashable, Decodable {
    /// As the service wrote it.
    public let text: String
    /// The first address; nothing where the text is no range that can be read.
    public let first: String?
    /// The last one.
    public let last: String?
}

/// Reads a range: a CIDR block, a first and a last address, or one address. What can't be read stays as its text.
public func parseIpRange(_ text: String) -> IpRange {
    let read = try? JSONDecoder().decode(IpRange.self, from: Data(ipRange(text: text).utf8))
    return read ?? IpRange(text: text, first: nil, last: nil)
}

private func shared(_ productType: String?, _ projects: [Raw]?) -> Bool {
    var shown = Parameters()
    shown.add("productType", productType)
    shown.add("projectList", projects?.map { JSON.string($0.text) })
    return isShared(product: shown.json.text)
}
