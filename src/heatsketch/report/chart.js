// A small plot, as SVG that takes its colours from the style sheet.

const SVG = "http://www.w3.org/2000/svg";
const CHART = { width: 420, height: 230, left: 60, right: 12, top: 10, bottom: 40 };

function svg(name, attributes = {}, text = null) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

function scaleOf(values, from, to, logarithmic) {
  const fine = values.filter((value) => Number.isFinite(value) && (!logarithmic || value > 0));
  let [low, high] = [Math.min(...fine), Math.max(...fine)];
  if (!(high > low)) [low, high] = logarithmic ? [low / 2, high * 2] : [low - 1, high + 1];
  const turn = logarithmic ? Math.log : (value) => value;
  if (logarithmic && high / low < 3) [low, high] = [low / 1.3, high * 1.3];
  const place = (value) => {
    const inside = clamp(value, low, high);
    return from + ((turn(inside) - turn(low)) / (turn(high) - turn(low))) * (to - from);
  };
  return { place, ticks: logarithmic ? logTicks(low, high) : plainTicks(low, high) };
}

function plainTicks(low, high) {
  const raw = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw);
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-9); i++) ticks.push(i * step);
  return ticks;
}

function logTicks(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    for (const factor of [1, 2, 5]) ticks.push(factor * 10 ** power);
  }
  const inside = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  if (inside.length < 3) return plainTicks(low, high);
  if (inside.length <= 7) return inside;
  const tens = inside.filter((tick) => /^1(e|$|0*$)|^0\.0*1$/.test(short(tick)));
  const every = Math.ceil(tens.length / 6);
  return tens.filter((_, i) => i % every === 0);
}

function short(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e4 && Number.isInteger(Math.log10(size))) return `1e${Math.log10(size)}`;
  if (Number.isInteger(value) && size < 1e6) return String(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential().replace("e+", "e");
  return String(Number(value.toPrecision(3)));
}

/* dots: { x, y, low, high, now }, where now is the place of one that is marked. options: xName,
   yName, xLog, yLog, xTicks. */
function chart(holder, dots, options) {
  const { width, height, left, right, top, bottom } = CHART;
  const x = scaleOf(dots.x, left, width - right, options.xLog);
  const y = scaleOf([...dots.y, ...dots.low, ...dots.high], height - bottom, top, options.yLog);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  picture.append(svg("title", {}, `${options.yName} against ${options.xName}`));
  drawAxes(picture, x, y, options);
  drawDots(picture, dots, x, y);
  holder.replaceChildren(picture);
}

function drawAxes(picture, x, y, { xName, yName, xTicks }) {
  const { width, height, left, right, top, bottom } = CHART;
  const floor = height - bottom;
  for (const tick of y.ticks) {
    const at = y.place(tick);
    picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }));
    picture.append(svg("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, short(tick)));
  }
  let free = -Infinity;
  for (const tick of xTicks || x.ticks) {
    const at = x.place(tick);
    picture.append(svg("line", { class: "axis", x1: at, x2: at, y1: floor, y2: floor + 4 }));
    const text = short(tick);
    if (at - 3.6 * text.length < free) continue;
    free = at + 3.6 * text.length + 4;
    picture.append(svg("text", { x: at, y: floor + 17, "text-anchor": "middle" }, text));
  }
  picture.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: floor, y2: floor }));
  const middle = (left + width - right) / 2;
  const names = { "text-anchor": "middle", class: "name" };
  picture.append(svg("text", { x: middle, y: height - 5, ...names }, xName));
  const turned = `rotate(-90) translate(${-(top + floor) / 2} 12)`;
  picture.append(svg("text", { transform: turned, ...names }, yName));
}

function drawDots(picture, { x: xs, y: ys, low, high, now }, x, y) {
  xs.forEach((value, i) => {
    const at = x.place(value);
    const side = i === now ? "now" : "cold";
    const ends = { x1: at, x2: at, y1: y.place(low[i]), y2: y.place(high[i] ?? Infinity) };
    picture.append(svg("line", { class: side, "stroke-width": i === now ? 3 : 1.5, ...ends }));
    picture.append(svg("circle", { class: side, cx: at, cy: y.place(ys[i]), r: i === now ? 4 : 3 }));
  });
}
