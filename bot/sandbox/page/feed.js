// The list of messages in the middle of the page, the Home, and what stands there while it is empty. Never
// draws a message itself.

import { api } from "./api.js";
import { blocks } from "./blocks.js";
import { during } from "./dialog.js";
import { fill, h, icon, keyed } from "./dom.js";
import { messageNode } from "./message.js";
import { store } from "./store.js";
import { dayNumber, dayTitle, instant } from "./time.js";
import { welcome } from "./welcome.js";

const TOGETHER_MS = 5 * 60_000;
const NEAR_PX = 120;

const isReply = (message) => message.thread_ts && message.thread_ts !== message.ts;

// Everything a drawn message depends on; when none of it changed, its node stays.
function signature(message, context, extra) {
  const today = dayNumber(context.now, context.zone);
  return JSON.stringify([message, context.me, context.zone, context.users.size, today, extra]);
}

export function threadItems(root) {
  const list = store.list().filter((each) => each.ts === root || each.thread_ts === root);
  const context = store.context;
  return list
    .filter((each) => !each.deleted || each.ts === root)
    .map((message) => ({
      key: message.ts,
      signature: signature(message, context),
      build: () => messageNode(message, { context }),
    }));
}

function repliesByRoot() {
  const roots = new Map();
  for (const message of store.list())
    if (isReply(message) && !message.deleted)
      roots.set(message.thread_ts, [...(roots.get(message.thread_ts) ?? []), message]);
  return roots;
}

function feedItems() {
  const context = store.context;
  const replies = repliesByRoot();
  const list = store.list().filter((each) => !each.deleted || replies.has(each.ts));
  const items = [];
  let before = null;
  for (const message of list) {
    if (isReply(message) && !message.ephemeral_to) continue;
    const at = instant(message.ts);
    const day = dayNumber(at, context.zone);
    const newDay = !before || dayNumber(instant(before.ts), context.zone) !== day;
    if (newDay) items.push(dayItem(day, at, context));
    const compact = !newDay && follows(before, message);
    const answers = replies.get(message.ts) ?? [];
    items.push({
      key: message.ts,
      signature: signature(message, context, [compact, answers.map((each) => each.ts)]),
      build: () => messageNode(message, { context, compact, replies: answers }),
    });
    before = message;
  }
  return items;
}

function dayItem(day, at, context) {
  const title = dayTitle(at, context.zone, context.now);
  return {
    key: `day ${day}`,
    signature: title,
    build: () => h("div", { class: "day", role: "separator" }, h("span", {}, title)),
  };
}

function follows(before, message) {
  const plain =
    !before.ephemeral_to && !message.ephemeral_to && !message.attachments?.length && !message.blocks?.length;
  return (
    plain &&
    before.user === message.user &&
    before.username === message.username &&
    instant(message.ts) - instant(before.ts) < TOGETHER_MS
  );
}

class Feed {
  place = null;
  stuck = true; // to the end, also when the page or a card changes its size

  constructor(root) {
    this.root = root;
    this.list = h("div", {
      class: "feed-list",
      role: "log",
      "aria-live": "polite",
      "aria-label": "Messages",
      data: { testid: "feed" },
    });
    this.home = h("div", { class: "home", hidden: true, data: { testid: "home" } });
    this.empty = h("div", { class: "feed-empty" });
    const down = { class: "jump", type: "button", hidden: true, onclick: () => this.toEnd("smooth") };
    this.jump = h("button", down, "New messages", icon("chevron"));
    fill(root, h("div", { class: "feed-inner" }, this.empty, this.list, this.home), this.jump);
    root.addEventListener("scroll", () => this.scrolled(), { passive: true });
    const resized = new ResizeObserver(() => this.stuck && this.toEnd());
    resized.observe(root);
    resized.observe(this.list);
  }

  // The Home and the welcome are read from their beginning.
  toEnd(behavior = "instant") {
    const short = this.list.hidden || !this.list.children.length;
    this.root.scrollTo({ top: short ? 0 : this.root.scrollHeight, behavior });
  }

  scrolled() {
    this.stuck = this.root.scrollHeight - this.root.scrollTop - this.root.clientHeight < NEAR_PX;
    if (this.stuck) this.jump.hidden = true;
  }

  moved() {
    const here = `${store.me} ${store.channel?.id}`;
    if (here === this.place) return;
    this.place = here;
    this.stuck = true;
    this.jump.hidden = true;
    keyed(this.list, []);
  }

  draw() {
    this.moved();
    const onHome = store.inDm && store.tab === "home";
    this.list.hidden = this.empty.hidden = onHome;
    this.home.hidden = !onHome;
    const fresh = keyed(this.list, feedItems());
    drawEmpty(this.empty);
    if (this.stuck) requestAnimationFrame(() => this.toEnd());
    else if (fresh.some((node) => node.matches("article"))) this.jump.hidden = false;
  }
}

export function feed(root) {
  const part = new Feed(root);
  store.on(["messages", "place", "me", "state", "oncall"], () => part.draw());
  store.on(["views", "place"], () => drawHome(part.home));
}

function drawEmpty(root) {
  const has = store.list().some((each) => !each.deleted);
  const about = [store.place, store.me, store.state.midwatch?.url, store.user()?.name, store.onCall.people];
  const sign = JSON.stringify([has, about]);
  if (root.dataset.sign === sign) return;
  root.dataset.sign = sign;
  fill(root, has || !store.ready ? null : welcome());
}

function drawHome(root) {
  const view = store.views.home;
  const surface = { act: (action) => api.click({ user: store.me, view_id: view.id, ...action }) };
  if (view) fill(root, blocks(view.blocks, surface, store.context));
  else fill(root, h("p", { class: "quiet" }, "Midwatch has not published a Home for you yet."));
}

// Slack tells the app when somebody looks at its Home, and the app publishes it then.
export function openHome(button) {
  store.openTab("home");
  return during(button, () => api.home({ user: store.me }));
}
