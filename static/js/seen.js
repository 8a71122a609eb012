// The prompt of a turn: copying its JSON or the page's address, and the neighbours by [ and ].

async function copied(place, text) {
  await navigator.clipboard.writeText(text);
  place.textContent = "copied";
}

for (const actions of document.querySelectorAll("[data-json]")) {
  const told = actions.querySelector("[data-copied]");
  const say = (error) => (told.textContent = `not copied: ${error.message}`);
  const json = actions.querySelector("[data-copy-json]");
  json.hidden = false;
  json.addEventListener("click", async () => {
    try {
      const answer = await fetch(actions.dataset.json);
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      await copied(told, await answer.text());
    } catch (error) {
      say(error);
    }
  });
  const address = actions.querySelector("[data-copy-address]");
  address.hidden = false;
  address.addEventListener("click", () => copied(told, location.href.split("#")[0]).catch(say));
}

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea, dialog")) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const rel = { "[": "prev", "]": "next" }[event.key];
  if (rel) document.querySelector(`a[rel="${rel}"]`)?.click();
});
