// A phone per person: their SMS and calls, and what one does with them. Never knows what an answer means.

import { api } from "./api.js";
import { during } from "./dialog.js";
import { add, avatar, fill, h, icon, keyed } from "./dom.js";
import { store } from "./store.js";
import { callScreen, live, pressed } from "./call.js";
import { clockTime, instant, shortDay } from "./time.js";

const OUTCOMES = {
  queued: "Dialling…",
  failed: "Call failed",
  completed: "Call",
  busy: "Declined call",
  "no-answer": "Missed call",
  canceled: "Call was cancelled",
  voicemail: "Went to voicemail",
};

const SECOND = "second company"; // as the sandbox names it

const MODES = {
  normal: "Rings until you answer",
  voicemail: "Goes to voicemail",
  busy: "Is busy",
  off: "Is switched off",
  landline: "Is a landline: no texts",
  dnd: "Is on Do Not Disturb",
  dnd_contact: "Is on Do Not Disturb, Midwatch may",
};

function owner(phone) {
  return store.state.users.find(
    (user) => user.id === phone.owner || user.name === phone.owner || user.name === phone.name,
  );
}

const nameOf = (phone) => owner(phone)?.name ?? phone.name ?? phone.number;

function pretty(number) {
  const us = /^\+1(\d{3})(\d{3})(\d{4})$/.exec(number);
  return us ? `+1 ${us[1]} ${us[2]} ${us[3]}` : number;
}

function smsItem(sms, zone) {
  const at = clockTime(instant(sms.at), zone);
  const state = sms.direction === "out" ? sms.status : sms.from === SECOND ? "by the second company" : "";
  return {
    key: sms.sid,
    signature: JSON.stringify([sms, zone]),
    at: instant(sms.at),
    build: () =>
      h(
        "div",
        { class: `sms sms-${sms.direction}`, data: { testid: "sms" } },
        h("p", { class: "sms-body" }, sms.body),
        h("span", { class: "sms-at" }, at, state && ` · ${state}`),
      ),
  };
}

function callItem(call, zone) {
  const said = call.said ?? [];
  return {
    key: call.sid,
    signature: JSON.stringify([call, zone]),
    at: instant(call.at),
    build: () =>
      h(
        "details",
        { class: `past-call past-${call.status}` },
        h(
          "summary",
          {},
          icon(call.status === "voicemail" ? "voicemail" : "phone"),
          h("span", {}, OUTCOMES[call.status] ?? call.status),
          pressed(call) && h("span", { class: "digits" }, `pressed ${pressed(call)}`),
          h("time", {}, clockTime(instant(call.at), zone)),
        ),
        said.length ? said.map((line) => h("p", {}, line)) : h("p", {}, "Nothing was said."),
      ),
  };
}

// Links can be opened: that is how a mail is answered.
function linked(text) {
  return text.split(/(https?:\/\/[^\s<>"]+)/).map((part, index) =>
    index % 2 ? h("a", { href: part, target: "_blank", rel: "noopener noreferrer" }, part) : part,
  );
}

function mailItem(mail, zone) {
  return {
    key: mail.sid,
    signature: JSON.stringify([mail, zone]),
    at: instant(mail.at),
    build: () =>
      h(
        "details",
        { class: "past-call mail", data: { testid: "mail" } },
        h(
          "summary",
          {},
          h("span", {}, `✉ ${mail.subject}`),
          h("time", {}, clockTime(instant(mail.at), zone)),
        ),
        mail.text.split("\n").map((line) => h("p", {}, linked(line))),
      ),
  };
}

function thread(phone, zone) {
  const calls = (phone.calls ?? []).filter((call) => !live(call)).map((call) => callItem(call, zone));
  const mails = (phone.mails ?? []).map((mail) => mailItem(mail, zone));
  const texts = (phone.sms ?? []).map((sms) => smsItem(sms, zone));
  const items = [...texts, ...calls, ...mails].sort((a, b) => a.at - b.at);
  let day = "";
  return items.flatMap((item) => {
    const title = shortDay(item.at, zone);
    const marker =
      title === day
        ? []
        : [{ key: `day ${title}`, signature: title, build: () => h("div", { class: "phone-day" }, title) }];
    day = title;
    return [...marker, item];
  });
}

class Phone {
  constructor(number, toggle) {
    this.number = number;
    this.seen = 0;
    this.calls = h("div", { class: "phone-calls" });
    this.list = h("div", {
      class: "sms-list",
      role: "log",
      "aria-live": "polite",
      "aria-label": "SMS, calls and mail",
      tabindex: "0",
    });
    this.input = h("input", {
      class: "field",
      placeholder: "Reply by SMS",
      "aria-label": "Reply by SMS",
      autocomplete: "off",
      data: { testid: "sms-reply" },
    });
    this.send = h(
      "button",
      { class: "send", type: "submit", "aria-label": "Send SMS", data: { testid: "sms-send" } },
      icon("send"),
    );
    this.head = h("button", { class: "phone-head", type: "button", onclick: () => toggle(this) });
    this.form = h(
      "form",
      { class: "sms-form", onsubmit: (event) => this.reply(event) },
      this.input,
      this.send,
    );
    this.mode = h(
      "select",
      {
        class: "phone-mode",
        "aria-label": "What this phone does by itself",
        title: "What this phone does by itself",
        data: { testid: "phone-mode" },
        onchange: () => api.mode(this.number, this.mode.value),
      },
      Object.entries(MODES).map(([value, words]) => h("option", { value }, words)),
    );
    this.body = h("div", { class: "phone-body" }, this.mode, this.calls, this.list, this.form);
    this.node = h("section", { class: "phone" }, this.head, this.body);
  }

  async reply(event) {
    event.preventDefault();
    const text = this.input.value.trim();
    if (!text) return;
    this.input.value = "";
    const done = await during(this.send, () => api.reply(this.number, text));
    if (!done && !this.input.value) this.input.value = text;
    store.refresh("phones");
  }

  draw(phone, open) {
    const name = nameOf(phone);
    const received = (phone.sms ?? []).filter((sms) => sms.direction === "in").length;
    const now = (phone.calls ?? []).filter(live);
    if (open) this.seen = received;
    this.node.dataset.testid = `phone-${name}`;
    this.node.setAttribute("aria-label", `Phone of ${name}`);
    this.node.classList.toggle("open", open);
    this.node.classList.toggle(
      "ringing",
      now.some((call) => call.status === "ringing"),
    );
    this.head.setAttribute("aria-expanded", String(open));
    if (document.activeElement !== this.mode) this.mode.value = phone.mode ?? "normal";
    this.node.classList.toggle("odd", (phone.mode ?? "normal") !== "normal");
    this.drawHead(phone, name, received - this.seen, now);
    this.body.hidden = !open;
    keyed(
      this.calls,
      now.map((call) => callScreen(phone.number, call)),
    );
    const fresh = keyed(this.list, thread(phone, owner(phone)?.tz ?? store.zone));
    this.list.classList.toggle("empty", !this.list.children.length);
    const busy = now.map((call) => `${call.sid} ${call.status}`).join();
    if (busy && busy !== this.busy)
      requestAnimationFrame(() => this.calls.scrollIntoView({ block: "nearest" }));
    this.busy = busy;
    if (fresh.length || (open && !this.open))
      requestAnimationFrame(() => {
        this.list.scrollTop = this.list.scrollHeight;
      });
    this.open = open;
  }

  drawHead(phone, name, unread, now) {
    const word = now[0] ? (now[0].status === "ringing" ? "ringing…" : "on a call") : pretty(phone.number);
    const sign = JSON.stringify([name, unread, word, phone.name]);
    if (this.sign === sign) return;
    this.sign = sign;
    fill(
      this.head,
      avatar(owner(phone) ?? { name }, "small"),
      h(
        "span",
        { class: "phone-who" },
        h("strong", {}, name, owner(phone)?.id === store.me && h("small", {}, " you")),
        h("span", { class: "phone-number" }, word),
      ),
      unread > 0 && h("span", { class: "badge" }, unread, h("span", { class: "sr" }, " unread")),
      icon("chevron"),
    );
  }
}

export function phones(root) {
  const close = h(
    "button",
    {
      class: "icon-button phones-close",
      type: "button",
      "aria-label": "Close phones",
      onclick: () => document.body.classList.remove("phones-open"),
    },
    icon("close"),
  );
  const stack = h("div", { class: "phone-stack" });
  const none = h("p", { class: "quiet" }, "Nobody here has a phone yet.");
  fill(root, h("header", { class: "phones-head" }, h("h2", {}, "Phones"), close), none, stack);
  const known = new Map();
  const opened = new Map(); // number -> what was last chosen by hand

  const toggle = (phone) => {
    opened.set(phone.number, phone.body.hidden);
    draw();
  };

  function isOpen(phone) {
    const busy = (phone.calls ?? []).some(live);
    if (busy) opened.set(phone.number, true); // and it stays open afterwards, for what was said
    return busy || (opened.get(phone.number) ?? owner(phone)?.id === store.me);
  }

  function draw() {
    const mine = (phone) => (owner(phone)?.id === store.me ? 0 : 1);
    const order = [...store.phones].sort((a, b) => mine(a) - mine(b));
    none.hidden = order.length > 0 || !store.ready;
    for (const phone of order) {
      if (!known.has(phone.number)) known.set(phone.number, new Phone(phone.number, toggle));
      known.get(phone.number).draw(phone, isOpen(phone));
    }
    const nodes = order.map((phone) => known.get(phone.number).node);
    if (
      nodes.some((node, index) => stack.children[index] !== node) ||
      stack.children.length !== nodes.length
    ) {
      stack.replaceChildren();
      add(stack, nodes);
    }
  }

  store.on(["me"], () => {
    opened.clear();
    for (const phone of known.values()) phone.sign = "";
  });
  store.on(["phones", "state", "me"], draw);
}
