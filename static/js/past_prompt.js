// The prompt at a turn: [ and ] open the previous and next page.

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea, dialog")) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const rel = { "[": "prev", "]": "next" }[event.key];
  if (rel) document.querySelector(`a[rel="${rel}"]`)?.click();
});
