// What the controls do. Whatever comes from a table goes into the page as text, never as markup.

const byId = (id) => document.getElementById(id);
const count = (n) => n.toLocaleString("en-US");
const cloud = new Cloud(byId("cloud"));
const NEAR = 24; // pixels from a click to the point that it means
const state = { time: facts.start, column: -1, pair: [], asked: 0 };
let rows, sketched, placeOfSketch, names, values;

async function start() {
  writeWords();
  fillControls();
  rows = new Int32Array(await unpack("rows"));
  sketched = new Int32Array(await unpack("sketched"));
  placeOfSketch = new Map(Array.from(sketched, (point, place) => [point, place]));
  names = facts.named ? await textOf("names") : null;
  await setColor(facts.colors.length ? 0 : -1);
  await setTime(facts.start);
  addHandlers();
  document.body.dataset.ready = "yes";
}

// --- time and colour

async function setTime(time) {
  state.time = time;
  const power = facts.powers[time];
  byId("time").value = time;
  byId("time").setAttribute("aria-valuetext", named(power));
  byId("shown").textContent = named(power);
  const share = (100 * facts.shares[time]).toFixed(facts.shares[time] < 0.1 ? 1 : 0);
  byId("plane").textContent =
    `The plane in which the sketch of ${facts.n_components} components extends most, ${named(power)}: ` +
    `it shows ${share} % of the variance, and is ${short(Number(facts.sides[time].toPrecision(2)))} wide.`;
  drawTrace();
  const asked = ++state.asked;
  const plane = await planeAt(time);
  if (asked !== state.asked) return; // the slider has moved on
  const arrived = cloud.show(plane);
  await Promise.all([arrived, answer()]);
  document.body.dataset.power = power;
}

async function setColor(column) {
  state.column = column;
  byId("color").value = column;
  cloud.lit = null;
  values = column < 0 ? null : await colorsOf(column);
  paint();
  document.body.dataset.column = column;
}

function paint() {
  const { column } = state;
  const kinds = column < 0 ? null : facts.colors[column].kinds;
  if (column < 0) {
    cloud.paint(singlePaint(facts.n_drawn));
    byId("legend").replaceChildren();
  } else if (kinds) {
    cloud.paint(labelPaint(kinds, values));
    byId("legend").replaceChildren(...kinds.map(legendOfKind));
  } else {
    const [low, high] = ends(values);
    cloud.paint(valuePaint(values, low, high));
    byId("legend").replaceChildren(...legendOfValues(low, high));
  }
}

function ends(data) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of data) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

function legendOfKind(kind, place, kinds) {
  const button = document.createElement("button");
  const words = document.createElement("span");
  const sample = svg("svg", { viewBox: "-6 -6 12 12", "aria-hidden": "true" });
  const outline = { disc: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0", square: "M-4.5-4.5h9v9h-9z" };
  sample.append(svg("path", { d: outline[labelShape(place)], fill: css(labelColor(place, kinds.length)) }));
  words.textContent = kind;
  button.type = "button";
  button.title = `Show ${kind} alone`;
  button.setAttribute("aria-pressed", String(cloud.lit === place));
  button.append(sample, words);
  button.addEventListener("click", () => {
    cloud.lit = cloud.lit === place ? null : place;
    paint();
  });
  return button;
}

function legendOfValues(low, high) {
  const scale = document.createElement("canvas");
  scale.className = "scale";
  [scale.width, scale.height] = [SHADES, 1];
  const context = scale.getContext("2d");
  for (let i = 0; i < SHADES; i++) {
    context.fillStyle = css(shade(i / (SHADES - 1)));
    context.fillRect(i, 0, 1, 1);
  }
  const end = (value) => {
    const words = document.createElement("span");
    words.className = "end";
    words.textContent = short(Number(value.toPrecision(3)));
    return words;
  };
  return [end(low), scale, end(high)];
}

// --- two points

function nameOf(point) {
  return names ? names[point] : String(rows[point]);
}

function pick(point) {
  state.pair = state.pair.length === 1 ? [state.pair[0], point] : [point];
  showPair();
}

function showPair() {
  const [first, second] = state.pair;
  byId("first").value = first === undefined ? "" : nameOf(first);
  byId("second").value = second === undefined ? "" : nameOf(second);
  byId("error").textContent = "";
  cloud.marks = state.pair.map((point, i) => ({ point, letter: "AB"[i] }));
  cloud.draw();
  answer();
}

function pickByName() {
  const wanted = [byId("first").value.trim(), byId("second").value.trim()];
  const found = [];
  for (const name of wanted.filter((word) => word !== "")) {
    const point = names ? names.indexOf(name) : rows.indexOf(/^\d+$/.test(name) ? Number(name) : -1);
    if (point < 0 || !placeOfSketch.has(point)) {
      byId("error").textContent = error(name, point);
      return;
    }
    found.push(point);
  }
  state.pair = found;
  showPair();
}

function error(name, point) {
  if (point < 0 && facts.n_drawn === facts.n_points) return `There is no row ${name}.`;
  return `Row ${name} is not among the ${count(facts.n_sketched)} rows whose sketch is in this page; ` +
    "in a terminal, heatsketch distances knows them all.";
}

async function estimateAt(time) {
  const [i, j] = state.pair.map((point) => placeOfSketch.get(point));
  return distanceIn(await sketchAt(time), i, j);
}

async function answer() {
  const { pair, time } = state;
  byId("answer").hidden = byId("over-time").hidden = pair.length < 2;
  if (pair.length < 2) return;
  const found = await estimateAt(time);
  if (state.pair !== pair || state.time !== time) return;
  const [low, high] = facts.factors;
  // No digit is shown that rounding could have changed.
  const digits = found.rounding < 5e-4 * found.distance || found.distance === 0 ? 3 : 2;
  say("estimate", found.distance, digits);
  say("low", low * found.distance, digits);
  say("high", high === null ? Infinity : high * found.distance, digits);
  byId("at").textContent = named(facts.powers[time]);
  byId("answer").dataset.time = time;
  drawOverTime(pair);
}

function named(power) {
  return power === "all" ? "all times" : `p = ${power}`;
}

function say(id, value, digits) {
  byId(id).value = value;
  byId(id).textContent = value === Infinity ? "∞" : value === 0 ? "0" : value.toPrecision(digits);
}

async function drawOverTime(pair) {
  const single = facts.powers.filter((power) => power !== "all");
  const found = await Promise.all(single.map((_, time) => estimateAt(time)));
  if (state.pair !== pair) return;
  const y = found.map(({ distance }) => distance);
  const [low, high] = facts.factors;
  const part = {
    kind: "dots", style: "cold", x: single, y, now: state.time,
    low: y.map((distance) => low * distance),
    high: y.map((distance) => (high === null ? null : high * distance)).filter((end) => end !== null),
  };
  const options = { xName: "diffusion time p", yName: "distance", xLog: true, yLog: y.every((d) => d > 0), xTicks: single };
  chart(byId("over-time").querySelector(".chart"), [part], options);
}

// --- curves and words

function drawTrace() {
  if (!facts.trace) return;
  const { powers, trace, low, high, directions, allowed, chosen } = facts.trace;
  const parts = [
    { kind: "band", style: "cold", x: powers, low, high },
    { kind: "curve", style: "cold", x: powers, y: trace, name: "heat trace, ± 2 standard errors" },
    { kind: "curve", style: "warm dashed", x: powers, y: directions, name: "directions" },
    { kind: "across", style: "plain dotted", y: [allowed], name: `directions for ${facts.n_components} columns` },
    { kind: "down", style: "plain", x: [facts.power], name: `p = ${facts.power}, ${chosen ? "where the sum starts" : "given"}` },
  ];
  const now = facts.powers[state.time];
  const largest = powers[powers.length - 1];
  if (now <= largest) parts.push({ kind: "down", style: "now dashed", x: [now], name: `p = ${now}, shown` });
  chart(byId("trace"), parts, { xName: "power p", yName: "size of the heat kernel", xLog: true, yLog: true });
}

function drawBandwidth() {
  const bandwidth = facts.bandwidth;
  const words = byId("bandwidth-words");
  if (bandwidth.kind === "none") {
    words.textContent = "The affinities were given, so there is no bandwidth.";
    return;
  }
  if (bandwidth.kind === "local") {
    words.textContent =
      `Each point has a scale of its own, its distance to the seventh neighbour; half of them are below ${short(Number(bandwidth.median.toPrecision(3)))}.`;
    const parts = [
      { kind: "bars", style: "cold", edges: bandwidth.edges, x: bandwidth.edges, y: bandwidth.counts },
      { kind: "down", style: "warm dashed", x: [bandwidth.median], name: "median" },
    ];
    chart(byId("bandwidth"), parts, { xName: "local scale", yName: "points", xLog: true, zero: true });
    return;
  }
  const epsilon = `epsilon = ${short(Number(bandwidth.epsilon.toPrecision(3)))}`;
  const who = bandwidth.kind === "auto" ? "read from the curve" : "given";
  if (!bandwidth.epsilons) {
    words.textContent = `One bandwidth for all points, ${epsilon}, ${who}.`;
    return;
  }
  words.textContent =
    `One bandwidth for all points, ${epsilon}, ${who}. The curve is the dimension that a kernel of each bandwidth sees; the points have about ${bandwidth.dimension.toFixed(1)}.`;
  const parts = [
    { kind: "curve", style: "cold", x: bandwidth.epsilons, y: bandwidth.dimensions, name: "dimension seen" },
    { kind: "down", style: "warm dashed", x: [bandwidth.epsilon], name: epsilon },
    { kind: "across", style: "plain dotted", y: [bandwidth.dimension], name: `dimension ${bandwidth.dimension.toFixed(1)}` },
  ];
  chart(byId("bandwidth"), parts, { xName: "epsilon", yName: "dimension", xLog: true, zero: true });
}

function writeWords() {
  document.title = facts.title;
  byId("title").textContent = facts.title;
  const some = facts.n_drawn < facts.n_points ? `, of which ${count(facts.n_drawn)} are drawn` : "";
  byId("summary").textContent =
    `${count(facts.n_points)} points${some}, sketched in ${facts.n_components} columns, at ${facts.powers.length} diffusion times.`;
  if (facts.n_sketched < facts.n_points) {
    byId("how").textContent =
      `Click two points, or name two rows. ${count(facts.n_sketched)} points, drawn by lot, have their sketch in this page; a click takes the nearest of them.`;
  }
  byId("sure").textContent = `${Number((100 * facts.confidence).toPrecision(6))} %`;
  byId("meaning").textContent =
    `Distances are computed from all ${facts.n_components} components of the sketch, not from the picture. The interval allows for the error of the sketch alone.`;
  byId("trace-words").textContent = !facts.trace
    ? "This sketch does not tell how much of the heat kernel is left."
    : facts.trace.chosen
    ? `The sum over all diffusion times starts where the heat kernel extends in few enough directions for the sketch: p = ${facts.power}.`
    : `What is left of the heat kernel as heat flows; p = ${facts.power} was given.`;
  const one = facts.n_connected === 1;
  byId("connected-words").textContent = one
    ? "The graph is connected."
    : `The graph has ${count(facts.n_connected)} connected components; distances between them mean no more than "far".`;
  for (const size of facts.component_sizes) {
    const bar = document.createElement("span");
    bar.style.flex = String(size);
    bar.title = `${count(size)} points`;
    byId("connected").append(bar);
  }
  for (const [name, value] of facts.parameters) {
    const row = byId("parameters").insertRow();
    row.insertCell().textContent = name;
    row.insertCell().textContent = value;
  }
  byId("citation").textContent = facts.citation;
  byId("made").textContent = `Written by heatsketch ${facts.version}. This page needs no network, and sends nothing.`;
  drawBandwidth();
}

function fillControls() {
  byId("time").max = facts.powers.length - 1;
  byId("play").disabled = facts.powers.length < 2;
  facts.powers.forEach((power, time) => {
    const tick = document.createElement("span");
    tick.textContent = power;
    tick.className = time === facts.start ? "own" : "";
    tick.style.left = `${(100 * time) / Math.max(1, facts.powers.length - 1)}%`;
    byId("ticks").append(tick);
  });
  const choice = (words, value) => byId("color").append(new Option(words, value));
  facts.colors.forEach(({ name }, column) => choice(name, column));
  choice("nothing", -1);
}

// --- events

let playing = null;

async function play() {
  if (playing) {
    playing = null;
  } else {
    const mine = (playing = {});
    byId("play").textContent = "Stop";
    const from = state.time === facts.powers.length - 1 ? 0 : state.time + 1;
    for (let time = from; time < facts.powers.length && playing === mine; time++) {
      await setTime(time);
      await new Promise((done) => setTimeout(done, 650));
    }
    if (playing === mine) playing = null;
  }
  byId("play").textContent = "Play";
}

function stop() {
  playing = null;
  byId("play").textContent = "Play";
}

function addHandlers() {
  byId("time").addEventListener("input", () => {
    stop();
    setTime(Number(byId("time").value));
  });
  byId("play").addEventListener("click", play);
  byId("color").addEventListener("change", () => setColor(Number(byId("color").value)));
  byId("first").addEventListener("change", pickByName);
  byId("second").addEventListener("change", pickByName);
  byId("closer").addEventListener("click", () => zoomAt(1.5, 0.5, 0.5));
  byId("farther").addEventListener("click", () => zoomAt(1 / 1.5, 0.5, 0.5));
  byId("whole").addEventListener("click", showWhole);
  dark.addEventListener("change", paint);
  addPointerHandlers(byId("cloud"));
}

function showWhole() {
  cloud.view = { x: 0, y: 0, zoom: 1, all: true };
  cloud.show(cloud.to);
}

// Zoom so that what is at this part of the width and the height stays there.
function zoomAt(factor, across, down) {
  const view = cloud.view;
  const zoom = clamp(view.zoom * factor, 0.5, 200);
  const grown = zoom / view.zoom;
  view.x = across - 0.5 + (view.x - across + 0.5) * grown;
  view.y = down - 0.5 + (view.y - down + 0.5) * grown;
  view.zoom = zoom;
  cloud.draw();
}

function addPointerHandlers(canvas) {
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.offsetX, y: event.offsetY, view: { ...cloud.view }, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held || !event.buttons) return showTip(event);
    const [x, y] = [event.offsetX - held.x, event.offsetY - held.y];
    held.moved ||= Math.hypot(x, y) > 5;
    if (!held.moved) return undefined;
    byId("tip").hidden = true;
    cloud.view.x = held.view.x + x / canvas.clientWidth;
    cloud.view.y = held.view.y + y / canvas.clientHeight;
    return cloud.draw();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (held && !held.moved) {
      const point = cloud.nearest(event.offsetX, event.offsetY, sketched, NEAR);
      if (point >= 0) pick(point);
    }
    held = null;
  });
  canvas.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomAt(Math.exp(-event.deltaY / 500), event.offsetX / canvas.clientWidth, event.offsetY / canvas.clientHeight);
  }, { passive: false });
}

function showTip(event) {
  const tip = byId("tip");
  const point = cloud.nearest(event.offsetX, event.offsetY, null, 8);
  tip.hidden = point < 0;
  if (point < 0) return;
  const lines = [names ? nameOf(point) : `row ${nameOf(point)}`];
  if (values) {
    const { name, kinds } = facts.colors[state.column];
    const value = kinds ? kinds[values[point]] : Number.isNaN(values[point]) ? undefined : short(Number(values[point].toPrecision(4)));
    lines.push(`${name}: ${value ?? "missing"}`);
  }
  tip.textContent = lines.join("\n");
  const { x, y } = cloud.place(point);
  const frame = byId("frame");
  tip.style.left = `${Math.min(x + 12, frame.clientWidth - tip.offsetWidth - 4)}px`;
  tip.style.top = `${Math.max(4, y - tip.offsetHeight - 10)}px`;
}

start();
