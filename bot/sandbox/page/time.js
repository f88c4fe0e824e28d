// Instants, zones and durations as people read them. Never asks what time it is: `now` is the sandbox's.

const formats = new Map();

function parts(ms, zone, options) {
  const key = `${zone}|${JSON.stringify(options)}`;
  if (!formats.has(key)) {
    let format;
    try {
      format = new Intl.DateTimeFormat("en-GB", { timeZone: zone || "UTC", ...options });
    } catch {
      format = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options });
    }
    formats.set(key, format);
  }
  return Object.fromEntries(
    formats
      .get(key)
      .formatToParts(ms)
      .map((part) => [part.type, part.value]),
  );
}

// Seconds (also as Slack's "1700000000.000100"), milliseconds or ISO 8601, to milliseconds.
export function instant(value) {
  const number = Number(value);
  if (value !== null && value !== "" && Number.isFinite(number))
    return number > 1e11 ? number : number * 1000;
  const parsed = Date.parse(value);
  return Number.isNaN(parsed) ? 0 : parsed;
}

export function clockTime(ms, zone, seconds = false) {
  const p = parts(ms, zone, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  return seconds ? `${p.hour}:${p.minute}:${p.second}` : `${p.hour}:${p.minute}`;
}

export function shortDay(ms, zone) {
  const p = parts(ms, zone, { weekday: "short", day: "numeric", month: "short" });
  return `${p.weekday} ${p.day} ${p.month}`;
}

export function dayNumber(ms, zone) {
  const p = parts(ms, zone, { year: "numeric", month: "2-digit", day: "2-digit" });
  return `${p.year}-${p.month}-${p.day}`;
}

export function zoneName(ms, zone) {
  const city = (zone || "UTC").split("/").pop().replaceAll("_", " ");
  const short = parts(ms, zone, { timeZoneName: "short" }).timeZoneName;
  return city === short ? city : `${city}, ${short}`;
}

function relativeDay(ms, zone, now) {
  const day = dayNumber(ms, zone);
  const names = [
    ["today", 0],
    ["yesterday", -1],
    ["tomorrow", 1],
  ];
  return names.find(([, shift]) => day === dayNumber(now + shift * 86_400_000, zone))?.[0];
}

export function dayTitle(ms, zone, now) {
  const p = parts(ms, zone, { weekday: "long", day: "numeric", month: "long" });
  const near = relativeDay(ms, zone, now);
  return near ? near[0].toUpperCase() + near.slice(1) : `${p.weekday}, ${p.day} ${p.month}`;
}

export function ago(ms, now) {
  const seconds = Math.round((now - ms) / 1000);
  const words = duration(Math.abs(seconds));
  return seconds < 0 ? `in ${words}` : `${words} ago`;
}

export function duration(seconds) {
  const units = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  const said = [];
  let rest = Math.max(0, Math.round(seconds));
  for (const [name, size] of units) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count && said.length < 2) said.push(`${count} ${name}`);
  }
  return said.join(" ") || "0 s";
}

// "2h", "1h30m", "90s", "45 min"; a bare number is minutes. Null when it is none of these.
export function parseDuration(text) {
  const sizes = { d: 86400, h: 3600, m: 60, s: 1 };
  const clean = text.trim().toLowerCase();
  if (/^\d+(\.\d+)?$/.test(clean)) return Math.round(Number(clean) * 60);
  if (!/^(\d+(\.\d+)?\s*(d(ays?)?|h(ours?)?|m(in(utes?)?)?|s(ec(onds?)?)?)\s*)+$/.test(clean)) return null;
  const found = [...clean.matchAll(/(\d+(?:\.\d+)?)\s*([dhms])/g)];
  return Math.round(found.reduce((sum, [, count, unit]) => sum + Number(count) * sizes[unit], 0));
}

// What Slack makes of <!date^…^pattern|…>.
export function slackDate(ms, pattern, zone, now) {
  const long = parts(ms, zone, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
  const short = parts(ms, zone, { month: "short" }).month;
  const near = relativeDay(ms, zone, now);
  const dates = {
    date: `${long.month} ${long.day}, ${long.year}`,
    date_short: `${short} ${long.day}, ${long.year}`,
    date_long: `${long.weekday}, ${long.month} ${long.day}, ${long.year}`,
    date_num: dayNumber(ms, zone),
    time: clockTime(ms, zone),
    time_secs: clockTime(ms, zone, true),
    ago: ago(ms, now),
  };
  return pattern.replace(/\{(\w+?)(_pretty)?\}/g, (whole, name, pretty) =>
    pretty && near ? near : (dates[name] ?? whole),
  );
}

// The epoch seconds at which a clock in `zone` shows "2026-03-01T09:30"; null when it is not a time.
export function zonedSeconds(text, zone) {
  const wanted = Date.parse(`${text}Z`);
  if (Number.isNaN(wanted)) return null;
  let guess = wanted;
  for (let round = 0; round < 2; round += 1) guess += wanted - Date.parse(`${localText(guess, zone)}Z`);
  return Math.round(guess / 1000);
}

export function localText(ms, zone) {
  return `${dayNumber(ms, zone)}T${clockTime(ms, zone)}`;
}
