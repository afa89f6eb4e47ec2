"use strict";
// A row of an explorer opens to a drawer: by a click, Enter, its address (#group-17), or a kernel pinned in the timeline.
const drawer = (() => {
  const rows = new Map(), contents = new Map(), codes = new Map();
  const element = (name, properties, ...inside) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...inside);
    return made;
  };
  // What rows open to is packed, and unpacked when the page is painted; their headings open it from then on.
  const fill = async (packed) => {
    const bytes = Uint8Array.from(atob(packed.textContent.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const holder = document.createElement("template");
    holder.innerHTML = await new Response(stream).text();
    for (const content of [...holder.content.querySelectorAll("[data-of]")]) {
      const row = document.getElementById(content.dataset.of);
      if (!row) { codes.set(content.dataset.of, content); continue; }
      const opens = element("button", { type: "button", className: "opens" }, ...row.cells[0].childNodes);
      opens.setAttribute("aria-haspopup", "dialog");
      opens.setAttribute("aria-expanded", "false");
      row.cells[0].append(opens);
      contents.set(row, content);
      rows.set(row.id, row);
    }
    for (const button of holder.content.querySelectorAll("button.copy")) button.hidden = false;
    packed.remove();
  };

  const title = element("h2", { id: "drawer-title" }), figures = element("p", { className: "figured" }), held = element("div");
  const link = element("a"), copy = element("button", { type: "button", className: "copy", textContent: "Copy link" });
  const show = element("button", { type: "button", textContent: "Show in the timeline" });
  const closes = element("button", { type: "button", className: "close", textContent: "Close" });
  const controls = element("div", { className: "controls" }, link, copy, show);
  const box = element("div", { className: "drawer", id: "drawer", tabIndex: -1, hidden: true }, title, closes, figures, controls, held);
  box.setAttribute("role", "dialog");
  box.setAttribute("aria-labelledby", title.id);
  document.body.append(box);

  const NARROW = matchMedia("(max-width: 60rem)");
  let chosen = null;
  const tell = (row, more) => {
    if (!("timeline" in row.closest(".explorer").dataset)) return;
    const detail = { group: Number(row.id.split("-").pop()), from: "groups", ...more };
    document.dispatchEvent(new CustomEvent("tracekit:group", { detail }));
  };
  const mark = (row, open) => {
    row.classList.toggle("chosen", open);
    row.querySelector(".opens").setAttribute("aria-expanded", String(open));
  };

  const open = (row) => {
    if (chosen) mark(chosen, false);
    chosen = row;
    mark(row, true);
    const [head, ...cells] = row.cells;
    title.replaceChildren(...[...head.querySelector(".opens").childNodes].map((each) => each.cloneNode(true)));
    figures.replaceChildren(...cells.map((cell) => element("span", {}, element("b", { textContent: `${cell.dataset.column} ` }), cell.textContent)));
    link.href = link.textContent = `#${row.id}`;
    show.hidden = !("timeline" in row.closest(".explorer").dataset) || !document.querySelector(".timelines:not([hidden])");
    const content = contents.get(row);
    // A kernel's code is in the page once, and goes to the row that is open.
    for (const place of content.querySelectorAll("[data-code]")) place.replaceChildren(codes.get(place.dataset.code) ?? "");
    held.replaceChildren(content);
    box.hidden = false;
    box.scrollTop = 0;
    document.documentElement.dataset.drawer = "open";
  };
  const openByReader = (row) => {
    open(row);
    address.write(row.id);
    tell(row);
    // Of a narrow screen it takes the lower part: the row stays in view above it.
    const below = row.getBoundingClientRect().bottom - box.getBoundingClientRect().top;
    if (NARROW.matches && below > 0) scrollBy({ top: below });
    box.focus({ preventScroll: true });
  };
  const close = () => {
    if (!chosen) return;
    const row = chosen, inside = box.contains(document.activeElement);
    mark(row, false);
    chosen = null;
    box.hidden = true;
    delete document.documentElement.dataset.drawer;
    if (address.id === row.id) address.write("");
    if (inside) row.querySelector(".opens").focus();
  };
  const openFromAddress = () => {
    const row = rows.get(address.id);
    if (!row) return;
    for (let fold = row.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    row.dispatchEvent(new CustomEvent("reveal", { bubbles: true }));
    row.scrollIntoView({ block: "center" });
    openByReader(row);
  };

  for (const body of document.querySelectorAll(".explorer tbody")) {
    body.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      // Whoever selects text does not ask for the drawer.
      if (!contents.has(row) || String(getSelection())) return;
      if (row === chosen) close(); else openByReader(row);
    });
  }
  closes.addEventListener("click", close);
  copy.addEventListener("click", () => { copy.dataset.text = location.href; });
  show.addEventListener("click", () => tell(chosen, { show: true }));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  document.addEventListener("tracekit:group", ({ detail }) => {
    if (detail.from !== "timeline") return;
    const row = rows.get(`group-${detail.group}`);
    // Where the reader is stays in view, and keeps the focus.
    if (!row) { close(); return; }
    open(row);
    address.write(row.id);
  });
  addEventListener("hashchange", openFromAddress);
  const filled = (async () => {
    if (!("DecompressionStream" in window)) return;
    await later.painted();
    for (const packed of document.querySelectorAll(".explorer .packed")) await fill(packed);
  })();
  filled.then(openFromAddress);
  return { filled, textOf: (row) => contents.get(row)?.textContent ?? "" };
})();
