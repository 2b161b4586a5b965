package hopline

import hopline.core.quote as priced
import java.math.BigDecimal
import kotlinx.serialization.json.JsonObject

/**
 * What a purchase is to cost. It binds the service when the product came from `listProducts`; the public list shows starting
 * prices.
 */
public data class Quote(
    /** What is bought. */
    val productNo: String,
    /** GB (dynamic) or addresses (static). */
    val quantity: BigDecimal,
    /** USD for one `unit`. */
    val unitPrice: BigDecimal,
    /** USD for the quantity. Of a static product it is for one `unit` of time, since the service does not document the unit of `duration`. */
    val total: BigDecimal,
    /** The currency of the product. */
    val currency: String,
    /** What the price is for. */
    val unit: String,
)

/**
 * Prices a quantity of a product, exactly: nothing is sent and nothing is rounded.
 *
 * @param product a product of a list
 * @param quantity GB (dynamic, fractions allowed) or addresses (static, whole)
 */
public fun quote(product: Product, quantity: BigDecimal = BigDecimal.ONE): Quote {
    val given =
        product.run {
            encode(
                "product_no" to productNo, "name" to name, "type" to type, "sharing" to sharing, "available" to available,
                "price" to price, "currency" to currency, "unit" to unit, "stock" to stock, "country" to country, "city" to city,
            )
        }
    val told = parse(asked { priced(sound("quote", "product", given), tree(quantity).toString()) }) as JsonObject
    return Quote(
        productNo = told.text("product_no").orEmpty(),
        quantity = BigDecimal(told.text("quantity")),
        unitPrice = BigDecimal(told.text("unit_price")),
        total = BigDecimal(told.text("total")),
        currency = told.text("currency").orEmpty(),
        unit = told.text("unit").orEmpty(),
    )
}
