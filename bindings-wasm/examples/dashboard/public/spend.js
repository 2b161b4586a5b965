import { h, draw, byId, write, clock } from "./dom.js";
import { decimal, height, units, usd } from "./amount.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [340, 132, 40, 18, 8];

/** The balance, and what this browser's purchases come to. */
export function spend(account) {
  const amount = h("p", { class: "balance" });
  const trouble = h("p", { class: "outcome", "data-tone": "bad", role: "status" });
  const total = h("p");
  const spent = h("div", { class: "chart" });
  const balances = h("div", { class: "chart" });
  const rows = h("tbody");
  const table = h(
    "details",
    {},
    h("summary", {}, "Show the purchases as a table"),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Purchases" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["When", "What", "Quoted", "Charged, about"].map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        rows,
      ),
    ),
  );
  const empty = h("p", { class: "empty" }, "Nothing was bought here yet. What you buy is drawn over time.");
  byId("spend").append(h("h3", {}, "Spent from this browser"), empty, total, spent, table, h("h3", {}, "Balance as it was read"), balances);
  const heading = byId("spend").querySelectorAll("h3")[1];
  let drawn;

  return () => {
    const { balance, currency, at, error } = account.balance;
    byId("balance").setAttribute("aria-busy", String(!at && !error));
    if (at || error) byId("balance").replaceChildren(amount, trouble);
    write(amount, balance === undefined ? "Not known" : usd(balance, currency));
    write(trouble, error?.message ?? "");
    write(byId("balance-read"), at ? `read at ${clock(at)}` : "");

    const bought = Object.values(account.notes.purchases)
      .filter(({ accepted, settled }) => accepted || settled)
      .sort((a, b) => a.at - b.at);
    // A drawing is made again only if it has changed.
    const now = JSON.stringify([bought, account.notes.balances]);
    if (now === drawn) return;
    drawn = now;

    const { sum, points, unknown } = added(bought);
    const count = `${points.length} ${points.length === 1 ? "purchase" : "purchases"}`;
    empty.hidden = bought.length > 0;
    for (const part of [total, spent, table]) part.hidden = bought.length === 0;
    const rest = unknown > 0 ? `; of ${unknown} more the cost is not known` : "";
    total.replaceChildren(h("strong", {}, usd(decimal(sum))), ` in ${count}, as estimated when accepted${rest}`);
    const grew = `What was spent grew to ${usd(decimal(sum))} in ${count}. The table below has each.`;
    if (points.length > 0) spent.replaceChildren(chart([{ at: points[0].at - 1000, value: 0n }, ...points], grew, "spent"));
    rows.replaceChildren(...bought.toReversed().map(row));

    const read = account.notes.balances
      .map(({ at, balance }) => ({ at, value: units(balance) }))
      .filter(({ value }) => value !== undefined);
    heading.hidden = balances.hidden = read.length < 2;
    if (read.length < 2) return;
    const [from, to] = [read[0], read.at(-1)].map(({ value }) => usd(decimal(value)));
    balances.replaceChildren(chart(read, `The balance went from ${from} to ${to} in ${read.length} readings.`, "balances"));
  };
}

/** The sums of the purchases, one after the other; and the number of purchases without a known cost. */
function added(bought) {
  let sum = 0n;
  const points = [];
  for (const { at, product, charged, quoted } of bought) {
    const cost = units(charged ?? quoted);
    if (cost === undefined) continue;
    sum += cost;
    points.push({ at, value: sum, said: `${product}: ${usd(decimal(cost))}` });
  }
  return { sum, points, unknown: bought.length - points.length };
}

function row({ at, product, quantity, quoted, charged, currency }) {
  const day = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  return h(
    "tr",
    {},
    h("td", {}, new Date(at).toLocaleString("en", day)),
    h("td", {}, `${product}, ${quantity}`),
    h("td", { class: "number" }, quoted ? usd(quoted, currency) : "—"),
    h("td", { class: "number" }, charged ? usd(charged, currency) : "not told"),
  );
}

/** Steps over time, drawn by hand. Where a point lies is rounded to a pixel; what is said of it is not. */
function chart(points, label, name) {
  const begin = points[0].at;
  const end = Math.max(Date.now(), points.at(-1).at + 1000);
  const top = ceiling(Math.max(...points.map(({ value }) => height(value))));
  const x = (at) => LEFT + ((at - begin) / (end - begin)) * (WIDTH - LEFT - 6);
  const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - TOP);
  const round = (number) => Math.round(number * 10) / 10;
  const line =
    points
      .map(({ at, value }, n) => (n === 0 ? `M${round(x(at))} ${round(y(height(value)))}` : `H${round(x(at))}V${round(y(height(value)))}`))
      .join("") + `H${round(x(end))}`;
  const base = round(y(0));
  const text = (at, where, anchor, said) => draw("text", { x: at, y: where, "text-anchor": anchor }, said);
  return draw(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label, class: name },
    [0, top / 2, top].map((mark) => [
      draw("line", { class: "grid", x1: LEFT, x2: WIDTH - 6, y1: round(y(mark)), y2: round(y(mark)) }),
      text(LEFT - 8, round(y(mark)) + 3.5, "end", String(mark)),
    ]),
    draw("path", { class: "area", d: `${line}V${base}H${LEFT}Z` }),
    draw("path", { class: "line", d: line }),
    points
      .filter(({ said }) => said)
      .map(({ at, value, said }) => draw("circle", { cx: round(x(at)), cy: round(y(height(value))), r: 3 }, draw("title", {}, said))),
    text(LEFT, HEIGHT - 3, "start", when(begin, end)),
    text(WIDTH - 6, HEIGHT - 3, "end", when(end, begin)),
  );
}

/** The next round number above, which halves into a round one too. */
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 4, 6, 8, 10].find((step) => step * power >= value) * power;
}

function when(at, other) {
  const sameDay = new Date(at).toDateString() === new Date(other).toDateString();
  return sameDay
    ? new Date(at).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" })
    : new Date(at).toLocaleDateString("en", { month: "short", day: "numeric" });
}
