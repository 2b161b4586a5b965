const SVG = "http://www.w3.org/2000/svg";

/** An element. Properties that begin with `on` are listeners; `false` and nothing leave an attribute out. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** The same element of a drawing. */
export function draw(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== false));
  return element;
}

/** Writes a text where it differs, so that nothing is read out twice and no selection is lost. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Makes the children of an element those of a list, and keeps the ones that are there: the keyboard's place in them is not
 * lost. `make` gives an element, and with it a function that shows a later state of the same item.
 */
export function list(parent, items, key, make) {
  const known = (parent.known ??= new Map());
  const wanted = new Map(items.map((item) => [key(item), item]));
  for (const [name, { element }] of known) {
    if (wanted.has(name)) continue;
    element.remove();
    known.delete(name);
  }
  let after = null;
  for (const [name, item] of wanted) {
    if (!known.has(name)) known.set(name, make(item));
    const { element, update } = known.get(name);
    update?.(item);
    const place = after ? after.nextSibling : parent.firstChild;
    if (place !== element) parent.insertBefore(element, place);
    after = element;
  }
}

export const byId = (id) => document.getElementById(id);
export const clock = (at) => new Date(at).toLocaleTimeString("en", { timeStyle: "medium", hourCycle: "h23" });
