package hopline

import hopline.core.ipRange
import hopline.core.isShared as shared
import kotlinx.serialization.json.JsonObject

/** Whether a product is shared static: its product type and its projects say so, and nothing else does. */
public fun isShared(product: StaticProduct): Boolean = isShared(product.productType, product.projectList)

/** Whether a product is shared static. */
public fun isShared(product: ProductRanges): Boolean = isShared(product.productType, product.projectList)

private fun isShared(productType: String?, projectList: List<Raw>?): Boolean =
    asked { shared(sound("is_shared", "product", encode("productType" to productType, "projectList" to projectList))) }

/** Whether an order of the product must name a project: a shared one does. */
public fun needsProjectId(product: StaticProduct): Boolean = isShared(product)

/** A range of addresses. */
public data class IpRange(
    /** As the service wrote it. */
    val text: String,
    /** The first address; null where the text is no range that can be read. */
    val first: String?,
    /** The last one. */
    val last: String?,
)

/** Reads a range: a CIDR block, a first and a last address, or one address. What can't be read stays as its text. */
public fun parseIpRange(text: String): IpRange {
    val told = parse(ipRange(sound("parse_ip_range", "text", text))) as JsonObject
    return IpRange(text = told.text("text").orEmpty(), first = told.text("first"), last = told.text("last"))
}
