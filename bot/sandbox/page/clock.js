// The sandbox's time and how it is moved forward. Never counts by itself what happens meanwhile.

import { api } from "./api.js";
import { toast } from "./dialog.js";
import { h, icon } from "./dom.js";
import { store } from "./store.js";
import { clockTime, duration, parseDuration, shortDay, zoneName } from "./time.js";

const STEPS = [
  [60, "+1 min"],
  [300, "+5 min"],
  [1800, "+30 min"],
  [3600, "+1 h"],
];

async function advance(seconds) {
  if (store.advancing) return;
  store.advancing = { from: store.now(), seconds };
  store.tell("advancing");
  const watch = setInterval(() => store.refresh("state"), 700); // the server says nothing of steps
  try {
    await api.advance(seconds);
  } catch (error) {
    toast(error.message);
  }
  clearInterval(watch);
  await store.refresh("state");
  store.advancing = null;
  store.tell("advancing");
}

const passed = (move) => Math.max(0, Math.min(move.seconds, (store.now() - move.from) / 1000));

export function clock() {
  const day = h("span", { class: "clock-day" });
  const time = h("time", { class: "clock-time", data: { testid: "clock" } });
  const zone = h("span", { class: "clock-zone" });
  const ahead = h("span", { class: "clock-ahead" });
  function tick() {
    if (!store.ready) return;
    const now = store.now();
    day.textContent = shortDay(now, store.zone);
    time.textContent = clockTime(now, store.zone, true);
    const offset = Number(store.state.clock_offset_s) || 0;
    const move = store.advancing;
    zone.textContent = zoneName(now, store.zone).split(",")[0];
    if (move) ahead.textContent = `${duration(passed(move))} of ${duration(move.seconds)}`;
    else ahead.textContent = offset >= 1 ? `${duration(offset)} ahead` : "";
  }
  setInterval(tick, 250);
  store.on(["state", "me"], tick);
  return h(
    "div",
    { class: "clock", title: "The sandbox's own time, in your zone" },
    icon("clock"),
    h(
      "div",
      {},
      h("div", { class: "clock-main" }, day, " ", time),
      h("div", { class: "clock-small" }, zone, " ", ahead),
    ),
  );
}

export function mover() {
  const buttons = STEPS.map(([seconds, name]) =>
    h(
      "button",
      {
        class: "seg",
        type: "button",
        data: { testid: `advance-${seconds}` },
        onclick: () => advance(seconds),
      },
      name,
    ),
  );
  const entry = h("input", {
    class: "seg-input",
    placeholder: "e.g. 2h",
    "aria-label": "Move time by",
    size: "6",
    autocomplete: "off",
    data: { testid: "advance-entry" },
  });
  const go = h(
    "button",
    { class: "seg", type: "submit", "aria-label": "Move time", data: { testid: "advance-go" } },
    icon("forward"),
  );
  const form = h("form", { class: "seg-form", onsubmit: (event) => free(event, entry) }, entry, go);
  store.on(["advancing"], () => {
    for (const each of [...buttons, entry, go]) each.disabled = Boolean(store.advancing);
  });
  return h("div", { class: "mover", role: "group", "aria-label": "Move time forward" }, buttons, form);
}

function free(event, entry) {
  event.preventDefault();
  const seconds = parseDuration(entry.value);
  if (!seconds) {
    toast("Write a time such as 90s, 15m, 2h or 1h30m.");
    return;
  }
  entry.value = "";
  advance(seconds);
}

export function progress() {
  const filled = h("span", { class: "progress-fill" });
  const line = h(
    "div",
    { class: "progress", role: "progressbar", hidden: true, "aria-label": "Time is moving" },
    filled,
  );
  store.on(["advancing", "state"], () => {
    const move = store.advancing;
    line.hidden = !move;
    if (!move) return;
    const percent = Math.round((100 * passed(move)) / move.seconds);
    filled.style.width = `${Math.max(3, percent)}%`;
    line.setAttribute("aria-valuenow", String(percent));
  });
  return line;
}
