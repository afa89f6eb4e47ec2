"use strict";
// Sections out of view are laid out once the page answers, one after the other. Until then they are as high as the style sheet guesses.
(async () => {
  await later.painted();
  for (const section of document.querySelectorAll("main > section")) {
    await later.turn();
    section.classList.add("laid");
  }
})();
