// The prompt at a turn: copy its JSON or a link to the page; [ and ] open the previous and next page.

async function copy(place, text) {
  await navigator.clipboard.writeText(text);
  place.textContent = "Copied";
}

for (const actions of document.querySelectorAll("[data-json]")) {
  const status = actions.querySelector("[data-copied]");
  const showError = (error) => (status.textContent = `Copy failed: ${error.message}`);
  const json = actions.querySelector("[data-copy-json]");
  json.hidden = false;
  json.addEventListener("click", async () => {
    try {
      const response = await fetch(actions.dataset.json);
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      await copy(status, await response.text());
    } catch (error) {
      showError(error);
    }
  });
  const address = actions.querySelector("[data-copy-address]");
  address.hidden = false;
  address.addEventListener("click", () => copy(status, location.href.split("#")[0]).catch(showError));
}

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea, dialog")) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const rel = { "[": "prev", "]": "next" }[event.key];
  if (rel) document.querySelector(`a[rel="${rel}"]`)?.click();
});
