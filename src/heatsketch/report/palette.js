// Colours that the colour-blind can tell apart: Okabe and Ito's eight for labels, Krzywinski's twelve
// where there are more of them, and cividis for values.

const dark = window.matchMedia("(prefers-color-scheme: dark)");

const EIGHT = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000", "#f0e442"];
const TWELVE = [
  "#008df9", "#ff6e3a", "#009f81", "#9f0162", "#ffc33b", "#8400cd",
  "#00c2f9", "#e20134", "#00fccf", "#ff5aaf", "#a40122", "#ffb2fd",
];
const ON_DARK = { "#0072b2": "#2f8fd0", "#000000": "#ffffff", "#9f0162": "#c2187e", "#8400cd": "#a44be0" };
const SHAPES = ["disc", "square"];
const MISSING = 255;
const SHADES = 64; // of values, before the one for those that are missing

const CIVIDIS = [
  [0, 34, 78], [26, 56, 111], [67, 78, 108], [97, 101, 111], [125, 124, 120],
  [155, 148, 118], [188, 174, 108], [222, 201, 88], [254, 232, 56],
];

function rgb(hex) {
  return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
}

function css(color) {
  return `rgb(${color.map(Math.round).join(" ")})`;
}

function cssVariable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function labelColor(place, howMany) {
  const palette = howMany > EIGHT.length ? TWELVE : EIGHT;
  const color = palette[place % palette.length];
  return rgb(dark.matches ? ON_DARK[color] || color : color);
}

function labelShape(place) {
  return SHAPES[Math.floor(place / TWELVE.length) % SHAPES.length];
}

function missingColor() {
  return dark.matches ? [92, 100, 110] : [176, 182, 189];
}

// The ends that would be lost on the background are left out.
function shade(fraction) {
  const [low, high] = dark.matches ? [0.22, 1] : [0, 0.93];
  const place = (low + (high - low) * fraction) * (CIVIDIS.length - 1);
  const below = Math.min(Math.floor(place), CIVIDIS.length - 2);
  return CIVIDIS[below].map((c, i) => c + (place - below) * (CIVIDIS[below + 1][i] - c));
}

// What the cloud draws with: colours and shapes, and which of them each point has.
function singlePaint(n) {
  return { colors: [rgb(cssVariable("--accent"))], shapes: ["disc"], places: new Uint8Array(n) };
}

function labelPaint(kinds, data) {
  const colors = kinds.map((_, place) => labelColor(place, kinds.length));
  const shapes = kinds.map((_, place) => labelShape(place));
  const places = data.map((place) => (place === MISSING ? kinds.length : place));
  return { colors: [...colors, missingColor()], shapes: [...shapes, "disc"], places };
}

function valuePaint(data, low, high) {
  const colors = Array.from({ length: SHADES }, (_, i) => shade(i / (SHADES - 1)));
  const step = (SHADES - 1) / (high - low || 1);
  const places = new Uint8Array(data.length);
  for (let i = 0; i < data.length; i++) {
    const place = Math.round((data[i] - low) * step);
    places[i] = Number.isNaN(data[i]) ? SHADES : Math.max(0, Math.min(SHADES - 1, place));
  }
  const shapes = new Array(SHADES + 1).fill("disc");
  return { colors: [...colors, missingColor()], shapes, places };
}
