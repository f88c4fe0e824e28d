// Toasts and yes-or-no questions. Never asks twice at once.

import { h, icon } from "./dom.js";
import { textObject } from "./mrkdwn.js";

export function toast(text, kind = "bad") {
  const shelf = document.getElementById("toasts");
  const note = h(
    "div",
    { class: `toast toast-${kind}` },
    h("span", {}, text),
    h(
      "button",
      { class: "icon-button", type: "button", "aria-label": "Dismiss", onclick: () => note.remove() },
      icon("close"),
    ),
  );
  shelf.append(note);
  while (shelf.children.length > 3) shelf.firstChild.remove();
  if (shelf.matches(":popover-open")) shelf.hidePopover();
  shelf.showPopover(); // once more, so that it lies above a modal that was opened since
  setTimeout(() => note.remove(), kind === "bad" ? 9000 : 4000);
}

// Runs what a control does: the control is busy meanwhile, and a refusal is shown instead of thrown.
export async function during(control, work) {
  control?.setAttribute("aria-busy", "true");
  try {
    return await work();
  } catch (error) {
    toast(error.message);
    return null;
  } finally {
    control?.removeAttribute("aria-busy");
  }
}

// A confirm object of Block Kit; resolves to whether it was confirmed.
export function confirmed(question, context) {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { class: "modal confirm", "aria-labelledby": "confirm-title" },
      h(
        "form",
        { method: "dialog" },
        h("h2", { class: "modal-title", id: "confirm-title" }, textObject(question.title, context)),
        h("div", { class: "modal-body" }, h("p", {}, textObject(question.text, context))),
        h(
          "footer",
          { class: "modal-foot" },
          h(
            "button",
            { class: "btn", value: "no", data: { testid: "confirm-deny" } },
            question.deny?.text ?? "Cancel",
          ),
          h(
            "button",
            {
              class: `btn btn-${question.style === "danger" ? "danger" : "primary"}`,
              value: "yes",
              autofocus: true,
              data: { testid: "confirm-accept" },
            },
            question.confirm?.text ?? "Yes",
          ),
        ),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
