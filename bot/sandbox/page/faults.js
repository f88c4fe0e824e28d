// All that can be broken on purpose, in one place: how, and for how long. Never breaks anything by itself.

import { api } from "./api.js";
import { during } from "./dialog.js";
import { fill, h, icon } from "./dom.js";
import { store } from "./store.js";
import { clockTime, instant } from "./time.js";

const DOWN = [
  ["outage", "Down: answers 503"],
  ["hang", "Says nothing: requests hang"],
];
const BUSY = ["429", "Too many requests"];
const REFUSED = ["20003", "Refuses our credentials"];
const LOST = ["reset_after", "Taken, and the answer is lost"];

// Each target of POST /sandbox/fault, what it carries, and its kinds.
const TARGETS = [
  {
    target: "slack",
    name: "Slack",
    about: "Posts, updates and the socket",
    kinds: [
      ...DOWN,
      BUSY,
      LOST,
      ["internal_error", "Fails within itself"],
      ["invalid_auth", "Refuses our token"],
    ],
  },
  {
    target: "slack_socket",
    name: "Slack's socket",
    about: "What people type and click",
    kinds: [
      ["deaf", "Open, and nothing comes"],
      ["duplicate", "Everything comes twice"],
      ["drop_ack", "Does not hear that we took it"],
      ["outage", "Lets nobody connect"],
    ],
  },
  {
    target: "sms",
    name: "Texts",
    about: "The first phone company",
    kinds: [
      ...DOWN,
      BUSY,
      REFUSED,
      LOST,
      ["undelivered", "Taken, and they do not arrive"],
      ["silent", "Never says if they arrived"],
    ],
  },
  {
    target: "voice",
    name: "Calls",
    about: "The first phone company",
    kinds: [...DOWN, BUSY, REFUSED, LOST, ["busy", "Every line is busy"], ["no-answer", "Nobody answers"]],
  },
  {
    target: "callbacks",
    name: "Receipts",
    about: "What became of texts and calls",
    kinds: [
      ["outage", "Never come"],
      ["late", "Come 90 seconds late"],
      ["duplicate", "Come twice"],
      ["disorder", "Come in the wrong order"],
    ],
  },
  {
    target: "second",
    name: "Second company",
    about: "When the first one fails",
    kinds: [...DOWN, BUSY, LOST],
  },
  {
    target: "mail",
    name: "Mail",
    about: "The mail server",
    kinds: [
      ["outage", "Switched off"],
      ["hang", "Says nothing: mails hang"],
      ["later", "“Try again later”"],
      ["refuse", "“No such mailbox”"],
    ],
  },
];

const LENGTHS = [
  ["", "until mended"],
  [30, "for 30 s"],
  [120, "for 2 min"],
  [600, "for 10 min"],
];

export const BREAKABLE = [...TARGETS.map((each) => each.target), "twilio"];

// "twilio" stands for texts and calls at once.
const reach = (target) => (["sms", "voice"].includes(target) ? [target, "twilio"] : [target]);

export function said(fault) {
  const kinds = TARGETS.find((each) => each.target === fault.target)?.kinds ?? [];
  const words = kinds.find(([kind]) => kind === fault.kind)?.[1] ?? fault.kind;
  return fault.until ? `${words}, until ${clockTime(instant(fault.until), store.zone, true)}` : words;
}

function choice(label, testid, options) {
  return h(
    "select",
    { class: "field", "aria-label": label, data: { testid } },
    options.map(([value, words]) => h("option", { value }, words)),
  );
}

class Row {
  constructor({ target, name, about, kinds }) {
    this.reach = reach(target);
    this.how = choice(`How ${name} breaks`, "fault-kind", kinds);
    this.length = choice(`How long ${name} is broken`, "fault-length", LENGTHS);
    this.now = h("p", { class: "fault-now", role: "status" });
    this.button = h("button", { class: "btn btn-small", type: "button", onclick: () => this.change() });
    this.ways = h("div", { class: "fault-ways" }, this.how, this.length);
    this.node = h(
      "li",
      { class: "fault", data: { testid: `break-${target}` } },
      h("div", { class: "fault-what" }, h("strong", {}, name), h("small", {}, about)),
      this.ways,
      this.now,
      this.button,
    );
    this.target = target;
  }

  change() {
    return during(this.button, async () => {
      const broken = this.reach.filter((each) => store.fault(each));
      for (const each of broken) await api.fault(each, "none", null);
      if (!broken.length) await api.fault(this.target, this.how.value, Number(this.length.value) || null);
      await store.refresh("state");
    });
  }

  draw() {
    const fault = store.fault(...this.reach);
    this.node.classList.toggle("broken-now", Boolean(fault));
    this.ways.hidden = Boolean(fault);
    this.now.textContent = fault ? said(fault) : "";
    this.button.textContent = fault ? "Mend" : "Break";
    this.button.classList.toggle("btn-primary", Boolean(fault));
  }
}

function everything() {
  const button = h(
    "button",
    { class: "btn", type: "button", data: { testid: "mend-all" } },
    icon("check"),
    "Mend everything",
  );
  button.addEventListener("click", () =>
    during(button, async () => {
      for (const { target } of store.state.faults) await api.fault(target, "none", null);
      await store.refresh("state");
    }),
  );
  return button;
}

export function showFaults() {
  const rows = TARGETS.map((each) => new Row(each));
  const mend = everything();
  const dialog = h(
    "dialog",
    { class: "modal faults", "aria-labelledby": "faults-title", data: { testid: "faults-panel" } },
    h(
      "header",
      { class: "modal-head" },
      h("h2", { class: "modal-title", id: "faults-title" }, "Break something"),
      h(
        "button",
        { class: "icon-button", type: "button", "aria-label": "Close", onclick: () => dialog.close() },
        icon("close"),
      ),
    ),
    h(
      "div",
      { class: "modal-body" },
      h(
        "p",
        { class: "fault-lead" },
        "See what Midwatch does without it. How long is real time, not that of the clock above.",
      ),
      h("ul", { class: "fault-list" }, rows.map((row) => row.node)),
    ),
    h("footer", { class: "modal-foot" }, mend),
  );
  const draw = () => {
    for (const row of rows) row.draw();
    mend.disabled = !store.state.faults.length;
  };
  draw();
  store.addEventListener("state", draw);
  dialog.addEventListener("close", () => {
    store.removeEventListener("state", draw);
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
}

export function faultsButton() {
  const count = h("span", { class: "badge", hidden: true });
  const button = h(
    "button",
    {
      class: "faults-button",
      type: "button",
      title: "Break something: all ways, and for how long",
      "aria-haspopup": "dialog",
      data: { testid: "faults" },
      onclick: showFaults,
    },
    icon("bolt"),
    h("span", {}, "Break"),
    count,
  );
  store.on(["state"], () => {
    const broken = store.state.faults.length;
    count.hidden = !broken;
    fill(count, broken, h("span", { class: "sr" }, " broken"));
  });
  return button;
}
