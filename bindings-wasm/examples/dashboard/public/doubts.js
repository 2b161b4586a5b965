import { usd } from "./amount.js";
import { confirm } from "./confirm.js";
import { byId, clock, h, list, write } from "./dom.js";

const WHAT = { create_session: "Purchase", renew_session: "Renewal", rotate_session: "Rotation", terminate_session: "Termination" };
const PAID = new Set(["create_session", "renew_session"]);

const ASK = "Sends the same request with the same key. If it was done, you get its answer; if not, it is done now. Never twice.";
const HAPPENED = "The page stops asking. What was bought is on the account; this page will not list it.";
const NOT_HAPPENED = "The page forgets it and does not ask again. If it did happen, it was paid for, and this page will not know.";

/** Operations in doubt: each is shown as such, with the ways to settle it. */
export function doubts(account) {
  return () => {
    const count = account.doubts.length;
    byId("doubts").hidden = count === 0;
    write(byId("doubts-title"), count === 1 ? "One operation is in doubt" : `${count} operations are in doubt`);
    const make = (saved) => item(account, saved);
    list(byId("doubts-list"), account.doubts, ({ name }) => name, make);
  };
}

function item(account, first) {
  const { name, operation, in_doubt_since: since, holds } = first;
  /** As it is now: its record changes. */
  let saved = first;
  const canAsk = holds === "in_doubt";
  const moved = PAID.has(operation) ? "Money may have moved, once at most." : "It may have been done.";
  const told = `It was sent, and what came of it is not known${since ? `; in doubt since ${clock(since)}` : ""}. ${moved}`;

  const said = h("p", { class: "outcome", role: "status", "data-tone": "warn" });
  const title = h("p", { class: "doubt-name" }, h("strong", {}, `${WHAT[operation] ?? operation}: ${about(account, saved)}`));
  const ask = h("button", { type: "button", class: "primary", onclick: () => account.askAgain(saved) }, "Ask again");

  const settle = (label, text, happened) => {
    const onclick = async () => {
      if (await confirm({ title: `${label}?`, text: text(), action: `Yes, ${label.toLowerCase()}` })) await account.settle(saved, happened);
    };
    return h("button", { type: "button", onclick }, label);
  };
  const early = () => (saved.settle_from > Date.now() ? `It may still arrive until ${clock(saved.settle_from)}; better look again then. ` : "");
  const buttons = h(
    "div",
    { class: "buttons" },
    settle("It happened", () => HAPPENED, true),
    settle("It did not happen", () => early() + NOT_HAPPENED, false),
  );
  const byHand = h("details", { open: !canAsk }, h("summary", {}, "I looked at the account myself"), buttons);

  const ways = h("div", { class: "doubt-ways" }, canAsk && [ask, h("p", { class: "small" }, ASK)], byHand);
  const element = h("li", { class: "doubt" }, h("div", {}, title, h("p", {}, told), said), ways);
  const update = (now) => {
    saved = now;
    const { asking, error } = account.said.get(name) ?? {};
    write(ask, asking ? "Asking…" : "Ask again");
    ask.setAttribute("aria-disabled", String(Boolean(asking)));
    write(said, error?.message ?? "");
  };
  return { element, update };
}

/** The subject of a doubt, as far as the page remembers. */
function about(account, { intent, session_id, record }) {
  const note = account.notes.of(intent);
  if (note?.quoted) return `${account.nameOf(intent)}, quoted at ${usd(note.quoted, note.currency)}`;
  if (note) return account.nameOf(intent);
  return session_id ? account.nameOfSession(session_id) : (intent ?? record);
}
