// Figures and elements, as every part of the chart writes them.

const NUMBERS = new Intl.NumberFormat("en");
export const exact = (tokens) => (tokens == null ? "–" : NUMBERS.format(tokens));

export function short(tokens) {
  if (tokens == null) return "";
  for (const [step, unit] of [[1e6, "M"], [1e3, "k"]]) {
    if (tokens >= step) return `${Number((tokens / step).toPrecision(3))}${unit}`;
  }
  return String(tokens);
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

// Where prompts keep to a budget, a window far above it would press the curves to the floor.
export const windowShown = (data) => data.window != null && (data.budget == null || data.window < 2 * data.budget);

export const COMPONENTS = {
  system: "system text",
  tools: "tool definitions",
  memory: "working memory",
  recap: "recap",
  user: "user",
  assistant: "assistant",
  tool_outputs: "tool outputs",
};

// The page's colours are light-dark() values: an element resolves them, reading the property does not.
export function colours(host) {
  const probe = element("i");
  host.append(probe);
  const of = (value) => {
    probe.style.color = value;
    return getComputedStyle(probe).color;
  };
  const found = {
    reported: of("var(--accent)"),
    served: of("light-dark(#2f8f5e, #69cf9a)"),
    estimate: of("light-dark(#b37400, #edb95c)"),
    budget: of("var(--warn)"),
    window: of("var(--bad)"),
    compaction: of("var(--violet)"),
    own: of("var(--teal)"),
    idle: of("var(--line-strong)"),
    text: of("var(--muted)"),
    line: of("var(--line)"),
  };
  for (const name of Object.keys(COMPONENTS)) found[name] = of(`var(--component-${name})`);
  probe.remove();
  return found;
}
