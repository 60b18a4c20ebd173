// The points, drawn straight into the pixels of a canvas: 200,000 of them in a few hundredths of
// a second, where a general library for plots takes seconds.

const STEPS = 65535; // of a place, along each axis
const MARGIN = 0.07; // of the picture, to each side
const FAR = 0.001; // of the points, to each side, that need not be in the picture at first

class Cloud {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.view = { x: 0, y: 0, zoom: 1, all: false };
    this.marks = []; // points with a letter
    this.lit = null; // the one place of the palette that is not dimmed
    this.chosen = null; // which points are selected, if any; the others are dimmed
    this.lasso = []; // corners, in pixels of the style sheet
    this.size = 1;
    this.opacity = 1;
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  get count() {
    return this.plane ? this.plane.x.length : 0;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    this.image = this.context.createImageData(this.canvas.width, this.canvas.height);
    this.draw();
  }

  show(plane) {
    this.plane = plane;
    this.fit();
  }

  // Frame all points, or all but a few that are far from the others.
  fit() {
    this.box = box(this.plane, this.view.all ? 0 : FAR);
    this.draw();
  }

  paint(paint) {
    this.paints = paint;
    this.draw();
  }

  // Draw once before the next frame, however often it is asked for.
  redraw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.draw();
    });
  }

  // From steps to pixels: px = left + x * unitX, py = bottom - y * unitY.
  frameOfPicture() {
    const { width, height } = this.canvas;
    const { middleX, middleY, wide, high } = this.box;
    const unitX = ((width * (1 - 2 * MARGIN)) / Math.max(wide, 1)) * this.view.zoom;
    const unitY = ((height * (1 - 2 * MARGIN)) / Math.max(high, 1)) * this.view.zoom;
    return {
      unitX,
      unitY,
      left: width * (0.5 + this.view.x) - middleX * unitX,
      bottom: height * (0.5 + this.view.y) + middleY * unitY,
    };
  }

  get ratio() {
    return this.canvas.width / this.canvas.clientWidth;
  }

  // In pixels of the style sheet, from the corner of the canvas.
  place(i) {
    const { unitX, unitY, left, bottom } = this.frameOfPicture();
    return {
      x: (left + this.plane.x[i] * unitX) / this.ratio,
      y: (bottom - this.plane.y[i] * unitY) / this.ratio,
    };
  }

  // Which of some points is the nearest, if any is near; only those that fit, if that is asked for.
  nearest(x, y, among, within, fits = () => true) {
    const { unitX, unitY, left, bottom } = this.frameOfPicture();
    const wantedX = x * this.ratio - left;
    const wantedY = bottom - y * this.ratio;
    let best = -1;
    let least = (within * this.ratio) ** 2;
    const count = among ? among.length : this.count;
    for (let c = 0; c < count; c++) {
      const i = among ? among[c] : c;
      const [right, up] = [this.plane.x[i] * unitX - wantedX, this.plane.y[i] * unitY - wantedY];
      const squared = right * right + up * up;
      if (squared <= least && fits(right, up)) [best, least] = [i, squared];
    }
    return best;
  }

  // The next point to the right, the left, above or below.
  next(from, [right, up], among) {
    const { x, y } = this.place(from);
    const ahead = (a, b) => right * a + up * b > 0.5 && right * a + up * b >= Math.abs(right * b) + Math.abs(up * a);
    const found = this.nearest(x, y, among, Infinity, ahead);
    return found < 0 ? from : found;
  }

  // Which points lie within a polygon.
  within(corners) {
    const { unitX, unitY, left, bottom } = this.frameOfPicture();
    const found = new Uint8Array(this.count);
    for (let i = 0; i < found.length; i++) {
      const x = (left + this.plane.x[i] * unitX) / this.ratio;
      const y = (bottom - this.plane.y[i] * unitY) / this.ratio;
      let inside = 0;
      for (let c = 0, p = corners.length - 1; c < corners.length; p = c++) {
        const [a, b] = [corners[c], corners[p]];
        if (a.y > y !== b.y > y && x < ((b.x - a.x) * (y - a.y)) / (b.y - a.y) + a.x) inside ^= 1;
      }
      found[i] = inside;
    }
    return found;
  }

  draw() {
    if (!this.plane || !this.paints || !this.image) return;
    const began = performance.now();
    new Uint32Array(this.image.data.buffer).fill(pixelOf(rgb(cssVariable("--card"))));
    const opacity = clamp(1.7 * this.count ** -0.11, 0.35, 0.9);
    const { lit, chosen } = this;
    const { places } = this.paints;
    if (lit === null && chosen === null) this.stampAll(opacity, () => true);
    else {
      const isLit = (i) => (lit === null || places[i] === lit) && (chosen === null || chosen[i] === 1);
      this.stampAll(opacity * 0.15, (i) => !isLit(i));
      this.stampAll(Math.max(opacity, 0.75), isLit);
    }
    this.context.putImageData(this.image, 0, 0);
    this.drawMarks();
    this.drawLasso();
    this.milliseconds = performance.now() - began;
  }

  stampAll(opacity, isMeant) {
    const { width, height } = this.canvas;
    const { unitX, unitY, left, bottom } = this.frameOfPicture();
    const grown = Math.min(Math.max(this.view.zoom, 0.5) ** 0.35, 3);
    const radius = clamp(12 / this.count ** 0.2, 1, 5) * this.ratio * grown * this.size;
    const strength = Math.min(opacity * this.opacity, 1);
    const stamps = {};
    for (const shape of SHAPES) stamps[shape] = stamp(shape, radius, width, strength);
    const edge = Math.ceil(radius) + 1;
    const { colors, shapes, places } = this.paints;
    const { x: xs, y: ys } = this.plane;
    const n = this.count;
    const stride = strideFor(n);
    const pixels = new Uint32Array(this.image.data.buffer);
    const words = colors.map(pixelOf);
    for (let c = 0, i = 0; c < n; c++, i = i + stride < n ? i + stride : i + stride - n) {
      if (!isMeant(i)) continue;
      const x = Math.round(left + xs[i] * unitX);
      const y = Math.round(bottom - ys[i] * unitY);
      if (x < edge || y < edge || x >= width - edge || y >= height - edge) continue;
      const place = places[i];
      press(pixels, y * width + x, stamps[shapes[place]], words[place]);
    }
  }

  drawMarks() {
    const context = this.context;
    const { ratio } = this;
    const places = this.marks.map(({ point, letter }) => ({ ...this.place(point), letter }));
    const [ink, card] = [cssVariable("--ink"), cssVariable("--card")];
    context.save();
    context.scale(ratio, ratio);
    const pair = places.filter(({ letter }) => letter);
    if (pair.length === 2) {
      context.setLineDash([5, 4]);
      line(context, pair, card, 4);
      line(context, pair, ink, 1.5);
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

  drawLasso() {
    const { context, lasso, ratio } = this;
    if (lasso.length < 2) return;
    context.save();
    context.scale(ratio, ratio);
    context.beginPath();
    for (const { x, y } of lasso) context.lineTo(x, y);
    context.closePath();
    context.setLineDash([4, 3]);
    context.strokeStyle = cssVariable("--ink");
    context.lineWidth = 1.5;
    context.stroke();
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
        offsets.push(y * width + x);
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

// A color as it stands in the pixels of an image, opaque.
function pixelOf([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

// Mix a color into pixels, red and blue at once: the bits between them hold what one product needs.
function press(pixels, start, { offsets, covers }, color) {
  const outer = color & 0xff00ff;
  const green = color & 0x00ff00;
  for (let m = 0; m < offsets.length; m++) {
    const at = start + offsets[m];
    const old = pixels[at];
    const oldOuter = old & 0xff00ff;
    const oldGreen = old & 0x00ff00;
    const newOuter = oldOuter + (Math.imul(outer - oldOuter, covers[m]) >> 8);
    const newGreen = oldGreen + (Math.imul(green - oldGreen, covers[m]) >> 8);
    pixels[at] = 0xff000000 | (newOuter & 0xff00ff) | (newGreen & 0x00ff00);
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
