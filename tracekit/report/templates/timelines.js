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

  const BETWEEN_WORK = data.between ?? "idle";
  const NO_GROUP = 65535, MARGIN = 6, AXIS = 22, TITLE = 24, WORK = 24, GAPS = 12, HOST = 14, BETWEEN = 4, NEAR = 4, LEAST_FILLED = 0.15, LEAST_TEXTURED = 5, CLICK = 4, NOTED_AFTER = 300;
  // Of many ranks each has one row, its communication below its compute, and its name beside it.
  const slim = data.slim, LEFT = slim ? slim.beside : MARGIN;
  // Its place, as high as it will be, before anything is painted.
  const canvas = box.querySelector("canvas"), rowsHigh = (side) => slim ? slim.work + slim.communication + slim.between : TITLE + (WORK + BETWEEN) * side.lanes.length + GAPS + HOST + 2 * BETWEEN;
  const heights = data.recordings.map(({ sides }) => sides.reduce((sum, side) => sum + rowsHigh(side), AXIS) + MARGIN);
  const height = Math.max(...heights);
  canvas.style.height = `${height}px`;
  box.hidden = false;
  await later.painted();

  // One row of bars each: `rows` are the positions of its bars in order, `reach` until where all up to one have ended.
  const row = (side, name, height, from, keep) => {
    const rows = [];
    for (let i = 0; i < from.starts.length; i++) if (!keep || keep(i)) rows.push(i);
    const reach = new Float64Array(rows.length);
    let far = 0;
    rows.forEach((i, at) => { far = Math.max(far, from.ends[i]); reach[at] = far; });
    return { side, name, height, ...from, rows, reach, y: 0 };
  };
  // A recording's bars, unpacked when it is drawn for the first time.
  const unpack = async (recording) => {
    const packed = Uint8Array.from(atob(recording.packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    let offset = 0;
    // Of a column first come the lowest bytes of all numbers, then the next.
    const column = (size, count) => {
      const taken = new Uint32Array(count);
      for (let byte = 0; byte < size; byte++) for (let i = 0; i < count; i++) taken[i] += bytes[offset++] * 2 ** (8 * byte);
      return taken;
    };
    const stretches = (count) => {
      const differences = column(4, count), durations = column(4, count), starts = new Float64Array(count), ends = new Float64Array(count);
      let at = 0;
      for (let i = 0; i < count; i++) {
        at += differences[i];
        starts[i] = at / 100;
        ends[i] = (at + durations[i]) / 100;
      }
      return { starts, ends };
    };
    const holes = (work, length) => {
      const starts = [], ends = [];
      let reach = 0;
      for (let i = 0; i <= work.starts.length; i++) {
        const next = i < work.starts.length ? work.starts[i] : length;
        if (next > reach) { starts.push(reach); ends.push(next); }
        reach = Math.max(reach, work.ends[i]);
      }
      return { starts, ends };
    };
    recording.lanes = [];
    for (const side of recording.sides) {
      await later.turn();
      const [work, gaps, host] = side.counts;
      const of = { ...stretches(work), labels: column(2, work), groups: column(2, work), lanes: column(1, work) };
      const idle = side.holes ? holes(of, side.length) : stretches(gaps);
      idle.labels = column(2, gaps);
      side.work = of;
      side.shift = 0;
      side.first = recording.lanes.length;
      // The positions of the kernels of each group, in time.
      side.members = new Map();
      of.groups.forEach((group, i) => {
        if (group === NO_GROUP) return;
        if (!side.members.has(group)) side.members.set(group, []);
        side.members.get(group).push(i);
      });
      side.labels ??= data.labels;
      side.lanes.forEach((name, lane) => recording.lanes.push(row(side, name, slim ? [slim.work, slim.communication][lane] : WORK, of, (i) => of.lanes[i] === lane)));
      recording.lanes.push(row(side, BETWEEN_WORK, slim ? slim.work : GAPS, idle));
      if (!slim) recording.lanes.push(row(side, "host", HOST, { ...stretches(host), labels: column(2, host) }));
    }
    let y = AXIS;
    for (const [at, lane] of slim ? [] : recording.lanes.entries()) {
      if (recording.sides.some((side) => side.first === at)) y += TITLE;
      lane.y = y;
      y += lane.height + BETWEEN;
    }
    for (const { first } of slim ? recording.sides : []) {
      const [work, communication, idle] = recording.lanes.slice(first, first + 3);
      work.y = idle.y = y;
      communication.y = y + slim.work;
      y += rowsHigh();
    }
    recording.whole = Math.max(...recording.sides.map((side) => side.length));
  };
  await unpack(data.recordings[0]);
  let recording = data.recordings[0], { sides, lanes, whole } = recording;

  const pen = canvas.getContext("2d"), readout = box.querySelector(".readout"), toOther = box.querySelector("[data-do=other]");
  // `chosen` is the bar that is pointed at, or that a key came to; while it is pinned the pointer leaves it. `groups` were chosen elsewhere on the page.
  let from = 0, to = whole, width = 0, chosen = null, pinned = false, groups = [], brush = null;
  const scale = () => (width - LEFT - MARGIN) / (to - from);
  // What of a side's own time is in view: it can be shifted, to bring a counterpart below or above its kernel.
  const seen = (side) => [from - side.shift, to - side.shift];
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
  const groupOf = (bar) => (bar && bar.lane.groups ? bar.lane.groups[bar.i] : NO_GROUP);
  // All that is bright; everything where it is empty.
  const lit = () => new Set(chosen ? [groupOf(chosen)].filter((each) => each !== NO_GROUP) : groups);
  const barOf = (side, i) => ({ lane: lanes[side.first + Math.min(side.work.lanes[i], side.lanes.length - 1)], i });
  // In a group the same few kernels recur: those of the other side that stand for this one, by their order.
  const counterparts = (bar) => {
    const own = bar?.lane.side.members.get(groupOf(bar)), other = sides.find((side) => side !== bar?.lane.side);
    const others = own && data.linked ? other.members.get(groupOf(bar)) ?? [] : [], times = own ? data.groups[groupOf(bar)][3] : 1;
    // Where bars were left out not every recurrence is whole.
    const piece = Math.floor((own?.indexOf(bar.i) * times) / own?.length), edge = (at) => Math.round((at * others.length) / times);
    return others.slice(edge(piece), edge(piece + 1)).map((i) => barOf(other, i));
  };

  const told = { drawn: 0, merged: 0, lit: 0 };
  const drawLane = (lane, bright) => {
    const isLit = (i) => lane.groups && bright.has(lane.groups[i]);
    const unit = scale(), [from, to] = seen(lane.side);
    let pixel = -1, best = -1, filled = 0;
    const put = (i, x, wide, share = 1) => {
      pen.globalAlpha = !bright.size || isLit(i) ? 1 : 0.18;
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
      if (bright.size && isLit(i) !== isLit(other)) return isLit(i);
      return lane.ends[i] - lane.starts[i] > lane.ends[other] - lane.starts[other];
    };
    for (let at = firstAfter(lane, from); at < lane.rows.length; at++) {
      const i = lane.rows[at];
      if (lane.starts[i] > to) break;
      if (lane.ends[i] < from) continue;
      if (isLit(i)) told.lit++;
      const x = LEFT + (Math.max(lane.starts[i], from) - from) * unit, wide = (Math.min(lane.ends[i], to) - Math.max(lane.starts[i], from)) * unit;
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
      const x = LEFT + (time - from) * scale();
      pen.fillStyle = colour("rule");
      pen.fillRect(Math.round(x), AXIS - 4, 1, height - AXIS);
      pen.fillStyle = colour("soft");
      pen.textAlign = "left";
      const text = asTime(time, apart);
      if (x + 3 + pen.measureText(text).width < width) pen.fillText(text, x + 3, AXIS / 2);
    }
  };
  const draw = () => {
    if (!width) return;
    Object.assign(told, { drawn: 0, merged: 0, lit: 0 });
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    drawAxis();
    const bright = lit(), marked = pinned ? counterparts(chosen) : [];
    for (const side of slim ? [] : sides) {
      const hint = outOfView(marked.filter(({ lane }) => lane.side === side), side), level = lanes[side.first].y - 15;
      const room = width - 2 * MARGIN - (hint ? pen.measureText(hint).width + 2 * MARGIN : 0);
      const title = side.shift ? `${side.name}, shifted by ${side.shift < 0 ? "−" : "+"}${asTime(Math.abs(side.shift))}` : side.title;
      const named = `${title}  (${lanes.filter((lane) => lane.side === side).map((lane) => lane.name).join(", ")})`;
      pen.fillStyle = colour("ink");
      pen.textAlign = "left";
      pen.fillText([named, title].find((text) => pen.measureText(text).width <= room) ?? (hint ? side.name : title), MARGIN, level, room);
      pen.textAlign = "right";
      if (hint) pen.fillText(hint, width - MARGIN, level);
    }
    for (const lane of lanes) drawLane(lane, bright);
    if (slim) drawRanks();
    pen.strokeStyle = pen.fillStyle = colour("ink");
    for (const bar of chosen ? [chosen, ...marked] : []) {
      const { lane, i } = bar, [first, last] = seen(lane.side);
      if (lane.ends[i] < first || lane.starts[i] > last) continue;
      const left = LEFT + (lane.starts[i] - first) * scale(), wide = Math.max((lane.ends[i] - lane.starts[i]) * scale(), 1);
      pen.strokeRect(left - 1, lane.y - 1, wide + 2, lane.height + 2);
      if (pinned) pointAt(left + wide / 2, lane.y - 1);
    }
    if (brush) {
      pen.globalAlpha = 0.2;
      pen.fillRect(Math.min(...brush), AXIS, Math.abs(brush[1] - brush[0]), height - AXIS);
      pen.globalAlpha = 1;
    }
    const together = `${told.merged.toLocaleString("en")} of ${(told.drawn + told.merged).toLocaleString("en")} events in view are narrower than a pixel and drawn together with a neighbour.`;
    const says = chosen ? describe(chosen, marked) : groups.length ? highlighted() : told.merged ? together : "";
    if (readout.textContent !== says) readout.textContent = says;
    if (toOther) toOther.disabled = !counterparts(chosen).length;
    Object.assign(canvas.dataset, { from, to, drawn: told.drawn, merged: told.merged, lit: told.lit, marked: marked.length, shifted: sides.map(({ shift }) => shift) });
  };
  // Names beside the rows; over all of them when the last rank arrived, and around each rank's part in the collective.
  const drawRanks = () => {
    const { mark } = recording, x = LEFT + (mark.at - from) * scale(), font = pen.font;
    pen.clearRect(0, AXIS, LEFT - 1, height);
    pen.textAlign = "right";
    for (const side of sides) {
      const { y } = lanes[side.first], high = slim.work + slim.communication, [start, end] = partOf(side);
      pen.font = `${side.name === mark.last ? "bold " : ""}${Math.min(12, high + 1)}px ${getComputedStyle(document.body).fontFamily}`;
      pen.fillStyle = colour("ink");
      pen.fillText(side.name, LEFT - 5, y + high / 2);
      if (end < from || start > to) continue;
      const left = Math.max(LEFT, LEFT + (start - from) * scale()), right = Math.min(LEFT + (end - from) * scale(), width - MARGIN);
      pen.strokeStyle = colour("ink");
      pen.strokeRect(left - 0.5, y + slim.work - 0.5, right - left + 1, slim.communication + 1);
    }
    pen.font = font;
    if (mark.at < from || mark.at > to) return;
    pen.fillStyle = colour("ink");
    for (let y = AXIS - 4; y < height - MARGIN; y += 6) pen.fillRect(Math.round(x) - 1, y, 1.5, 4);
  };
  const partOf = (side) => {
    const own = side.members.get(recording.mark.group) ?? [];
    return own.length ? extent(own.map((i) => barOf(side, i))) : [Infinity, -Infinity];
  };
  const pointAt = (x, y) => {
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x - 5, y - 6);
    pen.lineTo(x + 5, y - 6);
    pen.fill();
  };
  const extent = (bars) => [Math.min(...bars.map(({ lane, i }) => lane.starts[i])), Math.max(...bars.map(({ lane, i }) => lane.ends[i]))];
  const outOfView = (bars, side) => {
    if (!bars.length) return "";
    const [start, end] = extent(bars), [from, to] = seen(side);
    if (end < from) return `\u25c2 counterpart ${asTime(from - end)} earlier`;
    return start > to ? `counterpart ${asTime(start - to)} later \u25b8` : "";
  };
  let asked = 0;
  const soon = () => { if (!asked) asked = requestAnimationFrame(() => { asked = 0; draw(); }); };

  // What is in view is noted in the page's address: from when, until when, and of which recording.
  let noting = 0;
  const note = () => {
    const shown = data.recordings.indexOf(recording), all = from === 0 && to === whole && !shown;
    address.write(address.id, all ? "" : [from.toFixed(2), to.toFixed(2), ...(shown ? [shown] : [])].join("-"));
  };
  const view = (start, end) => {
    const length = Math.min(Math.max(end - start, 0.5), whole);
    from = Math.min(Math.max(start, 0), whole - length);
    to = from + length;
    soon();
    clearTimeout(noting);
    noting = setTimeout(note, NOTED_AFTER);
  };
  const zoom = (factor, about = (from + to) / 2) => view(about - (about - from) * factor, about + (to - about) * factor);
  const move = (share) => view(from + (to - from) * share, to + (to - from) * share);
  const choose = (found, pin = false) => {
    if (found?.lane === chosen?.lane && found?.i === chosen?.i && pin === pinned) return;
    chosen = found;
    pinned = pin && found !== null;
    soon();
  };
  // Pins it, and tells the table of kernel groups.
  const pin = (found) => {
    choose(found, true);
    const group = groupOf(found);
    groups = group === NO_GROUP ? [] : [group];
    if (data.linked && group !== NO_GROUP) document.dispatchEvent(new CustomEvent("tracekit:group", { detail: { group, from: "timeline" } }));
  };
  const unshift = () => { for (const side of sides) side.shift = 0; };
  // A finding's kernels too.
  const letAllGo = () => { letGo(); document.dispatchEvent(new CustomEvent("tracekit:groups", { detail: [] })); };
  const letGo = () => { groups = []; unshift(); choose(null); soon(); };
  // Into the middle of what is in view, or of so much, unless it is there.
  const intoView = (bar, long = 0) => {
    const { side, starts, ends } = bar.lane, [first, last] = seen(side), start = starts[bar.i], end = ends[bar.i];
    const half = (long || to - from) / 2, middle = (start + end) / 2 + side.shift;
    if (long || start < first || end > last) view(middle - half, middle + half);
  };
  // Shifts the other side, so that the counterpart begins where the kernel does, unless it is in view.
  const align = (bar, bars) => {
    const { side } = bars[0].lane, [start] = extent(bars);
    if (outOfView(bars, side)) side.shift = bar.lane.starts[bar.i] + bar.lane.side.shift - start;
    soon();
  };
  const count = (number, letter) => `${number.toLocaleString("en")}${letter ? ` of ${letter}` : ""}`;
  // How many of each side light up; a group that is called as its kernel needs no other name.
  const lightsUp = ([label, place, counts], name) => {
    const told = counts.map((number, side) => number && count(number, sides[side].letter)).filter(Boolean).join(", ");
    return label === name ? `${told} of ${data.linked ? "its group" : "this name"}` : `group: ${label}${place ? `, ${place}` : ""}: ${told}`;
  };
  const highlighted = () => {
    const [first, ...others] = groups.map((each) => data.groups[each]);
    return others.length ? `${groups.length} groups highlighted` : slim ? first : `${lightsUp(first)} highlighted`;
  };
  const when = (bars) => {
    const [start] = extent(bars), long = bars.reduce((sum, { lane, i }) => sum + lane.ends[i] - lane.starts[i], 0);
    return `at ${(start / 1e3).toLocaleString("en", { maximumFractionDigits: 3 })} ms, ${asTime(long)}`;
  };
  const describe = (bar, marked) => {
    const { lane, i } = bar, [name, kind] = lane.side.labels[lane.labels[i]];
    const parts = slim ? [lane.side.name, data.words[kind]] : [lane.side.name, lane.name];
    if (slim) parts.push(name, when([bar]));
    else parts.push(lane.name === BETWEEN_WORK ? data.words[kind] : `${name} (${data.words[kind]})`, when([bar]));
    if (pinned) parts.unshift("Pinned");
    if (marked.length) {
      const other = marked[0].lane, called = marked.length > 1 ? `${marked.length} ${data.what ?? "kernel"}s` : other.side.labels[other.labels[marked[0].i]][0];
      parts.push(`counterpart in ${other.side.letter}: ${called} ${when(marked)}`);
    }
    const told = lane.groups ? data.groups[lane.groups[i]] : 0;
    if (told) parts.push(slim ? told : `${lightsUp(told, name)} highlighted`);
    return parts.join(" \u00b7 ");
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, down = event.clientY - box.top;
    let best = null, far = Infinity;
    for (const lane of lanes.filter((each) => down >= each.y && down < each.y + each.height + (slim ? 0 : BETWEEN))) {
      const time = seen(lane.side)[0] + (x - LEFT) / scale(), slack = NEAR / scale();
      for (let each = firstAfter(lane, time - slack); each < lane.rows.length; each++) {
        const i = lane.rows[each];
        if (lane.starts[i] > time + slack) break;
        const distance = Math.max(lane.starts[i] - time, time - lane.ends[i], 0) - (lane.ends[i] - lane.starts[i]) * 1e-6;
        if (distance < far) { far = distance; best = { lane, i }; }
      }
    }
    return best;
  };

  let held = null;
  const leftOf = (event) => event.clientX - canvas.getBoundingClientRect().left, timeAt = (x) => from + (x - LEFT) / scale();
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    held = { x: leftOf(event), from, to, shift: event.shiftKey, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    const was = held, x = leftOf(event);
    held = brush = null;
    if (!was) return;
    if (!was.moved) { const found = at(event); if (found) pin(found); else letAllGo(); return; }
    if (was.shift) view(...[timeAt(was.x), timeAt(x)].sort((one, other) => one - other));
  });
  canvas.addEventListener("pointercancel", () => { held = brush = null; soon(); });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) { if (!pinned) choose(at(event)); return; }
    const x = leftOf(event);
    held.moved ||= Math.abs(x - held.x) >= CLICK;
    if (!held.moved) return;
    if (held.shift) { brush = [held.x, x]; soon(); return; }
    const by = (held.x - x) / scale();
    view(held.from + by, held.to + by);
  });
  canvas.addEventListener("pointerleave", () => { if (!held && !pinned) choose(null); });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (event.ctrlKey) zoom(1.0015 ** event.deltaY, timeAt(leftOf(event)));
    else move(event.deltaX / width);
  }, { passive: false });

  // The next kernel of the last side in time, over all its streams.
  const step = (by) => {
    const side = slim ? chosen?.lane.side ?? sides[0] : sides.at(-1), last = side.work.starts.length - 1;
    if (last < 0) return;
    const now = chosen && chosen.lane.side === side && chosen.lane.groups ? chosen.i + by : side.work.ends.findIndex((end) => end >= seen(side)[0]);
    const bar = barOf(side, Math.min(Math.max(now, 0), last));
    intoView(bar);
    choose(bar);
  };
  // What the rank below or above does at that time.
  const across = (by) => {
    const now = chosen ? sides.indexOf(chosen.lane.side) + by : 0, side = sides[Math.min(Math.max(now, 0), sides.length - 1)];
    const time = chosen ? chosen.lane.starts[chosen.i] : from, i = side.work.ends.findIndex((end) => end > time);
    if (i >= 0) choose(barOf(side, i));
  };
  const toCounterpart = () => {
    const others = counterparts(chosen);
    if (!others.length) return;
    align(chosen, others);
    pin(others[0]);
  };
  const deeds = { in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.25), right: () => move(0.25), all: () => { unshift(); view(0, whole); }, other: toCounterpart };
  const keys = { "+": deeds.in, "=": deeds.in, "-": deeds.out, ArrowLeft: deeds.left, ArrowRight: deeds.right, 0: deeds.all, n: () => step(1), p: () => step(-1), ...(slim ? { ArrowDown: () => across(1), ArrowUp: () => across(-1) } : {}), Enter: () => chosen && pin(chosen), c: toCounterpart, Escape: letAllGo };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  // Wherever the focus went meanwhile.
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && event.target !== canvas && (pinned || groups.length)) letAllGo(); });
  for (const button of box.querySelectorAll("[data-do]")) button.addEventListener("click", () => deeds[button.dataset.do]());

  // A kernel group that was chosen elsewhere on the page; `show` comes here, to the first of its kernels.
  document.addEventListener("tracekit:group", ({ detail }) => {
    if (!data.linked || detail.from === "timeline") return;
    letGo();
    groups = data.groups[detail.group] ? [detail.group] : [];
    const side = sides.findLast(({ members }) => members.has(detail.group));
    if (!detail.show || !side) return;
    const first = barOf(side, side.members.get(detail.group)[0]);
    choose(first, true);
    const others = counterparts(first), lengths = [[first], others].filter(({ length }) => length).map((bars) => extent(bars)[1] - extent(bars)[0]);
    intoView(first, Math.max(10 * lengths[0], 3 * Math.max(...lengths), 1));
    if (others.length) align(first, others);
    box.closest("details")?.setAttribute("open", "");
    canvas.scrollIntoView();
    canvas.focus({ preventScroll: true });
  });

  // Those of a finding.
  document.addEventListener("tracekit:groups", ({ detail }) => {
    letGo();
    groups = detail.filter((each) => data.groups[each]);
  });

  // The other recording, at the same kernel where one is pinned.
  const notes = document.querySelectorAll("#timelines .note.recording"), toggle = box.querySelector(".switch");
  const choices = box.querySelector("select");
  const named = () => canvas.setAttribute("aria-label", `${slim ? data.groups[recording.mark.group] : sides.map(({ title }) => title).join("; ")}. ${label}`);
  const label = canvas.getAttribute("aria-label");
  const showRecording = async (shown) => {
    const next = data.recordings[shown];
    if (!next.lanes) await unpack(next);
    const kept = pinned && groupOf(chosen) !== NO_GROUP ? [sides.indexOf(chosen.lane.side), groupOf(chosen), to - from < whole ? to - from : Infinity] : null;
    const order = kept ? chosen.lane.side.members.get(kept[1]).indexOf(chosen.i) : 0;
    ({ sides, lanes, whole } = recording = next);
    unshift();
    notes.forEach((note, at) => { note.hidden = at !== shown; });
    toggle?.setAttribute("aria-pressed", String(shown > 0));
    if (choices) choices.selectedIndex = shown;
    named();
    choose(null);
    view(0, whole);
    const i = kept && sides[kept[0]].members.get(kept[1])?.[order];
    if (i === null || i === undefined) return;
    const bar = barOf(sides[kept[0]], i);
    view(0, kept[2]);
    intoView(bar);
    choose(bar, true);
  };
  toggle?.addEventListener("click", () => showRecording(Number(recording === data.recordings[0])));
  choices?.addEventListener("change", () => showRecording(choices.selectedIndex));
  named();

  new ResizeObserver(() => { if (canvas.clientWidth && canvas.clientWidth !== width) { width = canvas.clientWidth; draw(); } }).observe(canvas);
  width = canvas.clientWidth;
  // What the address holds; its group may have been opened before there was anything to light up.
  const recall = async () => {
    const [start, end, shown = 0] = address.view.split("-").map(Number), selected = Number(address.id.match(/^group-(\d+)$/)?.[1] ?? NO_GROUP);
    if (end > start && data.recordings[shown]) {
      if (recording !== data.recordings[shown]) await showRecording(shown);
      view(start, end);
      if (!address.id) box.scrollIntoView();
    }
    if (data.linked && data.groups[selected]) groups = [selected];
    draw();
  };
  await recall();
  addEventListener("hashchange", recall);
  state.timelines = "drawn";
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours.clear(); patterns.clear(); draw(); });
})();
