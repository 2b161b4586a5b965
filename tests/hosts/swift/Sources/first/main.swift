import Hopline

let agent = try AgentClient()  // HOPLINE_API_KEY and HOPLINE_BASE_URL, or apiKey: … and baseURL: …
for product in try await agent.listProducts(type: .dynamic).items {
    print(product.productNo, product.price, product.currency, "per", product.unit)
}
