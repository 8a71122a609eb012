// The plot: series and scales, as lines or stacked by component.

import { costAxes, turnAxes } from "./axes.js";
import { has, isCompacted, largestBudget, windowShown } from "./format.js";
import { marks } from "./marks.js";
import { tips } from "./tip.js";

export const HEIGHT = 320;
const LINES = ["estimate", "served", "reported"];

// uPlot fills areas from zero: draw the largest sum first and the smaller ones over it.
function stacked(data, parts) {
  const names = Object.keys(parts);
  const sums = data.turns.map(() => 0);
  const columns = names.map((name) => parts[name].map((size, index) => (size == null ? null : (sums[index] += size))));
  return { names: names.reverse(), columns: columns.reverse() };
}

// `padding` is in turns. A single turn always has some, because a range must not be empty.
function turnRange(data, padding) {
  const [first, last] = [data.turns[0], data.turns.at(-1)];
  return first === last ? [first - 1, last + 1] : [first - padding, last + padding];
}

function scales(data, columns, isLog) {
  const sizes = columns.flat().filter((size) => size > 0);
  const most = Math.max(largestBudget(data), windowShown(data) ? data.window : 0, ...sizes, 10);
  const least = Math.min(...sizes, most);
  return {
    x: { time: false, range: turnRange(data, 0) },
    y: isLog ? { distr: 3, range: [10 ** Math.floor(Math.log10(least)), most * 1.15] } : { range: [0, most * 1.06] },
  };
}

// Cost per call as bars, and the share of the prompt that came from the cache as a line.
function priced(data, colour) {
  const dollars = data.cost.map((microusd) => (microusd == null ? null : microusd / 1e6));
  const most = Math.max(...dollars, 1e-6);
  return {
    columns: [dollars, data.cache_hits],
    // Half a turn at each end, so that the first and the last bar are drawn whole.
    scales: { x: { time: false, range: turnRange(data, 0.5) }, usd: { range: [0, most * 1.06] }, share: { range: [0, 104] } },
    axes: costAxes(colour.text, colour.line, data.turns[0], data.turns.at(-1)),
    series: [
      { label: "cost", scale: "usd", stroke: colour.estimate, fill: colour.estimate, width: 0, paths: window.uPlot.paths.bars({ size: [0.7, 24] }), points: { show: false } },
      { label: "cache hits", scale: "share", stroke: colour.served, width: 2, spanGaps: true, points: { show: false } },
    ],
  };
}

// The parts that a view stacks, and their colors.
function partsOf(data, view, hidden, colour) {
  if (view === "stacked") return [data.components, colour];
  if (view !== "tools") return [null, colour];
  const names = Object.keys(data.tools);
  const shown = names.filter((name) => !hidden.has(name)).map((name) => [name, data.tools[name]]);
  return [Object.fromEntries(shown), Object.fromEntries(names.map((name, index) => [name, colour[`tool${index}`]]))];
}

export function plotMake(place, data, { isLog, view, hidden, colour, onSelect, onClick }) {
  const [parts, fills] = partsOf(data, view, hidden, colour);
  const stack = parts ? stacked(data, parts) : null;
  const cost = view === "cost" ? priced(data, colour) : null;
  const positive = (sizes) => (isLog ? sizes.map((size) => size || null) : sizes);
  const columns = cost?.columns ?? stack?.columns ?? LINES.map((name) => positive(data[name]));
  const points = { show: data.turns.length < 60, size: 5 };
  // Some downsampled points are kept for their estimate only: a missing reported size there is not a gap.
  const base = { spanGaps: data.is_sampled, width: 2 };
  const sizes = stack
    ? stack.names.map((name) => ({ ...base, label: name, stroke: fills[name], fill: fills[name], width: 0, points: { show: false } }))
    : LINES.map((name) => ({ ...base, label: name, stroke: colour[name], points }));
  // The area between the transcript and the served prompt: what compaction kept out.
  const bands = view === "lines" && isCompacted(data) ? [{ series: [1, 2], fill: colour.keptOut }] : [];
  return new window.uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: stack || cost ? 0 : 7 }, y: false },
      scales: cost?.scales ?? scales(data, columns, isLog),
      axes: cost?.axes ?? turnAxes(colour.text, colour.line, data.turns[0], data.turns.at(-1)),
      series: [{}, ...(cost?.series ?? sizes)],
      bands,
      plugins: [marks(data, colour, view), tips(data, view, onClick), pointer(onSelect, onClick)],
    },
    [data.turns, ...columns],
    place,
  );
}

// A drag selects a range of turns; anything shorter than 8 pixels is a click.
function pointer(onSelect, onClick) {
  let selected = false;
  return {
    hooks: {
      init: (plot) => {
        plot.over.addEventListener("mousedown", () => (selected = false));
        // Use the click position: a tap does not move the cursor first.
        plot.over.addEventListener("click", (event) => {
          if (selected) return;
          const left = event.clientX - plot.over.getBoundingClientRect().left;
          onClick(plot, left, plot.posToIdx(left), event);
        });
      },
      setSelect: (plot) => {
        const { left, width } = plot.select;
        if (width < 8) return;
        selected = true;
        const from = Math.floor(plot.posToVal(left, "x"));
        const to = Math.ceil(plot.posToVal(left + width, "x"));
        onSelect(Math.max(from, 0), to);
      },
    },
  };
}

export const lastSize = (data) => data.reported.findLast((size) => size != null) ?? data.served.at(-1) ?? data.estimate.at(-1);
export const canPrice = (data) => data.cost.some((microusd) => microusd);
export const canStack = (data) => Object.values(data.components).some(has);
