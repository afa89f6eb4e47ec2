"use strict";
// Draws the timelines of the sides, below each other. What is narrower than a pixel is drawn together with its neighbours: in the colour of the
// longest, and as high as they fill the pixel. Without this script, or where it fails, the tables hold the figures.
(async () => {
  const source = document.getElementById("timelines-data"), box = document.querySelector(".timelines");
  const state = document.documentElement.dataset;
  state.timelines = "none";
  if (!source || !box || !("DecompressionStream" in window)) return;
  state.timelines = "drawing";
  const data = JSON.parse(source.textContent);

  const NO_GROUP = 65535, MARGIN = 6, AXIS = 22, TITLE = 20, WORK = 24, GAPS = 12, HOST = 14, BETWEEN = 4, NEAR = 4, LEAST_FILLED = 0.15, LEAST_TEXTURED = 5;
  // Its place, as high as it will be, before anything is painted.
  const canvas = box.querySelector("canvas"), rowsHigh = (side) => TITLE + (WORK + BETWEEN) * side.lanes.length + GAPS + HOST + 2 * BETWEEN;
  const height = data.sides.reduce((sum, side) => sum + rowsHigh(side), AXIS) + MARGIN;
  canvas.style.height = `${height}px`;
  box.hidden = false;
  await later.painted();

  const packed = Uint8Array.from(atob(data.packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(stream).arrayBuffer();

  // Columns follow one another without padding, so each is copied to where it may be read as numbers.
  let offset = 0;
  const column = (type, count) => {
    const end = offset + count * type.BYTES_PER_ELEMENT;
    const taken = new type(bytes.slice(offset, end));
    offset = end;
    return taken;
  };
  const bars = (count) => {
    const differences = column(Uint32Array, count), durations = column(Uint32Array, count), labels = column(Uint16Array, count);
    const starts = new Float64Array(count), ends = new Float64Array(count);
    let at = 0;
    for (let i = 0; i < count; i++) {
      at += differences[i];
      starts[i] = at / 100;
      ends[i] = (at + durations[i]) / 100;
    }
    return { starts, ends, labels };
  };
  // One row of bars each: `rows` are the positions of its bars in order, `reach` until where all up to one have ended.
  const row = (side, name, height, from, keep) => {
    const rows = [];
    for (let i = 0; i < from.starts.length; i++) if (!keep || keep(i)) rows.push(i);
    const reach = new Float64Array(rows.length);
    let far = 0;
    rows.forEach((i, at) => { far = Math.max(far, from.ends[i]); reach[at] = far; });
    return { side, name, height, ...from, rows, reach, y: 0 };
  };
  const lanes = [];
  for (const side of data.sides) {
    await later.turn();
    const [work, gaps, host] = side.counts;
    const of = bars(work);
    of.groups = column(Uint16Array, work);
    of.lanes = column(Uint8Array, work);
    side.work = of;
    side.first = lanes.length;
    side.lanes.forEach((name, lane) => lanes.push(row(side, name, WORK, of, (i) => of.lanes[i] === lane)));
    lanes.push(row(side, "idle", GAPS, bars(gaps)), row(side, "host", HOST, bars(host)));
  }
  let y = AXIS;
  for (const [at, lane] of lanes.entries()) {
    if (data.sides.some((side) => side.first === at)) y += TITLE;
    lane.y = y;
    y += lane.height + BETWEEN;
  }
  const whole = Math.max(...data.sides.map((side) => side.length));

  const pen = canvas.getContext("2d"), readout = box.querySelector(".readout");
  let from = 0, to = whole, width = 0, chosen = null;
  const scale = () => (width - 2 * MARGIN) / (to - from);
  const colours = new Map();
  const colour = (name) => {
    if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
    return colours.get(name);
  };
  const kindColour = (lane, i) => colour(`kind-${lane.side.labels[lane.labels[i]][1]}`) || colour("kind-other");
  // Lines of the paper's colour: diagonal, crossed, lying, or standing.
  const patterns = new Map();
  const pattern = (texture) => {
    if (!patterns.has(texture)) {
      const tile = document.createElement("canvas"), size = tile.width = tile.height = 6, brush = tile.getContext("2d");
      brush.strokeStyle = colour("paper");
      brush.lineWidth = 1.1;
      brush.beginPath();
      const line = (x, y, toX, toY) => { brush.moveTo(x, y); brush.lineTo(toX, toY); };
      // Beside the tile too, so that lines meet across its edges.
      for (const by of [-size, 0, size]) {
        if (texture === "lines") line(0, size / 2, size, size / 2);
        else if (texture === "columns") line(size / 2, 0, size / 2, size);
        else line(by, size, by + size, 0);
        if (texture === "cross") line(by, 0, by + size, size);
      }
      brush.stroke();
      patterns.set(texture, pen.createPattern(tile, "repeat"));
    }
    return patterns.get(texture);
  };
  const firstAfter = (lane, time) => {
    let low = 0, high = lane.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lane.reach[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  };
  const lit = () => (chosen && chosen.lane.groups ? chosen.lane.groups[chosen.i] : NO_GROUP);

  const told = { drawn: 0, merged: 0, lit: 0 };
  const drawLane = (lane, group) => {
    const unit = scale();
    let pixel = -1, best = -1, filled = 0;
    const put = (i, x, wide, share = 1) => {
      const bright = group === NO_GROUP || (lane.groups && lane.groups[i] === group);
      pen.globalAlpha = bright ? 1 : 0.18;
      pen.fillStyle = kindColour(lane, i);
      const high = lane.height * Math.min(Math.max(share, LEAST_FILLED), 1);
      pen.fillRect(x, lane.y + lane.height - high, wide, high);
      const texture = wide >= LEAST_TEXTURED && data.textures[lane.side.labels[lane.labels[i]][1]];
      if (texture) {
        pen.fillStyle = pattern(texture);
        pen.fillRect(x, lane.y + lane.height - high, wide, high);
      }
      told.drawn++;
    };
    const flush = () => { if (pixel >= 0) put(best, pixel, 1, filled); pixel = -1; };
    const better = (i, other) => {
      if (group !== NO_GROUP && lane.groups && (lane.groups[i] === group) !== (lane.groups[other] === group)) return lane.groups[i] === group;
      return lane.ends[i] - lane.starts[i] > lane.ends[other] - lane.starts[other];
    };
    for (let at = firstAfter(lane, from); at < lane.rows.length; at++) {
      const i = lane.rows[at];
      if (lane.starts[i] > to) break;
      if (lane.ends[i] < from) continue;
      if (lane.groups && lane.groups[i] === group) told.lit++;
      const x = MARGIN + (Math.max(lane.starts[i], from) - from) * unit, wide = (Math.min(lane.ends[i], to) - Math.max(lane.starts[i], from)) * unit;
      if (wide >= 1) { flush(); put(i, x, Math.max(wide - (wide > 4 ? 0.5 : 0), 1)); continue; }
      if (Math.floor(x) === pixel) { told.merged++; filled += wide; if (better(i, best)) best = i; continue; }
      flush();
      pixel = Math.floor(x);
      best = i;
      filled = wide;
    }
    flush();
    pen.globalAlpha = 1;
  };

  const asTime = (us, apart = us) => {
    const [unit, name] = apart >= 1e6 ? [1e6, "s"] : apart >= 1e3 ? [1e3, "ms"] : [1, "µs"];
    const places = Math.max(0, Math.min(3, Math.ceil(-Math.log10(apart / unit)) + 2));
    return `${(us / unit).toLocaleString("en", { maximumFractionDigits: places })} ${name}`;
  };
  const drawAxis = () => {
    const about = (to - from) / Math.max(2, Math.floor(width / 130)), power = 10 ** Math.floor(Math.log10(about));
    const apart = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= about);
    pen.textBaseline = "middle";
    for (let time = Math.ceil(from / apart) * apart; time <= to; time += apart) {
      const x = MARGIN + (time - from) * scale();
      pen.fillStyle = colour("rule");
      pen.fillRect(Math.round(x), AXIS - 4, 1, height - AXIS);
      pen.fillStyle = colour("soft");
      pen.textAlign = "left";
      const text = asTime(time, apart);
      if (x + 3 + pen.measureText(text).width < width) pen.fillText(text, x + 3, AXIS / 2);
    }
  };
  const draw = () => {
    Object.assign(told, { drawn: 0, merged: 0, lit: 0 });
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    drawAxis();
    const group = lit();
    for (const side of data.sides) {
      pen.fillStyle = colour("ink");
      pen.textAlign = "left";
      const names = lanes.filter((lane) => lane.side === side).map((lane) => lane.name);
      pen.fillText(`${side.title}  (${names.join(", ")})`, MARGIN, lanes[side.first].y - TITLE / 2, width - 2 * MARGIN);
    }
    for (const lane of lanes) drawLane(lane, group);
    if (chosen) {
      const { lane, i } = chosen;
      pen.strokeStyle = colour("ink");
      const left = MARGIN + (lane.starts[i] - from) * scale();
      pen.strokeRect(left - 1, lane.y - 1, Math.max((lane.ends[i] - lane.starts[i]) * scale(), 1) + 2, lane.height + 2);
    }
    const together = `${told.merged.toLocaleString("en")} of ${(told.drawn + told.merged).toLocaleString("en")} events in view are narrower than a pixel and drawn together with a neighbour.`;
    const says = chosen ? describe(chosen) : told.merged ? together : "";
    if (readout.textContent !== says) readout.textContent = says;
    Object.assign(canvas.dataset, { from, to, drawn: told.drawn, merged: told.merged, lit: told.lit });
  };
  let asked = 0;
  const soon = () => { if (!asked) asked = requestAnimationFrame(() => { asked = 0; draw(); }); };

  const view = (start, end) => {
    const length = Math.min(Math.max(end - start, 0.5), whole);
    from = Math.min(Math.max(start, 0), whole - length);
    to = from + length;
    soon();
  };
  const zoom = (factor, about = (from + to) / 2) => view(about - (about - from) * factor, about + (to - about) * factor);
  const move = (share) => view(from + (to - from) * share, to + (to - from) * share);
  const choose = (found) => {
    if (found?.lane === chosen?.lane && found?.i === chosen?.i) return;
    chosen = found;
    soon();
  };
  // How many of each side light up; a group that is called as its kernel needs no other name.
  const lightsUp = ([label, place, counts], name) => {
    const numbers = counts.map((count, side) => [count, data.sides[side].letter]).filter(([count]) => count);
    const told = numbers.map(([count, letter]) => (letter ? `${count.toLocaleString("en")} of ${letter}` : count.toLocaleString("en"))).join(", ");
    return label === name ? `${told} of this name` : `group: ${label}${place ? `, ${place}` : ""}: ${told}`;
  };
  const describe = ({ lane, i }) => {
    const [name, kind] = lane.side.labels[lane.labels[i]];
    const parts = [lane.side.title, lane.name];
    parts.push(lane.name === "idle" ? data.words[kind] : `${name} (${data.words[kind]})`);
    parts.push(`at ${(lane.starts[i] / 1e3).toLocaleString("en", { maximumFractionDigits: 3 })} ms`, asTime(lane.ends[i] - lane.starts[i]));
    const group = lane.groups ? data.groups[lane.groups[i]] : 0;
    if (group) parts.push(`${lightsUp(group, name)} light up`);
    return parts.join(" · ");
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, down = event.clientY - box.top;
    const lane = lanes.find((each) => down >= each.y && down < each.y + each.height + BETWEEN);
    if (!lane) return null;
    const time = from + (x - MARGIN) / scale(), slack = NEAR / scale();
    let best = null, far = Infinity;
    for (let each = firstAfter(lane, time - slack); each < lane.rows.length; each++) {
      const i = lane.rows[each];
      if (lane.starts[i] > time + slack) break;
      const distance = Math.max(lane.starts[i] - time, time - lane.ends[i], 0) - (lane.ends[i] - lane.starts[i]) * 1e-6;
      if (distance < far) { far = distance; best = { lane, i }; }
    }
    return best;
  };

  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = { x: event.clientX, from, to }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointercancel", () => { held = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) { choose(at(event)); return; }
    const by = (held.x - event.clientX) / scale();
    view(held.from + by, held.to + by);
  });
  canvas.addEventListener("pointerleave", () => { if (!held) choose(null); });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (event.ctrlKey) zoom(1.0015 ** event.deltaY, from + (event.clientX - canvas.getBoundingClientRect().left - MARGIN) / scale());
    else move(event.deltaX / width);
  }, { passive: false });

  // The next kernel of the last side in time, over all its streams.
  const step = (by) => {
    const side = data.sides.at(-1), last = side.work.starts.length - 1;
    if (last < 0) return;
    const now = chosen && chosen.lane.side === side && chosen.lane.groups ? chosen.i + by : side.work.ends.findIndex((end) => end >= from);
    const i = Math.min(Math.max(now, 0), last), lane = lanes[side.first + Math.min(side.work.lanes[i], side.lanes.length - 1)];
    if (side.work.starts[i] < from || side.work.ends[i] > to) {
      const half = (to - from) / 2, middle = (side.work.starts[i] + side.work.ends[i]) / 2;
      view(middle - half, middle + half);
    }
    choose({ lane, i });
  };
  const deeds = { in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.25), right: () => move(0.25), all: () => view(0, whole) };
  const keys = { "+": deeds.in, "=": deeds.in, "-": deeds.out, ArrowLeft: deeds.left, ArrowRight: deeds.right, 0: deeds.all, n: () => step(1), p: () => step(-1), Escape: () => choose(null) };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  for (const button of box.querySelectorAll("[data-do]")) button.addEventListener("click", () => deeds[button.dataset.do]());

  new ResizeObserver(() => { if (canvas.clientWidth && canvas.clientWidth !== width) { width = canvas.clientWidth; draw(); } }).observe(canvas);
  width = canvas.clientWidth;
  draw();
  state.timelines = "drawn";
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours.clear(); patterns.clear(); draw(); });
})();
