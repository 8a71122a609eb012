// Stacked bars per day, week or month. The server sums; this script draws the bars and their tooltips.

import { bucketAxes, bucketLabel, bucketScales } from "./chart/buckets.js";
import { cursorTip } from "./chart/cursor_tip.js";
import { dollars, element, exact, resolved, short } from "./chart/format.js";
import { fetchJson, followWidth, plotPlace } from "./chart/place.js";
import { swatchLegend, swatchTable } from "./chart/swatches.js";
import { isReloading } from "./zone.js";

const HEIGHT = 280;
const COLORS = [0, 1, 2, 3, 4, 5, 6].map((index) => `var(--series-${index})`).concat("var(--muted)");

const measured = (value, unit) => (unit === "tokens" ? `${exact(value)} tokens` : dollars(value));

// With the decimals of the step between ticks: $0.025, $0.50, $40, $1.25k.
function dollarTick(microusd, step) {
  const size = microusd / 1e6;
  if (!size || step % 1e6 === 0) return `$${short(size)}`;
  const decimals = [2, 3, 4, 5].find((count) => Number.isInteger((step * 10 ** count) / 1e6)) ?? 6;
  return `$${size.toFixed(decimals)}`;
}

function tipPlugin(data, fills, hidden) {
  const fill = (tip, index) => {
    const shares = data.series.map(({ name, values }, at) => [fills[at], name, hidden.has(at) ? 0 : values[index]]).filter(([, , value]) => value);
    const total = shares.reduce((sum, [, , value]) => sum + value, 0);
    const rows = shares.map(([color, name, value]) => [color, name, measured(value, data.unit)]);
    const label = bucketLabel(data, index, true);
    const title = data.has_total ? `${label}: ${measured(total, data.unit)}` : label;
    tip.replaceChildren(element("b", "", title), swatchTable(rows));
  };
  return cursorTip("trend-tip", fill, { open: (_plot, _left, index) => narrow(data, index, index) });
}

// Policy changes. Sessions after a line started under a different policy.
function marksPlugin(data, color) {
  return {
    hooks: {
      draw: (plot) => {
        const { ctx, bbox } = plot;
        ctx.save();
        ctx.strokeStyle = color;
        ctx.fillStyle = color;
        ctx.lineWidth = 1.5 * devicePixelRatio;
        ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
        ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
        for (const { index, text } of data.marks ?? []) {
          const x = plot.valToPos(index - 0.5, "x", true);
          ctx.beginPath();
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
          const room = bbox.left + bbox.width - x;
          const isLeft = room < ctx.measureText(text).width + 8 * devicePixelRatio;
          ctx.textAlign = isLeft ? "right" : "left";
          ctx.fillText(text, x + (isLeft ? -5 : 5) * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
        }
        ctx.restore();
      },
    },
  };
}

// Each layer is the running sum of the series. The largest is drawn first, the others on top of it.
function stacked(data, hidden) {
  const sums = data.buckets.map(() => 0);
  const layers = data.series.map((series, at) => series.values.map((value, index) => (sums[index] += hidden.has(at) ? 0 : value)));
  return layers.reverse();
}

// The last day of a bucket.
function bucketEnd(data, index) {
  const day = new Date(`${data.buckets[index]}T00:00Z`);
  if (data.bucket === "month") day.setUTCMonth(day.getUTCMonth() + 1, 0);
  else if (data.bucket === "week") day.setUTCDate(day.getUTCDate() + 6);
  return day.toISOString().slice(0, 10);
}

// Show only the buckets from one index to another, through the fields of the page's form.
function narrow(data, from, to) {
  const form = document.querySelector(".trends-filters");
  const [first, last] = [form.elements.first, form.elements.last];
  const most = data.buckets.length - 1;
  const begin = data.buckets[Math.min(Math.max(from, 0), most)];
  const end = bucketEnd(data, Math.min(Math.max(to, 0), most));
  if (begin === first.value && end === last.value) return;
  // The first and the last bucket may extend beyond the period.
  if (begin > first.value) first.value = begin;
  if (end < last.value) last.value = end;
  form.elements.bucket.value = to - from < 2 && data.bucket !== "day" ? "day" : data.bucket;
  form.requestSubmit();
}

// A click narrows the period to a bar, dragging narrows it to several.
function narrowPlugin(data) {
  const isSelection = (plot) => plot.select.width > 8;
  return {
    hooks: {
      setSelect: (plot) => {
        if (!isSelection(plot)) return;
        const { left, width } = plot.select;
        narrow(data, Math.round(plot.posToVal(left, "x")), Math.round(plot.posToVal(left + width, "x")));
      },
      init: (plot) => plot.over.addEventListener("click", () => {
        if (!isSelection(plot) && plot.cursor.idx != null) narrow(data, plot.cursor.idx, plot.cursor.idx);
      }),
    },
  };
}

function options(data, width, fills, [text, line], hidden) {
  const layers = data.series.length;
  const most = Math.max(...data.buckets.map((_, index) => data.series.reduce((sum, { values }, at) => sum + (hidden.has(at) ? 0 : values[index]), 0))) || 10_000;
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false }, y: false },
    scales: bucketScales(data, most),
    axes: bucketAxes(data, text, line, ...(data.unit === "tokens" ? ["Tokens", short] : ["US dollars", dollarTick])),
    series: [{}, ...Array.from({ length: layers }, (_, index) => ({
      fill: fills[layers - 1 - index],
      stroke: fills[layers - 1 - index],
      width: 0,
      paths: window.uPlot.paths.bars({ size: [0.8, 48] }),
      points: { show: false },
    }))],
    plugins: [marksPlugin(data, text), tipPlugin(data, fills, hidden), narrowPlugin(data)],
  };
}

function chartDraw(host, data) {
  if (!data.series.length) {
    host.replaceChildren(element("p", "chart-state", "No data in this period."));
    return;
  }
  const place = plotPlace(`${data.measure} by ${data.bucket}, ${data.series.length} groups. The same data follows as a table.${(data.marks ?? []).map(({ index, text }) => ` ${text} from ${data.buckets[index]}.`).join("")}`, "Enter shows only this period.");
  let plot = null;
  const hidden = new Set();
  const colors = () => resolved(host, [...COLORS, "var(--muted)", "var(--line)"]);
  const draw = () => {
    plot?.destroy();
    const all = colors();
    const columns = [data.buckets.map((_, index) => index), ...stacked(data, hidden)];
    plot = new window.uPlot(options(data, place.clientWidth, all.slice(0, COLORS.length), all.slice(-2), hidden), columns, place);
  };
  const toggle = (index, isShown) => {
    if (isShown) hidden.delete(index);
    else hidden.add(index);
    draw();
  };
  host.replaceChildren(place, swatchLegend(data.series.map(({ name }) => name), COLORS, toggle));
  draw();
  const onTheme = () => (host.isConnected ? draw() : document.removeEventListener("theme", onTheme));
  document.addEventListener("theme", onTheme);
  followWidth(place, HEIGHT, () => plot);
}

function chartsLoad(within) {
  for (const host of within.querySelectorAll("[data-trend]")) {
    fetchJson(host.dataset.trend).then((data) => chartDraw(host, data)).catch((error) => {
      host.querySelector(".chart-state")?.replaceChildren(`Could not load the chart (${error.message}). Reload the page to try again.`);
    });
  }
}

if (!isReloading) chartsLoad(document);
document.addEventListener("htmx:afterSwap", (event) => chartsLoad(event.target));
