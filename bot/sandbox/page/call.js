// A call that rings or is going on: what was said, and the keypad. Never ends a call by itself.

import { api } from "./api.js";
import { during } from "./dialog.js";
import { h, icon } from "./dom.js";
import { store } from "./store.js";

const KEYS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "*", "0", "#"];

export const pressed = (call) => [call.digits ?? []].flat().join("");
export const live = (call) => call.status === "ringing" || call.status === "in-progress";

function control(number, verb, name, iconName, style) {
  const button = h(
    "button",
    {
      class: `call-button ${style}`,
      type: "button",
      data: { testid: `call-${verb}` },
      onclick: () => press(button, () => api.call(number, verb)),
    },
    h("span", { class: "call-disc" }, icon(iconName)),
    h("span", {}, name),
  );
  return button;
}

function press(button, work) {
  return during(button, async () => {
    await work();
    await store.refresh("phones");
  });
}

function key(number, digit) {
  const button = h(
    "button",
    {
      class: "key",
      type: "button",
      data: { testid: `key-${digit}` },
      onclick: () => press(button, () => api.press(number, digit)),
    },
    digit,
  );
  return button;
}

function ringing(number) {
  return h(
    "div",
    { class: "call call-ringing", role: "alert", data: { testid: "call" } },
    h(
      "p",
      { class: "call-who" },
      h("span", { class: "call-pulse" }, icon("phone")),
      h("span", {}, h("strong", {}, "Midwatch"), h("small", {}, "incoming call")),
    ),
    h(
      "div",
      { class: "call-buttons" },
      control(number, "decline", "Decline", "hangup", "call-no"),
      control(number, "voicemail", "Voicemail", "voicemail", "call-later"),
      control(number, "answer", "Answer", "phone", "call-yes"),
    ),
  );
}

function talking(number, call) {
  const said = call.said ?? [];
  return h(
    "div",
    { class: `call call-talking${call.gathering ? " gathering" : ""}`, data: { testid: "call" } },
    h(
      "p",
      { class: "call-who" },
      h("strong", {}, "Midwatch"),
      h("small", {}, call.gathering ? "waits for a key" : "on the line"),
    ),
    h(
      "div",
      {
        class: "said",
        role: "log",
        "aria-live": "polite",
        "aria-label": "What the call says",
        data: { testid: "call-said" },
      },
      said.map((line) => h("p", {}, line)),
    ),
    h("p", { class: "pressed", "aria-live": "polite" }, pressed(call) || " "),
    h(
      "div",
      { class: "keypad", role: "group", "aria-label": "Keypad" },
      KEYS.map((digit) => key(number, digit)),
    ),
    h("div", { class: "call-buttons" }, control(number, "hangup", "Hang up", "hangup", "call-no")),
  );
}

export function callScreen(number, call) {
  return {
    key: call.sid,
    signature: JSON.stringify(call),
    build: () => (call.status === "ringing" ? ringing(number) : talking(number, call)),
  };
}
