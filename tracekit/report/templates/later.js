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
