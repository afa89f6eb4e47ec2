"use strict";
// What is folded opens for a link into it, and for paper. What is jumped to lands below the line that stays on top.
(() => {
  const top = document.querySelector("nav");
  const keepClear = () => { document.documentElement.style.scrollPaddingTop = `${top.offsetHeight}px`; };
  keepClear();
  new ResizeObserver(keepClear).observe(top);

  const unfold = (event) => {
    const place = document.getElementById(address.id);
    if (!place) return;
    // Of a page that is just opened nobody knows whether it was scrolled there before this line had a height.
    let opened = !event;
    for (let each = place.querySelector(":scope > details.section") ?? place; each; each = each.parentElement?.closest("details")) {
      if (each.tagName === "DETAILS" && !each.open) opened = each.open = true;
    }
    if (opened) place.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  let shut = [];
  addEventListener("beforeprint", () => {
    shut = [...document.querySelectorAll("main details:not([open])")].filter((each) => !each.closest(".tree"));
    for (const each of shut) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of shut) each.open = false; });
})();
