import hopline.AgentClient
import hopline.ProductFilter
import kotlinx.coroutines.runBlocking

fun main() = runBlocking {
    AgentClient().use { agent -> // HOPLINE_API_KEY and HOPLINE_BASE_URL, or AgentClient(Secret(…), "https://host/v1")
        for (product in agent.listProducts(type = ProductFilter.Dynamic).items) {
            println("${product.productNo}: ${product.price} ${product.currency} per ${product.unit}")
        }
    }
}
