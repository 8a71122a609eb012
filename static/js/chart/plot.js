// The plot: series and scales, as lines or stacked by component.

import { turnAxes } from "./axes.js";
import { has, windowShown } from "./format.js";
import { marks } from "./marks.js";
import { tips } from "./tip.js";

export const HEIGHT = 320;
const LINES = ["estimate", "served", "reported"];

// uPlot fills areas from zero: draw the largest sum first and the smaller ones over it.
function stacked(data) {
  const names = Object.keys(data.components);
  const sums = data.turns.map(() => 0);
  const columns = names.map((name) => data.components[name].map((size, index) => (size == null ? null : (sums[index] += size))));
  return { names: names.reverse(), columns: columns.reverse() };
}

function scales(data, columns, isLog) {
  const sizes = columns.flat().filter((size) => size > 0);
  const most = Math.max(data.budget ?? 0, windowShown(data) ? data.window : 0, ...sizes, 10);
  const least = Math.min(...sizes, most);
  const first = data.turns[0];
  const last = data.turns.at(-1);
  return {
    x: { time: false, range: first === last ? [first - 1, last + 1] : [first, last] },
    y: isLog ? { distr: 3, range: [10 ** Math.floor(Math.log10(least)), most * 1.15] } : { range: [0, most * 1.06] },
  };
}

export function plotMake(place, data, { isLog, isStacked, colour, onSelect, onClick }) {
  const stack = isStacked ? stacked(data) : null;
  const positive = (sizes) => (isLog ? sizes.map((size) => size || null) : sizes);
  const columns = stack ? stack.columns : LINES.map((name) => positive(data[name]));
  const points = { show: data.turns.length < 60, size: 5 };
  // Some downsampled points are kept for their estimate only: a missing reported size there is not a gap.
  const base = { spanGaps: data.is_sampled, width: 2 };
  const series = stack
    ? stack.names.map((name) => ({ ...base, label: name, stroke: colour[name], fill: colour[name], width: 0, points: { show: false } }))
    : LINES.map((name) => ({ ...base, label: name, stroke: colour[name], points }));
  return new window.uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: stack ? 0 : 7 }, y: false },
      scales: scales(data, columns, isLog),
      axes: turnAxes(colour.text, colour.line, data.turns[0], data.turns.at(-1)),
      series: [{}, ...series],
      plugins: [marks(data, colour), tips(data, isStacked), pointer(onSelect, onClick)],
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
          onClick(plot, left, plot.posToIdx(left));
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
export const canStack = (data) => Object.values(data.components).some(has);
