import { h, list, byId, write } from "./dom.js";
import { confirm } from "./confirm.js";
import { intent } from "./order.js";

const PHASES = { pending: "info", ready: "good", ended: "quiet", unknown: "warn" };

/** The sessions, each with what it is, how to reach it, and what can be done with it. */
export function sessions(account) {
  return () => {
    const bought = ({ intent, session_id }) => (account.notes.of(intent) ?? account.notes.ofSession(session_id))?.at ?? 0;
    const all = [...account.sessions.values()].sort((a, b) => bought(b) - bought(a));
    byId("sessions-list").setAttribute("aria-busy", String(!account.restored));
    list(
      byId("sessions-list"),
      all,
      ({ session_id }) => session_id,
      (session) => row(account, session.session_id),
    );
    byId("sessions-empty").hidden = all.length > 0;
    if (account.restored) write(byId("sessions-empty"), "No sessions yet. Choose a product below; what you buy shows up here.");
    const ready = all.filter(({ phase }) => phase === "ready").length;
    write(byId("sessions-count"), all.length > 0 ? `${ready} of ${all.length} usable` : "");
  };
}

function row(account, session_id) {
  const status = h("span", { class: "pill" });
  const name = h("strong");
  const about = h("span", { class: "quiet small" });
  const address = h("code");
  const protocol = h("span", { class: "quiet small" });
  const trouble = h("p", { class: "outcome", role: "status" });
  const id = `manage-${session_id}`;
  const panel = h("div", { class: "panel", id, hidden: true });
  const manage = h("button", { type: "button", "aria-expanded": "false", "aria-controls": id, onclick: () => toggle() }, "Manage");
  const element = h(
    "li",
    { class: "session" },
    status,
    h("div", { class: "what" }, name, about),
    h("div", { class: "where" }, address, protocol),
    manage,
    trouble,
    panel,
  );

  const toggle = (open = panel.hidden) => {
    panel.hidden = !open;
    manage.setAttribute("aria-expanded", String(open));
    if (!open) login.hide();
  };
  const login = credentials(account, session_id);
  const title = () => account.nameOfSession(session_id);
  const rotate = action("Rotate", "Gives it another exit address. It is not charged.", () => account.rotate(session_id));
  const renew = action("Renew…", "Lengthens it. This is charged.", async () => {
    const duration = await confirm({
      title: `Renew ${title()}?`,
      text: "It is lengthened by as many terms as you say, and charged by the service; the API has no quote for a renewal.",
      field: { label: "Terms", value: "1" },
      action: "Renew and pay",
    });
    if (duration) await account.renew(session_id, Number(duration), intent(`renew-${session_id}`));
  });
  const terminate = action("Terminate…", "Ends it for good and frees its place.", async () => {
    const sure = await confirm({
      title: `Terminate ${title()}?`,
      text: "It stops working at once, for everybody who uses it. Expect no refund.",
      action: "Terminate",
    });
    if (sure) await account.terminate(session_id);
  });
  const forget = action("Remove from the list", "It is over; this page stops remembering it.", () =>
    account.forget(account.sessions.get(session_id)),
  );
  panel.append(login.element, rotate, renew, terminate, forget);

  const update = ({ phase, status: word, data, intent: bought, error, doing }) => {
    const note = account.notes.of(bought) ?? account.notes.ofSession(session_id);
    write(status, doing ? `${doing}…` : (word ?? phase ?? "…"));
    status.dataset.tone = doing ? "info" : (PHASES[phase] ?? "quiet");
    write(name, note?.product ?? data?.session_type ?? "Session");
    write(about, [note?.quantity, session_id].filter(Boolean).join(" · "));
    const { host, port, protocol: spoken } = data?.proxy ?? {};
    write(address, host ? `${host}:${port}` : "");
    write(protocol, phase === "pending" ? "being set up" : (spoken ?? ""));
    address.parentElement.classList.toggle("over", phase === "ended");
    manage.setAttribute("aria-label", `Manage ${title()}, ${session_id}`);
    const kind = data?.session_type;
    login.element.hidden = phase !== "ready";
    rotate.hidden = kind !== "dynamic" || phase !== "ready";
    renew.hidden = kind !== "static" || phase === "pending";
    terminate.hidden = phase === "ended";
    forget.hidden = phase !== "ended" && !(error && !data);
    if (phase !== "ready") login.hide();
    write(trouble, error?.message ?? "");
    trouble.dataset.tone = error?.effect === "unknown" ? "warn" : "bad";
    panel.setAttribute("aria-busy", String(Boolean(doing)));
  };
  return { element, update };
}

/** A button, and beside it what it does. */
function action(label, does, work) {
  return h("div", { class: "action" }, h("button", { type: "button", onclick: work }, label), h("span", { class: "quiet small" }, does));
}

/** The login: nowhere before it is asked for, and gone when it is hidden. */
function credentials(account, session_id) {
  const shown = h("dl", { class: "login", hidden: true });
  const said = h("span", { class: "quiet small" }, "Reads its login now. It is kept nowhere.");
  const button = h("button", { type: "button", onclick: () => (shown.hidden ? reveal() : hide()) }, "Reveal login");
  const element = h("div", { class: "action" }, button, said, shown);

  const hide = () => {
    shown.replaceChildren();
    shown.hidden = true;
    write(button, "Reveal login");
    write(said, "Reads its login now. It is kept nowhere.");
  };
  const reveal = async () => {
    write(said, "Reading…");
    try {
      const proxy = await account.credentials(session_id);
      shown.append(
        ...[
          ["Username", proxy.username],
          ["Password", proxy.password],
          ["URL", proxy.full_url],
        ].flatMap(([label, secret]) => entry(label, secret?.reveal())),
      );
      shown.hidden = false;
      write(button, "Hide login");
      write(said, "");
    } catch (error) {
      write(said, error.message);
    }
  };
  return { element, hide };
}

function entry(label, value) {
  const copy = h(
    "button",
    {
      type: "button",
      class: "small",
      "aria-label": `Copy ${label.toLowerCase()}`,
      onclick: async () => {
        await navigator.clipboard.writeText(value).then(
          () => write(copy, "Copied"),
          () => write(copy, "Select it by hand"),
        );
      },
    },
    "Copy",
  );
  return [h("dt", {}, label), h("dd", {}, h("code", {}, value ?? "—"), value ? copy : "")];
}
