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

  // Figures name colours by their part ("gain"); the style sheet knows them for light and dark.
  const coloured = (value, key) => {
    if (key === "color" && typeof value === "string") return colour(value) || value;
    if (Array.isArray(value)) return value.map((each) => coloured(each));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, coloured(each, name)]));
    }
    return value;
  };

  // Paper's width is not known before it is printed on: all charts are as wide as the narrowest sheet in use.
  const paper = matchMedia("print"), ON_PAPER = 620;
  const layoutOf = (chart, width) => {
    const narrow = width < 480;
    const ink = colour("ink"), rule = colour("rule");
    const axis = { gridcolor: rule, zerolinecolor: rule, fixedrange: true, automargin: true };
    return {
      ...chart.layout,
      ...(paper.matches ? { width: ON_PAPER } : {}),
      height: chart.height,
      margin: { l: 8, r: 12, t: 8, b: 40 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: narrow ? 11 : 12, color: ink },
      hoverlabel: { font: { color: ink }, bgcolor: colour("raised"), bordercolor: rule },
      showlegend: chart.data.length > 1,
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1, yanchor: "bottom" },
      bargap: 0.35,
      bargroupgap: 0.08,
      xaxis: { ...axis, ...chart.layout.xaxis, ...widened(chart, narrow) },
      yaxis: { ...axis, ...chart.layout.yaxis, autorange: "reversed", showgrid: false, zeroline: false, ticks: "outside", ticklen: 6, tickcolor: "rgba(0,0,0,0)" },
    };
  };

  // Values stand outside their bars, and need more of a narrow chart's width.
  const widened = (chart, narrow) => {
    const range = chart.layout.xaxis.range;
    return range && narrow ? { range: [range[0], range[1] * 1.3], nticks: 4 } : {};
  };

  const draw = (chart) => {
    const place = places.get(chart);
    return Plotly.react(place, coloured(chart.data), layoutOf(chart, place.clientWidth), { displayModeBar: false, responsive: true });
  };
  const drawAll = () => Promise.all(charts.map(draw));

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
  }
  state.charts = "drawn";
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  paper.addEventListener("change", async () => {
    await drawAll();
    if (!paper.matches) for (const place of places.values()) if (place.clientWidth) Plotly.Plots.resize(place);
  });
})();
