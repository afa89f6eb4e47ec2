"use strict";
// Long work waits until the page is painted, and comes in pieces: between them the page answers.
const later = {
  // A tab in the background paints nothing, and is not waited for.
  painted: () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 400); }),
  turn: () => new Promise((done) => {
    if ("scheduler" in window) scheduler.postTask(done, { priority: "background" });
    else setTimeout(done);
  }),
};
// The page's address holds what is selected, and what of the timelines is in view: `#group-17@1200.5-1850`.
const address = {
  get id() { return location.hash.slice(1).split("@")[0]; },
  get view() { return location.hash.split("@")[1] ?? ""; },
  write(id, view = this.view) { history.replaceState(null, "", id || view ? `#${id}${view && `@${view}`}` : location.pathname + location.search); },
};
