// The points, drawn straight into the pixels of a canvas: 200,000 of them in a few hundredths of
// a second, where a general library for plots takes seconds.

const STEPS = 65535; // of a place, to each side of the square
const MARGIN = 0.07; // of the picture, to each side
const FAR = 0.001; // of the points, to each side, that need not be in the picture at first
const MOVE = 350; // milliseconds from one time to the next

class Cloud {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.view = { x: 0, y: 0, zoom: 1, all: false };
    this.marks = []; // points with a letter
    this.lit = null; // the one place of the palette that is not dimmed
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  get size() {
    return this.to ? this.to.x.length : 0;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    this.image = this.context.createImageData(this.canvas.width, this.canvas.height);
    this.draw();
  }

  // Move all points to their places at another time, and tell when they are there.
  show(plane) {
    const next = { ...plane, ...box(plane, this.view.all ? 0 : FAR) };
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.from = this.to && !still ? this.now() : next;
    this.to = next;
    this.began = performance.now();
    this.part = this.from === next ? 1 : 0;
    cancelAnimationFrame(this.frame);
    return new Promise((done) => {
      const step = () => {
        if (this.part < 1) this.part = Math.min(1, (performance.now() - this.began) / MOVE);
        this.draw();
        if (this.part < 1) this.frame = requestAnimationFrame(step);
        else done();
      };
      step();
    });
  }

  // Where the points are, perhaps on their way.
  now() {
    if (this.part === 1) return this.to;
    const between = (a, b) => a + this.eased * (b - a);
    const x = this.to.x.map((value, i) => between(this.from.x[i], value));
    const y = this.to.y.map((value, i) => between(this.from.y[i], value));
    return { x, y, ...box({ x, y }, this.view.all ? 0 : FAR) };
  }

  get eased() {
    return this.part * this.part * (3 - 2 * this.part);
  }

  paint(paint) {
    this.paints = paint;
    this.draw();
  }

  // From steps of the square to pixels: px = left + x * unit, py = bottom - y * unit.
  frameOfPicture() {
    const { width, height } = this.canvas;
    const part = this.eased;
    const mix = (name) => this.from[name] + part * (this.to[name] - this.from[name]);
    const room = 1 - 2 * MARGIN;
    const wide = Math.max(mix("wide"), 1);
    const high = Math.max(mix("high"), 1);
    const unit = Math.min((width * room) / wide, (height * room) / high) * this.view.zoom;
    return {
      unit,
      left: width * (0.5 + this.view.x) - mix("middleX") * unit,
      bottom: height * (0.5 + this.view.y) + mix("middleY") * unit,
    };
  }

  // In pixels of the style sheet, from the corner of the canvas.
  place(i) {
    const { unit, left, bottom } = this.frameOfPicture();
    const ratio = this.canvas.width / this.canvas.clientWidth;
    const x = this.from.x[i] + this.eased * (this.to.x[i] - this.from.x[i]);
    const y = this.from.y[i] + this.eased * (this.to.y[i] - this.from.y[i]);
    return { x: (left + x * unit) / ratio, y: (bottom - y * unit) / ratio };
  }

  // Which of some points is the nearest, if any is near.
  nearest(x, y, among, within) {
    const { unit, left, bottom } = this.frameOfPicture();
    const ratio = this.canvas.width / this.canvas.clientWidth;
    const wantedX = (x * ratio - left) / unit;
    const wantedY = (bottom - y * ratio) / unit;
    let best = -1;
    let least = ((within * ratio) / unit) ** 2;
    const count = among ? among.length : this.size;
    for (let c = 0; c < count; c++) {
      const i = among ? among[c] : c;
      const squared = (this.to.x[i] - wantedX) ** 2 + (this.to.y[i] - wantedY) ** 2;
      if (squared <= least) [best, least] = [i, squared];
    }
    return best;
  }

  draw() {
    if (!this.to || !this.paints || !this.image) return;
    const began = performance.now();
    const background = rgb(cssVariable("--card"));
    const word = (255 << 24) | (background[2] << 16) | (background[1] << 8) | background[0];
    new Uint32Array(this.image.data.buffer).fill(word);
    const opacity = clamp(1.7 * this.size ** -0.11, 0.35, 0.9);
    if (this.lit === null) this.stampAll(opacity, () => true);
    else {
      this.stampAll(opacity * 0.15, (place) => place !== this.lit);
      this.stampAll(Math.max(opacity, 0.75), (place) => place === this.lit);
    }
    this.context.putImageData(this.image, 0, 0);
    this.drawMarks();
    this.milliseconds = performance.now() - began;
  }

  stampAll(opacity, isMeant) {
    const { width, height } = this.canvas;
    const { unit, left, bottom } = this.frameOfPicture();
    const ratio = width / this.canvas.clientWidth;
    const grown = Math.min(Math.max(this.view.zoom, 0.5) ** 0.35, 3);
    const radius = clamp(12 / this.size ** 0.2, 1, 5) * ratio * grown;
    const stamps = {};
    for (const shape of SHAPES) stamps[shape] = stamp(shape, radius, width, opacity);
    const edge = Math.ceil(radius) + 1;
    const { colors, shapes, places } = this.paints;
    const meant = colors.map((_, place) => isMeant(place));
    const { from, to, eased } = this;
    const n = this.size;
    const stride = strideFor(n);
    const data = this.image.data;
    for (let c = 0, i = 0; c < n; c++, i = (i + stride) % n) {
      const place = places[i];
      if (!meant[place]) continue;
      const x = Math.round(left + (from.x[i] + eased * (to.x[i] - from.x[i])) * unit);
      const y = Math.round(bottom - (from.y[i] + eased * (to.y[i] - from.y[i])) * unit);
      if (x < edge || y < edge || x >= width - edge || y >= height - edge) continue;
      press(data, 4 * (y * width + x), stamps[shapes[place]], colors[place]);
    }
  }

  drawMarks() {
    const context = this.context;
    const ratio = this.canvas.width / this.canvas.clientWidth;
    const places = this.marks.map(({ point, letter }) => ({ ...this.place(point), letter }));
    const [ink, card] = [cssVariable("--ink"), cssVariable("--card")];
    context.save();
    context.scale(ratio, ratio);
    if (places.length === 2) {
      context.setLineDash([5, 4]);
      line(context, places, card, 4);
      line(context, places, ink, 1.5);
      context.setLineDash([]);
    }
    for (const { x, y, letter } of places) {
      ring(context, x, y, 8, card, 5);
      ring(context, x, y, 8, ink, 2.5);
      context.font = "700 15px system-ui, sans-serif";
      context.lineWidth = 4;
      context.strokeStyle = card;
      context.fillStyle = ink;
      context.strokeText(letter, x + 11, y - 9);
      context.fillText(letter, x + 11, y - 9);
    }
    context.restore();
  }
}

function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

// The rectangle that the picture frames: all points, or all but a few that are far from the others.
function box({ x, y }, far) {
  const [left, right] = framed(x, far);
  const [bottom, top] = framed(y, far);
  return {
    middleX: (left + right) / 2,
    middleY: (bottom + top) / 2,
    wide: right - left,
    high: top - bottom,
  };
}

function framed(values, far) {
  const counts = new Uint32Array(STEPS + 1);
  for (const value of values) counts[value]++;
  const end = (share, step) => {
    let at = step > 0 ? 0 : STEPS;
    for (let seen = counts[at]; seen <= share * values.length; seen += counts[at]) at += step;
    return at;
  };
  const [first, last] = [end(0, 1), end(0, -1)];
  const [low, high] = [end(far, 1), end(far, -1)];
  const some = 0.15 * (high - low);
  return [Math.max(first, low - some), Math.min(last, high + some)];
}

// Points are visited in a scattered order, or the last label of a table would cover the others.
function strideFor(n) {
  const common = (a, b) => (b ? common(b, a % b) : a);
  let stride = Math.max(1, Math.floor(n * 0.618));
  while (common(stride, n) !== 1) stride++;
  return stride;
}

// A shape as the pixels that it covers, and how much of each, in 256 parts.
function stamp(shape, radius, width, opacity) {
  const offsets = [];
  const covers = [];
  const reach = Math.ceil(radius);
  for (let y = -reach; y <= reach; y++) {
    for (let x = -reach; x <= reach; x++) {
      const cover = Math.round(256 * opacity * clamp(radius + 0.5 - away(shape, x, y), 0, 1));
      if (cover > 0) {
        offsets.push(4 * (y * width + x));
        covers.push(cover);
      }
    }
  }
  return { offsets: Int32Array.from(offsets), covers: Int32Array.from(covers) };
}

// How far a pixel is from the middle, in the norm whose ball is the shape.
function away(shape, x, y) {
  if (shape === "square") return Math.max(Math.abs(x), Math.abs(y)) * 1.12;
  return Math.hypot(x, y);
}

function press(data, start, { offsets, covers }, color) {
  const red = color[0];
  const green = color[1];
  const blue = color[2];
  for (let m = 0; m < offsets.length; m++) {
    const at = start + offsets[m];
    const cover = covers[m];
    data[at] += ((red - data[at]) * cover) >> 8;
    data[at + 1] += ((green - data[at + 1]) * cover) >> 8;
    data[at + 2] += ((blue - data[at + 2]) * cover) >> 8;
  }
}

function line(context, [a, b], color, width) {
  context.beginPath();
  context.moveTo(a.x, a.y);
  context.lineTo(b.x, b.y);
  context.strokeStyle = color;
  context.lineWidth = width;
  context.stroke();
}

function ring(context, x, y, radius, color, width) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.strokeStyle = color;
  context.lineWidth = width;
  context.stroke();
}
