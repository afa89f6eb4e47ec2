"use strict";
// Sections out of view are laid out once the page answers, one after the other. Until then they are as high as the style sheet guesses.
(async () => {
  // Whoever came for one section finds it where it was when all are as high as they are, unless they have moved on meanwhile.
  let moved = false;
  const events = ["wheel", "touchmove", "keydown"], move = () => { moved = true; }, arrive = () => { moved = false; };
  for (const each of events) addEventListener(each, move, { passive: true });
  addEventListener("hashchange", arrive);

  await later.painted();
  for (const section of document.querySelectorAll("main > section")) {
    await later.turn();
    section.classList.add("laid");
  }
  for (const each of events) removeEventListener(each, move);
  removeEventListener("hashchange", arrive);
  if (!moved) document.getElementById(location.hash.slice(1))?.scrollIntoView();
})();
