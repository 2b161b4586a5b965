// The dashboard's other states: what it shows when there is nothing, when something is refused, and when it can't work.
import assert from "node:assert/strict";
import { test } from "node:test";

import { decimal, units, usd } from "../../../examples/dashboard/public/amount.js";
import { dashboard } from "./dashboard-stage.mjs";

test("a refusal is shown as core says it, charges nothing, and the next click is a new order", async (t) => {
  const at = await dashboard(t, { sandbox: ["--balance", "5"] });
  await at.choose("dynamic-world", "2");
  await at.order.click();
  const outcome = at.page.locator("#ticket .outcome");
  await outcome.getByText("the balance does not cover the charge").waitFor();
  assert.match(await outcome.textContent(), /nothing was charged; recharge, then try again/);
  await at.page.fill("#quantity", "1");
  await at.order.click();
  await at.sessions("active");
  assert.deepEqual(
    (await at.charges()).map(({ amount }) => amount),
    [4],
  );
});

test("a price that changed buys nothing, and the new one is quoted", async (t) => {
  const at = await dashboard(t);
  await at.choose("dynamic-world", "2");
  await at.service.control("price", { product_no: "dynamic-world", price: "4.5" });
  await at.order.click();
  await at.page.locator("#ticket .outcome").getByText("one unit costs 4.5 USD, above `maxUnitPrice`, 4 USD").waitFor();
  assert.deepEqual(await at.charges(), []);
  await at.page.locator("#ticket").getByText("Buy for 9.00 USD").click();
  await at.sessions("active");
  assert.deepEqual(
    (await at.charges()).map(({ amount }) => amount),
    [9],
  );
});

test("a price that rose, and that another tab has read since, buys nothing either", async (t) => {
  const at = await dashboard(t);
  await at.choose("dynamic-world", "2");
  await at.service.control("price", { product_no: "dynamic-world", price: "4.5" });
  // The account's last quote is the new price now, so the service itself would charge it.
  const other = await at.context.newPage();
  await other.goto(at.served.url);
  await other.locator(".product").first().waitFor();
  assert.equal(await at.order.textContent(), "Buy for 8.00 USD");
  await at.order.click();
  await at.page.locator("#ticket .outcome").getByText("one unit costs 4.5 USD, above `maxUnitPrice`, 4 USD").waitFor();
  assert.deepEqual(await at.charges(), []);
  await at.page.locator("#ticket").getByText("Buy for 9.00 USD").click();
  await at.sessions("active");
  assert.deepEqual(
    (await at.charges()).map(({ amount }) => amount),
    [9],
  );
});

test("a quantity that can't be is refused in the page, by name, and nothing is sent", async (t) => {
  const at = await dashboard(t);
  await at.choose("static-us", "2");
  for (const quantity of ["1.5", "0", "-1", "", "two"]) {
    await at.page.fill("#quantity", quantity);
    await at.order.click({ force: true });
    await at.page.waitForSelector('#ticket .outcome[data-tone="bad"]:not(:empty)');
    assert.match(await at.page.textContent("#ticket .outcome"), /quantity/, quantity);
  }
  assert.deepEqual(await at.charges(), []);
});

test("a session is rotated, renewed and forgotten from its row, and its login shows only while it is asked for", async (t) => {
  const at = await dashboard(t, { sandbox: ["--provisioning-ms", "0"] });
  await at.choose("dynamic-world");
  await at.order.click();
  await at.sessions("active");
  const row = at.page.locator(".session").first();
  await row.getByText("Manage").click();
  const before = await at.page.content();
  await row.getByText("Reveal login").click();
  await row.locator(".login dd").first().waitFor();
  const secrets = await row.locator(".login code").allTextContents();
  assert.equal(secrets.length, 3);
  for (const secret of secrets) assert.ok(!before.includes(secret));
  await row.getByText("Hide login").click();
  const kept = await at.page.evaluate(async () => {
    const all = [JSON.stringify(localStorage), document.documentElement.outerHTML];
    for (const { name } of await indexedDB.databases()) {
      const database = await new Promise((resolve) => (indexedDB.open(name).onsuccess = ({ target }) => resolve(target.result)));
      for (const store of database.objectStoreNames) {
        all.push(
          JSON.stringify(
            await new Promise(
              (resolve) => (database.transaction(store).objectStore(store).getAll().onsuccess = ({ target }) => resolve(target.result)),
            ),
          ),
        );
      }
      database.close();
    }
    return all.join("\n");
  });
  assert.match(kept, /ses_/, "the records were looked at");
  for (const secret of [...secrets, at.service.api_key]) assert.ok(!kept.includes(secret), "a secret is kept");

  await row.getByText("Rotate", { exact: true }).click();
  await at.page.locator("#activity").getByText("rotated").waitFor();
  // While it is still at that, another click does nothing.
  await at.sessions("active");
  assert.equal((await at.service.state()).sessions[0].rotations, 1);
  await row.getByText("Terminate…").click();
  await at.page.click('dialog >> text="Terminate"');
  await at.sessions("terminated");
  await row.getByText("Remove from the list").click();
  await at.page.waitForFunction(() => document.querySelectorAll(".session").length === 0);

  await at.page.click("text=Make another order");
  await at.choose("static-us");
  await at.order.click();
  await at.sessions("active");
  await row.getByText("Manage").click();
  await row.getByText("Renew…").click();
  await at.page.fill("#confirm-field", "2");
  await at.page.click("text=Renew and pay");
  await at.page.locator("#activity").getByText("renewed").waitFor();
  assert.deepEqual(
    (await at.charges()).map(({ operation, amount }) => [operation, amount]),
    [
      ["create_session", 4],
      ["create_session", 10],
      ["renew_session", 20],
    ],
  );
  await at.page.locator("#spend").getByText("34.00 USD").waitFor();
  assert.deepEqual(at.told, []);
});

test("a session that is ended while it is set up ends as soon as it is there", async (t) => {
  const at = await dashboard(t, { sandbox: ["--provisioning-ms", "600000"] });
  await at.choose("dynamic-world");
  await at.order.click();
  await at.sessions("creating");
  await at.page.click(".session >> text=Manage");
  await at.page.click("text=Terminate…");
  await at.page.click('dialog >> text="Terminate"');
  await at.sessions("terminating…");
  await at.service.control("clock", { advance_ms: 600_000 });
  await at.sessions("terminated");
  const { sessions, charges } = await at.service.state();
  assert.deepEqual([sessions.map(({ status }) => status), charges.length], [["terminated"], 1]);
  assert.deepEqual(at.told, []);
});

test("with nothing bought, nothing listed and nobody there, the page says so", async (t) => {
  const at = await dashboard(t, {
    prepare: ({ page }) =>
      page.route("**/api/products?**", (route) =>
        route.fulfill({ json: { success: true, data: { items: [], next_cursor: null }, meta: {} } }),
      ),
  });
  await at.page.getByText("The service lists no products.").waitFor();
  await at.page.getByText("No sessions yet.").waitFor();
  await at.page.getByText("Nothing was bought here yet.").waitFor();
  await at.page.getByText("Nothing has happened yet.").waitFor();
});

test("while its server is away the page says what failed and reads again when it is asked to", { timeout: 60_000 }, async (t) => {
  const refuse = (route) =>
    route.fulfill({
      status: 400,
      json: {
        success: false,
        data: null,
        error: { code: "INVALID_REQUEST", message: "no" },
        meta: { request_id: "r", timestamp: "2026-01-01T00:00:00Z" },
      },
    });
  const at = await dashboard(t, { prepare: ({ page }) => page.route("**/api/products?**", refuse) });
  await at.page.getByText("listProducts: the request is not valid").waitFor();
  await at.page.unroute("**/api/products?**");
  await at.page.click("text=Read them again");
  await at.page.waitForSelector(".product");
});

test("offline, nothing can be bought; back again, it can", async (t) => {
  const at = await dashboard(t);
  await at.choose("dynamic-world");
  await at.context.setOffline(true);
  await at.page.locator("#link").getByText("Offline").waitFor();
  await at.page.getByText("You are offline.").waitFor();
  await at.order.click({ force: true });
  await at.context.setOffline(false);
  await at.page.locator("#link").getByText("Connected").waitFor();
  assert.deepEqual(await at.charges(), []);
  await at.order.click();
  await at.sessions("active");
  assert.equal((await at.charges()).length, 1);
});

test("without its core the page says why, and offers to load again", async (t) => {
  let fail = true;
  const at = await dashboard(t, {
    prepare: ({ page }) => page.route("**/core.wasm", (route) => (fail ? route.fulfill({ status: 404 }) : route.continue())),
  });
  const notice = at.page.locator("#notice");
  await notice.getByText("core.wasm").waitFor();
  assert.match(await notice.textContent(), /HTTP 404/);
  assert.equal(await at.page.getByText("Loading").count(), 0, "nothing seems to load any more");
  fail = false;
  await notice.getByText("Load the page again").click();
  await at.page.waitForSelector(".product");
});

test("two tabs show what either has bought, either can end it, and what a closed tab left goes on", async (t) => {
  const at = await dashboard(t);
  const refresh = (page) => page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  const pill = (page, status) => page.locator(".session > .pill").getByText(status, { exact: true }).waitFor();
  await at.choose("dynamic-world");
  await at.order.click();
  await at.sessions("active");
  const other = await at.context.newPage();
  await other.goto(at.served.url);
  await pill(other, "active");
  assert.match(await other.textContent(".session"), /Dynamic, worldwide/);
  await other.click(".session >> text=Manage");
  await other.click("text=Terminate…");
  await other.click('dialog >> text="Terminate"');
  await pill(other, "terminated");
  await other.click("text=Remove from the list");
  await other.locator(".session .outcome").getByText("another client owns it").waitFor();
  await refresh(at.page);
  await at.sessions("terminated");
  await refresh(other);
  await other.click("text=Remove from the list");
  await other.locator(".session").waitFor({ state: "detached" });
  await refresh(at.page);
  await at.page.locator(".session").waitFor({ state: "detached" });

  await at.page.click("text=Make another order");
  await at.choose("dynamic-world");
  await at.order.click();
  await at.sessions("active");
  await at.page.close();
  await refresh(other);
  await pill(other, "active");
  assert.equal((await at.charges()).length, 2);
  assert.deepEqual(at.told, []);
});

test("where the browser keeps nothing, nothing is bought, and the page says why", async (t) => {
  const at = await dashboard(t, {
    prepare: ({ page }) =>
      page.addInitScript(() => {
        indexedDB.open = () => {
          throw new DOMException("no", "SecurityError");
        };
      }),
  });
  await at.choose("dynamic-world");
  // A list that could not be read is not said to be empty.
  assert.equal(await at.page.getByText("No sessions yet").count(), 0);
  await at.order.click();
  await at.page.locator("#ticket .outcome").getByText(/repair the store, which could not be read: .+; money may have moved/).waitFor();
  assert.deepEqual(await at.charges(), []);
});

test("a renewal whose answer is lost is in doubt, is charged once, and is said to cost what nobody told", async (t) => {
  const at = await dashboard(t);
  await at.choose("static-us");
  await at.order.click();
  await at.sessions("active");
  await at.service.fault({ kind: "delay", ms: 60_000 }, "renew_session");
  await at.page.click(".session >> text=Manage");
  await at.page.click("text=Renew…");
  await at.page.click("text=Renew and pay");
  await at.charged(2);
  await at.page.reload();
  const doubt = at.page.locator(".doubt");
  await doubt.getByText("Renewal: Renewal of Static, New York, 1 term").waitFor();
  assert.match(await at.page.textContent("#spend"), /10\.00 USD in 1 purchase/);
  await doubt.getByText("Ask again").click();
  await doubt.waitFor({ state: "detached" });
  // The answer after a second send is the session as it is, which does not say what the renewal cost.
  await at.page
    .locator("#spend")
    .getByText("10.00 USD in 1 purchase, as estimated when accepted; of 1 more the cost is not known")
    .waitFor();
  assert.equal((await at.charges()).length, 2);
});

test("sums of money are exact, and what is no amount is none", () => {
  const sum = (...texts) => usd(decimal(texts.reduce((all, text) => all + units(text), 0n)));
  assert.equal(sum("0.1", "0.2"), "0.30 USD");
  assert.equal(sum("1.005", "1.005", "4"), "6.01 USD");
  assert.equal(sum("9007199254740993", "0.000000000001"), "9007199254740993.000000000001 USD");
  assert.equal(sum(0.07, "-0.1"), "-0.03 USD");
  for (const none of ["", "1e3", "1.0000000000001", "one", undefined, NaN, Infinity, "1,5"]) assert.equal(units(none), undefined);
});
