// A rejected form returns with its errors: begin at the first one, which may be far down the page.

const invalid = document.querySelector('main [aria-invalid="true"]');
for (let menu = invalid?.closest("details"); menu; menu = menu.parentElement.closest("details")) menu.open = true;
invalid?.focus();

// Keep the keyboard's place when htmx replaces the focused element. htmx focuses its successor with the same `id`.
// Without one, focus the replaced part, so that Tab goes on there and not at the top of the page.

let replaced = null;
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  replaced = detail.target.contains(document.activeElement) ? detail.target.id : null;
});
document.addEventListener("htmx:afterSettle", () => {
  const part = replaced && document.activeElement === document.body ? document.getElementById(replaced) : null;
  replaced = null;
  if (!part) return;
  part.tabIndex = -1;
  part.classList.add("refocused");
  part.focus({ preventScroll: true });
});
