// One message as Slack shows it: who, when, its blocks and attachments, what can be done with it. Never knows
// its neighbours.

import { api } from "./api.js";
import { blocks } from "./blocks.js";
import { during } from "./dialog.js";
import { avatar, h, icon } from "./dom.js";
import { withEmoji } from "./emoji.js";
import { menuButton } from "./menu.js";
import { mrkdwn } from "./mrkdwn.js";
import { store } from "./store.js";
import { clockTime, instant, shortDay } from "./time.js";

function author(message, context) {
  const user = context.users.get(message.user);
  const bot = message.bot || user?.kind === "bot";
  const name = (bot && message.username) || user?.real_name || user?.name || message.user;
  return { ...user, name, real_name: name, kind: bot && user ? "bot" : user?.kind, app: bot };
}

export function messageNode(message, { context, compact = false, replies = [] }) {
  const who = author(message, context);
  const at = instant(message.ts);
  const time = h(
    "time",
    {
      class: "m-time",
      datetime: new Date(at).toISOString(),
      title: `${shortDay(at, context.zone)} ${clockTime(at, context.zone, true)}`,
    },
    clockTime(at, context.zone),
  );
  const surface = { act: (action) => act(message, action) };
  const private_ = Boolean(message.ephemeral_to);
  return h(
    "article",
    {
      class: `message${compact ? " compact" : ""}${private_ ? " ephemeral" : ""}${message.deleted ? " deleted" : ""}`,
      "aria-label": `${who.name}, ${clockTime(at, context.zone)}`,
      data: { testid: "message", ts: message.ts },
    },
    h("div", { class: "m-left" }, compact ? time : avatar(who)),
    h(
      "div",
      { class: "m-main" },
      private_ && h("p", { class: "m-private" }, icon("eye"), "Only visible to you"),
      !compact &&
        h(
          "header",
          { class: "m-head" },
          h("strong", { class: "m-name" }, who.name),
          who.app && h("span", { class: "tag" }, "APP"),
          time,
        ),
      body(message, surface, context),
      reactions(message),
      threadLink(message, replies, context),
    ),
    !private_ && !message.deleted && tools(message),
  );
}

// What Slack offers on any message: a deleted card shows that Midwatch posts it again.
function tools(message) {
  const reply = h(
    "button",
    {
      class: "icon-button",
      type: "button",
      title: "Reply in thread",
      "aria-label": "Reply in thread",
      onclick: () => store.openThread(message.thread_ts || message.ts),
    },
    icon("thread"),
  );
  const more = h(
    "button",
    { class: "icon-button", type: "button", title: "More", "aria-label": "More about this message" },
    icon("dots"),
  );
  const remove = () => during(more, () => api.remove(message.channel, message.ts));
  return h(
    "div",
    { class: "m-tools" },
    reply,
    menuButton(more, [{ label: "Delete message", danger: true, pick: remove }]),
  );
}

function act(message, action) {
  return api.click({
    user: store.me,
    channel: message.channel ?? store.channel?.id,
    ts: message.ts,
    ...action,
  });
}

function body(message, surface, context) {
  const edited =
    message.edited && !message.deleted
      ? h("span", { class: "edited", title: "This message was changed" }, " (edited)")
      : null;
  const main = message.blocks?.length
    ? h("div", { class: "m-blocks" }, blocks(message.blocks, surface, context))
    : message.text && h("div", { class: "m-text" }, mrkdwn(message.text, context), edited);
  const shown = (message.attachments ?? []).map((each) => attachment(each, surface, context));
  shown.push(...(message.files ?? []).map(file));
  return [main, shown, (message.blocks?.length || !message.text) && edited];
}

const COLORS = { good: "#2f9e63", warning: "#d99a1c", danger: "#d43f3a" };

function attachment(each, surface, context) {
  const bar = h("div", { class: "a-bar" });
  const wanted =
    COLORS[each.color] ?? (String(each.color ?? "").startsWith("#") ? each.color : `#${each.color ?? ""}`);
  if (/^#[0-9a-f]{3,8}$/i.test(wanted)) bar.style.backgroundColor = wanted;
  const inside = each.blocks?.length
    ? blocks(each.blocks, surface, context)
    : h("p", { class: "m-text" }, mrkdwn(each.text ?? each.fallback, context));
  return h("div", { class: "attachment" }, bar, h("div", { class: "a-body" }, inside));
}

// What was uploaded: pictures are shown as Slack shows them, at most as wide as the message, whole on a click.
function file(each) {
  const words = each.alt_txt || each.title;
  const picture = each.mimetype.startsWith("image/")
    ? h("img", { class: "f-image", src: each.url_private, alt: words, loading: "lazy", data: { testid: "file" } })
    : each.title;
  return h(
    "figure",
    { class: "file" },
    h("figcaption", {}, each.title),
    h("a", { href: each.url_private, target: "_blank", rel: "noopener" }, picture),
  );
}

function reactions(message) {
  if (!message.reactions?.length) return null;
  return h(
    "div",
    { class: "reactions" },
    message.reactions.map((each) =>
      h(
        "span",
        { class: "reaction", title: each.name },
        withEmoji(`:${each.name}:`),
        " ",
        each.count ?? each.users?.length ?? 1,
      ),
    ),
  );
}

function threadLink(message, replies, context) {
  if (!replies.length) return null;
  const last = clockTime(instant(replies.at(-1).ts), context.zone);
  return h(
    "button",
    {
      class: "thread-link",
      type: "button",
      data: { testid: "thread-open" },
      onclick: () => store.openThread(message.ts),
    },
    icon("thread"),
    h("strong", {}, replies.length === 1 ? "1 reply" : `${replies.length} replies`),
    h("span", {}, `last at ${last}`),
  );
}
