import { byId, h, write } from "./dom.js";

/** Says what keeps the whole page from working, and what to do about it. */
function failed(text) {
  byId("notice").replaceChildren(
    h("p", {}, text),
    h("button", { type: "button", onclick: () => location.reload() }, "Load the page again"),
  );
  byId("notice").hidden = false;
  for (const id of ["sessions-empty", "products", "balance"]) byId(id).replaceChildren(h("p", { class: "empty" }, "Not available."));
  link("bad", "Not working");
}

function link(tone, text) {
  write(byId("link"), text);
  byId("link").dataset.tone = tone;
}

async function begin() {
  // Imported here and not above, so that what goes wrong with it can be said.
  const { load } = await import("./hopline/web.mjs");
  await load();
  const answer = await fetch("/account");
  if (!answer.ok) throw new Error(`this page's server does not say whose it is (HTTP ${answer.status})`);
  const { Account } = await import("./account.js");
  const account = new Account((await answer.json()).account);
  const views = await Promise.all(
    ["sessions", "doubts", "buy", "spend", "activity"].map(async (name) => (await import(`./${name}.js`))[name](account)),
  );

  let due = false;
  const show = () => {
    due = false;
    for (const view of views) view();
    if (!navigator.onLine) link("warn", "Offline");
    else if (account.balance.error) link("bad", "No answer");
    else link(account.balance.at ? "good" : "quiet", account.balance.at ? "Connected" : "Connecting…");
  };
  const soon = () => {
    if (!due) queueMicrotask(show);
    due = true;
  };
  account.addEventListener("change", soon);
  account.addEventListener("told", soon);
  window.addEventListener("offline", soon);
  window.addEventListener("online", () => account.refresh());
  soon();
  await account.start();
}

begin().catch((error) => failed(`${error.message}.`));
