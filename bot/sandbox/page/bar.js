// The top bar: the time, what is broken on purpose, and whether Midwatch is there. Never breaks anything itself.

import { api } from "./api.js";
import { clock, mover, progress } from "./clock.js";
import { during } from "./dialog.js";
import { fill, h, icon } from "./dom.js";
import { store } from "./store.js";
import { clockTime, instant } from "./time.js";
import { showHelp } from "./welcome.js";

const FAULTS = [
  ["slack", "Slack"],
  ["sms", "SMS"],
  ["voice", "Voice"],
  ["second", "Backup"],
  ["mail", "Mail"],
];

const TITLES = { second: "the second phone company", mail: "the mail server" };

// A switch also clears what stands for it: "twilio" is SMS and voice at once, "slack_socket" a part of Slack.
const REACH = { slack: ["slack", "slack_socket"], sms: ["sms", "twilio"], voice: ["voice", "twilio"], second: ["second"], mail: ["mail"] };

function faultSwitch([target, name]) {
  const down = h("span", { class: "switch-down", hidden: true }, " down");
  const word = h("span", { class: "switch-name" }, name, down);
  const button = h(
    "button",
    { class: "switch", type: "button", role: "switch", data: { testid: `fault-${target}` } },
    h("span", { class: "track" }),
    word,
  );
  button.addEventListener("click", () =>
    during(button, async () => {
      const active = REACH[target].filter((each) => store.fault(each));
      if (!active.length) await api.fault(target, "outage", null);
      for (const each of active) await api.fault(each, "none", null);
      await store.refresh("state");
    }),
  );
  store.on(["state"], () => {
    const fault = store.fault(...REACH[target]);
    button.setAttribute("aria-checked", String(Boolean(fault)));
    button.setAttribute("aria-label", `${name} outage`);
    button.title = fault
      ? `${fault.target}: ${fault.kind}${fault.until ? `, until ${clockTime(instant(fault.until), store.zone)}` : ""}`
      : `Break ${TITLES[target] ?? name}`;
    down.hidden = !fault;
  });
  return button;
}

function connection() {
  const pill = h("span", { class: "pill", role: "status", data: { testid: "connection" } });
  store.on(["state"], () => {
    const up = store.state.midwatch?.connected;
    const [kind, text] = !store.online
      ? ["bad", "Sandbox gone"]
      : up
        ? ["good", "Midwatch is here"]
        : ["idle", "No Midwatch"];
    if (pill.textContent === text) return;
    pill.className = `pill pill-${kind}`;
    fill(pill, h("span", { class: "lamp" }), h("span", { class: "pill-text" }, text));
    pill.title = up ? "Midwatch is connected to this Slack" : "Midwatch is not connected to this Slack";
  });
  return pill;
}

function phonesToggle() {
  const count = h("span", { class: "badge", hidden: true });
  const button = h(
    "button",
    {
      class: "icon-button phones-toggle",
      type: "button",
      "aria-label": "Phones",
      "aria-controls": "phones",
      data: { testid: "phones-toggle" },
      onclick: () => document.body.classList.toggle("phones-open"),
    },
    icon("phone"),
    h("span", {}, "Phones"),
    count,
  );
  store.on(["phones"], () => {
    const ringing = store.phones.filter((phone) =>
      phone.calls?.some((call) => call.status === "ringing"),
    ).length;
    button.classList.toggle("ringing", ringing > 0);
    count.hidden = !ringing;
    count.textContent = ringing;
  });
  return button;
}

export function bar(root) {
  const side = h(
    "button",
    {
      class: "icon-button side-toggle",
      type: "button",
      "aria-label": "Channels",
      "aria-controls": "side",
      onclick: () => document.body.classList.toggle("side-open"),
    },
    icon("menu"),
  );
  const help = h(
    "button",
    {
      class: "icon-button",
      type: "button",
      "aria-label": "How to try Midwatch",
      title: "How to try Midwatch",
      data: { testid: "help" },
      onclick: showHelp,
    },
    icon("help"),
  );
  fill(
    root,
    h(
      "div",
      { class: "brand" },
      side,
      h("span", { class: "brand-mark" }, icon("moon")),
      h("span", { class: "brand-name" }, "Midwatch", h("small", {}, "sandbox")),
    ),
    h("div", { class: "bar-time" }, clock(), mover()),
    h(
      "div",
      { class: "bar-faults", role: "group", "aria-label": "Break something" },
      h("span", { class: "bar-label" }, "Outage"),
      FAULTS.map(faultSwitch),
    ),
    h("div", { class: "bar-end" }, connection(), help, phonesToggle()),
    progress(),
  );
  store.on(["state"], () =>
    document.body.classList.toggle(
      "broken",
      Boolean(store.fault("slack", "slack_socket", "sms", "voice", "twilio", "second", "mail")),
    ),
  );
}
