// Makes elements out of names and text. Never parses markup: what others wrote stays text.

const PROPERTIES = new Set([
  "value",
  "checked",
  "disabled",
  "hidden",
  "selected",
  "readOnly",
  "indeterminate",
]);

// h("button", {class: "key", onclick: press, data: {testid: "key-4"}}, "4")
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) setProp(element, name, value);
  add(element, children);
  return element;
}

function setProp(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === "function") element.addEventListener(name.slice(2), value);
  else if (name === "data") Object.assign(element.dataset, value);
  else if (PROPERTIES.has(name)) element[name] = value;
  else if (name.startsWith("on") || name === "style" || name === "srcdoc")
    throw new Error(`no ${name} as text`);
  else element.setAttribute(name, value === true ? "" : String(value));
}

export function add(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
  return parent;
}

export function fill(parent, ...children) {
  parent.replaceChildren();
  return add(parent, children);
}

// Keeps the node of every item whose key and signature are unchanged, so that a redraw neither loses the
// focus nor makes a screen reader read the page again. Returns the nodes that are new.
export function keyed(parent, items) {
  const known = parent.keyedNodes ?? new Map();
  const next = new Map();
  const fresh = [];
  let cursor = parent.firstChild;
  for (const item of items) {
    const old = known.get(item.key);
    const node = old && old.signature === item.signature ? old.node : replace(old, item, fresh);
    next.set(item.key, { node, signature: item.signature });
    if (node === cursor) cursor = cursor.nextSibling;
    else parent.insertBefore(node, cursor);
  }
  while (cursor) {
    const after = cursor.nextSibling;
    cursor.remove();
    cursor = after;
  }
  parent.keyedNodes = next;
  return fresh;
}

function replace(old, item, fresh) {
  const node = item.build();
  if (!old) fresh.push(node);
  else if (old.node.contains(document.activeElement)) refocus(node, document.activeElement.dataset);
  return node;
}

function refocus(node, { actionId, testid }) {
  const wanted = [...node.querySelectorAll("button, input, select, textarea")].find(
    (each) => (actionId && each.dataset.actionId === actionId) || (testid && each.dataset.testid === testid),
  );
  if (wanted) queueMicrotask(() => wanted.focus());
}

const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  moon: "M15.5 12.2A6.5 6.5 0 0 1 7.8 4.5 6.5 6.5 0 1 0 15.5 12.2ZM14 3.2l.5 1.3 1.3.5-1.3.5-.5 1.3-.5-1.3-1.3-.5 1.3-.5Z",
  menu: "M3 5.5h14M3 10h14M3 14.5h14",
  close: "M5 5l10 10M15 5 5 15",
  send: "M3.5 10 16.5 4l-4.2 12.5-3-5.3Zm5.8 1.2L16.5 4",
  phone:
    "M5 3.5h2.6l1.3 3.4-1.7 1.2a9 9 0 0 0 4.7 4.7l1.2-1.7 3.4 1.3V15a1.5 1.5 0 0 1-1.6 1.5A11.9 11.9 0 0 1 3.5 5.1 1.5 1.5 0 0 1 5 3.5Z",
  hangup: "M2.8 12.6c-.5-3.4 3-5.6 7.2-5.6s7.7 2.2 7.2 5.6l-3.3.6-.8-2.7a10 10 0 0 0-6.2 0l-.8 2.7Z",
  voicemail: "M6 13.5a3 3 0 1 1 0-6 3 3 0 0 1 0 6Zm8 0a3 3 0 1 1 0-6 3 3 0 0 1 0 6Zm-8 0h8",
  clock: "M10 17a7 7 0 1 1 0-14 7 7 0 0 1 0 14Zm0-11v4.2l2.7 1.6",
  forward: "M3.5 5.2 9.7 10l-6.2 4.8Zm7 0 6.2 4.8-6.2 4.8Z",
  eye: "M2.5 10S5.2 5.5 10 5.5s7.5 4.5 7.5 4.5-2.7 4.5-7.5 4.5S2.5 10 2.5 10Zm7.5 2.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4Z",
  thread: "M4 4.5h12v8.5H9.2L5.5 16v-3H4Z",
  dots: "M5 10h.01M10 10h.01M15 10h.01",
  copy: "M7.5 7.5h8v8.5h-8ZM12.5 7.5V4h-8v8.5h3",
  check: "M4.5 10.5 8.3 14l7.2-8",
  bolt: "M11 2.8 4.8 11.4H9.6L9 17.2l6.2-8.6h-4.8Z",
  hash: "M4.2 7.6h12M3.8 12.4h12M8.4 3.8 6.8 16.2M13.2 3.8l-1.6 12.4",
  home: "M3.5 9.4 10 4l6.5 5.4V16h-4.3v-4H7.8v4H3.5Z",
  chevron: "M6 8l4 4 4-4",
  message: "M3.5 4.5h13v9h-7L6 16.5v-3H3.5Z",
  help: "M10 17a7 7 0 1 1 0-14 7 7 0 0 1 0 14ZM8 8.3c.1-1.2 1-1.9 2.1-1.9s2 .8 2 1.8c0 1.5-2 1.6-2 3.2M10.1 13.6v.1",
};

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  for (const [key, value] of [
    ["viewBox", "0 0 20 20"],
    ["class", `icon icon-${name}`],
    ["aria-hidden", "true"],
  ])
    svg.setAttribute(key, value);
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

const TINTS = 8;

export function avatar(user, size = "") {
  const name = user?.real_name || user?.name || "?";
  if (user?.kind === "bot")
    return h("span", { class: `avatar ${size} avatar-bot`, "aria-hidden": "true" }, icon("moon"));
  const tint = [...name].reduce((sum, letter) => (sum * 7 + letter.codePointAt(0)) % 997, 3) % TINTS;
  const initials = name
    .split(/\s+/)
    .map((word) => [...word][0])
    .join("")
    .slice(0, 2)
    .toUpperCase();
  return h("span", { class: `avatar ${size} avatar-${tint}`, "aria-hidden": "true" }, initials);
}
