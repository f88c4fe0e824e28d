// The top bar: the sandbox's time and how to move it, what is broken on purpose, and whether Midwatch is there.

import { api } from "./api.js";
import { during, toast } from "./dialog.js";
import { fill, h, icon } from "./dom.js";
import { store } from "./store.js";
import { clockTime, duration, instant, parseDuration, shortDay, zoneName } from "./time.js";
import { showHelp } from "./welcome.js";

const STEPS = [[60, "+1 min"], [300, "+5 min"], [1800, "+30 min"], [3600, "+1 h"]];
const FAULTS = [["slack", "Slack"], ["sms", "SMS"], ["voice", "Voice"]];

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

function clock() {
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
    ahead.textContent = move ? `${duration(passed(move))} of ${duration(move.seconds)}` : offset >= 1 ? `${duration(offset)} ahead` : "";
  }
  setInterval(tick, 250);
  store.on(["state", "me"], tick);
  return h("div", { class: "clock", title: "The sandbox's own time, in your zone" }, icon("clock"),
    h("div", {}, h("div", { class: "clock-main" }, day, " ", time), h("div", { class: "clock-small" }, zone, " ", ahead)));
}

function mover() {
  const buttons = STEPS.map(([seconds, name]) => h("button", { class: "seg", type: "button", data: { testid: `advance-${seconds}` },
    onclick: () => advance(seconds) }, name));
  const entry = h("input", { class: "seg-input", placeholder: "e.g. 2h", "aria-label": "Move time by", size: "6", autocomplete: "off", data: { testid: "advance-entry" } });
  const go = h("button", { class: "seg", type: "submit", "aria-label": "Move time", data: { testid: "advance-go" } }, icon("forward"));
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

// A switch also clears what stands for it: "twilio" is SMS and voice at once, "slack_socket" a part of Slack.
const REACH = { slack: ["slack", "slack_socket"], sms: ["sms", "twilio"], voice: ["voice", "twilio"] };

function faultSwitch([target, name]) {
  const down = h("span", { class: "switch-down", hidden: true }, " down");
  const word = h("span", { class: "switch-name" }, name, down);
  const button = h("button", { class: "switch", type: "button", role: "switch", data: { testid: `fault-${target}` } }, h("span", { class: "track" }), word);
  button.addEventListener("click", () => during(button, async () => {
    const active = REACH[target].filter((each) => store.fault(each));
    if (!active.length) await api.fault(target, "outage", null);
    for (const each of active) await api.fault(each, "none", null);
    await store.refresh("state");
  }));
  store.on(["state"], () => {
    const fault = store.fault(...REACH[target]);
    button.setAttribute("aria-checked", String(Boolean(fault)));
    button.setAttribute("aria-label", `${name} outage`);
    button.title = fault ? `${fault.target}: ${fault.kind}${fault.until ? `, until ${clockTime(instant(fault.until), store.zone)}` : ""}` : `Break ${name}`;
    down.hidden = !fault;
  });
  return button;
}

function connection() {
  const pill = h("span", { class: "pill", role: "status", data: { testid: "connection" } });
  store.on(["state"], () => {
    const up = store.state.midwatch?.connected;
    const [kind, text] = !store.online ? ["bad", "Sandbox gone"] : up ? ["good", "Midwatch is here"] : ["idle", "No Midwatch"];
    if (pill.textContent === text) return;
    pill.className = `pill pill-${kind}`;
    fill(pill, h("span", { class: "lamp" }), h("span", { class: "pill-text" }, text));
    pill.title = up ? "Midwatch is connected to this Slack" : "Midwatch is not connected to this Slack";
  });
  return pill;
}

function progress() {
  const filled = h("span", { class: "progress-fill" });
  const line = h("div", { class: "progress", role: "progressbar", hidden: true, "aria-label": "Time is moving" }, filled);
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

function phonesToggle() {
  const count = h("span", { class: "badge", hidden: true });
  const button = h("button", { class: "icon-button phones-toggle", type: "button", "aria-label": "Phones", "aria-controls": "phones", data: { testid: "phones-toggle" },
    onclick: () => document.body.classList.toggle("phones-open") }, icon("phone"), h("span", {}, "Phones"), count);
  store.on(["phones"], () => {
    const ringing = store.phones.filter((phone) => phone.calls?.some((call) => call.status === "ringing")).length;
    button.classList.toggle("ringing", ringing > 0);
    count.hidden = !ringing;
    count.textContent = ringing;
  });
  return button;
}

export function bar(root) {
  const side = h("button", { class: "icon-button side-toggle", type: "button", "aria-label": "Channels", "aria-controls": "side",
    onclick: () => document.body.classList.toggle("side-open") }, icon("menu"));
  const help = h("button", { class: "icon-button", type: "button", "aria-label": "How to try Midwatch", title: "How to try Midwatch", data: { testid: "help" }, onclick: showHelp }, icon("help"));
  fill(root, h("div", { class: "brand" }, side, h("span", { class: "brand-mark" }, icon("moon")), h("span", { class: "brand-name" }, "Midwatch", h("small", {}, "sandbox"))),
    h("div", { class: "bar-time" }, clock(), mover()),
    h("div", { class: "bar-faults", role: "group", "aria-label": "Break something" }, h("span", { class: "bar-label" }, "Outage"), FAULTS.map(faultSwitch)),
    h("div", { class: "bar-end" }, connection(), help, phonesToggle()), progress());
  store.on(["state"], () => document.body.classList.toggle("broken", Boolean(store.fault("slack", "slack_socket", "sms", "voice", "twilio"))));
}
