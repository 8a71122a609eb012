// The prompt size per turn under each policy of a replay.

import { turnAxes } from "./chart/axes.js";
import { cursorTip } from "./chart/cursor_tip.js";
import { element, exact, resolved } from "./chart/format.js";
import { budgetPlugin } from "./chart/marks.js";
import { fetchJson, follow, followWidth, plotPlace } from "./chart/place.js";
import { policyLines } from "./chart/policies.js";

const HEIGHT = 320;

const largest = (data) => Math.max(...data.policies.flatMap((policy) => policy.prompts), 10);

// A budget far above all prompts would flatten the curves.
const isBudgetShown = (data) => data.budget_tokens && data.budget_tokens <= 2 * largest(data);

function legend(data, lines, colors) {
  const list = element("ul", "replay-legend");
  data.policies.forEach((policy, index) => {
    const item = element("li");
    const line = element("span", lines[index][1].length ? "line dashed" : "line");
    line.style.color = colors[index];
    item.append(line, policy.name);
    list.append(item);
  });
  if (isBudgetShown(data)) list.append(element("li", "key-budget", `Budget (${exact(data.budget_tokens)})`));
  else if (data.budget_tokens) list.append(element("li", "none", `Budget (${exact(data.budget_tokens)}), above the chart`));
  return list;
}

const turnOpen = (host, turn, event) => follow(`${host.dataset.turn}?turn=${turn}#turn-${turn}`, event);

function tipPlugin(data, host) {
  return cursorTip("replay-tip", (tip, index) => {
    const turn = data.turns[index];
    const rows = element("dl");
    for (const policy of data.policies) {
      const mark = policy.compacted.includes(turn) ? " (compacted)" : "";
      rows.append(element("dt", "", policy.name + mark), element("dd", "", `${exact(policy.prompts[index])} tokens`));
    }
    tip.replaceChildren(element("b", "", `Turn ${turn}`), rows);
    for (const policy of data.policies.filter((each) => each.lost_turn === turn)) {
      tip.append(element("p", "", `${policy.name}: first loss`));
    }
  }, { below: 12, open: (_plot, _left, index) => turnOpen(host, data.turns[index]) });
}

function clickPlugin(data, host) {
  const open = (plot, event) => {
    turnOpen(host, data.turns[plot.posToIdx(event.clientX - plot.over.getBoundingClientRect().left)], event);
  };
  return { hooks: { init: (plot) => plot.over.addEventListener("click", (event) => open(plot, event)) } };
}

function options(data, host, width) {
  const [text, grid, warn] = resolved(host, ["var(--muted)", "var(--line)", "var(--warn)"]);
  const lines = policyLines(data.policies);
  const colors = resolved(host, lines.map(([color]) => color));
  const first = data.turns[0];
  const last = data.turns.at(-1);
  const budgets = isBudgetShown(data) ? [budgetPlugin(data.budget_tokens, warn)] : [];
  const most = Math.max(largest(data), isBudgetShown(data) ? data.budget_tokens : 0);
  return {
    lines,
    colors,
    plot: {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { size: 7 }, y: false },
      scales: {
        x: { time: false, range: first === last ? [first - 1, last + 1] : [first, last] },
        y: { range: [0, most * 1.06] },
      },
      axes: turnAxes(text, grid),
      series: [{}, ...data.policies.map((policy, index) => ({
        label: policy.name,
        stroke: colors[index],
        dash: lines[index][1],
        width: 2,
        points: { show: data.turns.length < 30, size: 5 },
      }))],
      plugins: [...budgets, tipPlugin(data, host), clickPlugin(data, host)],
    },
  };
}

function draw(host, data) {
  const names = data.policies.map((policy) => policy.name).join(", ");
  const place = plotPlace(`Prompt size per turn under ${names} at a budget of ${data.budget}. The same data follows as a table.`, "Enter opens the turn.");
  const below = element("div");
  host.replaceChildren(place, below);
  let plot = null;
  const redraw = () => {
    plot?.destroy();
    const made = options(data, host, place.clientWidth);
    plot = new window.uPlot(made.plot, [data.turns, ...data.policies.map((policy) => policy.prompts)], place);
    below.replaceChildren(legend(data, made.lines, made.colors));
  };
  redraw();
  document.addEventListener("theme", redraw);
  followWidth(place, HEIGHT, () => plot);
}

async function load(host) {
  host.dataset.state = "loading";
  try {
    const data = await fetchJson(host.dataset.replay);
    if (data.turns.length) draw(host, data);
    else host.replaceChildren(element("p", "chart-state", "This session has no model calls."));
  } catch (error) {
    host.replaceChildren(element("p", "chart-state", `Could not load the chart (${error.message}). Reload the page to try again.`));
  }
}

const all = () => document.querySelectorAll("[data-replay]:not([data-state])").forEach(load);
all();
// A run in progress replaces its content periodically.
document.addEventListener("htmx:afterSwap", all);
