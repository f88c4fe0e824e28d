// One message as Slack shows it, and the list of them in the middle of the page. Never sends text.

import { api } from "./api.js";
import { blocks } from "./blocks.js";
import { during } from "./dialog.js";
import { avatar, fill, h, icon, keyed } from "./dom.js";
import { withEmoji } from "./emoji.js";
import { menuButton } from "./menu.js";
import { mrkdwn } from "./mrkdwn.js";
import { store } from "./store.js";
import { clockTime, dayNumber, dayTitle, instant, shortDay } from "./time.js";
import { welcome } from "./welcome.js";

const TOGETHER_MS = 5 * 60_000;

function author(message, context) {
  const user = context.users.get(message.user);
  const bot = message.bot || user?.kind === "bot";
  const name = (bot && message.username) || user?.real_name || user?.name || message.user;
  return { ...user, name, real_name: name, kind: bot && user ? "bot" : user?.kind, app: bot };
}

export function messageNode(message, { context, compact = false, replies = [] }) {
  const who = author(message, context);
  const at = instant(message.ts);
  const time = h("time", { class: "m-time", datetime: new Date(at).toISOString(), title: `${shortDay(at, context.zone)} ${clockTime(at, context.zone, true)}` },
    clockTime(at, context.zone));
  const surface = { act: (action) => act(message, action) };
  const private_ = Boolean(message.ephemeral_to);
  return h("article", { class: `message${compact ? " compact" : ""}${private_ ? " ephemeral" : ""}${message.deleted ? " deleted" : ""}`, "aria-label": `${who.name}, ${clockTime(at, context.zone)}`,
    data: { testid: "message", ts: message.ts } },
    h("div", { class: "m-left" }, compact ? time : avatar(who)),
    h("div", { class: "m-main" },
      private_ && h("p", { class: "m-private" }, icon("eye"), "Only visible to you"),
      !compact && h("header", { class: "m-head" }, h("strong", { class: "m-name" }, who.name), who.app && h("span", { class: "tag" }, "APP"), time),
      body(message, surface, context),
      reactions(message),
      threadLink(message, replies, context)),
    !private_ && !message.deleted && tools(message));
}

// What Slack offers on any message: a deleted card shows that Midwatch posts it again.
function tools(message) {
  const reply = h("button", { class: "icon-button", type: "button", title: "Reply in thread", "aria-label": "Reply in thread",
    onclick: () => store.openThread(message.thread_ts || message.ts) }, icon("thread"));
  const more = h("button", { class: "icon-button", type: "button", title: "More", "aria-label": "More about this message" }, icon("dots"));
  const remove = () => during(more, () => api.remove(message.channel, message.ts));
  return h("div", { class: "m-tools" }, reply, menuButton(more, [{ label: "Delete message", danger: true, pick: remove }]));
}

function act(message, action) {
  return api.click({ user: store.me, channel: message.channel ?? store.channel?.id, ts: message.ts, ...action });
}

function body(message, surface, context) {
  const edited = message.edited && !message.deleted ? h("span", { class: "edited", title: "This message was changed" }, " (edited)") : null;
  const main = message.blocks?.length
    ? h("div", { class: "m-blocks" }, blocks(message.blocks, surface, context))
    : message.text && h("div", { class: "m-text" }, mrkdwn(message.text, context), edited);
  const shown = (message.attachments ?? []).map((each) => attachment(each, surface, context));
  return [main, shown, (message.blocks?.length || !message.text) && edited];
}

const COLORS = { good: "#2f9e63", warning: "#d99a1c", danger: "#d43f3a" };

function attachment(each, surface, context) {
  const bar = h("div", { class: "a-bar" });
  const wanted = COLORS[each.color] ?? (String(each.color ?? "").startsWith("#") ? each.color : `#${each.color ?? ""}`);
  if (/^#[0-9a-f]{3,8}$/i.test(wanted)) bar.style.backgroundColor = wanted;
  const inside = each.blocks?.length ? blocks(each.blocks, surface, context) : h("p", { class: "m-text" }, mrkdwn(each.text ?? each.fallback, context));
  return h("div", { class: "attachment" }, bar, h("div", { class: "a-body" }, inside));
}

function reactions(message) {
  if (!message.reactions?.length) return null;
  return h("div", { class: "reactions" }, message.reactions.map((each) =>
    h("span", { class: "reaction", title: each.name }, withEmoji(`:${each.name}:`), " ", each.count ?? each.users?.length ?? 1)));
}

function threadLink(message, replies, context) {
  if (!replies.length) return null;
  const last = clockTime(instant(replies.at(-1).ts), context.zone);
  return h("button", { class: "thread-link", type: "button", data: { testid: "thread-open" }, onclick: () => store.openThread(message.ts) },
    icon("thread"), h("strong", {}, replies.length === 1 ? "1 reply" : `${replies.length} replies`), h("span", {}, `last at ${last}`));
}

const isReply = (message) => message.thread_ts && message.thread_ts !== message.ts;

// Everything a drawn message depends on; when none of it changed, its node stays.
function signature(message, context, extra) {
  return JSON.stringify([message, context.me, context.zone, context.users.size, extra]);
}

export function threadItems(root) {
  const list = store.list().filter((each) => each.ts === root || each.thread_ts === root);
  const context = store.context;
  return list.filter((each) => !each.deleted || each.ts === root).map((message) => ({
    key: message.ts, signature: signature(message, context), build: () => messageNode(message, { context }),
  }));
}

function repliesByRoot() {
  const roots = new Map();
  for (const message of store.list())
    if (isReply(message) && !message.deleted) roots.set(message.thread_ts, [...(roots.get(message.thread_ts) ?? []), message]);
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
    items.push({ key: message.ts, signature: signature(message, context, [compact, answers.map((each) => each.ts)]),
      build: () => messageNode(message, { context, compact, replies: answers }) });
    before = message;
  }
  return items;
}

function dayItem(day, at, context) {
  const title = dayTitle(at, context.zone, context.now);
  return { key: `day ${day}`, signature: title, build: () => h("div", { class: "day", role: "separator" }, h("span", {}, title)) };
}

function follows(before, message) {
  const plain = !before.ephemeral_to && !message.ephemeral_to && !message.attachments?.length && !message.blocks?.length;
  return plain && before.user === message.user && before.username === message.username
    && instant(message.ts) - instant(before.ts) < TOGETHER_MS;
}

export function feed(root) {
  const list = h("div", { class: "feed-list", role: "log", "aria-live": "polite", "aria-label": "Messages", data: { testid: "feed" } });
  const home = h("div", { class: "home", hidden: true, data: { testid: "home" } });
  const empty = h("div", { class: "feed-empty" });
  const jump = h("button", { class: "jump", type: "button", hidden: true, onclick: () => bottom(true) }, "New messages", icon("chevron"));
  fill(root, h("div", { class: "feed-inner" }, empty, list, home), jump);
  let place = null;
  const bottom = (smooth) => {
    const read = list.hidden || !list.children.length; // the Home and the welcome are read from their beginning
    root.scrollTo({ top: read ? 0 : root.scrollHeight, behavior: smooth ? "smooth" : "instant" });
  };
  let stuck = true; // to the end, also when the page or a card changes its size
  root.addEventListener("scroll", () => {
    stuck = root.scrollHeight - root.scrollTop - root.clientHeight < 120;
    if (stuck) jump.hidden = true;
  }, { passive: true });
  const resized = new ResizeObserver(() => stuck && bottom(false));
  resized.observe(root);
  resized.observe(list);

  function draw() {
    const here = `${store.me} ${store.channel?.id}`;
    const moved = here !== place;
    if (moved) {
      keyed(list, []);
      stuck = true;
      jump.hidden = true;
    }
    place = here;
    const onHome = store.inDm && store.tab === "home";
    list.hidden = empty.hidden = onHome;
    home.hidden = !onHome;
    const fresh = keyed(list, feedItems());
    drawEmpty(empty);
    if (stuck) requestAnimationFrame(() => bottom(false));
    else if (fresh.some((node) => node.matches("article"))) jump.hidden = false;
  }

  store.on(["messages", "place", "me", "state"], draw);
  store.on(["views", "place"], () => drawHome(home));
}

function drawEmpty(root) {
  const has = store.list().some((each) => !each.deleted);
  const sign = JSON.stringify([has, store.place, store.me, store.state.midwatch?.url, store.user()?.name]);
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
  return during(button, () => api.home({ user: store.me }).catch((error) => {
    if (error.status !== 404) throw error;
  }));
}
