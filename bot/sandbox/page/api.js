// Talks to the sandbox server. Never keeps what it read: that is the store's.

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new ApiError("The sandbox does not answer. Is it still running?", 0);
  }
  const body = await response.json().catch(() => null);
  if (response.ok) return body ?? {};
  const said = body?.error ?? `The sandbox answered ${response.status}`;
  throw new ApiError(typeof said === "string" ? said : JSON.stringify(said), response.status);
}

function post(path, body = {}) {
  return ask(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

const query = (values) => new URLSearchParams(values).toString();
const phone = (number, verb) => `/sandbox/phones/${encodeURIComponent(number)}/${verb}`;

export const api = {
  state: () => ask("/sandbox/state"),
  messages: (channel, user) => ask(`/sandbox/messages?${query({ channel, user })}`),
  views: (user) => ask(`/sandbox/views?${query({ user })}`),
  phones: () => ask("/sandbox/phones"),
  onCall: () => ask("/sandbox/oncall"),
  command: (body) => post("/sandbox/command", body),
  click: (body) => post("/sandbox/click", body),
  submit: (body) => post("/sandbox/submit", body),
  close: (body) => post("/sandbox/close", body),
  home: (body) => post("/sandbox/home", body),
  remove: (channel, ts) => ask(`/sandbox/messages?${query({ channel, ts })}`, { method: "DELETE" }),
  fault: (target, kind, for_s) => post("/sandbox/fault", { target, kind, for_s }),
  advance: (seconds) => post("/sandbox/advance", { seconds }),
  alert: (body) => post("/sandbox/alert", body),
  reply: (number, text) => post(phone(number, "reply"), { text }),
  mode: (number, mode) => post(phone(number, "mode"), { mode }),
  press: (number, digits) => post(phone(number, "press"), { digits }),
  call: (number, verb) => post(phone(number, verb)), // answer, hangup, decline, voicemail
};

// Calls back with the topics that changed, and with null whenever the stream is (re)opened: what
// happened in between is unknown, so everything is read again.
export function listen(onChange, onConnection) {
  const stream = new EventSource("/sandbox/stream");
  stream.onopen = () => {
    onConnection(true);
    onChange(null);
  };
  stream.onerror = () => onConnection(false);
  stream.onmessage = (event) => {
    try {
      onChange(JSON.parse(event.data).changed ?? []);
    } catch {
      onChange(null);
    }
  };
  return stream;
}
