// Percentiles of the prompt size over time.

import { bucketAxes, bucketLabel, bucketScales } from "./chart/buckets.js";
import { cursorTip } from "./chart/cursor_tip.js";
import { element, exact, resolved, short } from "./chart/format.js";
import { followWidth, plotPlace } from "./chart/place.js";
import { swatchLegend, swatchTable } from "./chart/swatches.js";

const HEIGHT = 240;
const COLORS = ["var(--series-0)", "var(--series-1)", "var(--series-5)"];
// The percentiles of few prompts are often equal. Dashes and smaller points keep the lower ones visible.
const DASHES = [[], [12, 6], [4, 4]];
const POINTS = [10, 7, 4];
const NAMES = { p50: "p50 (median)", p90: "p90", p99: "p99" };

function tipPlugin(data, strokes) {
  const fill = (tip, index) => {
    const rows = data.series.map(({ name, values }, at) => [strokes[at], name, values[index] == null ? "–" : `${exact(values[index])} tokens`]);
    tip.replaceChildren(element("b", "", bucketLabel(data, index, true)), swatchTable(rows));
  };
  return cursorTip("trend-tip", fill);
}

function options(data, width, strokes, [text, grid]) {
  const most = Math.max(1, ...data.series.flatMap(({ values }) => values));
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 }, y: false },
    scales: bucketScales(data, most),
    axes: bucketAxes(data, text, grid, "Tokens", short),
    series: [{}, ...strokes.map((stroke, index) => ({ stroke, dash: DASHES[index], width: 2, points: { show: true, size: POINTS[index], fill: stroke } }))],
    plugins: [tipPlugin(data, strokes)],
  };
}

function chartDraw() {
  const host = document.querySelector("[data-prompt-sizes]");
  const source = document.getElementById("prompt-sizes-series");
  if (!host || !source) return;
  const data = JSON.parse(source.textContent);
  const place = plotPlace(`Prompt size by ${data.bucket}: median, 90th and 99th percentile. The same data follows as a table.`);
  const all = resolved(host, [...COLORS, "var(--muted)", "var(--line)"]);
  const strokes = all.slice(0, COLORS.length);
  host.replaceChildren(place, swatchLegend(data.series.map(({ name }) => NAMES[name]), strokes));
  const columns = [data.buckets.map((_, index) => index), ...data.series.map(({ values }) => values)];
  const plot = new window.uPlot(options(data, place.clientWidth, strokes, all.slice(-2)), columns, place);
  followWidth(place, HEIGHT, () => plot);
}

chartDraw();
document.addEventListener("theme", chartDraw);
document.addEventListener("htmx:load", (event) => {
  if (event.target.querySelector("[data-prompt-sizes]")) chartDraw();
});
