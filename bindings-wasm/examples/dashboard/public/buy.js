import { h, list, byId, write, clock } from "./dom.js";
import { usd } from "./amount.js";
import { intent, what } from "./order.js";

const FILTERS = [
  ["all", "All"],
  ["dynamic", "Dynamic"],
  ["static", "Static"],
];
const PROTOCOLS = [
  ["socks5", "SOCKS5"],
  ["http", "HTTP"],
  ["https", "HTTPS"],
];
const countries = new Intl.DisplayNames(["en"], { type: "region", fallback: "code" });

/** The list of products, and the order: what, how many, what it costs, and one button that buys it. */
export function buy(account) {
  const form = byId("order");
  let filter = "all";
  let chosen;
  /** The order that the quote is for. Its intent makes one purchase of it, however often it is sent. */
  let order;
  /** The last quote that was asked for: the answer to an earlier one is of no use. */
  let asking;
  /** The state of the purchase: `buying`, `bought` or `doubt`. */
  let state;
  let error;

  const quantity = h("input", {
    id: "quantity",
    name: "quantity",
    inputmode: "decimal",
    autocomplete: "off",
    value: "1",
    "aria-describedby": "quote",
    oninput: () => renew(),
  });
  const unit = h("span", { class: "quiet" });
  const protocol = h(
    "select",
    { id: "protocol", onchange: () => renew() },
    PROTOCOLS.map(([value, name]) => h("option", { value }, name)),
  );
  const name = h("p", { class: "ticket-name" });
  const line = h("p", { class: "quiet small" });
  const total = h("p", { class: "total" });
  const fields = h(
    "div",
    { class: "fields" },
    h("div", {}, h("label", { for: "quantity" }, "Quantity ", unit), quantity),
    h("div", {}, h("label", { for: "protocol" }, "Protocol"), protocol),
  );
  const button = h("button", { class: "primary", type: "submit" }, "Choose a product");
  const outcome = h("p", { class: "outcome", role: "status" });
  const read = h("p", { class: "quiet small" });
  byId("ticket").append(name, fields, h("div", { id: "quote", class: "quote", "aria-live": "polite" }, line, total), button, outcome, read);

  const filters = FILTERS.map(([value, label]) => h("button", { type: "button", onclick: () => ((filter = value), show()) }, label));
  byId("filter").append(...filters);

  /** Makes a new order of what is chosen: what is bought with it is a purchase of its own. */
  async function renew(trouble) {
    const asked = (asking = {});
    state = order = undefined;
    error = trouble;
    if (chosen) {
      const made = { intent: intent(chosen.product_no), product: chosen, quantity: quantity.value.trim(), protocol: protocol.value };
      try {
        made.quote = await account.quote(chosen, made.quantity);
        if (asked === asking) order = made;
      } catch (caught) {
        if (asked === asking) error = caught;
      }
    }
    show();
  }

  async function send() {
    const sent = order;
    state = "buying";
    show();
    try {
      await account.buy(sent);
      if (order === sent) state = "bought";
    } catch (caught) {
      // The purchase may have been accepted before waiting for it went wrong, and the second click of two hears the same.
      if (order !== sent || state !== "buying") return;
      if (caught.effect !== "none") [state, error] = ["doubt", caught];
      else {
        // Nothing was bought. The next click is another order, at the price as it is now.
        await account.loadProducts();
        return renew(caught);
      }
    }
    show();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (state === "bought" || state === "doubt") renew();
    else if (!navigator.onLine) show();
    else if (order) send();
    else if (chosen) quantity.focus();
  });

  account.addEventListener("told", ({ detail }) => {
    if (detail.event !== "accepted" || detail.intent !== order?.intent) return;
    state = "bought";
    show();
  });

  function show() {
    const { items, loading, error: trouble, at } = account.products;
    const shown = items.filter(({ type }) => filter === "all" || type === filter);
    byId("products").parentElement.setAttribute("aria-busy", String(Boolean(loading)));
    filters.forEach((element, n) => element.setAttribute("aria-pressed", String(FILTERS[n][0] === filter)));
    const message = instead(shown);
    const rows = message ? [{ message, again: Boolean(trouble) }, ...shown] : shown;
    list(
      byId("products"),
      rows,
      ({ product_no }) => product_no ?? "message",
      (item) => (item.message ? said() : row(item)),
    );

    // The list was read again: the price may be another one.
    const now = chosen && items.find(({ product_no }) => product_no === chosen.product_no);
    if (now && now !== chosen && state === undefined) {
      const changed = now.price !== chosen.price;
      chosen = now;
      if (changed) return renew(error);
    }
    write(read, at && chosen ? `Price read at ${clock(at)}. If it has risen since, nothing is bought.` : "");
    ticket();
  }

  /** The text in place of products. */
  function instead(shown) {
    const { items, loading, error: trouble } = account.products;
    if (trouble) return trouble.message;
    if (items.length === 0) return loading ? "Loading products…" : "The service lists no products.";
    return shown.length === 0 ? "No product is of this type." : undefined;
  }

  function ticket() {
    const offline = !navigator.onLine;
    const { quote: quoted } = order ?? {};
    fields.hidden = !chosen;
    write(name, chosen ? chosen.name : "Choose a product to see what it costs.");
    name.classList.toggle("quiet", !chosen);
    write(unit, chosen ? `(${what(chosen, "2")})` : "");
    write(line, quoted ? `${usd(quoted.unit_price, quoted.currency)} × ${quoted.quantity}` : "");
    write(total, quoted ? usd(quoted.total, quoted.currency) : "");
    quantity.setAttribute("aria-invalid", String(Boolean(chosen && !order)));
    const again = "Make another order";
    write(
      button,
      { buying: "Buying…", bought: again, doubt: again }[state] ?? (quoted ? `Buy for ${usd(quoted.total, quoted.currency)}` : "Buy"),
    );
    button.classList.toggle("primary", state === undefined || state === "buying");
    button.setAttribute("aria-disabled", String(state === undefined && (offline || !order)));
    const told = {
      buying: "A second click joins this purchase; it does not buy again.",
      bought: "Accepted. It is in your sessions, and usable once it is active.",
      doubt: error?.effect === "unknown" ? `${error.message}. It is kept under “In doubt”.` : error?.message,
    };
    write(outcome, told[state] ?? (offline ? "You are offline. Buying waits until you are back." : (error?.message ?? "")));
    outcome.dataset.tone = { buying: "quiet", bought: "good", doubt: "warn" }[state] ?? (error ? "bad" : "quiet");
  }

  function said() {
    const text = h("span");
    const again = h("button", { type: "button", onclick: () => account.loadProducts() }, "Read them again");
    const element = h("p", { class: "empty" }, text, " ", again);
    return { element, update: ({ message, again: can }) => (write(text, message), (again.hidden = !can)) };
  }

  function row({ product_no }) {
    const input = h("input", {
      type: "radio",
      name: "product",
      value: product_no,
      onchange: () => ((chosen = account.products.items.find((item) => item.product_no === product_no)), renew()),
    });
    const [title, place, stock, price, per] = ["span", "span", "span", "strong", "span"].map((tag) => h(tag));
    const kind = h("span", { class: "tag" }, "shared");
    const element = h(
      "label",
      { class: "product" },
      input,
      h("span", { class: "product-name" }, title, kind),
      place,
      stock,
      h("span", { class: "price" }, price, " ", per),
    );
    return {
      element,
      update(product) {
        write(title, product.name);
        kind.hidden = product.sharing !== "shared";
        write(place, product.country ? named(product.country) : "Worldwide");
        write(stock, !product.available ? "Sold out" : product.stock != null ? `${product.stock} left` : "Available");
        write(price, usd(product.price, "").trim());
        write(per, `${product.currency} / ${product.unit}`);
        element.classList.toggle("gone", !product.available);
        input.disabled = !product.available;
      },
    };
  }

  return show;
}

function named(code) {
  try {
    return countries.of(code);
  } catch {
    return code;
  }
}
