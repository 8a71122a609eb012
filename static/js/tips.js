// Tooltips: show `title` attributes on hover, keyboard focus and tap, and to screen readers.

const DELAY = 350;  // milliseconds of hovering
const INTERACTIVE = "a, button, input, select, textarea, summary, label";
// Exact values and times repeat in each row: a tab stop for each one would hinder keyboard users.
const WITHOUT_STOP = "time, data, option, svg *";

const tip = document.createElement("div");
tip.className = "tip";
tip.id = "tip";
tip.setAttribute("role", "tooltip");
tip.setAttribute("popover", "manual");
const texts = document.createElement("div");
texts.hidden = true;
document.body.append(tip, texts);

const described = new Map();
let owner = null;
let timer = null;

// The id of a hidden element with the text, for `aria-describedby`.
function description(text) {
  if (!described.has(text)) {
    const element = document.createElement("span");
    element.id = `tip-${described.size}`;
    element.textContent = text;
    texts.append(element);
    described.set(text, element.id);
  }
  return described.get(text);
}

function prepare(within) {
  for (const element of within.querySelectorAll("[title]")) {
    if (element.dataset.tipReady !== undefined || !element.title) continue;
    element.dataset.tipReady = "";
    // The whole of a text that may be cut off: screen readers read it anyway, and a stop in each row would be one too many.
    if (element.title === element.textContent.trim()) continue;
    if (!element.hasAttribute("aria-describedby") && element.textContent.trim()) {
      element.setAttribute("aria-describedby", description(element.title));
    }
    if (!element.closest(INTERACTIVE) && !element.querySelector(INTERACTIVE) && !element.matches(WITHOUT_STOP)) {
      element.tabIndex = 0;
    }
  }
}

function show(element) {
  if (owner === element) return;
  hide();
  const text = element.title;
  if (!text) return;
  owner = element;
  // Without the attribute, the browser does not show a second tooltip.
  element.removeAttribute("title");
  element.dataset.tip = text;
  tip.textContent = text;
  tip.showPopover();
  place();
}

function place() {
  const box = owner.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = tip;
  const left = Math.min(Math.max(8, box.left + box.width / 2 - width / 2), window.innerWidth - width - 8);
  const below = box.bottom + 6 + height <= window.innerHeight;
  tip.style.left = `${left}px`;
  tip.style.top = `${below ? box.bottom + 6 : Math.max(8, box.top - height - 6)}px`;
}

function hide() {
  clearTimeout(timer);
  if (!owner) return;
  owner.title = owner.dataset.tip;
  delete owner.dataset.tip;
  owner = null;
  tip.hidePopover();
}

const titled = (target) => (target instanceof Element ? target.closest("[title], [data-tip]") : null);

// Text that is cut off shows in full to the mouse. Screen readers read all of it anyway.
const CUT = ".sessions .title, .sessions .id, .facets a";
function pointedAt(target) {
  const cut = target instanceof Element && !titled(target) && target.closest(CUT);
  if (cut && (cut.scrollWidth > cut.clientWidth || cut.scrollHeight > cut.clientHeight)) cut.title = cut.textContent.trim();
  return titled(target);
}

document.addEventListener("pointerover", (event) => {
  if (event.pointerType !== "mouse") return;
  const element = pointedAt(event.target);
  if (element === owner) return;
  hide();
  if (element) timer = setTimeout(show, DELAY, element);
});
document.addEventListener("focusin", (event) => {
  const element = titled(event.target);
  if (element && event.target.matches(":focus-visible")) show(element);
});
document.addEventListener("focusout", hide);
// Focus may scroll the page to the element.
document.addEventListener("scroll", () => {
  if (!owner) return;
  if (owner === document.activeElement) place();
  else hide();
}, { capture: true, passive: true });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hide();
});

// A tap shows the tooltip, and the next tap hides it. The first tap on a linked term does not open the link.
let touched = false;
document.addEventListener("pointerdown", (event) => { touched = event.pointerType !== "mouse"; });
document.addEventListener("click", (event) => {
  if (!touched) return;
  const element = titled(event.target);
  if (!element || element === owner) {
    if (!element?.matches("a")) hide();
    return;
  }
  if (element.matches(".term")) event.preventDefault();
  if (element.matches(".term") || !event.target.closest("a, button, input, select, label, summary")) show(element);
  else hide();
}, { capture: true });

prepare(document);
document.addEventListener("htmx:load", (event) => prepare(event.target));
