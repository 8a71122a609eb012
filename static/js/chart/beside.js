// A box beside the cursor, kept within the plot; `fill` says what is in it.

import { element } from "./format.js";

export function besideCursor(className, fill, below = 12) {
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
        const toTheLeft = left + tip.offsetWidth + 24 > plot.over.clientWidth;
        const x = toTheLeft ? Math.max(left - tip.offsetWidth - 12, 0) : left + 12;
        const y = Math.min(top + below, plot.over.clientHeight - tip.offsetHeight);
        tip.style.transform = `translate(${x}px, ${Math.max(y, 0)}px)`;
      },
    },
  };
}
