// What stands beside the cursor: the exact figures of a turn, and the record of a compaction near it.

import { besideCursor } from "./beside.js";
import { COMPONENTS, duration, element, exact, has } from "./format.js";

// A marker is a line one pixel wide: near is as good as on it.
const NEAR = 6;

export function near(plot, marks, left) {
  const distance = (mark) => Math.abs(plot.valToPos(mark.turn, "x") - left);
  const [closest] = [...marks].sort((one, other) => distance(one) - distance(other));
  return closest && distance(closest) <= NEAR ? closest : null;
}

function own(record) {
  const said = element("div", "own");
  const reverted = record.is_reverted ? ", reverted later" : "";
  said.append(element("p", "", `compaction ${record.number} (${record.trigger}${reverted})`));
  said.append(element("p", "", `${exact(record.tokens_before)} → ${exact(record.tokens_after)} tokens`));
  if (record.steps.length) said.append(element("p", "", record.steps.join(", ")));
  said.append(element("p", "", `${record.dropped} messages gone, ${record.collapsed} parts shorter`));
  if (record.break_even_turns != null) {
    said.append(element("p", "", `pays for itself after ${record.break_even_turns} turns`));
  }
  said.append(element("p", "hint", "click for the whole record"));
  return said;
}

function client(compaction) {
  const before = compaction.tokens_before ? `, ${exact(compaction.tokens_before)} tokens before` : "";
  const trigger = compaction.trigger ? ` (${compaction.trigger})` : "";
  return element("p", "", `the client compacted${trigger}${before}`);
}

function lines(data, index) {
  const found = [
    ["reported", data.reported[index]],
    ["served", data.served[index]],
    [has(data.served) ? "whole transcript" : "estimate", data.estimate[index]],
  ];
  const size = data.reported[index] ?? data.served[index] ?? data.estimate[index];
  const limit = data.budget ?? data.window;
  const rows = found.filter(([, value]) => value != null).map(([name, value]) => [name, `${exact(value)} tokens`]);
  if (limit) rows.push([data.budget ? "of the budget" : "of the window", `${((100 * size) / limit).toFixed(1)} %`]);
  return rows;
}

function areas(data, index) {
  return Object.entries(data.components)
    .filter(([, sizes]) => sizes[index])
    .map(([name, sizes]) => [COMPONENTS[name], `${exact(sizes[index])} tokens`])
    .reverse();
}

function fill(tip, plot, data, index, isStacked, left) {
  const rows = element("dl");
  for (const [name, value] of [...lines(data, index), ...(isStacked ? areas(data, index) : [])]) {
    rows.append(element("dt", "", name), element("dd", "", value));
  }
  tip.replaceChildren(element("b", "", `Turn ${data.turns[index]}`), rows);
  const idle = data.idle.find(({ turn }) => turn === data.turns[index]);
  if (idle) tip.append(element("p", "idle", `after ${duration(idle.seconds)} idle`));
  const compacted = near(plot, data.own_compactions, left);
  if (compacted) tip.append(own(compacted));
  const compaction = near(plot, data.compactions, left);
  if (compaction) tip.append(client(compaction));
}

export function tips(data, isStacked) {
  return besideCursor("chart-tip", (tip, index, plot) => fill(tip, plot, data, index, isStacked, plot.cursor.left));
}
