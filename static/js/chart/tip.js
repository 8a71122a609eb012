// Tooltip content: exact sizes of a turn, and the record of a compaction near the cursor.

import { cursorTip } from "./cursor_tip.js";
import { budgetAt, COMPONENTS, dollars, duration, element, exact, has } from "./format.js";

// Markers are one pixel wide: accept clicks within this many pixels, or fewer if there are many, so that turns between
// them can be clicked.
const NEAR = 6;

export function near(plot, marks, left) {
  const distance = (mark) => Math.abs(plot.valToPos(mark.turn, "x") - left);
  const [closest] = [...marks].sort((one, other) => distance(one) - distance(other));
  return closest && distance(closest) <= Math.min(NEAR, plot.over.clientWidth / marks.length / 4) ? closest : null;
}

function own(record) {
  const summary = element("div", "own");
  const reverted = record.is_reverted ? ", reverted" : "";
  summary.append(element("p", "", `Compaction ${record.number} (${record.trigger}${reverted})`));
  summary.append(element("p", "", `${exact(record.tokens_before)} → ${exact(record.tokens_after)} tokens`));
  if (record.steps.length) summary.append(element("p", "", record.steps.join(", ")));
  summary.append(element("p", "", `${record.dropped} messages removed, ${record.collapsed} parts shortened`));
  if (record.break_even_turns != null) {
    summary.append(element("p", "", `Breaks even after ~${Math.ceil(record.break_even_turns)} calls`));
  }
  summary.append(element("p", "hint", "Click for details"));
  return summary;
}

function client(compaction) {
  const before = compaction.tokens_before ? `, from ${exact(compaction.tokens_before)} tokens` : "";
  const trigger = compaction.trigger ? ` (${compaction.trigger})` : "";
  return element("p", "", `Compaction by the client${trigger}${before}`);
}

function lines(data, index) {
  const found = [
    ["Reported", data.reported[index]],
    ["Served", data.served[index]],
    [has(data.served) ? "Full transcript" : "Estimate", data.estimate[index]],
  ];
  const size = data.reported[index] ?? data.served[index] ?? data.estimate[index];
  const budget = budgetAt(data, data.turns[index]);
  const limit = budget ?? data.window;
  const rows = found.filter(([, value]) => value != null).map(([name, value]) => [name, `${exact(value)} tokens`]);
  if (data.cost[index] != null) rows.push(["Cost", dollars(data.cost[index])]);
  if (data.cache_hits[index] != null) rows.push(["Cache hits", `${data.cache_hits[index]}% of the prompt`]);
  if (limit) rows.push([budget ? "Share of budget" : "Share of window", `${((100 * size) / limit).toFixed(1)}%`]);
  return rows;
}

function areas(data, index, view) {
  const parts = { stacked: data.components, tools: data.tools }[view] ?? {};
  const rows = Object.entries(parts)
    .filter(([, sizes]) => sizes[index])
    .map(([name, sizes]) => [view === "stacked" ? COMPONENTS[name] : name, `${exact(sizes[index])} tokens`]);
  return view === "stacked" ? rows.reverse() : rows;
}

function fill(tip, plot, data, index, view, left) {
  const rows = element("dl");
  for (const [name, value] of [...lines(data, index), ...areas(data, index, view)]) {
    rows.append(element("dt", "", name), element("dd", "", value));
  }
  tip.replaceChildren(element("b", "", `Turn ${data.turns[index]}`), rows);
  const miss = data.misses.find(({ turn }) => turn === data.turns[index]);
  if (miss) tip.append(element("p", "spike", `Cache miss (${exact(miss.tokens)} tokens): ${miss.cause}`));
  const idle = data.idle.find(({ turn }) => turn === data.turns[index]);
  if (idle) tip.append(element("p", "idle", `Idle for ${duration(idle.seconds)} before this turn`));
  const spike = data.spikes.find(({ turn }) => turn === data.turns[index]);
  if (spike) tip.append(element("p", "spike", `Tool output spike: ${exact(spike.tokens)} tokens`));
  for (const { author, text } of data.comments.filter(({ turn }) => turn === data.turns[index])) {
    tip.append(element("p", "comment", `${author}: ${text}`));
  }
  const compacted = near(plot, data.own_compactions, left);
  if (compacted) tip.append(own(compacted));
  const compaction = near(plot, data.compactions, left);
  if (compaction) tip.append(client(compaction));
}

export function tips(data, view, open) {
  return cursorTip("chart-tip", (tip, index, plot) => fill(tip, plot, data, index, view, plot.cursor.left), { below: 12, open });
}
