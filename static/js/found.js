// Highlight what a search found in a message of the transcript: ?find=…#message-12.

const words = new URLSearchParams(location.search).getAll("find").map((word) => word.toLowerCase()).filter(Boolean);
const message = () => document.getElementById(location.hash.slice(1));

function rangesIn(node) {
  const text = node.data.toLowerCase();
  const found = [];
  for (const word of words) {
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + word.length);
      found.push(range);
    }
  }
  return found;
}

function rangesOf(element) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    if (walker.currentNode.data.length === walker.currentNode.data.toLowerCase().length) found.push(...rangesIn(walker.currentNode));
  }
  return found;
}

const isShown = (range) => range.startContainer.parentElement.checkVisibility();

function highlight() {
  const target = message();
  if (!target) return;
  const ranges = rangesOf(target);
  CSS.highlights.set("found", new Highlight(...ranges));
  const first = ranges.find(isShown);
  if (first) first.startContainer.parentElement.scrollIntoView({ block: "center" });
}

if (words.length && message() && "highlights" in CSS) {
  // The match may be in a part of the text that is folded.
  if (!rangesOf(message()).some((range) => isShown(range))) {
    for (const details of message().querySelectorAll("details")) details.open = true;
  }
  highlight();
  document.addEventListener("htmx:afterSettle", (event) => {
    if (message()?.contains(event.target)) highlight();
  });
}
