// The dashboard of bindings-wasm/examples, as people use it: at a desk and on a phone, by mouse and by keyboard.
import assert from "node:assert/strict";
import { test } from "node:test";

import { SIZES, dashboard } from "./dashboard-stage.mjs";

for (const size of Object.keys(SIZES)) {
  test(`${size}: products are listed, and what a purchase costs is said before anything is sent`, async (t) => {
    const at = await dashboard(t, { size });
    await at.page.waitForSelector(".product");
    assert.equal(await at.page.locator(".product").count(), 23);
    await at.page.click("text=Static >> nth=0");
    assert.ok((await at.page.locator(".product-name").allTextContents()).every((name) => name.startsWith("Static")));
    await at.page.click("#filter >> text=All");
    await at.choose("dynamic-us", "0.3");
    assert.match(await at.page.textContent("#quote"), /4\.25 USD × 0\.3.*1\.275 USD/);
    assert.equal(await at.order.textContent(), "Buy for 1.275 USD");
    assert.deepEqual(await at.charges(), []);
    assert.ok(await at.page.isDisabled('input[value="static-soldout"]'), "what is sold out can't be chosen");
    await at.fits("with products");
    assert.deepEqual(at.told, []);
  });

  test(`${size}: a purchase becomes an active session, and the balance and the chart follow`, async (t) => {
    const at = await dashboard(t, { size, sandbox: ["--provisioning-ms", "600000"] });
    await at.choose("dynamic-jp", "2");
    await at.order.click();
    await at.sessions("creating");
    assert.equal(await at.page.locator(".doubt").count(), 0, "what was accepted is in no doubt");
    await at.service.control("clock", { advance_ms: 600_000 });
    await at.sessions("active");
    await at.page.waitForSelector(".session code:not(:empty)");
    assert.match(await at.page.textContent(".session"), /Dynamic, Tokyo.*2 GB.*127\.0\.0\.1:\d+.*socks5/);
    assert.deepEqual(
      (await at.charges()).map(({ amount }) => amount),
      [10],
    );
    await at.page.waitForFunction(() => document.querySelector(".balance").textContent === "90.00 USD");
    await at.page.click("text=Show the purchases as a table");
    assert.match(await at.page.textContent("#spend tbody"), /Dynamic, Tokyo, 2 GB10\.00 USD10\.00 USD/);
    assert.match(await at.page.getAttribute("svg.spent", "aria-label"), /10\.00 USD in 1 purchase/);
    await at.fits("with a session");
    assert.deepEqual(at.told, []);
  });

  test(`${size}: nothing keeps people out, whatever is open, in light and in dark`, { timeout: 120_000 }, async (t) => {
    const at = await dashboard(t, { size });
    await at.page.waitForSelector(".product");
    await at.accessible("at first");
    await at.choose("static-us", "2");
    await at.order.click();
    await at.sessions("active");
    await at.page.click(".session >> text=Manage");
    await at.page.click("text=Reveal login");
    await at.page.waitForSelector(".login dd");
    await at.accessible("with a login");
    await at.fits("with a login");
    await at.page.click("text=Renew…");
    await at.accessible("with a question");
    await at.page.keyboard.press("Escape");
    assert.deepEqual(at.told, []);
    await at.page.click("text=Make another order");
    await at.service.fault({ kind: "delay", ms: 60_000 }, "create_session");
    await at.choose("static-us", "2");
    await at.order.click();
    await at.charged(2);
    await at.page.reload();
    await at.page.click("text=I looked at the account myself");
    await at.accessible("in doubt");
    await at.fits("in doubt");
  });

  test(`${size}: closed in mid-purchase, the page shows it in doubt, and asking again charges nothing more`, async (t) => {
    const at = await dashboard(t, { size });
    await at.choose("dynamic-fr", "2");
    await at.service.fault({ kind: "delay", ms: 60_000 }, "create_session");
    await at.order.click();
    await at.charged(1);
    await at.page.reload();
    const doubt = at.page.locator(".doubt");
    await doubt.waitFor();
    assert.match(await doubt.textContent(), /Purchase: Dynamic, Paris, 2 GB, quoted at 10\.50 USD.*Money may have moved, once at most/);
    assert.equal(await at.page.locator(".session").count(), 0, "nothing is claimed that nobody knows");
    await doubt.getByText("Ask again").click();
    await at.sessions("active");
    await doubt.waitFor({ state: "detached" });
    assert.equal((await at.charges()).length, 1);
    assert.deepEqual(at.told, []);
  });
}

test("a double click buys once, and so does a third click while it is under way", async (t) => {
  const at = await dashboard(t);
  await at.choose("dynamic-world");
  await at.order.dblclick();
  await at.sessions("active");
  assert.equal((await at.charges()).length, 1);

  if ((await at.order.textContent()) === "Make another order") await at.order.click();
  await at.service.fault({ kind: "delay", ms: 60_000 }, "create_session");
  await at.order.click();
  assert.equal(await at.order.textContent(), "Buying…");
  await at.order.click();
  await at.order.click();
  await at.charged(2);
  await at.service.control("clock", { advance_ms: 60_000 });
  await at.sessions("active", 2);
  assert.equal((await at.charges()).length, 2);
  assert.deepEqual(at.told, []);
});

test("a purchase that never reached the service is bought by asking again, once", async (t) => {
  const at = await dashboard(t);
  await at.choose("dynamic-world");
  let arrived;
  const sent = new Promise((resolve) => (arrived = resolve));
  await at.page.route("**/api/sessions", () => arrived());
  await at.order.click();
  await at.page.waitForFunction(() => document.querySelector("#ticket .outcome").textContent.includes("joins this purchase"));
  await sent;
  // Only now: a request that is held when nobody holds it any more goes on.
  await at.page.reload();
  await at.page.unroute("**/api/sessions");
  await at.page.getByText("Ask again").click();
  await at.sessions("active");
  assert.equal((await at.charges()).length, 1);
});

test(
  "answers that are lost again and again leave a doubt that says so, is asked about, and is not bought twice",
  { timeout: 90_000 },
  async (t) => {
    const at = await dashboard(t);
    await at.choose("dynamic-world");
    await at.service.fault({ kind: "html", status: 502, after: true }, "create_session", 4);
    await at.order.click();
    const doubt = at.page.locator(".doubt");
    await doubt.waitFor();
    await at.page.locator("#ticket .outcome").getByText("money may have moved").waitFor();
    const said = await at.page.textContent("#ticket .outcome");
    assert.match(said, /money may have moved/);
    assert.match(said, /“In doubt”/);
    await at.service.fault({ kind: "html", status: 502 }, "create_session", 4);
    await doubt.getByText("Ask again").click();
    await doubt.locator(".outcome").getByText("money may have moved").waitFor();
    await doubt.getByText("Ask again").click();
    await at.sessions("active");
    await doubt.waitFor({ state: "detached" });
    assert.equal((await at.charges()).length, 1);
  },
);

test("a doubt can be closed by hand, and stays closed", async (t) => {
  const at = await dashboard(t);
  await at.choose("dynamic-world");
  await at.service.fault({ kind: "delay", ms: 60_000 }, "create_session");
  await at.order.click();
  await at.charged(1);
  await at.page.reload();
  await at.page.click("text=I looked at the account myself");
  await at.page.click('.doubt >> text="It happened"');
  await at.page.click('dialog >> text="Leave it"');
  assert.equal(await at.page.locator(".doubt").count(), 1, "leaving it changes nothing");
  await at.page.click('.doubt >> text="It happened"');
  await at.page.click('dialog >> text="Yes, it happened"');
  await at.page.locator(".doubt").waitFor({ state: "detached" });
  await at.page.reload();
  await at.page.waitForSelector(".product");
  await at.page.waitForFunction(() => !document.querySelector("#sessions-empty").textContent.startsWith("Loading"));
  assert.equal(await at.page.locator(".doubt").count(), 0);
  assert.match(await at.page.textContent("#spend"), /4\.00 USD in 1 purchase/);
});

test("by keyboard alone: a product is found, quoted, bought and terminated", { timeout: 90_000 }, async (t) => {
  const at = await dashboard(t);
  await at.page.waitForSelector(".product");
  const { keyboard } = at.page;
  const focused = () =>
    at.page.evaluate(
      () =>
        `${document.activeElement.tagName} ${document.activeElement.getAttribute("aria-label") ?? document.activeElement.value ?? ""} ${document.activeElement.textContent}`,
    );
  const tabTo = async (wanted) => {
    for (let presses = 0; presses < 40; presses += 1) {
      await keyboard.press("Tab");
      if (wanted.test(await focused())) {
        const outline = await at.page.evaluate(() =>
          [document.activeElement, document.activeElement.closest("label")].some(
            (element) => element && getComputedStyle(element).outlineStyle === "solid",
          ),
        );
        return assert.ok(outline, `where the keyboard is can be seen at ${wanted}`);
      }
    }
    assert.fail(`${wanted} can't be reached by the tab key; the last was ${await focused()}`);
  };
  await keyboard.press("Tab");
  assert.match(await focused(), /Skip to the content/);
  await tabTo(/^INPUT dynamic-world/);
  await keyboard.press("ArrowDown");
  assert.match(await focused(), /dynamic-us/);
  await tabTo(/^INPUT 1 /);
  await keyboard.press("ControlOrMeta+a");
  await keyboard.type("3");
  await tabTo(/Buy for 12\.75 USD/);
  await keyboard.press("Enter");
  await at.sessions("active");
  assert.deepEqual(
    (await at.charges()).map(({ amount }) => amount),
    [12.75],
  );
  await at.page.evaluate(() => document.activeElement.blur());
  await at.page.focus(".skip");
  await tabTo(/Manage Dynamic, New York/);
  await keyboard.press("Enter");
  await tabTo(/Terminate/);
  await keyboard.press("Enter");
  await tabTo(/BUTTON yes Terminate/);
  await keyboard.press("Enter");
  await at.sessions("terminated");
  assert.deepEqual(
    (await at.service.state()).sessions.map(({ status }) => status),
    ["terminated"],
  );
  assert.deepEqual(at.told, []);
});
