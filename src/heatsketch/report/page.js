// The controls. Whatever comes from a table goes into the page as text, never as markup.

async function start() {
  fillControls();
  rows = new Int32Array(await unpack("rows"));
  sketched = new Int32Array(await unpack("sketched"));
  placeOfSketch = new Map(Array.from(sketched, (point, place) => [point, place]));
  names = facts.named ? await textOf("names") : null;
  columns = await Promise.all(facts.colors.map((_, column) => colorsOf(column)));
  images = facts.image ? new Uint8Array(await unpack("images")) : null;
  writeWords();
  cloud.show(await planeOfPoints());
  await showState();
  addHandlers();
  document.body.dataset.ready = "yes";
}

async function showState() {
  readState();
  await setColor(state.column);
  await showPair();
  await setTime(state.time);
}

async function setTime(time) {
  state.time = time;
  const power = facts.powers[time];
  byId("time").value = time;
  byId("time").setAttribute("aria-valuetext", named(power));
  byId("shown").textContent = named(power);
  if (state.column === DISTANCE) await paint();
  await Promise.all([answer(), listNeighbors()]);
  if (state.time !== time) return; // the slider has moved on
  saveState();
  document.body.dataset.power = power;
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
  choice("distance from A", DISTANCE);
  choice("nothing", NOTHING);
}

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
  const on = (id, event, handler) => byId(id).addEventListener(event, handler);
  on("time", "input", () => {
    stop();
    setTime(Number(byId("time").value));
  });
  on("play", "click", play);
  on("color", "change", () => setColor(Number(byId("color").value)));
  for (const id of ["first", "second"]) {
    on(id, "input", () => offerNames(id));
    on(id, "change", () => pickByName(id));
  }
  for (const id of ["size", "opacity"]) {
    on(id, "input", () => {
      cloud[id] = Number(byId(id).value);
      cloud.redraw();
      saveSoon();
    });
  }
  on("closer", "click", () => zoomAt(1.5, 0.5, 0.5));
  on("farther", "click", () => zoomAt(1 / 1.5, 0.5, 0.5));
  on("whole", "click", showWhole);
  on("lasso", "click", () => setLasso(!isLasso));
  on("clear", "click", () => select(null));
  on("table", "click", saveTable);
  on("png", "click", savePicture);
  dark.addEventListener("change", paint);
  window.addEventListener("hashchange", showState);
  addPointerHandlers(byId("cloud"));
  addKeyHandlers(byId("cloud"));
}

start();
