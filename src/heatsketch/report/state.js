// What the page shows, and the same in its address, so that a link brings it back.

const byId = (id) => document.getElementById(id);
const count = (n) => n.toLocaleString("en-US");
const cloud = new Cloud(byId("cloud"));
const NOTHING = -1; // columns that are none of the table
const DISTANCE = -2;
const state = { time: facts.start, column: facts.colors.length ? 0 : NOTHING, first: null, second: null };
let rows, sketched, placeOfSketch, names, columns, images;

function saveState() {
  const { x, y, zoom } = cloud.view;
  const number = (value) => String(Number(value.toFixed(3)));
  const kept = { time: facts.powers[state.time], color: state.column };
  if (state.first !== null) kept.a = rows[state.first];
  if (state.second !== null) kept.b = rows[state.second];
  if (zoom !== 1 || x || y) kept.view = [x, y, zoom].map(number).join("_");
  if (cloud.size !== 1) kept.size = number(cloud.size);
  if (cloud.opacity !== 1) kept.opacity = number(cloud.opacity);
  history.replaceState(null, "", `#${new URLSearchParams(kept)}`);
}

// Whatever an address holds that the page does not have is left out.
function readState() {
  const kept = new URLSearchParams(location.hash.slice(1));
  const time = facts.powers.findIndex((power) => String(power) === kept.get("time"));
  if (time >= 0) state.time = time;
  const column = Number(kept.get("color") ?? state.column);
  if (column === NOTHING || column === DISTANCE || facts.colors[column]) state.column = column;
  const point = (row) => {
    const found = row === null ? -1 : rows.indexOf(Number(row));
    return placeOfSketch.has(found) ? found : null;
  };
  state.first = point(kept.get("a"));
  state.second = point(kept.get("b"));
  const [x, y, zoom] = (kept.get("view") ?? "0_0_1").split("_").map(Number);
  if ([x, y, zoom].every(Number.isFinite) && zoom > 0) Object.assign(cloud.view, { x, y, zoom });
  for (const name of ["size", "opacity"]) {
    const value = Number(kept.get(name) ?? 1);
    byId(name).value = value > 0 ? value : 1;
    cloud[name] = Number(byId(name).value); // which the slider has limited
  }
}
