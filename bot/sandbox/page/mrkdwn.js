// Slack's mrkdwn as nodes. Never makes markup from text, and no link that is not http(s) or mailto.

import { h } from "./dom.js";
import { withEmoji } from "./emoji.js";
import { instant, slackDate } from "./time.js";

const SCHEMES = new Set(["http:", "https:", "mailto:"]);

export function safeUrl(text) {
  try {
    const url = new URL(text);
    return SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

export function decode(text) {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

// `context` knows what the reader knows: users, channels, me, zone, now and openChannel(id).
export function mrkdwn(text, context) {
  const pieces = String(text ?? "")
    .replace(/[\uE000\uE001]/g, "")
    .split(/```\n?([\s\S]*?)\n?```/);
  return pieces.flatMap((piece, index) => (index % 2 ? [pre(piece, context)] : quotes(piece, context)));
}

export function plain(text) {
  return withEmoji(String(text ?? ""));
}

// A text object of Block Kit, whichever kind it is.
export function textObject(object, context) {
  if (!object) return [];
  if (object.type === "mrkdwn") return mrkdwn(object.text, context);
  return [h("span", { class: "plain" }, object.emoji === false ? object.text : plain(object.text))];
}

function pre(text, context) {
  return h(
    "pre",
    { class: "mrk-pre" },
    text.split(/(<[^<>\n]+>)/).map((part) => flat(part, context)),
  );
}

function flat(part, context) {
  return /^<[^<>\n]+>$/.test(part) ? angle(part.slice(1, -1), context) : decode(part);
}

function quotes(text, context) {
  const nodes = [];
  let quote = null;
  text.split("\n").forEach((line, index) => {
    const quoted = /^(?:&gt;|>)\s?(.*)$/.exec(line);
    if (quoted && !quote) nodes.push((quote = h("blockquote", { class: "mrk-quote" })));
    else if (quoted) quote.append(h("br"));
    else if (index && !quote) nodes.push(h("br"));
    if (quoted) quote.append(...inline(quoted[1], context));
    else {
      quote = null;
      nodes.push(...inline(line, context));
    }
  });
  return nodes;
}

// Code and <…> first become single characters of the private area, so that formatting sees neither their
// insides nor their stars.
function inline(text, context) {
  const kept = [];
  const keep = (node) => `\uE000${kept.push(node) - 1}\uE001`;
  const bare = text
    .replace(/`([^`\n]+)`/g, (_, code) => keep(h("code", { class: "mrk-code" }, codeText(code, context))))
    .replace(/<([^<>\n]+)>/g, (_, body) => keep(angle(body, context)));
  return format(bare, kept);
}

function codeText(code, context) {
  return code.split(/(<[^<>\n]+>)/).map((part) => flat(part, context));
}

const MARKS = /(?<![\p{L}\p{N}*_~])([*_~])(?=\S)((?:(?!\1).)*?\S)\1(?![\p{L}\p{N}*_~])/u;
const TAGS = { "*": "strong", _: "em", "~": "s" };

function format(text, kept) {
  const nodes = [];
  let rest = text;
  for (let found = MARKS.exec(rest); found; found = MARKS.exec(rest)) {
    const [whole, mark, inner] = found;
    nodes.push(...leaves(rest.slice(0, found.index), kept), h(TAGS[mark], {}, format(inner, kept)));
    rest = rest.slice(found.index + whole.length);
  }
  nodes.push(...leaves(rest, kept));
  return nodes;
}

function leaves(text, kept) {
  return text
    .split(/(\uE000\d+\uE001)/)
    .filter((part) => part !== "")
    .map((part) => (part.startsWith("\uE000") ? kept[Number(part.slice(1, -1))] : withEmoji(decode(part))));
}

// The inside of <…>: a mention, a date or a link.
function angle(body, context) {
  const bar = body.indexOf("|");
  const target = bar < 0 ? body : body.slice(0, bar);
  const label = bar < 0 ? null : decode(body.slice(bar + 1));
  if (target.startsWith("@")) return mention(target.slice(1), label, context);
  if (target.startsWith("#")) return channelLink(target.slice(1), label, context);
  if (target.startsWith("!date^")) return dateNode(target, label, context);
  if (target.startsWith("!")) return broadcast(target.slice(1), label);
  return link(decode(target), label);
}

function mention(id, label, context) {
  const name = context.users.get(id)?.name ?? label ?? id;
  return h(
    "span",
    { class: id === context.me ? "mention mention-me" : "mention" },
    `@${name.replace(/^@/, "")}`,
  );
}

function channelLink(id, label, context) {
  const name = context.channels.get(id)?.name ?? label;
  if (!name) return h("span", { class: "mention" }, "#private");
  if (!context.channels.has(id)) return h("span", { class: "mention" }, `#${name}`);
  return h(
    "button",
    { class: "mention mention-link", type: "button", onclick: () => context.openChannel(id) },
    `#${name}`,
  );
}

function broadcast(word, label) {
  const group = word.startsWith("subteam^");
  const name = group ? (label ?? "group").replace(/^@/, "") : word.split("^")[0];
  return h("span", { class: group ? "mention" : "mention mention-me" }, `@${name}`);
}

function dateNode(target, label, context) {
  const [, stamp, pattern = "{date} {time}", url] = target.split("^");
  const ms = instant(stamp);
  const text = ms ? slackDate(ms, decode(pattern), context.zone, context.now) : (label ?? stamp);
  const node = h("time", { datetime: ms ? new Date(ms).toISOString() : null, title: label }, text);
  return url && safeUrl(url) ? link(url, text) : node;
}

export function link(target, label) {
  const url = safeUrl(target);
  const text = withEmoji(label || target.replace(/^mailto:/, ""));
  if (!url && !label) return `<${text}>`; // not a link at all: somebody's angle brackets
  if (!url) return h("span", { class: "dead-link", title: "Not a web address" }, text);
  return h("a", { href: url, target: "_blank", rel: "noopener noreferrer nofollow" }, text);
}
