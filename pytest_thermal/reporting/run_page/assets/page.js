/* Draws the curves of a run with uPlot: one time axis, one zoom and one cursor for all charts. Loads nothing. */
(function () {
"use strict";

const root = document.documentElement;
const data = JSON.parse(document.getElementById("page-data").textContent);
const words = data.words;
const WHOLE = [0, data.duration];
const NARROWEST = Math.max(data.duration / 20000, 0.5);
const GAP = 65535;

const MOST_ROWS = 1800;     // of one curve that are drawn at once: more than a chart has pixels

const charts = [];          // {spec, plot, keys, curves, off, node, levels, level, seen, stale}
const hidden = new Set();   // devices that are switched off
let zoom = WHOLE.slice();
let colours = {};

/* ------------------------------------------------------------------------------------------------------- unpacking */

async function bytes(id) {
  const text = atob(document.getElementById(id).textContent.trim());
  const raw = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) raw[i] = text.charCodeAt(i);
  const inflated = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}

async function values(curve) {
  const raw = await bytes(curve.packed), n = raw.length / 2, found = new Array(n);
  let code = 0;
  for (let i = 0; i < n; i++) {
    const turned = raw[i] | (raw[n + i] << 8);
    code = (code + ((turned >>> 1) ^ -(turned & 1))) & 0xffff;
    found[i] = code === GAP ? null : curve.offset + code * curve.step;
  }
  return found;
}

async function times(base) {
  if (base.known) return base.known;
  const found = new Array(base.count);
  if (base.packed) {
    const raw = await bytes(base.packed), n = base.count;
    let distance = 0, time = 0;
    for (let i = 0; i < n; i++) {
      let turned = 0;
      for (let plane = 4; plane >= 0; plane--) turned = turned * 256 + raw[plane * n + i];
      distance += turned % 2 ? -(turned + 1) / 2 : turned / 2;
      time += distance;
      found[i] = time / 1000;
    }
  } else {
    for (let i = 0; i < base.count; i++) found[i] = base.first + i * base.step;
  }
  base.known = found;
  return found;
}

/* All curves of a chart on one axis. A null is a gap; undefined: this curve has no reading at another's time. */
async function table(spec) {
  const groups = new Map();
  for (const curve of spec.series) {
    if (!groups.has(curve.base)) groups.set(curve.base, []);
    groups.get(curve.base).push(curve);
  }
  const tables = [], order = [];
  for (const [base, curves] of groups) {
    const columns = [await times(data.bases[base])];
    for (const curve of curves) { columns.push(await values(curve)); order.push(curve); }
    tables.push(columns);
  }
  const joined = tables.length === 1 ? tables[0] : uPlot.join(tables, tables.map(t => t.map(() => 2)));
  return {joined, order};
}

/* The same table with half of its rows: least and most of each four, in the order in which they come. */
function thinner(columns) {
  const every = 4, rows = Math.ceil(columns[0].length / every);
  return columns.map((column, which) => {
    const found = new Array(2 * rows);
    for (let row = 0; row < rows; row++) {
      const from = row * every, to = Math.min(from + every, column.length);
      if (which === 0) {
        found[2 * row] = column[from];
        found[2 * row + 1] = to - from > 1 ? column[from + ((to - from) >> 1)] : column[from] + 1e-6;
        continue;
      }
      let least = -1, most = -1, gap = false;
      for (let i = from; i < to; i++) {
        const value = column[i];
        if (value === null) gap = true;
        else if (value !== undefined) {
          if (least < 0 || value < column[least]) least = i;
          if (most < 0 || value > column[most]) most = i;
        }
      }
      const none = gap ? null : undefined;
      found[2 * row] = least < 0 ? none : column[Math.min(least, most)];
      found[2 * row + 1] = least < 0 ? none : column[Math.max(least, most)];
    }
    return found;
  });
}

function levelsOf(columns) {
  const levels = [columns];
  while (levels[levels.length - 1][0].length > MOST_ROWS) levels.push(thinner(levels[levels.length - 1]));
  return levels;
}

/* The finest level that is not too much for what is in view. */
function levelFor(chart) {
  const share = (zoom[1] - zoom[0]) / data.duration;
  const found = chart.levels.findIndex(columns => columns[0].length * share <= MOST_ROWS);
  return found < 0 ? chart.levels.length - 1 : found;
}

/* ------------------------------------------------------------------------------------------------------------ words */

function elapsed(seconds, step) {
  const whole = Math.abs(seconds), hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  const rest = whole - hours * 3600 - minutes * 60;
  const two = n => String(n).padStart(2, "0");
  const end = step < 1 ? rest.toFixed(1).padStart(4, "0") : two(Math.floor(rest + 1e-6));
  return (seconds < 0 ? "-" : "") + (hours ? hours + ":" + two(minutes) : minutes) + ":" + end;
}

function clock(seconds) {
  if (data.start === null) return "";
  const moment = new Date((data.start + seconds / data.scale) * 1000);
  return isNaN(moment) ? "" : " · " + moment.toISOString().slice(11, 19) + " UTC";
}

function shown(value, spec) {
  return value === null || value === undefined ? "–" : value.toFixed(spec.decimals);
}

function make(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "onclick") node.addEventListener("click", value); else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

/* ---------------------------------------------------------------------------------------------------------- colours */

function readColours() {
  const style = getComputedStyle(root);
  const names = ["ink", "soft", "line", "hot", "cap", "gone", "idle", "loaded", "full", "cool", "paper", "bad"];
  for (let i = 0; i < data.colours; i++) names.push("c" + i);
  colours = Object.fromEntries(names.map(name => [name, style.getPropertyValue("--" + name).trim()]));
}

function strokeClass(curve, index) {
  const place = curve.device === null ? index : data.devices.indexOf(curve.device);
  return [curve.bad ? null : place % data.colours, Math.floor(place / data.colours) % data.dashes.length];
}

function bandColour(name) {
  return {baseline: colours.idle, ramp: colours.loaded, steady: colours.full, limit: colours.full,
          cooldown: colours.cool}[name] || colours.idle;
}

/* ------------------------------------------------------------------------------------------------------------ hooks */

function clipped(u, draw) {
  const box = u.bbox, pen = u.ctx;
  pen.save();
  pen.beginPath();
  pen.rect(box.left, box.top, box.width, box.height);
  pen.clip();
  draw(pen, box, uPlot.pxRatio);
  pen.restore();
}

function nameBands(u) {
  const box = u.bbox, pen = u.ctx, ratio = uPlot.pxRatio;
  pen.font = 11 * ratio + "px system-ui, sans-serif";
  pen.fillStyle = colours.soft;
  pen.textBaseline = "bottom";
  pen.textAlign = "left";
  for (const phase of data.phases) {
    const from = Math.max(u.valToPos(phase.start, "x", true), box.left);
    const room = Math.min(u.valToPos(phase.end, "x", true), box.left + box.width) - from;
    if (room > pen.measureText(phase.label).width + 6 * ratio) {
      pen.fillText(phase.label, from + 3 * ratio, box.top - 2 * ratio);
    }
  }
}

function drawBands(u, first) {
  if (first) nameBands(u);
  clipped(u, (pen, box, ratio) => {
    for (const phase of data.phases) {
      const left = u.valToPos(phase.start, "x", true), right = u.valToPos(phase.end, "x", true);
      pen.fillStyle = bandColour(phase.name);
      pen.fillRect(left, box.top, right - left, box.height);
    }
    pen.strokeStyle = colours.bad;
    pen.setLineDash([2 * ratio, 3 * ratio]);
    for (const mark of data.marks) {
      const x = u.valToPos(mark.time, "x", true);
      pen.beginPath(); pen.moveTo(x, box.top); pen.lineTo(x, box.top + box.height); pen.stroke();
    }
  });
}

function strip(u, pen, spans, colour, top, height, ratio) {
  pen.fillStyle = colour;
  for (const [start, end] of spans) {
    if (end < zoom[0] || start > zoom[1]) continue;
    const left = u.valToPos(start, "x", true);
    pen.fillRect(left, top, Math.max(u.valToPos(end, "x", true) - left, 1.5 * ratio), height);
  }
}

function drawOver(u, spec, curves) {
  clipped(u, (pen, box, ratio) => {
    pen.setLineDash([6 * ratio, 4 * ratio]);
    pen.strokeStyle = colours.hot;
    pen.lineWidth = 1.2 * ratio;
    for (const limit of spec.limits) {
      if (limit.devices.every(device => hidden.has(device))) continue;
      const y = u.valToPos(limit.value, "y", true);
      pen.beginPath(); pen.moveTo(box.left, y); pen.lineTo(box.left + box.width, y); pen.stroke();
    }
    pen.setLineDash([]);
    if (spec.ribbons) {
      for (const one of data.throttling) {
        if (hidden.has(one.device)) continue;
        const hot = one.kind === "thermal";
        strip(u, pen, one.spans, hot ? colours.hot : colours.cap, box.top + (hot ? 0 : 5 * ratio), 5 * ratio, ratio);
      }
    }
    for (let i = 0; i < curves.length; i++) {
      const spans = data.missing[curves[i].sensor];
      if (spans && u.series[i + 1].show) {
        strip(u, pen, spans, colours.gone, box.top + box.height - 5 * ratio, 5 * ratio, ratio);
      }
    }
  });
}

/* ------------------------------------------------------------------------------------------------------------- zoom */

function setZoom(start, end) {
  let width = Math.min(Math.max(end - start, NARROWEST), data.duration);
  let from = Math.min(Math.max(start, 0), data.duration - width);
  zoom = [from, from + width];
  for (const chart of charts) show(chart);
  for (const button of document.querySelectorAll("[data-from]")) {
    const on = Math.abs(button.dataset.from - zoom[0]) < 0.5 && Math.abs(button.dataset.to - zoom[1]) < 0.5;
    button.classList.toggle("now", on);
  }
}

/* A chart that is out of sight is brought up to date when it comes into sight. */
function show(chart, unseen) {
  chart.stale = !chart.seen && !unseen;
  if (chart.stale) return;
  const level = chart.levels ? levelFor(chart) : 0;
  chart.plot.batch(() => {
    if (chart.levels && level !== chart.level) {
      chart.level = level;
      chart.lonely = null;
      chart.plot.setData(chart.levels[level], false);
    }
    chart.curves.forEach((curve, i) => {
      const on = !hidden.has(curve.device) && !chart.off.has(i);
      if (chart.plot.series[i + 1].show !== on) chart.plot.setSeries(i + 1, {show: on});
    });
    chart.plot.setScale("x", {min: zoom[0], max: zoom[1]});
  });
  if (chart.keys) {
    chart.keys.forEach((key, i) => key.button.setAttribute("aria-pressed", String(chart.plot.series[i + 1].show)));
  }
}

const sight = new IntersectionObserver(entries => {
  for (const entry of entries) {
    const chart = charts.find(one => one.node === entry.target);
    if (!chart) continue;
    chart.seen = entry.isIntersecting;
    if (chart.seen && chart.stale) show(chart);
  }
}, {rootMargin: "100px"});

function keep(chart) {
  chart.seen = true;
  chart.stale = false;
  charts.push(chart);
  sight.observe(chart.node);
}

function zoomBy(factor, shift) {
  const width = (zoom[1] - zoom[0]) * factor, middle = (zoom[0] + zoom[1]) / 2 + shift * (zoom[1] - zoom[0]);
  setZoom(middle - width / 2, middle + width / 2);
}

const isWhole = () => zoom[1] - zoom[0] > 0.999 * data.duration;

/* ---------------------------------------------------------------------------------------------------------- legends */

let cursorWaits = false;

function moved() {
  if (cursorWaits) return;
  cursorWaits = true;
  requestAnimationFrame(() => {
    cursorWaits = false;
    let at = null;
    for (const {plot, seen} of charts) {
      const left = plot.cursor.left;
      if (seen && left !== null && left !== undefined && left >= 0) { at = plot.posToVal(left, "x"); break; }
    }
    for (const {spec, keys, levels, seen} of charts) {
      if (!keys || !seen) continue;
      const row = at === null ? -1 : rowAt(levels[0][0], at);
      keys.forEach((key, i) => {
        key.output.textContent = row < 0 ? "" : shown(valueAt(levels[0], i + 1, row), spec);
      });
    }
    document.getElementById("at").textContent = at === null ? "" : elapsed(at, 1) + clock(at);
  });
}

function toggleDevice(device, off) {
  if (off) hidden.add(device); else hidden.delete(device);
  for (const chart of charts) { show(chart); if (!chart.stale) chart.plot.redraw(); }
  for (const button of document.querySelectorAll("[data-device]")) {
    button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.device)));
  }
}

function swatch(curve, index) {
  const [colour, dash] = strokeClass(curve, index);
  const node = make("span", {class: `swatch d${dash}${colour === null ? "" : " c" + colour}${curve.main ? "" : " thin"}`});
  if (colour === null) node.style.setProperty("--own", "var(--bad)");
  return node;
}

function name(curve) {
  return curve.device === null ? curve.sensor : [curve.device, curve.part].filter(Boolean).join(" ");
}

function legend(node, chart) {
  const {plot, spec, curves} = chart;
  const box = make("div", {class: "keys"});
  const keys = curves.map((curve, i) => {
    const output = make("output");
    const button = make("button", {type: "button", title: curve.sensor, "aria-pressed": "true", onclick: () => {
      if (chart.off.has(i)) chart.off.delete(i); else chart.off.add(i);
      if (!chart.off.has(i)) hidden.delete(curve.device);
      plot.setSeries(null, {focus: true});   // else all others stay faint behind one that is gone
      toggleDevice(curve.device, hidden.has(curve.device));
    }}, swatch(curve, i), name(curve), output);
    button.addEventListener("mouseenter", () => {
      if (plot.series[i + 1].show) plot.setSeries(i + 1, {focus: true});
    });
    button.addEventListener("mouseleave", () => plot.setSeries(null, {focus: true}));
    box.append(button);
    return {button, output};
  });
  const parts = [...new Set(curves.map(curve => curve.part))];
  if (parts.length > 1 && curves.length > 8) {
    for (const part of parts) {
      box.append(make("button", {type: "button", class: "part", onclick: () => {
        const own = curves.map((curve, i) => i).filter(i => curves[i].part === part);
        const off = own.some(i => !chart.off.has(i));
        for (const i of own) if (off) chart.off.add(i); else chart.off.delete(i);
        show(chart);
      }}, (part || words.device_itself) + " ⇄"));
    }
  }
  for (const limit of spec.limits) {
    const whole = limit.devices.length > 6 ? limit.devices[0] + " … (" + limit.devices.length + ")" : limit.devices.join(", ");
    box.append(make("span", {class: "most"}, `┅ ${limit.text}: ${whole}`));
  }
  node.append(box);
  return keys;
}

/* ----------------------------------------------------------------------------------------------------------- charts */

function width(node) { return Math.max(node.clientWidth, 200); }

function axes(spec, extra) {
  const axis = {stroke: () => colours.soft, font: "11px system-ui, sans-serif",
                grid: {stroke: () => colours.line, width: 1}, ticks: {stroke: () => colours.line, width: 1, size: 4}};
  return [
    {...axis, space: 70, size: 26, incrs: [0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800,
                                           21600, 43200, 86400, 172800, 604800],
     values: (u, splits, index, space, step) => splits.map(split => elapsed(split, step))},
    {...axis, size: 54, space: 34, ...extra},
  ];
}

function options(spec, node, hooks, series, scale, extra) {
  return {
    width: width(node), height: spec.height, series, legend: {show: false},
    scales: {x: {time: false, auto: false, min: zoom[0], max: zoom[1]}, y: scale},
    axes: axes(spec, extra), hooks, padding: [spec.first ? 18 : 6, 8, 0, 0], focus: {alpha: 0.22},
    cursor: {
      y: false, points: {size: 5, show: spec.many ? false : undefined}, sync: {key: "run", scales: ["x", null], setSeries: false},
      drag: {x: true, y: false, setScale: false, dist: 4},
      bind: {dblclick: () => () => { setZoom(WHOLE[0], WHOLE[1]); return null; }},
      dataIdx: (u, i, index) => nearest(u.data[i], index),
    },
  };
}

/* The row whose time is nearest to a moment. */
function rowAt(column, moment) {
  let low = 0, high = column.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (column[middle] < moment) low = middle; else high = middle;
  }
  return moment - column[low] <= column[high] - moment ? low : high;
}

/* A curve's reading there; another curve's times in between are none of this one's. */
function nearest(column, index) {
  for (let away = 0; away < 60; away++) {
    if (column[index - away] !== undefined) return index - away;
    if (column[index + away] !== undefined) return index + away;
  }
  return index;
}

function valueAt(columns, which, row) { return columns[which][nearest(columns[which], row)]; }

function selected(u) {
  const {left, width: wide} = u.select;
  if (wide > 3) {
    const from = u.posToVal(left, "x"), to = u.posToVal(left + wide, "x");
    u.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
    setZoom(from, to);
  }
}

/* A finger drags as a mouse does: across it zooms, up and down the page scrolls, two taps show the whole run. */
function touchable(plot) {
  const over = plot.over, nothing = {left: 0, width: 0, top: 0, height: 0};
  let from = null, tapped = -1e9;
  const at = event => Math.min(Math.max(event.clientX - over.getBoundingClientRect().left, 0), over.clientWidth);
  const to = (event, fire) => {
    const end = at(event);
    plot.setCursor({left: end, top: 10});
    plot.setSelect({left: Math.min(from, end), width: Math.abs(end - from), top: 0, height: over.clientHeight}, fire);
    return Math.abs(end - from);
  };
  over.addEventListener("pointerdown", event => {
    if (event.pointerType === "touch") from = event.isPrimary ? at(event) : null;   // a second finger is no drag
  });
  over.addEventListener("pointermove", event => {
    if (event.pointerType === "touch" && from !== null) to(event, false);
  });
  over.addEventListener("pointerup", event => {
    if (event.pointerType !== "touch" || from === null) return;
    const moved = to(event, false);
    if (moved > 8) to(event, true);
    else {
      plot.setSelect(nothing, false);
      if (event.timeStamp - tapped < 400) setZoom(WHOLE[0], WHOLE[1]);
      tapped = event.timeStamp;
    }
    from = null;
  });
  over.addEventListener("pointercancel", () => {   // the browser took it for scrolling
    from = null;
    plot.setSelect(nothing, false);
  });
}

/* A reading between two gaps is a point and no line. */
function lonely(column) {
  const found = [];
  let before = null, at = -1;
  for (let i = 0; i <= column.length; i++) {
    const value = i < column.length ? column[i] : null;
    if (value === undefined) continue;
    if (at >= 0 && before === null && value === null) found.push(at);
    if (value === null) { before = null; at = -1; }
    else { before = at >= 0 ? column[at] : null; at = i; }
  }
  return found;
}

function yRange(spec) {
  return (u, least, most) => {
    if (least === null || most === null) return [0, 1];
    if (isWhole()) {
      for (const limit of spec.limits) {
        if (!limit.devices.every(device => hidden.has(device))) {
          least = Math.min(least, limit.value); most = Math.max(most, limit.value);
        }
      }
      if (spec.zero) least = Math.min(least, 0);
    }
    const room = (most - least) * 0.06 || Math.max(Math.abs(most) * 0.02, 10 ** -spec.decimals);
    return [spec.zero && least === 0 ? 0 : least - room, most + room * (spec.ribbons ? 2 : 1)];
  };
}

async function draw(spec, first) {
  const node = document.getElementById("chart-" + spec.id);
  const {joined, order} = await table(spec);
  spec.height = spec.id === "temperature" ? 300 : 190;
  spec.first = first;
  spec.many = order.length > 12;
  const levels = levelsOf(joined), chart = {spec, curves: order, levels, level: levels.length - 1, lonely: null, off: new Set()};
  const series = [{}].concat(order.map((curve, i) => {
    const [colour, dash] = strokeClass(curve, i);
    return {
      label: name(curve), stroke: () => colour === null ? colours.bad : colours["c" + colour],
      width: curve.main ? 1.6 : 0.9, dash: data.dashes[dash].length ? data.dashes[dash] : undefined, spanGaps: false,
      points: {show: true, size: 4, filter: (u, s) => {
        chart.lonely = chart.lonely || u.data.map((column, place) => place ? lonely(column) : null);
        return chart.lonely[s].filter(p => u.data[0][p] >= zoom[0] && u.data[0][p] <= zoom[1]);
      }},
    };
  }));
  const box = make("div", {class: "canvas"});
  node.append(box);
  const plot = new uPlot(options(spec, box, {
    drawClear: [u => drawBands(u, first)], draw: [u => drawOver(u, spec, order)],
    setCursor: [moved], setSelect: [selected],
  }, series, {range: yRange(spec)}), levels[chart.level], box);
  node.classList.add("drawn");
  touchable(plot);
  Object.assign(chart, {plot, node: box});
  chart.keys = legend(node, chart);
  keep(chart);
}

/* Who slowed itself down, and of whom readings are missing: one row each. */
function drawTimeline() {
  const rows = data.throttling.map(one => ({
    text: words["row_" + one.kind].replace("{device}", one.device), spans: one.spans,
    colour: () => one.kind === "thermal" ? colours.hot : colours.cap, device: one.device}));
  const missing = new Map();
  for (const [sensor, spans] of Object.entries(data.missing)) {
    const device = sensor.split(".")[0];
    missing.set(device, (missing.get(device) || []).concat(spans));
  }
  for (const device of data.devices) {
    if (missing.has(device)) {
      rows.push({text: words.row_missing.replace("{device}", device), spans: missing.get(device),
                 colour: () => colours.gone, device});
    }
  }
  const node = document.getElementById("chart-timeline");
  if (!rows.length) { node.remove(); return; }
  const box = make("div", {class: "canvas"});
  node.append(box);
  const spec = {id: "timeline", height: 44 + rows.length * 18, limits: [], decimals: 0};
  const plot = new uPlot(options(spec, box, {
    drawClear: [u => drawBands(u, false)],
    draw: [u => clipped(u, (pen, area, ratio) => rows.forEach((row, i) => {
      if (hidden.has(row.device)) return;
      const top = u.valToPos(rows.length - i - 0.15, "y", true), end = u.valToPos(rows.length - i - 0.85, "y", true);
      strip(u, pen, row.spans, row.colour(), top, end - top, ratio);
      pen.font = 11 * ratio + "px system-ui, sans-serif";
      pen.textAlign = "left";
      pen.textBaseline = "middle";
      pen.lineWidth = 4 * ratio;
      pen.strokeStyle = colours.paper;
      pen.fillStyle = colours.ink;
      pen.strokeText(row.text, area.left + 6 * ratio, (top + end) / 2);
      pen.fillText(row.text, area.left + 6 * ratio, (top + end) / 2);
    }))],
    setCursor: [moved], setSelect: [selected],
  }, [{}, {show: true, points: {show: false}, stroke: "transparent"}], {range: () => [0, rows.length]}, {
    grid: {show: false}, ticks: {show: false}, values: (u, splits) => splits.map(() => ""),
  }), [[0, data.duration], [null, null]], box);
  node.classList.add("drawn");
  touchable(plot);
  keep({spec, plot, keys: null, curves: [], node: box, levels: null});
}

/* --------------------------------------------------------------------------------------------------------- controls */

function controls() {
  const ranges = [{label: words.zoom_all, start: 0, end: data.duration}].concat(data.phases);
  const zooms = make("div", {}, ...ranges.map(range => make("button", {
    type: "button", "data-from": range.start, "data-to": range.end, onclick: () => setZoom(range.start, range.end),
  }, range.label)));
  const moves = [["−", words.zoom_out, 2, 0], ["+", words.zoom_in, 0.5, 0], ["◀", words.earlier, 1, -0.5],
                 ["▶", words.later, 1, 0.5]];
  for (const [sign, label, factor, shift] of moves) {
    zooms.append(make("button", {type: "button", title: label, "aria-label": label,
                                 onclick: () => zoomBy(factor, shift)}, sign));
  }
  zooms.append(make("span", {class: "at", id: "at", "aria-live": "off"}));
  const devices = make("div", {});
  if (data.devices.length > 1) {
    for (const [label, off] of [[words.devices_all, false], [words.devices_none, true]]) {
      devices.append(make("button", {type: "button", onclick: () => data.devices.forEach(one => toggleDevice(one, off))},
                          label));
    }
    for (const device of data.devices) {
      devices.append(make("button", {type: "button", "data-device": device, "aria-pressed": "true",
                                     onclick: () => toggleDevice(device, !hidden.has(device))},
                          swatch({device, main: true}, 0), device));
    }
  }
  document.getElementById("controls").append(zooms, devices);
}

function resize() {
  if (root.dataset.theme) return;   // being printed: as wide as the paper
  for (const {plot, node, spec} of charts) {
    const wide = width(node);
    if (node.clientWidth && Math.abs(wide - plot.width) > 1) plot.setSize({width: wide, height: spec.height});
  }
}

function restyle() {
  readColours();
  for (const {plot} of charts) plot.redraw();
}

function forPrint(on) {
  if (on) root.dataset.theme = "light"; else delete root.dataset.theme;
  for (const folded of document.querySelectorAll(on ? "details:not([open]):not(#more-curves)" : "details[data-folded]")) {
    folded.open = on;
    folded.toggleAttribute("data-folded", on);
  }
  readColours();
  for (const chart of charts) {
    chart.plot.setSize({width: on ? 680 : width(chart.node), height: chart.spec.height});
    show(chart, true);
  }
}

async function drawAll() {
  readColours();
  controls();
  root.classList.add("live");
  let first = true;
  for (const spec of data.charts) {
    if (!spec.open) continue;
    await draw(spec, first);
    first = false;
    await new Promise(done => setTimeout(done));   // the page scrolls and answers meanwhile
  }
  drawTimeline();
  const more = document.getElementById("more-curves");
  if (more) {
    more.addEventListener("toggle", async () => {
      if (more.dataset.drawn) return;
      more.dataset.drawn = "yes";
      for (const spec of data.charts) if (!spec.open) await draw(spec, false);
      setZoom(zoom[0], zoom[1]);
    });
  }
  setZoom(zoom[0], zoom[1]);
  new ResizeObserver(resize).observe(document.getElementById("curves"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
  addEventListener("beforeprint", () => forPrint(true));
  addEventListener("afterprint", () => forPrint(false));
}

function begin() {
  if (typeof DecompressionStream === "undefined") {
    document.getElementById("curves").prepend(make("p", {class: "banner"}, words.no_inflate));
    return Promise.resolve();
  }
  return drawAll();
}

/* For tests, and for whoever opens the console: what is drawn, and the zoom. */
window.runPage = {charts, setZoom, toggleDevice, zoom: () => zoom.slice(), hidden, data, ready: begin()};
})();
