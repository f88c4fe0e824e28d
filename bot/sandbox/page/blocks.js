// Block Kit as nodes: sections, fields, actions, context, inputs. Never knows what a block is about.

import { control, isControl } from "./controls.js";
import { add, h } from "./dom.js";
import { element, picture } from "./elements.js";
import { link, mrkdwn, plain, textObject } from "./mrkdwn.js";

const KINDS = {
  section,
  unknown,
  header: (block) => h("h3", { class: "b-header" }, plain(block.text?.text)),
  divider: () => h("hr", { class: "b-divider" }),
  context: (block, surface, context) =>
    h(
      "div",
      { class: "b-context" },
      (block.elements ?? []).map((each) =>
        each.type === "image" ? picture(each) : h("span", {}, textObject(each, context)),
      ),
    ),
  actions: (block, surface, context) =>
    h(
      "div",
      { class: "b-actions" },
      (block.elements ?? []).map((each) => element(each, block, surface, context)),
    ),
  image: (block) =>
    h(
      "figure",
      { class: "b-image" },
      block.title && h("figcaption", {}, plain(block.title.text)),
      picture(block),
    ),
  input,
  markdown: (block, surface, context) =>
    h("div", { class: "b-text b-markdown" }, mrkdwn(block.text, context)),
  rich_text: (block, surface, context) =>
    h(
      "div",
      { class: "b-text" },
      (block.elements ?? []).map((each) => rich(each, context)),
    ),
};

// surface: {act(action), register(block, element, control)?, kept(block, element)?, errors?: {block_id: text}}
export function blocks(list, surface, context) {
  return (list ?? []).map((block) => {
    try {
      return KINDS[kindOf(block)](block, surface, context);
    } catch (error) {
      console.error("block:", error); // one bad block must not hide the messages around it
      return unknown(block);
    }
  });
}

const kindOf = (block) => (Object.hasOwn(KINDS, block.type) ? block.type : "unknown");

function unknown(block) {
  return h("p", { class: "unknown" }, `This page does not show “${block?.type}” blocks.`);
}

function section(block, surface, context) {
  const body = h("div", { class: "b-body" });
  if (block.text) body.append(h("div", { class: "b-text" }, textObject(block.text, context)));
  if (block.fields?.length)
    body.append(
      h(
        "div",
        { class: "b-fields" },
        block.fields.map((field) => h("div", { class: "b-field" }, textObject(field, context))),
      ),
    );
  const accessory =
    block.accessory && h("div", { class: "b-accessory" }, element(block.accessory, block, surface, context));
  return h("div", { class: "b-section" }, body, accessory);
}

let inputs = 0;

function input(block, surface, context) {
  const spec = block.element ?? {};
  if (!isControl(spec.type)) return h("p", { class: "unknown" }, `This page does not show “${spec.type}”.`);
  const made = control(spec, context, surface.kept?.(block, spec));
  const id = `input-${(inputs += 1)}`;
  const error = surface.errors?.[block.block_id];
  label(made.node, id, block);
  if (error) made.node.setAttribute("aria-invalid", "true");
  made.node.setAttribute("aria-describedby", `${id}-hint ${id}-error`);
  surface.register?.(block, spec, made);
  if (block.dispatch_action)
    made.node.addEventListener("change", () =>
      surface.act({ action_id: spec.action_id, block_id: block.block_id, value: made.read() }),
    );
  return h(
    "div",
    { class: error ? "b-input invalid" : "b-input", data: { blockId: block.block_id ?? "" } },
    h(
      "label",
      { class: "b-label", for: id, id: `${id}-label` },
      plain(block.label?.text),
      block.optional && h("span", { class: "optional" }, " (optional)"),
    ),
    made.node,
    block.hint && h("p", { class: "hint", id: `${id}-hint` }, plain(block.hint.text)),
    error &&
      h(
        "p",
        { class: "field-error", id: `${id}-error`, role: "alert", data: { testid: "field-error" } },
        plain(error),
      ),
  );
}

function label(node, id, block) {
  node.id = id;
  if (node.getAttribute("role")) node.setAttribute("aria-labelledby", `${id}-label`);
  if (!block.optional) node.setAttribute("aria-required", "true");
}

const RICH = {
  text: (part) => styled(part.style ?? {}, part.text),
  link: (part) => link(part.url ?? "", part.text),
  user: (part, context) => mrkdwn(`<@${part.user_id}>`, context),
  channel: (part, context) => mrkdwn(`<#${part.channel_id}>`, context),
  emoji: (part) => plain(`:${part.name}:`),
  broadcast: (part, context) => mrkdwn(`<!${part.range}>`, context),
};

function styled(style, text) {
  const tag = style.code ? "code" : style.bold ? "strong" : style.italic ? "em" : style.strike ? "s" : "span";
  return h(tag, style.code ? { class: "mrk-code" } : {}, text);
}

function rich(group, context) {
  const parts = (group.elements ?? []).map((part) =>
    group.type === "rich_text_list"
      ? h("li", {}, rich(part, context))
      : Object.hasOwn(RICH, part.type) && RICH[part.type](part, context),
  );
  const tags = { rich_text_list: "ul", rich_text_quote: "blockquote", rich_text_preformatted: "pre" };
  const tag = Object.hasOwn(tags, group.type) ? tags[group.type] : "div";
  return add(h(tag, { class: `rich-${tag}` }), parts);
}
