import Foundation

internal import HoplineCore

/// What a purchase is to cost. It binds the service when the product came from `listProducts`; the public list shows starting
/// prices.
public struct Quote: Codable, Hashable, Sendable {
    /// What is bought.
    public let productNo: String
    /// GB (dynamic) or addresses (static).
    public let quantity: Decimal
    /// USD for one `unit`.
    public let unitPrice: Decimal
    /// USD for the quantity. Of a static product it is for one `unit` of time, since the service does not document the unit of `duration`.
    public let total: Decimal
    /// The currency of the product.
    public let currency: String
    /// What the price is for.
    public let unit: String

    enum CodingKeys: String, CodingKey {
        case productNo = "product_no"
        case quantity
        case unitPrice = "unit_price"
        case total, currency, unit
    }
}

/// Prices a quantity of a product, exactly: nothing is sent and nothing is rounded.
///
/// - Parameters:
///   - product: A product of a list.
///   - quantity: GB (dynamic, fractions allowed) or addresses (static, whole).
public func quote(_ product: Product, quantity: Decimal = 1) throws(HoplineError) -> Quote {
    var given = Parameters()
    given.add("product_no", product.productNo)
    given.add("name", product.name)
    given.add("type", product.type)
    given.add("sharing", product.sharing)
    given.add("available", product.available)
    given.add("price", product.price)
    given.add("currency", product.currency)
    given.add("unit", product.unit)
    given.add("stock", product.stock)
    given.add("country", product.country)
    given.add("city", product.city)
    return try core {
        return try JSONDecoder().decode(Quote.self, from: Data(quote(product: given.json.text, quantity: quantity.description).utf8))
    }
}
