import Foundation

internal import HoplineCore

/// Prices a quantity of a product, exactly: nothing is sent and nothing is rounded.
///
/// - Parameters:
///   - product: A product of a list.
///   - quantity: GB (dynamic, fractions allowed) or addresses (static, whole).
public func quote(_ product: Product, quantity: Decimal = 1) throws(HoplineError) -> Quote {
    var given = Parameters()
    given.add("product_no", product.productNo)
    given.add("type", product.type)
    given.add("price", product.price)
    given.add("currency", product.currency)
    given.add("unit", product.unit)
    return try core { Packed.read(try quote(product: given.json.text, quantity: quantity.description), Quote.init) }
}
