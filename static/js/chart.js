// The prompt size per turn. The server thins the points; this draws them and says exactly what they are.

import { turnGo } from "./transcript.js";

const HEIGHT = 320;
const NUMBERS = new Intl.NumberFormat("en");
const exact = (tokens) => (tokens == null ? "–" : NUMBERS.format(tokens));

function short(tokens) {
  if (tokens == null) return "";
  for (const [step, unit] of [[1e6, "M"], [1e3, "k"]]) {
    if (tokens >= step) return `${Number((tokens / step).toPrecision(3))}${unit}`;
  }
  return String(tokens);
}

// The page's colours are light-dark() values: an element resolves them, reading the property does not.
function colours(host) {
  const probe = document.createElement("i");
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
    text: of("var(--muted)"),
    line: of("var(--line)"),
  };
  probe.remove();
  return found;
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

const has = (sizes) => sizes.some((size) => size != null);

// Where prompts keep to a budget, a window far above it would press the curves to the floor.
const windowShown = (data) => data.window != null && (data.budget == null || data.window < 2 * data.budget);

function legend(data) {
  const list = element("ul", "chart-legend");
  const isServed = has(data.served);
  const keys = [["estimate", isServed ? "the whole transcript, estimate" : "our estimate of the messages"]];
  if (isServed) keys.unshift(["served", "the prompt served, estimate"]);
  if (has(data.reported)) keys.unshift(["reported", "reported by the provider"]);
  if (data.budget) keys.push(["budget", `the budget, ${exact(data.budget)}`]);
  if (windowShown(data)) keys.push(["window", `the model's window, ${exact(data.window)}`]);
  if (data.compactions.length) keys.push(["compaction", "the client compacted"]);
  if (data.own_compactions.length) keys.push(["own", "contextapp compacted"]);
  for (const [key, text] of keys) list.append(element("li", `key-${key}`, text));
  if (data.is_sampled) {
    list.append(element("li", "key-none", `${exact(data.turns.length)} of ${exact(data.turn_count)} turns drawn, no peak left out`));
  }
  return list;
}

function tipFill(tip, data, index) {
  const rows = element("dl");
  for (const [name, value] of [
    ["reported", data.reported[index]],
    ["served", data.served[index]],
    [has(data.served) ? "whole transcript" : "estimate", data.estimate[index]],
  ]) {
    if (value == null) continue;
    rows.append(element("dt", "", name), element("dd", "", `${exact(value)} tokens`));
  }
  const size = data.reported[index] ?? data.served[index] ?? data.estimate[index];
  const limit = data.budget ?? data.window;
  if (limit) rows.append(element("dt", "", data.budget ? "of the budget" : "of the window"), element("dd", "", `${((100 * size) / limit).toFixed(1)} %`));
  tip.replaceChildren(element("b", "", `Turn ${data.turns[index]}`), rows);
  const isHere = (other) => other.turn === data.turns[index];
  for (const own of data.own_compactions.filter(isHere)) {
    const reverted = own.is_reverted ? ", reverted later" : "";
    const sizes = `${exact(own.tokens_before)} → ${exact(own.tokens_after)} tokens`;
    tip.append(element("p", "own", `contextapp compacted (${own.trigger}${reverted}): ${sizes}`));
  }
  const compaction = data.compactions.find(isHere);
  if (!compaction) return;
  const before = compaction.tokens_before ? `, ${exact(compaction.tokens_before)} tokens before` : "";
  const trigger = compaction.trigger ? ` (${compaction.trigger})` : "";
  tip.append(element("p", "", `the client compacted${trigger}${before}`));
}

function tipPlugin(data) {
  const tip = element("div", "chart-tip");
  tip.hidden = true;
  return {
    hooks: {
      init: (plot) => {
        plot.over.append(tip);
        // From where the click is: a tap comes without a move that would have set the cursor.
        plot.over.addEventListener("click", (event) => {
          const index = plot.posToIdx(event.clientX - plot.over.getBoundingClientRect().left);
          turnGo(data.turns[index]);
        });
      },
      setCursor: (plot) => {
        const { idx, left, top } = plot.cursor;
        tip.hidden = idx == null || left < 0;
        if (tip.hidden) return;
        tipFill(tip, data, idx);
        const toTheLeft = left + tip.offsetWidth + 24 > plot.over.clientWidth;
        const x = toTheLeft ? Math.max(left - tip.offsetWidth - 12, 0) : left + 12;
        const y = Math.min(top + 12, plot.over.clientHeight - tip.offsetHeight);
        tip.style.transform = `translate(${x}px, ${Math.max(y, 0)}px)`;
      },
    },
  };
}

function lineDraw(plot, colour, from, to) {
  const { ctx } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...to);
  ctx.stroke();
  ctx.restore();
}

function markersPlugin(data, colour) {
  return {
    hooks: {
      drawAxes: (plot) => {
        const { left, top, width, height } = plot.bbox;
        for (const { turn } of data.compactions) {
          const x = plot.valToPos(turn, "x", true);
          lineDraw(plot, colour.compaction, [x, top], [x, top + height]);
        }
        for (const { turn } of data.own_compactions) {
          const x = plot.valToPos(turn, "x", true);
          if (x <= left + width + 1) lineDraw(plot, colour.own, [x, top], [x, top + height]);
        }
        const limits = [[data.budget, colour.budget], [windowShown(data) ? data.window : null, colour.window]];
        for (const [limit, stroke] of limits) {
          if (!limit) continue;
          const y = plot.valToPos(limit, "y", true);
          if (y >= top - 1) lineDraw(plot, stroke, [left, y], [left + width, y]);
        }
      },
    },
  };
}

function options(data, scale, width, colour) {
  const isLog = scale === "log";
  const sizes = [...data.estimate, ...data.served, ...data.reported].filter((size) => size > 0);
  const most = Math.max(data.budget ?? 0, windowShown(data) ? data.window : 0, ...sizes, 10);
  const least = Math.min(...sizes, most);
  const few = data.turns.length < 60;
  const axis = { stroke: colour.text, grid: { stroke: colour.line, width: 1 }, ticks: { stroke: colour.line, width: 1 }, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif" };
  // Of thinned points some are kept for the estimate only; a missing report there is no gap.
  const spanGaps = data.is_sampled;
  const line = (label, stroke) => ({ label, stroke, width: 2, spanGaps, points: { show: few, size: 5 } });
  const first = data.turns[0];
  const last = data.turns.at(-1);
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 7 }, y: false },
    scales: {
      x: { time: false, range: first === last ? [first - 1, last + 1] : [first, last] },
      y: isLog
        ? { distr: 3, range: [10 ** Math.floor(Math.log10(least)), most * 1.15] }
        : { range: [0, most * 1.06] },
    },
    axes: [
      { ...axis, label: "turn", labelSize: 18, size: 32, incrs: [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 2000, 5000] },
      { ...axis, label: "tokens", labelSize: 18, size: 52, values: (_plot, ticks) => ticks.map(short) },
    ],
    series: [{}, ...["estimate", "served", "reported"].map((name) => line(name, colour[name]))],
    plugins: [markersPlugin(data, colour), tipPlugin(data)],
  };
}

function chartDraw(host, data) {
  const scaleSwitch = document.querySelector("[data-scale]");
  const place = element("div", "chart-plot");
  // Screen readers get the sentence and the table; the picture has nothing to tab through.
  const last = data.reported.findLast((size) => size != null) ?? data.served.at(-1) ?? data.estimate.at(-1);
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", `Prompt size over ${exact(data.turn_count)} turns, the last at ${exact(last)} tokens. The figures follow as a table.`);
  host.replaceChildren(place, legend(data));
  let scale = "linear";
  let plot = null;
  const positive = (sizes) => (scale === "log" ? sizes.map((size) => size || null) : sizes);
  const draw = () => {
    plot?.destroy();
    const columns = [data.turns, positive(data.estimate), positive(data.served), positive(data.reported)];
    plot = new window.uPlot(options(data, scale, place.clientWidth, colours(host)), columns, place);
  };
  draw();
  document.addEventListener("theme", draw);
  new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place);
  scaleSwitch.hidden = false;
  scaleSwitch.addEventListener("click", (event) => {
    const chosen = event.target.closest("button");
    if (!chosen) return;
    scale = chosen.dataset.value;
    for (const button of scaleSwitch.children) button.setAttribute("aria-pressed", String(button === chosen));
    draw();
  });
}

async function chartLoad(host) {
  const answer = await fetch(host.dataset.chart, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  chartDraw(host, await answer.json());
}

for (const host of document.querySelectorAll("[data-chart]")) {
  chartLoad(host).catch((error) => {
    host.querySelector(".chart-state")?.replaceChildren(`The chart could not be loaded: ${error.message}.`);
  });
}
