// A small menu under a button, in the browser's top layer. Never decides what its items do.

import { h } from "./dom.js";

// items: [{label: nodes, description, danger, pick, data}]
export function menuButton(button, items) {
  const entries = items.map((item) =>
    h(
      "button",
      {
        class: item.danger ? "menu-item danger" : "menu-item",
        type: "button",
        role: "menuitem",
        tabindex: "-1",
        data: item.data ?? {},
        onclick: () => choose(item),
      },
      h("span", {}, item.label),
      item.description && h("small", {}, item.description),
    ),
  );
  const menu = h(
    "div",
    { class: "menu", role: "menu", popover: "auto", onkeydown: (event) => walk(event, entries) },
    entries,
  );
  const choose = (item) => {
    menu.hidePopover();
    button.focus();
    item.pick();
  };
  button.setAttribute("aria-haspopup", "menu");
  button.setAttribute("aria-expanded", "false");
  button.addEventListener("click", () => {
    menu.togglePopover();
    if (!menu.matches(":popover-open")) return;
    place(menu, button.getBoundingClientRect());
    entries[0]?.focus();
  });
  menu.addEventListener("toggle", (event) =>
    button.setAttribute("aria-expanded", String(event.newState === "open")),
  );
  return h("span", { class: "menu-host" }, button, menu);
}

function place(menu, at) {
  const { width, height } = menu.getBoundingClientRect();
  const below = at.bottom + height + 8 < innerHeight;
  menu.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
  menu.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - height - 4)}px`;
}

function walk(event, entries) {
  if (event.key === "Escape") event.stopPropagation(); // it closes the menu, not what is behind it
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const at = entries.indexOf(document.activeElement);
  entries[(at + step + entries.length) % entries.length].focus();
}
