// What the points are coloured by, and the legend.

const NEARLY_ALL = 0.95;

async function setColor(column) {
  state.column = column;
  byId("color").value = column;
  cloud.lit = null;
  await paint();
  saveState();
  document.body.dataset.column = column;
}

async function paint() {
  const { column } = state;
  const legend = byId("legend");
  if (column === DISTANCE && state.first !== null) {
    const { first, time } = state;
    const far = await distancesFrom(first);
    if (state.first !== first || state.time !== time || state.column !== column) return;
    paintValues(far, NEARLY_ALL);
  } else if (column < 0) {
    cloud.paint(singlePaint(facts.n_drawn));
    legend.replaceChildren(column === DISTANCE ? "Pick a point A: click one, or type its row." : "");
  } else if (facts.colors[column].kinds) {
    const { kinds } = facts.colors[column];
    cloud.paint(labelPaint(kinds, columns[column]));
    legend.replaceChildren(...kinds.map(legendOfKind));
  } else paintValues(columns[column]);
}

// The scale ends where it covers this share of the values: a few large ones would take most of it.
function paintValues(values, share = 1) {
  const known = values.filter((value) => !Number.isNaN(value)).sort();
  const low = known.length ? known[0] : 0;
  const high = known.length ? known[Math.floor(share * (known.length - 1))] : 1;
  cloud.paint(valuePaint(values, low, high));
  byId("legend").replaceChildren(...legendOfValues(low, high, share < 1 ? "≥ " : ""));
}

// Of points whose sketch is not in the page, none.
async function distancesFrom(point) {
  const squares = squaresFrom(await sketchAt(state.time), placeOfSketch.get(point));
  const far = new Float32Array(facts.n_drawn).fill(NaN);
  sketched.forEach((other, place) => { far[other] = Math.sqrt(squares[place]); });
  return far;
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
  button.addEventListener("click", () => light(place));
  return button;
}

function light(place) {
  cloud.lit = cloud.lit === place ? null : place;
  // The buttons stay, and with them the focus.
  [...byId("legend").children].forEach((button, other) => button.setAttribute("aria-pressed", String(cloud.lit === other)));
  cloud.draw();
}

function legendOfValues(low, high, before) {
  const scale = document.createElement("canvas");
  scale.className = "scale";
  [scale.width, scale.height] = [SHADES, 1];
  const context = scale.getContext("2d");
  for (let i = 0; i < SHADES; i++) {
    context.fillStyle = css(shade(i / (SHADES - 1)));
    context.fillRect(i, 0, 1, 1);
  }
  const end = (value, sign = "") => {
    const words = document.createElement("span");
    words.className = "end";
    words.textContent = sign + short(Number(value.toPrecision(3)));
    return words;
  };
  return [end(low), scale, end(high, before)];
}
