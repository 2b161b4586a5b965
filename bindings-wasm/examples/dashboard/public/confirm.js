import { h, byId } from "./dom.js";

/** Asks before something that can't be undone. Gives what was typed, or `true`, and nothing where it was given up. */
export function confirm({ title, text, field, action }) {
  const dialog = byId("confirm");
  const input = field && h("input", { id: "confirm-field", inputmode: "numeric", value: field.value, autocomplete: "off" });
  const form = h(
    "form",
    { method: "dialog" },
    h("h2", { id: "confirm-title" }, title),
    h("p", {}, text),
    input && h("label", { for: "confirm-field" }, field.label),
    input,
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "button", onclick: () => dialog.close() }, "Leave it"),
      h("button", { type: "submit", class: "primary", value: "yes" }, action),
    ),
  );
  dialog.replaceChildren(form);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? (input ? input.value : true) : undefined), {
      once: true,
    });
  });
}
