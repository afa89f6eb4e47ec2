"use strict";
// Sections out of view are laid out when all is drawn, one after the other. Until then they are as high as the style sheet guesses.
// A link into something folded opens it.
const unfold = () => {
  const place = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (!place) return;
  for (let each = place.querySelector(":scope > details.section") ?? place; each; each = each.parentElement?.closest("details")) if (each.tagName === "DETAILS") each.open = true;
};
addEventListener("hashchange", unfold);
unfold();
(async () => {
  // Whoever came for one section finds it where it was when all are as high as they are, unless they have moved on meanwhile.
  let moved = false;
  const events = ["wheel", "touchmove", "keydown"], move = () => { moved = true; }, arrive = () => { moved = false; };
  for (const each of events) addEventListener(each, move, { passive: true });
  addEventListener("hashchange", arrive);

  const state = document.documentElement.dataset;
  await later.painted();
  for (let waited = 0; state.timelines === "drawing" && waited < 10_000; waited += 50) await new Promise((done) => setTimeout(done, 50));
  for (const section of document.querySelectorAll("main > section")) {
    await later.turn();
    section.classList.add("laid");
  }
  for (const each of events) removeEventListener(each, move);
  removeEventListener("hashchange", arrive);
  if (!moved) document.getElementById(location.hash.slice(1))?.scrollIntoView();
})();
