// What can be pressed or chosen inside a message, a modal or the home tab. Never knows where it stands:
// `surface.act({action_id, block_id, value})` sends it.

import { control, isControl } from "./controls.js";
import { confirmed, during } from "./dialog.js";
import { h, icon } from "./dom.js";
import { menuButton } from "./menu.js";
import { plain, safeUrl, textObject } from "./mrkdwn.js";

export function element(spec, block, surface, context) {
  if (spec.type === "button") return button(spec, block, surface, context);
  if (spec.type === "overflow") return overflow(spec, block, surface, context);
  if (spec.type === "image") return picture(spec);
  if (isControl(spec.type)) return chooser(spec, block, surface, context);
  return h("span", { class: "unknown" }, `This page does not show “${spec.type}”.`);
}

// No image is fetched from elsewhere: the words that stand for it are shown.
export function picture(spec) {
  const words = spec.alt_text || "image";
  return h("span", { class: "picture", role: "img", "aria-label": words, title: words }, words);
}

async function send(spec, block, surface, context, control_, value) {
  if (spec.confirm && !(await confirmed(spec.confirm, context))) return;
  const action = { action_id: spec.action_id, block_id: block.block_id };
  await during(control_, () => surface.act(value === undefined ? action : { ...action, value }));
}

function button(spec, block, surface, context) {
  const style = spec.style === "primary" || spec.style === "danger" ? ` btn-${spec.style}` : "";
  const node = h(
    "button",
    {
      class: `btn btn-small${style}`,
      type: "button",
      "aria-label": spec.accessibility_label,
      data: { actionId: spec.action_id ?? "" },
    },
    plain(spec.text?.text),
  );
  const url = spec.url && safeUrl(spec.url);
  node.addEventListener("click", () => {
    if (url) window.open(url, "_blank", "noopener,noreferrer");
    return send(spec, block, surface, context, node, spec.value);
  });
  return node;
}

function overflow(spec, block, surface, context) {
  const node = h(
    "button",
    {
      class: "btn btn-small btn-dots",
      type: "button",
      "aria-label": "More actions",
      data: { actionId: spec.action_id ?? "" },
    },
    icon("dots"),
  );
  return menuButton(
    node,
    (spec.options ?? []).map((option) => ({
      label: textObject(option.text, context),
      description: option.description && plain(option.description.text),
      data: { value: option.value ?? "" },
      pick: () => send(spec, block, surface, context, node, option.value),
    })),
  );
}

function chooser(spec, block, surface, context) {
  const made = control(spec, context, surface.kept?.(block, spec));
  made.node.setAttribute("aria-label", plain(spec.placeholder?.text) || spec.action_id || "Choose");
  made.node.classList.add("inline-field");
  surface.register?.(block, spec, made);
  made.node.addEventListener("change", () => send(spec, block, surface, context, made.node, made.read()));
  return made.node;
}
