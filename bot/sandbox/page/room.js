// The middle of the page: the head of a channel, the notice of an outage, and the thread beside it.

import { composer } from "./composer.js";
import { fill, h, icon, keyed } from "./dom.js";
import { openHome, threadItems } from "./feed.js";
import { mrkdwn } from "./mrkdwn.js";
import { store } from "./store.js";

function tabs() {
  const tab = (name, title, open) =>
    h(
      "button",
      {
        class: "tab",
        type: "button",
        role: "tab",
        "aria-selected": String(store.tab === name),
        data: { testid: `tab-${name}` },
        onclick: (event) => open(event.currentTarget),
      },
      title,
    );
  return h(
    "div",
    { class: "tabs", role: "tablist", "aria-label": "Midwatch" },
    tab("messages", "Messages", () => store.openTab("messages")),
    tab("home", "Home", openHome),
  );
}

function title() {
  if (store.inDm) return [h("h2", {}, icon("moon"), "Midwatch"), tabs()];
  const room = store.channel;
  if (!room) return [h("h2", {}, "…")];
  const topic =
    room.topic && h("p", { class: "topic", title: room.topic }, mrkdwn(room.topic, store.context));
  const count = room.members?.length ?? 0;
  return [
    h("h2", {}, icon("hash"), room.name, room.archived && h("span", { class: "tag" }, "ARCHIVED")),
    topic,
    count > 0 && h("span", { class: "count", title: "Members" }, `${count} members`),
  ];
}

export function roomHead(root) {
  let sign = "";
  store.on(["state", "place", "me"], () => {
    const next = JSON.stringify([store.channel, store.place, store.tab, store.me]);
    if (next === sign) return;
    sign = next;
    const focused = root.contains(document.activeElement) ? document.activeElement.dataset.testid : null;
    fill(root, title());
    if (focused) root.querySelector(`[data-testid="${focused}"]`)?.focus();
  });
}

function outage() {
  if (!store.fault("slack", "slack_socket")) return "";
  const sms = !store.fault("sms", "twilio");
  const voice = !store.fault("voice", "twilio");
  const left =
    sms && voice
      ? "SMS and calls still work"
      : sms
        ? "SMS still works"
        : voice
          ? "Calls still work"
          : "Nor do SMS and calls work";
  return `Slack is broken for Midwatch: it may neither post nor hear you here. ${left}.`;
}

export function outageNotice(root) {
  store.on(["state"], () => {
    const text = store.online ? outage() : "The sandbox does not answer; this page shows what it last knew.";
    if (root.textContent === text) return;
    root.hidden = !text;
    root.textContent = text;
  });
}

export function threadPanel(root) {
  const list = h("div", { class: "feed-list", role: "log", "aria-live": "polite", "aria-label": "Thread" });
  const scroll = h("div", { class: "thread-scroll", tabindex: "-1" }, list);
  const foot = h("footer", { class: "composer" });
  const close = () => store.openThread(null);
  fill(
    root,
    h(
      "header",
      { class: "thread-head" },
      h("h2", {}, "Thread"),
      h(
        "button",
        { class: "icon-button", type: "button", "aria-label": "Close thread", onclick: close },
        icon("close"),
      ),
    ),
    scroll,
    foot,
  );
  const line = composer(foot, { thread: () => store.thread, testid: "thread-composer" });
  root.addEventListener("keydown", (event) => event.key === "Escape" && close());
  let shown = null;
  store.on(["thread", "messages", "me"], () => {
    root.hidden = !store.thread;
    document.body.classList.toggle("thread-open", Boolean(store.thread));
    const fresh = keyed(list, store.thread ? threadItems(store.thread) : []);
    if (fresh.length) scroll.scrollTop = scroll.scrollHeight;
    if (store.thread && shown !== store.thread) line.focus();
    shown = store.thread;
  });
}
