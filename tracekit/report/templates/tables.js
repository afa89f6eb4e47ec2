"use strict";
// Tables: what is wider than its place can be reached by keyboard, and those of kernels and groups are sorted and searched.
// Without this script every row is shown, the largest first.
(() => {
  // A place that scrolls says so, and takes the focus, so that arrow keys scroll it.
  const mark = (place) => {
    const wider = place.scrollWidth > place.clientWidth + 1;
    place.classList.toggle("wider", wider);
    for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", place.dataset.label]]) {
      if (wider) place.setAttribute(name, value);
      else place.removeAttribute(name);
    }
  };
  const places = document.querySelectorAll(".scroll");
  const seen = new ResizeObserver((entries) => entries.forEach((entry) => mark(entry.target)));
  places.forEach((place) => seen.observe(place));

  const AT_FIRST = 10, FEW = 4;
  const explore = (box) => {
    const noun = box.dataset.noun, table = box.querySelector("table"), body = table.tBodies[0], rows = [...body.rows];
    const field = box.querySelector("input"), every = box.querySelector("button.every"), said = box.querySelector("[role=status]");
    const texts = new Map();
    const textOf = (row) => {
      if (!texts.has(row)) texts.set(row, (row.textContent + drawer.textOf(row)).toLowerCase());
      return texts.get(row);
    };
    // `only` are the rows of what was highlighted elsewhere on the page; none where nothing is.
    let all = rows.length <= AT_FIRST, only = new Set();

    const show = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = [...body.rows].filter((row) => words.every((word) => textOf(row).includes(word)) && (!only.size || only.has(row.id)));
      const shown = new Set(all || words.length || only.size ? found : found.slice(0, AT_FIRST));
      for (const row of rows) row.hidden = !shown.has(row);
      said.textContent = words.length || only.size
        ? `${found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} ${noun} ${only.size ? "are of the finding" : "match"}`
        : `${shown.size.toLocaleString("en")} of ${rows.length.toLocaleString("en")} ${noun} shown`;
      every.hidden = (rows.length <= AT_FIRST && !only.size) || words.length > 0;
      every.textContent = all && !only.size ? `Show the first ${AT_FIRST}` : `Show all ${rows.length.toLocaleString("en")}`;
      every.setAttribute("aria-expanded", String(all));
    };

    // Numbers first from the largest, words from A to Z; again the other way round.
    const sort = (head) => {
      const at = head.cellIndex, numeric = head.classList.contains("number");
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : numeric;
      const key = (row) => (numeric ? Number(row.cells[at].dataset.value) : row.cells[at].textContent.trim().toLowerCase());
      const order = (one, other) => (numeric ? one - other : one < other ? -1 : one > other ? 1 : 0);
      const sorted = [...body.rows].map((row) => [key(row), row]).sort((one, other) => (down ? -1 : 1) * order(one[0], other[0]));
      body.append(...sorted.map(([, row]) => row));
      for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      show();
    };

    for (const head of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(head));
      head.append(button);
    }
    field.addEventListener("input", show);
    every.addEventListener("click", () => { all = only.size > 0 || !all; only.clear(); show(); });
    // A row that is asked for is shown, whatever was searched for.
    box.addEventListener("reveal", () => { field.value = ""; all = true; only.clear(); show(); });
    if ("timeline" in box.dataset) document.addEventListener("tracekit:groups", ({ detail }) => { only = new Set(detail.map((each) => `group-${each}`)); show(); });
    // One that is selected later ends it.
    if ("timeline" in box.dataset) document.addEventListener("tracekit:group", () => { if (only.size) { only.clear(); show(); } });
    drawer.filled.then(() => { texts.clear(); show(); });
    // Who sees all at a glance has nothing to search for.
    box.querySelector(".controls").hidden = rows.length < FEW;
    box.classList.add("ready");
    show();
  };
  document.querySelectorAll(".explorer").forEach(explore);

  // "/" goes to the search, wherever the reader is, unless they are writing.
  addEventListener("keydown", (event) => {
    const field = document.querySelector(".explorer .controls:not([hidden]) input");
    if (event.key !== "/" || !field || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
    event.preventDefault();
    for (let fold = field.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    field.focus();
    field.select();
  });
})();
