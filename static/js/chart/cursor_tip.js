// A uPlot plugin: a tooltip next to the cursor, kept inside the plot. `fill(tip, index, plot)` renders its content.

import { element } from "./format.js";

export function cursorTip(className, fill, below = 12) {
  const tip = element("div", className);
  tip.hidden = true;
  return {
    hooks: {
      init: (plot) => plot.over.append(tip),
      setCursor: (plot) => {
        const { idx, left, top } = plot.cursor;
        tip.hidden = idx == null || left < 0;
        if (tip.hidden) return;
        fill(tip, idx, plot);
        const isLeft = left + tip.offsetWidth + 24 > plot.over.clientWidth;
        const x = isLeft ? Math.max(left - tip.offsetWidth - 12, 0) : left + 12;
        const y = Math.min(top + below, plot.over.clientHeight - tip.offsetHeight);
        tip.style.transform = `translate(${x}px, ${Math.max(y, 0)}px)`;
      },
    },
  };
}
