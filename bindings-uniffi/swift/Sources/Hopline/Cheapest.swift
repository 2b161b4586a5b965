import Foundation

/// A choice of a product: the cheapest one of the account's own list that fits. Prices are compared within one unit. Products in another
/// currency than USD, without enough stock or not available are passed over, and so are shared ones, unless `sharing` or the `projectID` of
/// the purchase is set.
public struct Cheapest: Sendable, Hashable {
    /// The type of the product.
    public var type: SessionType
    /// The country, as the product has it.
    public var country: String?
    /// The city, as the product has it.
    public var city: String?
    /// The other users of the product's addresses.
    public var sharing: Sharing?
    /// The project of the purchase, with which shared products fit, too.
    public var projectId: String?
    /// The unit of the price, required where products with several units fit.
    public var unit: String?
    /// The highest price of one unit, in USD. Without any limit nothing dearer than the first choice is bought.
    public var maxUnitPrice: Decimal?

    /// Makes a choice; omitted properties fit any product.
    public init(
        type: SessionType, country: String? = nil, city: String? = nil, sharing: Sharing? = nil, projectId: String? = nil,
        unit: String? = nil, maxUnitPrice: Decimal? = nil
    ) {
        self.type = type
        self.country = country
        self.city = city
        self.sharing = sharing
        self.projectId = projectId
        self.unit = unit
        self.maxUnitPrice = maxUnitPrice
    }
}

extension Cheapest: Parameter {
    var parameter: JSON {
        var told = Parameters()
        told.add("session_type", type)
        told.add("country", country)
        told.add("city", city)
        told.add("sharing", sharing)
        told.add("project_id", projectId)
        told.add("unit", unit)
        told.add("max_unit_price", maxUnitPrice)
        return told.json
    }
}

extension IfEnded: Parameter {}

/// The HTTP client that a session's proxy is for.
public enum UseWith: String, Sendable, Parameter {
    /// `URLSession`, with `configure`.
    case urlSession = "urlsession"
    /// curl, with its configuration on the standard input.
    case curl

    var parameter: JSON { .string(rawValue) }
}
