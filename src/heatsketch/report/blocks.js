"use strict";
// Large numbers: base64 of a zlib stream, in elements of the page, unpacked when they are needed.

const facts = JSON.parse(document.getElementById("facts").textContent);

const unpacked = new Map();

function unpack(name) {
  if (!unpacked.has(name)) unpacked.set(name, inflate(name));
  return unpacked.get(name);
}

async function inflate(name) {
  const element = document.getElementById(name);
  const bytes = fromBase64(element.textContent);
  element.remove(); // or the text would be held beside the numbers
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// Places along each axis, y upward.
async function planeOfPoints() {
  const steps = new Uint16Array(await unpack("places"));
  const n = steps.length / 2;
  return { x: steps.subarray(0, n), y: steps.subarray(n) };
}

// Rows of the sketch, as integers in a unit of each row.
async function sketchAt(time) {
  const buffer = await unpack(`sketch-${time}`);
  const units = new Float64Array(buffer, 0, facts.n_sketched);
  const Numbers = facts.bytes === 4 ? Int32Array : Int16Array;
  return { units, numbers: new Numbers(buffer, 8 * facts.n_sketched) };
}

// |y_i - y_j| with its interval, and how far rounding may have moved it. The first columns are exact.
function distanceIn({ units, numbers }, i, j) {
  const { n_components: k, n_leading: m, factors: [low, high], tolerance } = facts;
  const squares = [0, 0];
  for (let c = 0; c < k; c++) {
    const apart = units[i] * numbers[i * k + c] - units[j] * numbers[j * k + c];
    squares[c < m ? 0 : 1] += apart * apart;
  }
  const [exact, estimated] = squares;
  const end = (factor) => factor === null ? Infinity : Math.sqrt(exact + factor * factor * estimated);
  const rounding = 4 * Math.sqrt((units[i] ** 2 + units[j] ** 2) / 12);
  return { distance: end(1), low: end(low) * (1 - tolerance), high: end(high) / (1 - tolerance), rounding: i === j ? 0 : rounding };
}

// Squared distances from one row to all of them.
function squaresFrom({ units, numbers }, i) {
  const k = facts.n_components;
  const squares = new Float64Array(units.length);
  const own = Float64Array.from(numbers.subarray(i * k, (i + 1) * k), (number) => units[i] * number);
  for (let j = 0; j < squares.length; j++) {
    let sum = 0;
    for (let c = 0; c < k; c++) {
      const apart = own[c] - units[j] * numbers[j * k + c];
      sum += apart * apart;
    }
    squares[j] = sum;
  }
  return squares;
}

async function colorsOf(column) {
  const buffer = await unpack(`color-${column}`);
  return facts.colors[column].kinds ? new Uint8Array(buffer) : new Float32Array(buffer);
}

async function textOf(name) {
  return JSON.parse(new TextDecoder().decode(await unpack(name)));
}
