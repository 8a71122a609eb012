// Number formats and DOM helpers shared by the charts.

const NUMBERS = new Intl.NumberFormat("en");
export const exact = (tokens) => (tokens == null ? "–" : NUMBERS.format(tokens));

export function short(number) {
  if (number == null) return "";
  for (const [step, unit] of [[1e9, "B"], [1e6, "M"], [1e3, "k"]]) {
    if (number >= step) return `${Number((number / step).toPrecision(3))}${unit}`;
  }
  return String(Number(number.toPrecision(3)));
}

// Like `money` in sessions/pages/figures.py.
export function dollars(microusd) {
  const size = Math.abs(microusd);
  const sign = microusd < 0 ? "−" : "";
  if (!size) return "$0";
  if (size < 100) return `${sign}<$0.0001`;
  return `${sign}$${(size / 1e6).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: size < 1e6 ? 4 : 2 })}`;
}

export function duration(seconds) {
  const parts = [];
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    const count = Math.floor(seconds / size);
    seconds -= count * size;
    if (count) parts.push(`${count} ${unit}`);
  }
  return parts.slice(0, 2).join(" ");
}

export function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

export const has = (sizes) => sizes.some((size) => size != null);

// Whether any prompt that was served is smaller than the transcript.
export const isCompacted = (data) => data.served.some((size, index) => size != null && size < data.estimate[index]);

const largestSize = (data) => Math.max(...data.reported.map((size, index) => size ?? data.served[index] ?? data.estimate[index]));

// The budget of a turn. `data.budgets` lists the turns from which another one applied.
export const budgetAt = (data, turn) => data.budgets.findLast((change) => change.turn <= turn)?.tokens;

// Hide a budget far above every prompt, and a window far above the budget or every prompt: they would flatten the curves.
export const isBudgetShown = (data, tokens) => tokens <= 5 * largestSize(data);
export const largestBudget = (data) =>
  Math.max(0, ...data.budgets.map(({ tokens }) => tokens).filter((tokens) => isBudgetShown(data, tokens)));
export function windowShown(data) {
  if (data.window == null || (data.budget != null && data.window >= 2 * data.budget)) return false;
  return data.window < 4 * Math.max(largestBudget(data), largestSize(data));
}

export const COMPONENTS = {
  system: "system prompt",
  tools: "tool definitions",
  memory: "working memory",
  recap: "recap",
  user: "user",
  assistant: "assistant",
  tool_outputs: "tool outputs",
};

// Colors for series without a fixed meaning; the last one is for "other tools".
const SERIES = 8;

// Resolve light-dark() colors: only computed styles of an element are resolved, custom properties are not.
export function resolved(host, values) {
  const probe = element("i");
  probe.style.forcedColorAdjust = "none"; // the series of a chart are told apart by their colors
  host.append(probe);
  const found = values.map((value) => {
    probe.style.color = value;
    return getComputedStyle(probe).color;
  });
  probe.remove();
  return found;
}

export function colours(host) {
  const values = {
    reported: "var(--accent)",
    served: "var(--series-2)",
    estimate: "var(--series-1)",
    keptOut: "color-mix(in srgb, var(--series-1) 16%, transparent)",
    budget: "var(--warn)",
    window: "var(--bad)",
    compaction: "var(--violet)",
    own: "var(--teal)",
    spike: "var(--bad)",
    comment: "var(--accent)",
    idle: "var(--line-strong)",
    text: "var(--muted)",
    line: "var(--line)",
  };
  for (let index = 0; index < SERIES; index += 1) values[`tool${index}`] = `var(--series-${index})`;
  for (const name of Object.keys(COMPONENTS)) values[name] = `var(--component-${name})`;
  const names = Object.keys(values);
  const found = resolved(host, Object.values(values));
  return Object.fromEntries(names.map((name, index) => [name, found[index]]));
}
