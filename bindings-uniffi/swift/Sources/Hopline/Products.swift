internal import HoplineCore

/// Returns true if a product is shared static.
public func isShared(_ product: StaticProduct) -> Bool {
    shared(product.productType, product.projectList)
}

/// Returns true if the product of these address ranges is shared static.
public func isShared(_ product: ProductRanges) -> Bool {
    shared(product.productType, product.projectList)
}

/// Returns true if an order of a product must name one of its projects, in `projectId`.
public func needsProjectId(_ product: StaticProduct) -> Bool {
    isShared(product)
}

/// Reads a range: a CIDR block, a first and a last address, or one address. A text that can't be read is kept as `text`.
public func parseIpRange(_ text: String) -> IpRange {
    Packed.read(ipRange(text: text), IpRange.init)
}

private func shared(_ productType: String?, _ projects: [Raw]?) -> Bool {
    var shown = Parameters()
    shown.add("productType", productType)
    shown.add("projectList", projects?.map { JSON.string($0.text) })
    return isShared(product: shown.json.text)
}
