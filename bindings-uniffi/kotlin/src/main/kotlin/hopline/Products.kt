package hopline

import hopline.core.ipRange
import hopline.core.isShared as shared
import hopline.core.quote as priced
import java.math.BigDecimal

/** Returns true if a product is shared static, by its product type and its projects. */
public fun isShared(product: StaticProduct): Boolean = isShared(product.productType, product.projectList)

/** Returns true if a product is shared static. */
public fun isShared(product: ProductRanges): Boolean = isShared(product.productType, product.projectList)

private fun isShared(productType: String?, projectList: List<Raw>?): Boolean =
    asked { shared(sound("is_shared", "product", encode("productType" to productType, "projectList" to projectList))) }

/** Returns true if an order of the product must name a project: a shared product needs one. */
public fun needsProjectId(product: StaticProduct): Boolean = isShared(product)

/** Reads a range: a CIDR block, a first and a last address, or one address. A text that can't be read is kept as `text`. */
public fun parseIpRange(text: String): IpRange = Packed(ipRange(sound("parse_ip_range", "text", text))).readIpRange()

/**
 * Prices a quantity of a product, exactly: nothing is sent and nothing is rounded.
 *
 * @param product a product of a list
 * @param quantity GB (dynamic, fractions allowed) or addresses (static, whole)
 */
public fun quote(product: Product, quantity: BigDecimal = BigDecimal.ONE): Quote {
    val given =
        product.run { encode("product_no" to productNo, "type" to type, "price" to price, "currency" to currency, "unit" to unit) }
    return Packed(asked { priced(sound("quote", "product", given), tree(quantity).toString()) }).readQuote()
}
