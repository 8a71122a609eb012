// Axis styles, and the axes of charts of tokens per turn.

import { short } from "./format.js";

const FONT = "12px system-ui, sans-serif";
const STEPS = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 2000, 5000, 10000];

// Ticks, their gap and the widest label, at least `LEAST` pixels: a title next to longer labels would overprint them.
const LEAST = 54;
export function sizeOfLabels(plot, labels, index, cycle) {
  const axis = plot.axes[index];
  if (cycle > 1) return axis._size; // another size could change the labels again
  plot.ctx.font = axis.font[0];
  const widest = Math.max(0, ...(labels ?? []).map((label) => plot.ctx.measureText(label ?? "").width));
  return Math.max(LEAST, Math.ceil(axis.ticks.size + axis.gap + widest / devicePixelRatio));
}

export const axisStyle = (text, line) => ({ stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: FONT, labelFont: FONT });

// `first` and `last` are the turns of the chart: ticks beside them, as of a single turn, have no label.
export function turnAxes(text, line, first = 0, last = Infinity) {
  const axis = axisStyle(text, line);
  const label = (turn) => (turn < first || turn > last ? null : turn);
  return [
    { ...axis, label: "Turn", labelSize: 18, size: 32, incrs: STEPS, values: (_plot, ticks) => ticks.map(label) },
    { ...axis, label: "Tokens", labelSize: 18, size: sizeOfLabels, values: (_plot, ticks) => ticks.map(short) },
  ];
}

// Cost on the left, the share of cached input on the right.
export function costAxes(text, line, first, last) {
  const [turns, tokens] = turnAxes(text, line, first, last);
  const dollars = (value) => (value == null ? null : `$${Number(value.toPrecision(3))}`);
  return [
    turns,
    { ...tokens, scale: "usd", label: "US dollars", values: (_plot, ticks) => ticks.map(dollars) },
    { ...tokens, scale: "share", side: 1, grid: { show: false }, label: "Cache hits, % of the prompt", values: (_plot, ticks) => ticks.map((share) => `${share}%`) },
  ];
}
