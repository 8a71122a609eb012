// The lab: sliders and the chart of prompt sizes under each policy.

import { turnAxes } from "./chart/axes.js";
import { cursorTip } from "./chart/cursor_tip.js";
import { element, exact, resolved } from "./chart/format.js";
import { budgetPlugin } from "./chart/marks.js";
import { followWidth, plotPlace } from "./chart/place.js";
import { policyLines } from "./chart/policies.js";
import { swatchLegend, swatchTable } from "./chart/swatches.js";

// The chart stays in view above the sliders on narrow screens.
const HEIGHT = matchMedia("(max-width: 76rem)").matches ? 190 : 300;

function legend(data, strokes) {
  const list = swatchLegend(data.policies.map((policy) => policy.name), strokes);
  list.append(element("li", "key-budget", `Budget (${exact(data.budget)})`));
  return list;
}

function tipPlugin(data, strokes) {
  const fill = (tip, at) => {
    const rows = data.policies.map((policy, index) => [strokes[index], policy.name, `${exact(policy.prompts[at])} tokens`]);
    tip.replaceChildren(element("b", "", `Turn ${data.turns[at]}`), swatchTable(rows));
  };
  return cursorTip("trend-tip", fill);
}

function options(data, width, strokes, dashes, [text, grid, warn]) {
  const most = Math.max(data.budget, ...data.policies.flatMap((policy) => policy.prompts));
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 }, y: false },
    scales: { x: { time: false }, y: { range: [0, most * 1.05] } },
    axes: turnAxes(text, grid),
    series: [{}, ...data.policies.map((policy, index) => ({ label: policy.name, stroke: strokes[index], dash: dashes[index], width: 2, points: { show: false } }))],
    plugins: [budgetPlugin(data.budget, warn), tipPlugin(data, strokes)],
  };
}

function chartDraw() {
  const host = document.querySelector("[data-lab]");
  const source = document.getElementById("lab-series");
  if (!host || !source) return;
  const data = JSON.parse(source.textContent);
  const place = plotPlace(`Prompt size over ${data.turns.length} turns under ${data.policies.length} policies. The same data follows as a table.`);
  const lines = policyLines(data.policies);
  const strokes = resolved(host, lines.map(([color]) => color));
  const dashes = lines.map(([, dash]) => dash);
  const others = resolved(host, ["var(--muted)", "var(--line)", "var(--warn)"]);
  host.replaceChildren(place, legend(data, strokes));
  const plot = new window.uPlot(options(data, place.clientWidth, strokes, dashes, others), [data.turns, ...data.policies.map((policy) => policy.prompts)], place);
  followWidth(place, HEIGHT, () => plot);
}

// A slider and its number field show the same value. Only the number is sent, so it need not match a slider step.
document.querySelector(".sliders").addEventListener("input", ({ target }) => {
  if (target.dataset.of) document.getElementById(target.dataset.of).value = target.value;
  else document.querySelector(`[data-of="${target.id}"]`).value = target.value;
}, { capture: true });

// htmx does not send a form with an invalid number. Replace it with the nearest one that the slider allows.
document.querySelector(".sliders").addEventListener("change", ({ target }) => {
  if (target.dataset.of || (target.value && target.validity.valid)) return;
  const number = Number(target.value || target.defaultValue);
  const allowed = Math.min(Math.max(number, target.min), target.max);
  target.value = target.step === "any" ? allowed : Math.round(allowed);
  target.dispatchEvent(new Event("input", { bubbles: true }));
});

chartDraw();
document.addEventListener("theme", chartDraw);
// Keep the URL in sync with the sliders, without adding a history entry for every move.
document.addEventListener("htmx:afterSwap", () => {
  chartDraw();
  const query = new URLSearchParams(new FormData(document.querySelector(".sliders")));
  history.replaceState(history.state, "", `?${query}`);
});
