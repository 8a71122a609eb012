// Lines across the plot for compactions, tool output spikes, idle gaps, budget and window.

import { isBudgetShown, windowShown } from "./format.js";

export function line(plot, colour, from, to, dashes = [6, 4], width = 1.5) {
  const { ctx } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = width * devicePixelRatio;
  ctx.setLineDash(dashes.map((dash) => dash * devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...to);
  ctx.stroke();
  ctx.restore();
}

// A dashed line across the whole plot at a number of tokens.
export function budgetPlugin(tokens, colour) {
  return {
    hooks: {
      drawAxes: (plot) => {
        const { left, top, width } = plot.bbox;
        const y = plot.valToPos(tokens, "y", true);
        if (y >= top) line(plot, colour, [left, y], [left + width, y]);
      },
    },
  };
}

// Lines closer than this many pixels would hide the curves: only their upper ends are drawn.
const APART = 10;

// A small triangle at the top edge that points to the turn.
function comments(plot, found, colour) {
  const { ctx } = plot;
  const { left, top, width } = plot.bbox;
  const size = 6 * devicePixelRatio;
  ctx.save();
  ctx.fillStyle = colour;
  for (const { turn } of found) {
    const x = plot.valToPos(turn, "x", true);
    if (x < left - 1 || x > left + width + 1) continue;
    ctx.beginPath();
    ctx.moveTo(x - size, top - size / 2);
    ctx.lineTo(x + size, top - size / 2);
    ctx.lineTo(x, top + size);
    ctx.fill();
  }
  ctx.restore();
}

export function marks(data, colour, view) {
  return {
    hooks: {
      draw: (plot) => {
        const { left, top, width, height } = plot.bbox;
        const across = (turns, stroke, [from, to] = [0, turns.length * APART * devicePixelRatio > width ? 0.05 : 1], dashes, thick) => {
          for (const { turn } of turns) {
            const x = plot.valToPos(turn, "x", true);
            if (x < left - 1 || x > left + width + 1) continue;
            line(plot, stroke, [x, top + height * from], [x, top + height * to], dashes, thick);
          }
        };
        across(data.idle, colour.idle, [0.96, 1], [], 3);
        across(view === "cost" ? data.misses : data.spikes, colour.spike, [0.9, 1], [], 3);
        across(data.compactions, colour.compaction);
        comments(plot, data.comments, colour.comment);
        across(data.own_compactions, colour.own);
        if (view === "cost") return;
        const limit = (tokens, stroke, from, to) => {
          const y = plot.valToPos(tokens, "y", true);
          if (y >= top - 1) line(plot, stroke, [from, y], [to, y]);
        };
        // Each budget from the turn from which it applied to the next one.
        const starts = [left, ...data.budgets.slice(1).map(({ turn }) => plot.valToPos(turn, "x", true)), left + width];
        for (const [index, { tokens }] of data.budgets.entries()) {
          if (isBudgetShown(data, tokens)) limit(tokens, colour.budget, starts[index], starts[index + 1]);
        }
        if (windowShown(data)) limit(data.window, colour.window, left, left + width);
      },
    },
  };
}
