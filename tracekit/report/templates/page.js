"use strict";
// Draws the charts. Without this script, or where it fails, the tables below hold every value.
(async () => {
  const charts = JSON.parse(document.getElementById("chart-data").textContent);
  const packed = document.getElementById("plotly-packed");
  const state = document.documentElement.dataset;
  state.charts = "none";
  if (!charts.length || !packed || !("DecompressionStream" in window)) return;
  state.charts = "drawing";

  // Each has its place, as high as it will be, before anything is painted: what is read meanwhile does not move.
  const places = new Map(charts.map((chart) => [chart, document.getElementById(chart.id)]));
  for (const place of places.values()) place.closest("figure").hidden = false;
  await later.painted();

  const bytes = Uint8Array.from(atob(packed.textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  await later.turn();
  document.head.append(script);
  packed.remove();

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  // Figures name colours as the style sheet does; it knows them for light and dark.
  const coloured = (value) => {
    const named = typeof value === "string" && /^var\(--([\w-]+)\)$/.exec(value);
    if (named) return colour(named[1]);
    if (Array.isArray(value)) return value.map(coloured);
    if (!value || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, coloured(each)]));
  };

  // Paper's width is not known before it is printed on: all charts are as wide as the narrowest sheet in use.
  const paper = matchMedia("print"), ON_PAPER = 620, CLEAR = "rgba(0,0,0,0)";
  const font = getComputedStyle(document.body).fontFamily;
  const layoutOf = (chart, width) => {
    const narrow = width < 480;
    const { title, ...layout } = coloured(chart.layout);
    return {
      ...layout,
      ...(paper.matches ? { width: ON_PAPER } : {}),
      height: chart.height,
      margin: { ...layout.margin, t: 8 },
      paper_bgcolor: CLEAR,
      plot_bgcolor: CLEAR,
      font: { ...layout.font, family: font, size: narrow ? 11 : 12 },
      xaxis: { ...layout.xaxis, ...(narrow ? widened(layout.xaxis.range, layout.annotations) : {}) },
    };
  };

  // Values stand outside their bars, and need more of a narrow chart's width.
  const widened = (range, values) => range && values ? { range: [range[0], range[1] + 0.3 * (range[1] - range[0])], nticks: 4 } : {};

  const draw = (chart) => {
    const place = places.get(chart);
    return Plotly.react(place, coloured(chart.data), layoutOf(chart, place.clientWidth), { displayModeBar: false });
  };

  // A picture has its title and its paper with it.
  const PICTURE = { width: 900, scale: 2 };
  const save = (chart, format) => {
    const layout = coloured(chart.layout);
    layout.font.family = font;
    return Plotly.downloadImage({ data: coloured(chart.data), layout }, { ...PICTURE, height: layout.height, format, filename: `${document.title}-${chart.id}` });
  };
  for (const [chart, place] of places) {
    for (const button of place.closest("figure").querySelectorAll("[data-save]")) {
      button.addEventListener("click", () => save(chart, button.dataset.save));
    }
  }

  // As wide as its place is: a window's own event comes before a changed style sheet has moved anything.
  const fit = (place) => { if (!paper.matches && place.clientWidth && place.clientWidth !== place._fullLayout?.width) Plotly.Plots.resize(place); };
  const wide = new ResizeObserver((entries) => entries.forEach((entry) => fit(entry.target)));
  const drawAll = () => Promise.all(charts.map(draw));
  // Before the first is drawn: the page may be printed meanwhile.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  paper.addEventListener("change", async () => {
    await drawAll();
    for (const place of places.values()) fit(place);
  });

  // What is in view first, or nearest to it.
  const waiting = new Set(charts);
  const far = (chart) => {
    const box = places.get(chart).getBoundingClientRect();
    return Math.max(box.top - innerHeight, -box.bottom, 0);
  };
  while (waiting.size) {
    await later.turn();
    const next = [...waiting].reduce((one, other) => (far(other) < far(one) ? other : one));
    waiting.delete(next);
    await draw(next);
    wide.observe(places.get(next));
  }
  state.charts = "drawn";
})();
