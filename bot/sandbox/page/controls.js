// The inputs of Block Kit as form controls that can be read. Never sends anything.

import { add, h } from "./dom.js";
import { plain, textObject } from "./mrkdwn.js";
import { localText, zonedSeconds } from "./time.js";

const label = (option) => plain(option?.text?.text ?? option?.value);

// Every maker answers {node, read}: what to show, and the value as the sandbox takes it. `kept` is what was
// typed before a redraw; undefined means the element's own initial value.
const MAKERS = {
  plain_text_input: (element, kept) => text(element, kept, element.multiline ? "textarea" : "text"),
  number_input: (element, kept) => text(element, kept, "number"),
  email_text_input: (element, kept) => text(element, kept, "email"),
  url_text_input: (element, kept) => text(element, kept, "url"),
  datepicker: (element, kept) => field("date", kept ?? element.initial_date),
  timepicker: (element, kept) => field("time", kept ?? element.initial_time),
  datetimepicker: dateTime,
  static_select: (element, kept) =>
    select(optionList(element), kept ?? element.initial_option?.value, element),
  users_select: (element, kept, context) => select(people(context), kept ?? element.initial_user, element),
  channels_select: (element, kept, context) =>
    select(rooms(context), kept ?? element.initial_channel, element),
  conversations_select: (element, kept, context) =>
    select(rooms(context), kept ?? element.initial_conversation, element),
  radio_buttons: (element, kept) => choices("radio", element, kept ?? element.initial_option?.value),
  checkboxes: (element, kept) => choices("checkbox", element, kept ?? values(element.initial_options)),
  multi_static_select: (element, kept) =>
    choices(
      "checkbox",
      { ...element, options: optionList(element) },
      kept ?? values(element.initial_options),
      "scroll",
    ),
  multi_users_select: (element, kept, context) =>
    choices(
      "checkbox",
      { ...element, options: people(context) },
      kept ?? element.initial_users ?? [],
      "scroll",
    ),
};

export function isControl(type) {
  return Object.hasOwn(MAKERS, type);
}

export function control(element, context, kept) {
  const made = MAKERS[element.type](element, kept, context);
  made.node.dataset.actionId = element.action_id ?? "";
  if (element.focus_on_load) made.node.setAttribute("autofocus", "");
  return made;
}

const values = (options) => (options ?? []).map((option) => option.value);

function text(element, kept, type) {
  const props = {
    class: "field",
    placeholder: plain(element.placeholder?.text),
    value: kept ?? element.initial_value ?? "",
    maxlength: element.max_length ?? 3000,
    autocomplete: "off",
  };
  const area = type === "textarea";
  // Slack checks an address only when it is submitted: the browser's own bubbles would say other words.
  const node = area
    ? h("textarea", { ...props, rows: "4" })
    : h("input", {
        ...props,
        type: type === "number" ? "text" : type,
        inputmode: type === "number" ? "decimal" : null,
      });
  return { node, read: () => node.value || null };
}

function field(type, value) {
  const node = h("input", { class: "field field-short", type, value: value ?? "" });
  return { node, read: () => node.value || null };
}

function dateTime(element, kept, context) {
  const start = kept ?? element.initial_date_time;
  const node = h("input", {
    class: "field field-short",
    type: "datetime-local",
    value: start ? localText(start * 1000, context.zone) : "",
  });
  return { node, read: () => zonedSeconds(node.value, context.zone) };
}

function optionList(element) {
  return element.option_groups ?? element.options ?? [];
}

const option = (value, name) => ({ value, text: { text: name } });

function people(context) {
  return [...context.users.values()]
    .filter((user) => user.kind !== "bot")
    .map((user) => option(user.id, `@${user.name}`));
}

function rooms(context) {
  return [...context.channels.values()].map((room) => option(room.id, `#${room.name}`));
}

function select(options, chosen, element) {
  const item = (each) => h("option", { value: each.value, selected: each.value === chosen }, label(each));
  const list = options.map((each) =>
    each.options ? h("optgroup", { label: plain(each.label?.text) }, each.options.map(item)) : item(each),
  );
  const empty = h("option", { value: "", selected: !chosen }, plain(element.placeholder?.text) || "Choose…");
  const node = h("select", { class: "field" }, empty, list);
  return { node, read: () => node.value || null };
}

let groups = 0;

function choices(type, element, chosen, extra = "") {
  const flat = (element.options ?? []).flatMap((each) => each.options ?? [each]);
  const name = `choice-${(groups += 1)}`;
  const boxes = flat.map((each) =>
    h("input", { type, name, value: each.value, checked: [chosen].flat().includes(each.value) }),
  );
  const node = h("div", { class: `choices ${extra}`, role: type === "radio" ? "radiogroup" : "group" });
  add(
    node,
    flat.map((each, index) =>
      h(
        "label",
        { class: "choice" },
        boxes[index],
        h(
          "span",
          {},
          textObject(each.text, {}),
          each.description && h("small", {}, plain(each.description.text)),
        ),
      ),
    ),
  );
  const read = () => boxes.filter((box) => box.checked).map((box) => box.value);
  return { node, read: type === "radio" ? () => read()[0] ?? null : read };
}
