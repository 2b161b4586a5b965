// Makes a sub-user with money, orders a static proxy for it, reads it, renews it and gives it back. Killed at any moment and
// started again, it makes nothing twice: it resumes the order, and chooses a product only if there is none.
import { FolderStore, HoplineError, ProxySettings, ResellerClient, needsProjectId } from "hopline";

const reseller = new ResellerClient({ store: new FolderStore("hopline-records") });
try {
  const user = await reseller.createUser({ username: "shop-17", password: "a long password" }, { intent: "user-17" });
  if (user.id == null) throw new Error("the service did not say which number the sub-user has");
  await reseller.adjustSubUserBalance({ user_id: user.id, amount: 50, remark: "for May" }, { intent: "money-17" });

  const ends = ["failed", "cancelled"]; // the statuses that end it, which the service does not document
  let placed = await reseller.resumeIntent("order-17", { ends });
  if (placed === undefined) {
    const { items } = await reseller.queryProducts({ proxyType: 103, standardCountryCode: "US" });
    const product = items.find((one) => one.stock && !needsProjectId(one));
    if (!product?.productId) throw new Error("nothing is left to order");
    console.log(`${product.productId} costs ${product.price} a ${product.unit}`);
    placed = await reseller.placeOrder(
      // A price of 0 is the service's own.
      { poolId: product.productId, userId: user.id, unitPrice: 0, totalAmount: 0, ipCount: 1, duration: 1, unit: "month", cycleTimes: 1 },
      { intent: "order-17", ends },
    );
  }
  if (!("order" in placed)) throw new Error("order-17 stands for something else");
  const { order_no, phase, order } = placed;
  console.log(`order ${order_no} is ${phase}`);

  if (phase === "ready") {
    /** @type {any[]} The service does not document its items; these are the names of the sandbox. */
    const items = order.items;
    for (const { instances } of items) {
      for (const { ip, http_port, username, password } of instances) {
        const proxy = new ProxySettings({ host: ip, port: http_port, protocol: "http", username, password });
        console.log(`a proxy at ${proxy.host}:${proxy.port}`); // proxy.undici(), proxy.playwright(), proxy.curl, proxy.url
      }
    }

    await reseller.renewStaticOrder({ orderNo: order_no, duration: 1, unit: "month", cycleTimes: 1 }, { intent: "renewal-17" });
    for await (const entry of reseller.walkConsumption({ order_no })) console.log(entry);
    await reseller.cancelStaticOrder({ order_no }, { intent: "cancel-17" });
  }
} catch (error) {
  if (!(error instanceof HoplineError)) throw error;
  console.error(error.message); // a sentence that says what to do next
  if (error.effect === "unknown" && error.record) {
    const { candidates } = await reseller.reconcile(error.record); // what it may have become
    for (const { read, matched, item } of candidates) console.error(read, "agrees in", matched, "with", item);
  }
  process.exitCode = 1;
} finally {
  await reseller.close();
}
