// A uPlot plugin: a tooltip next to the cursor, kept inside the plot. `fill(tip, index, plot)` renders its content.
// The mouse moves the cursor, and so do arrow keys while the chart has the focus: Enter calls `open(plot, left, index)`.

import { element } from "./format.js";

const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };

// Handlers are properties of the chart's place, because a chart that is drawn again replaces its plot.
function keyboard(plot, tip, open) {
  const place = plot.root.parentElement;
  const [values] = plot.data;
  const last = values.length - 1;
  let at = null;
  const show = (index) => {
    at = Math.min(Math.max(index, 0), last);
    plot.setCursor({ left: plot.valToPos(values[at], "x"), top: 0 });
    // Screen readers announce the text of the point. Lines of the tooltip are tabbed tables or alternate.
    Object.assign(place, { ariaValueMax: last, ariaValueNow: at, ariaValueText: tip.innerText.replace(/\s*\n\s*/g, ", ").replaceAll("\t", " ").trim() });
  };
  const isFocused = () => place.matches(":focus-visible");
  place.onfocus = () => { if (isFocused()) show(at ?? last); };
  place.onblur = () => plot.setCursor({ left: -10, top: -10 });
  place.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (event.key in STEPS) show((at ?? last) + STEPS[event.key]);
    else if (event.key === "Enter" && at != null) open?.(plot, plot.cursor.left, at);
    else return;
    event.preventDefault();
  };
  if (isFocused()) show(Math.min(Number(place.ariaValueNow ?? last), last));
}

export function cursorTip(className, fill, { below = 0, open } = {}) {
  const tip = element("div", className);
  tip.hidden = true;
  return {
    hooks: {
      init: (plot) => plot.over.append(tip),
      ready: (plot) => keyboard(plot, tip, open),
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
