// Fingers, mouse and keys on the picture, and the tooltip.

const NEAR = 24; // pixels from a click to the point that it means
const HOVER = 8; // pixels from the mouse to the point that a tooltip is about
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
let cursor = null; // the point that the keys have come to
let isLasso = false;

// Zoom so that what is at this part of the width and the height stays there.
function zoomAt(factor, across, down) {
  const view = cloud.view;
  const zoom = clamp(view.zoom * factor, 0.5, 200);
  const grown = zoom / view.zoom;
  view.x = across - 0.5 + (view.x - across + 0.5) * grown;
  view.y = down - 0.5 + (view.y - down + 0.5) * grown;
  view.zoom = zoom;
  cloud.redraw();
  saveSoon();
}

function panBy(x, y) {
  cloud.view.x += x;
  cloud.view.y += y;
  cloud.redraw();
  saveSoon();
}

let saving = 0;

function saveSoon() {
  clearTimeout(saving);
  saving = setTimeout(saveState, 200);
}

function showWhole() {
  cloud.view = { x: 0, y: 0, zoom: 1, all: true };
  cloud.fit();
  saveState();
}

function setLasso(on) {
  isLasso = on;
  byId("lasso").setAttribute("aria-pressed", String(on));
}

function addPointerHandlers(canvas) {
  const held = new Map(); // fingers, or the mouse
  let moved = false;
  const middle = () => {
    const [a, b = a] = [...held.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.hypot(a.x - b.x, a.y - b.y) };
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!held.size) moved = false;
    held.set(event.pointerId, { x: event.offsetX, y: event.offsetY, startX: event.offsetX, startY: event.offsetY });
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const finger = held.get(event.pointerId);
    if (!finger) return showTip(cloud.nearest(event.offsetX, event.offsetY, null, HOVER));
    moved ||= Math.hypot(event.offsetX - finger.startX, event.offsetY - finger.startY) > 5;
    if (!moved) return undefined;
    showTip(-1);
    const before = middle();
    [finger.x, finger.y] = [event.offsetX, event.offsetY];
    if (isLasso && held.size === 1) {
      if (!cloud.lasso.length) cloud.lasso.push({ x: finger.startX, y: finger.startY });
      cloud.lasso.push({ x: finger.x, y: finger.y });
      return cloud.redraw();
    }
    const after = middle();
    if (before.apart && after.apart) {
      zoomAt(after.apart / before.apart, before.x / canvas.clientWidth, before.y / canvas.clientHeight);
    }
    return panBy((after.x - before.x) / canvas.clientWidth, (after.y - before.y) / canvas.clientHeight);
  });
  const release = (event) => {
    held.delete(event.pointerId);
    if (!cloud.lasso.length) return;
    const corners = cloud.lasso;
    cloud.lasso = [];
    if (corners.length > 2) select(cloud.within(corners));
  };
  canvas.addEventListener("pointerup", (event) => {
    const isClick = held.size === 1 && !moved;
    release(event);
    if (!isClick) return;
    const point = cloud.nearest(event.offsetX, event.offsetY, sketched, NEAR);
    if (point >= 0) pick(point);
  });
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => showTip(-1));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomAt(Math.exp(-event.deltaY / 500), event.offsetX / canvas.clientWidth, event.offsetY / canvas.clientHeight);
  }, { passive: false });
}

// --- keys

const KEYS = {
  Enter: () => pick(cursor),
  " ": () => toggle(cursor),
  "+": () => zoomAt(1.5, 0.5, 0.5),
  "=": () => zoomAt(1.5, 0.5, 0.5),
  "-": () => zoomAt(1 / 1.5, 0.5, 0.5),
  0: showWhole,
  Escape: () => select(null),
};

function addKeyHandlers(canvas) {
  canvas.addEventListener("focus", () => {
    if (!canvas.matches(":focus-visible")) return;
    cursor ??= state.first ?? cloud.nearest(canvas.clientWidth / 2, canvas.clientHeight / 2, sketched, Infinity);
    showCursor();
  });
  canvas.addEventListener("blur", () => {
    cursor = null;
    showTip(-1);
    drawMarks();
  });
  canvas.addEventListener("keydown", (event) => {
    const arrow = ARROWS[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !(arrow || KEYS[event.key])) return;
    event.preventDefault();
    cursor ??= state.first ?? sketched[0];
    if (arrow && event.shiftKey) panBy(-0.1 * arrow[0], 0.1 * arrow[1]);
    else if (arrow) cursor = cloud.next(cursor, arrow, sketched);
    else KEYS[event.key]();
    showCursor();
  });
}

function showCursor() {
  drawMarks();
  showTip(cursor);
  byId("where").textContent = [titleOf(cursor), ...linesOf(cursor)].join(", ");
}

// --- the tooltip

function titleOf(point) {
  return names ? nameOf(point) : `row ${nameOf(point)}`;
}

function linesOf(point) {
  return facts.colors.map(({ name }, column) => {
    const value = valueOf(column, point);
    return `${name}: ${typeof value === "number" ? short(Number(value.toPrecision(3))) : value ?? "missing"}`;
  });
}

function showTip(point) {
  const tip = byId("tip");
  tip.hidden = point < 0;
  if (point < 0) return;
  const picture = pictureOf(point);
  tip.replaceChildren([titleOf(point), ...linesOf(point)].join("\n"), ...(picture ? [picture] : []));
  const { x, y } = cloud.place(point);
  const frame = byId("frame");
  const above = y - tip.offsetHeight - 10;
  tip.style.left = `${clamp(x + 12, 4, Math.max(4, frame.clientWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${above < 4 ? y + 14 : above}px`;
}

function pictureOf(point) {
  if (!facts.image) return null;
  const [height, width, depth = 1] = facts.image;
  const start = placeOfSketch.get(point) * height * width * depth;
  if (!(start + height * width * depth <= images.length)) return null;
  const picture = document.createElement("canvas");
  [picture.width, picture.height] = [width, height];
  const context = picture.getContext("2d");
  const pixels = context.createImageData(width, height);
  for (let i = 0; i < height * width; i++) {
    for (let c = 0; c < 3; c++) pixels.data[4 * i + c] = images[start + i * depth + (depth === 1 ? 0 : c)];
    pixels.data[4 * i + 3] = 255;
  }
  context.putImageData(pixels, 0, 0);
  return picture;
}
