// The points A and B: how far they are from each other, and what is near A.

const NEIGHBORS = 10; // of A, listed
const OFFERED = 12; // names, while one is typed

function nameOf(point) {
  return names ? names[point] : String(rows[point]);
}

// A click chooses A, the next one B, and a third one A again.
function pick(point) {
  if (state.first === null || state.second !== null) [state.first, state.second] = [point, null];
  else state.second = point;
  return showPair();
}

async function showPair() {
  for (const id of ["first", "second"]) byId(id).value = state[id] === null ? "" : nameOf(state[id]);
  byId("error").textContent = "";
  drawMarks();
  if (state.column === DISTANCE) await paint();
  saveState();
  await Promise.all([answer(), listNeighbors()]);
}

function drawMarks() {
  const marks = [{ point: state.first, letter: "A" }, { point: state.second, letter: "B" }, { point: cursor, letter: "" }];
  cloud.marks = marks.filter(({ point }) => point !== null);
  cloud.draw();
}

function pickByName(id) {
  const name = byId(id).value.trim();
  const point = pointNamed(name);
  if (name !== "" && (point < 0 || !placeOfSketch.has(point))) {
    byId("error").textContent = whyNot(name, point);
    return;
  }
  state[id] = name === "" ? null : point;
  showPair();
}

// By its name, in any case if none is written like this; or by its number.
function pointNamed(name) {
  if (!names) return rows.indexOf(/^\d+$/.test(name) ? Number(name) : -1);
  const exact = names.indexOf(name);
  return exact >= 0 ? exact : names.findIndex((other) => other.toLowerCase() === name.toLowerCase());
}

function whyNot(name, point) {
  if (point < 0 && facts.n_drawn === facts.n_points) return `There is no row ${name}.`;
  return `Row ${name} is not among the ${count(facts.n_sketched)} rows whose sketch is in this page; ` +
    "in a terminal, use heatsketch distances.";
}

// Names that begin with what is typed, then names that hold it.
function offerNames(id) {
  const typed = byId(id).value.trim().toLowerCase();
  const [begin, hold] = [[], []];
  for (const point of typed ? sketched : []) {
    const at = nameOf(point).toLowerCase().indexOf(typed);
    if (at === 0) begin.push(point);
    else if (at > 0 && hold.length < OFFERED) hold.push(point);
    if (begin.length === OFFERED) break;
  }
  const offers = [...begin, ...hold].slice(0, OFFERED);
  byId("known").replaceChildren(...offers.map((point) => new Option("", nameOf(point))));
}

async function estimateAt(time) {
  const [i, j] = [state.first, state.second].map((point) => placeOfSketch.get(point));
  return distanceIn(await sketchAt(time), i, j);
}

async function answer() {
  const { first, second, time } = state;
  const isPair = first !== null && second !== null;
  byId("answer").hidden = byId("over-time").hidden = !isPair;
  if (!isPair) return;
  const found = await estimateAt(time);
  if (state.first !== first || state.second !== second || state.time !== time) return;
  // No digit is shown that rounding could have changed.
  const digits = found.rounding < 5e-4 * found.distance || found.distance === 0 ? 3 : 2;
  write("estimate", found.distance, digits);
  write("low", found.low, digits);
  write("high", found.high, digits);
  byId("at").textContent = named(facts.powers[time]);
  byId("answer").dataset.time = time;
  await drawOverTime(first, second);
}

function named(power) {
  return power === "all" ? "all times" : `p = ${power}`;
}

function write(id, value, digits) {
  byId(id).value = value;
  byId(id).textContent = value === Infinity ? "∞" : value === 0 ? "0" : value.toPrecision(digits);
}

async function drawOverTime(first, second) {
  const single = facts.powers.filter((power) => power !== "all");
  const found = await Promise.all(single.map((_, time) => estimateAt(time)));
  if (state.first !== first || state.second !== second) return;
  const y = found.map(({ distance }) => distance);
  const dots = {
    x: single, y, now: state.time,
    low: found.map(({ low }) => low),
    high: found.map(({ high }) => high).filter(Number.isFinite),
  };
  const options = { xName: "diffusion time p", yName: "distance", xLog: true, yLog: y.every((d) => d > 0), xTicks: single };
  chart(byId("over-time").querySelector(".chart"), dots, options);
}

async function listNeighbors() {
  const { first, time } = state;
  byId("near").hidden = first === null;
  if (first === null) return;
  const squares = squaresFrom(await sketchAt(time), placeOfSketch.get(first));
  if (state.first !== first || state.time !== time) return;
  const others = Array.from(squares.keys()).filter((place) => sketched[place] !== first);
  others.sort((i, j) => squares[i] - squares[j]);
  const shown = others.slice(0, NEIGHBORS);
  byId("near-name").textContent = nameOf(first);
  byId("neighbors").replaceChildren(...shown.map((place) => neighbor(sketched[place], Math.sqrt(squares[place]))));
}

function neighbor(point, distance) {
  const [item, button, far] = ["li", "button", "span"].map((tag) => document.createElement(tag));
  button.type = "button";
  button.textContent = nameOf(point);
  button.title = `Compare with ${nameOf(point)}`;
  button.addEventListener("click", () => {
    state.second = point;
    showPair().then(() => byId("second").focus());
  });
  far.textContent = short(Number(distance.toPrecision(3)));
  item.append(button, far);
  return item;
}
