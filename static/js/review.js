// The review of proposed facts: a row at a time by keyboard, several at once by their boxes.

const ROW = "[data-fact]";
const rowOf = (element) => element.closest?.(ROW);
const press = (row, selector) => row.querySelector(selector)?.click();

const KEYS = {
  a: (row) => press(row, 'button[value="accepted"]'),
  r: (row) => press(row, 'button[value="rejected"]'),
  u: (row) => press(row, ".decided + button"),
  x: (row) => press(row, 'input[name="fact"]'),
  e: (row) => row.querySelector("textarea")?.focus(),
};

document.addEventListener("keydown", (event) => {
  const row = rowOf(event.target);
  if (!row) return;
  if (event.target.matches("textarea, input:not([type=checkbox])")) {
    if (event.key === "Escape") row.focus();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) KEYS.a(row);
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key](row);
});

// After a decision the next row that waits has the focus.
document.addEventListener("htmx:load", (event) => {
  if (!event.target.matches(ROW)) return;
  let next = event.target;
  while (next?.matches(".is-decided")) next = next.nextElementSibling;
  (next ?? event.target).focus();
});

// What was edited is accepted by itself: together the facts are taken as they are stored.
document.addEventListener("input", (event) => {
  const box = event.target.matches("textarea") && rowOf(event.target)?.querySelector('input[name="fact"]');
  if (!box) return;
  box.disabled = event.target.value !== event.target.defaultValue;
  if (box.disabled) box.checked = false;
});

const all = document.querySelector("[data-all]");
if (all) {
  all.parentElement.hidden = false;
  all.addEventListener("change", () => {
    for (const box of document.querySelectorAll(`${ROW} input[name="fact"]:enabled`)) box.checked = all.checked;
  });
}
