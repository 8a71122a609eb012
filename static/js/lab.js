// The lab: what the sliders say, and the prompt of each turn under each policy.

const HEIGHT = 300;
const NUMBERS = new Intl.NumberFormat("en");
const COLOURS = ["light-dark(#b0251d, #ff918a)", "light-dark(#59616e, #9ba4b1)", "light-dark(#b37400, #edb95c)", "light-dark(#1f52bf, #8db2ff)", "light-dark(#2f8f5e, #69cf9a)"];

function short(tokens) {
  for (const [step, unit] of [[1e6, "M"], [1e3, "k"]]) {
    if (tokens >= step) return `${Number((tokens / step).toPrecision(3))}${unit}`;
  }
  return String(tokens);
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function resolved(host, colours) {
  const probe = element("i");
  host.append(probe);
  const found = colours.map((colour) => {
    probe.style.color = colour;
    return getComputedStyle(probe).color;
  });
  probe.remove();
  return found;
}

function legend(data, strokes) {
  const list = element("ul", "trend-legend");
  data.policies.forEach((policy, index) => {
    const item = element("li");
    const swatch = element("span", "swatch");
    swatch.style.background = strokes[index];
    item.append(swatch, policy.name);
    list.append(item);
  });
  list.append(element("li", "", `dashed: the budget, ${NUMBERS.format(data.budget)} tokens`));
  return list;
}

function tipPlugin(data, strokes) {
  const tip = element("div", "trend-tip");
  tip.hidden = true;
  return {
    hooks: {
      init: (plot) => plot.over.append(tip),
      setCursor: (plot) => {
        const { idx, left, top } = plot.cursor;
        tip.hidden = idx == null || left < 0;
        if (tip.hidden) return;
        const table = element("table");
        data.policies.forEach((policy, index) => {
          const row = table.insertRow();
          const swatch = element("span", "swatch");
          swatch.style.background = strokes[index];
          swatch.style.display = "inline-block";
          row.insertCell().append(swatch);
          row.insertCell().textContent = policy.name;
          row.insertCell().textContent = `${NUMBERS.format(policy.prompts[idx])} tokens`;
        });
        tip.replaceChildren(element("b", "", `Turn ${data.turns[idx]}`), table);
        const toTheLeft = left + tip.offsetWidth + 24 > plot.over.clientWidth;
        const x = toTheLeft ? Math.max(left - tip.offsetWidth - 12, 0) : left + 12;
        tip.style.transform = `translate(${x}px, ${Math.max(Math.min(top, plot.over.clientHeight - tip.offsetHeight), 0)}px)`;
      },
    },
  };
}

function budgetPlugin(data, colour) {
  return {
    hooks: {
      drawAxes: ({ ctx, bbox, valToPos }) => {
        const y = valToPos(data.budget, "y", true);
        if (y < bbox.top) return;
        ctx.save();
        ctx.strokeStyle = colour;
        ctx.lineWidth = 1.5 * devicePixelRatio;
        ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
        ctx.beginPath();
        ctx.moveTo(bbox.left, y);
        ctx.lineTo(bbox.left + bbox.width, y);
        ctx.stroke();
        ctx.restore();
      },
    },
  };
}

function options(data, width, strokes, [text, line, warn]) {
  const most = Math.max(data.budget, ...data.policies.flatMap((policy) => policy.prompts));
  const axis = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif" };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 }, y: false },
    scales: { x: { time: false }, y: { range: [0, most * 1.05] } },
    axes: [
      { ...axis, label: "turn", labelSize: 18, size: 32, incrs: [1, 2, 5, 10, 20, 50] },
      { ...axis, label: "tokens", labelSize: 18, size: 54, values: (_plot, ticks) => ticks.map(short) },
    ],
    series: [{}, ...data.policies.map((policy, index) => ({ label: policy.name, stroke: strokes[index], width: 2, points: { show: false } }))],
    plugins: [budgetPlugin(data, warn), tipPlugin(data, strokes)],
  };
}

function chartDraw() {
  const host = document.querySelector("[data-lab]");
  const source = document.getElementById("lab-series");
  if (!host || !source) return;
  const data = JSON.parse(source.textContent);
  const place = element("div", "chart-plot");
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", `Prompt size over ${data.turns.length} turns under ${data.policies.length} policies. The figures follow as a table.`);
  const all = resolved(host, [...COLOURS, "var(--muted)", "var(--line)", "var(--warn)"]);
  const strokes = all.slice(0, COLOURS.length);
  host.replaceChildren(place, legend(data, strokes));
  const plot = new window.uPlot(options(data, place.clientWidth, strokes, all.slice(-3)), [data.turns, ...data.policies.map((policy) => policy.prompts)], place);
  new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place);
}

function outputsShow() {
  for (const output of document.querySelectorAll("output[data-of]")) {
    output.textContent = NUMBERS.format(Number(document.getElementById(output.dataset.of).value));
  }
}

outputsShow();
chartDraw();
document.addEventListener("input", outputsShow);
document.addEventListener("theme", chartDraw);
// The address always says what is shown, without a step back for every move of a slider.
document.addEventListener("htmx:afterSwap", () => {
  chartDraw();
  const query = new URLSearchParams(new FormData(document.querySelector(".sliders")));
  history.replaceState(history.state, "", `?${query}`);
});
