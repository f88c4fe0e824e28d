// What a newcomer sees in an empty channel: what this is and three things to try. Never posts by itself.

import { api } from "./api.js";
import { during, toast } from "./dialog.js";
import { h, icon } from "./dom.js";
import { store } from "./store.js";

const ALERT = {
  action: "trigger",
  dedup_key: "disk-db1",
  summary: "Disk full on db-1",
  severity: "critical",
};
const gone = { alerts: false }; // a sandbox that runs without Midwatch's key cannot post alerts

function curl() {
  const url = store.state.midwatch?.url || "http://127.0.0.1:8080";
  return [
    `curl -X POST ${url.replace(/\/$/, "")}/v1/events`,
    "-H 'Authorization: Bearer demo' -H 'Content-Type: application/json'",
    `-d '${JSON.stringify(ALERT)}'`,
  ].join(" \\\n  ");
}

async function copy(text, source, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren(source); // no clipboard without https: leave it selected
    if (!document.execCommand("copy")) return;
  }
  button.replaceChildren(icon("check"), "Copied");
  setTimeout(() => button.replaceChildren(icon("copy"), "Copy"), 1600);
}

function alertButton() {
  const button = h(
    "button",
    { class: "btn btn-primary", type: "button", hidden: gone.alerts, data: { testid: "send-alert" } },
    icon("bolt"),
    h("span", {}, "Send a test alert"),
  );
  button.addEventListener("click", () =>
    during(button, async () => {
      try {
        await api.alert(ALERT);
        button.closest("dialog")?.close();
        toast("Sent: the card follows in a moment.", "good");
      } catch (error) {
        if (error.status !== 404) throw error;
        gone.alerts = true;
        for (const each of document.querySelectorAll("[data-testid=send-alert]")) each.hidden = true;
        toast("This sandbox cannot post alerts itself: use the curl line.");
      }
    }),
  );
  return button;
}

const step = (title, ...rest) => h("li", {}, h("strong", {}, title), h("span", {}, rest));
const key = (text) => h("code", { class: "mrk-code" }, text);

function curlBox() {
  const code = h("code", { data: { testid: "curl" } }, curl());
  const button = h("button", { class: "btn btn-small", type: "button" }, icon("copy"), "Copy");
  button.addEventListener("click", () => copy(code.textContent, code, button));
  return h(
    "div",
    { class: "curl" },
    h("div", { class: "curl-head" }, h("p", {}, "The same from a shell:"), button),
    h("pre", { tabindex: "0", "aria-label": "curl line that posts an alert" }, code),
  );
}

// Who gets the page, and whom to be to answer it.
function whoIsPaged() {
  const { people } = store.onCall;
  const me = store.user()?.name;
  if (!people.length) return "";
  if (people.includes(me)) return `You are ${me}, who is on call: the page comes to you.`;
  return `${people.join(" and ")} will be paged: be ${people[0]} to answer (“You are”, above the channels).`;
}

function guide() {
  return [
    h(
      "p",
      {},
      "A Slack workspace and a phone company that live on this machine. Midwatch runs against them as it would against the real ones: be anybody, in any channel, and see what they would see.",
    ),
    h("div", { class: "welcome-actions" }, alertButton(), h("p", {}, whoIsPaged())),
    h(
      "ol",
      { class: "steps" },
      step(
        "Let something break.",
        "Post an alert; its card appears in the channel, and whoever is on call gets a direct message.",
      ),
      step(
        "Let time pass.",
        "Nobody answered? Move the clock above: the phone on the right gets an SMS, then it rings, then the next person is paged.",
      ),
      step(
        "Answer.",
        "Press Ack on the card, type ",
        key("/oncall ack 1"),
        ", reply 4 by SMS or press 4 in the call. All of it stops, and the card says who, how and when.",
      ),
      step("Break Slack.", "Switch it off above and send another alert: the phone takes over by itself."),
    ),
    curlBox(),
  ];
}

export function welcome() {
  if (!store.inDm)
    return h(
      "section",
      { class: "welcome", data: { testid: "welcome" } },
      h("h2", {}, `#${store.channel?.name ?? ""} is quiet so far`),
      guide(),
    );
  const name = store.user()?.name ?? "you";
  return h(
    "section",
    { class: "welcome short" },
    h("h2", {}, `Midwatch and ${name}`),
    h(
      "p",
      {},
      `When ${name} is paged, the incident appears here with the same buttons as in the channel. Commands work here too.`,
    ),
  );
}

export function showHelp() {
  const dialog = h(
    "dialog",
    { class: "modal", "aria-labelledby": "help-title" },
    h(
      "header",
      { class: "modal-head" },
      h("h2", { class: "modal-title", id: "help-title" }, "How to try Midwatch"),
      h(
        "button",
        { class: "icon-button", type: "button", "aria-label": "Close", onclick: () => dialog.close() },
        icon("close"),
      ),
    ),
    h("div", { class: "modal-body welcome" }, guide()),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
