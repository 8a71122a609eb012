// The prompt size per turn under each policy of a replay, one over the other.

import { turnAxes } from "./chart/axes.js";
import { besideCursor } from "./chart/beside.js";
import { element, exact, resolved } from "./chart/format.js";

const HEIGHT = 320;
// Two policies often have the same curve: dashes let the lower one be seen.
const LINES = [
  ["light-dark(#59616e, #9ba4b1)", [6, 4]],
  ["light-dark(#b37400, #edb95c)", []],
  ["light-dark(#0f6b70, #6fcfd3)", [8, 3]],
  ["light-dark(#1f52bf, #8db2ff)", []],
  ["light-dark(#6a3fb5, #bda0ff)", []],
  ["light-dark(#2f8f5e, #69cf9a)", [3, 3]],
];

function legend(data, colours) {
  const list = element("ul", "replay-legend");
  data.policies.forEach((policy, index) => {
    const item = element("li");
    const line = element("span", LINES[index % LINES.length][1].length ? "line dashed" : "line");
    line.style.color = colours[index];
    item.append(line, policy.name);
    list.append(item);
  });
  return list;
}

function tipPlugin(data) {
  return besideCursor("replay-tip", (tip, index) => {
    const turn = data.turns[index];
    const rows = element("dl");
    for (const policy of data.policies) {
      const mark = policy.compacted.includes(turn) ? " (compacted)" : "";
      rows.append(element("dt", "", policy.name + mark), element("dd", "", `${exact(policy.prompts[index])} tokens`));
    }
    tip.replaceChildren(element("b", "", `Turn ${turn}`), rows);
    for (const policy of data.policies.filter((each) => each.lost_turn === turn)) {
      tip.append(element("p", "", `${policy.name}: the first loss`));
    }
  });
}

function clickPlugin(data, host) {
  const open = (plot, event) => {
    const turn = data.turns[plot.posToIdx(event.clientX - plot.over.getBoundingClientRect().left)];
    location.assign(`${host.dataset.turn}?turn=${turn}#turn-${turn}`);
  };
  return { hooks: { init: (plot) => plot.over.addEventListener("click", (event) => open(plot, event)) } };
}

function options(data, host, width) {
  const [text, line] = resolved(host, ["var(--muted)", "var(--line)"]);
  const colours = resolved(host, data.policies.map((_policy, index) => LINES[index % LINES.length][0]));
  const first = data.turns[0];
  const last = data.turns.at(-1);
  const most = Math.max(...data.policies.flatMap((policy) => policy.prompts), 10);
  return {
    colours,
    plot: {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { size: 7 }, y: false },
      scales: {
        x: { time: false, range: first === last ? [first - 1, last + 1] : [first, last] },
        y: { range: [0, most * 1.06] },
      },
      axes: turnAxes(text, line),
      series: [{}, ...data.policies.map((policy, index) => ({
        label: policy.name,
        stroke: colours[index],
        dash: LINES[index % LINES.length][1],
        width: 2,
        points: { show: data.turns.length < 30, size: 5 },
      }))],
      plugins: [tipPlugin(data), clickPlugin(data, host)],
    },
  };
}

function draw(host, data) {
  const place = element("div", "chart-plot");
  // Screen readers get the sentence and the table; the picture has nothing to tab through.
  const names = data.policies.map((policy) => policy.name).join(", ");
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", `Prompt size per turn under ${names} at a budget of ${data.budget}. The figures follow as a table.`);
  const below = element("div");
  host.replaceChildren(place, below);
  let plot = null;
  const again = () => {
    plot?.destroy();
    const made = options(data, host, place.clientWidth);
    plot = new window.uPlot(made.plot, [data.turns, ...data.policies.map((policy) => policy.prompts)], place);
    below.replaceChildren(legend(data, made.colours));
  };
  again();
  document.addEventListener("theme", again);
  new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place);
}

async function load(host) {
  host.dataset.state = "loading";
  try {
    const answer = await fetch(host.dataset.replay, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(`answered ${answer.status}`);
    const data = await answer.json();
    if (data.turns.length) draw(host, data);
    else host.replaceChildren(element("p", "chart-state", "There is no model call to draw."));
  } catch (error) {
    host.replaceChildren(element("p", "chart-state", `The chart could not be loaded: ${error.message}.`));
  }
}

const all = () => document.querySelectorAll("[data-replay]:not([data-state])").forEach(load);
all();
// A run that goes on is put in anew.
document.addEventListener("htmx:afterSwap", all);
