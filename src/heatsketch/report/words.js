// Curves and sentences about the model.

function drawTrace() {
  if (!facts.trace) return;
  const { powers, trace, low, high, directions, allowed, chosen } = facts.trace;
  const parts = [
    { kind: "band", style: "cold", x: powers, low, high },
    { kind: "curve", style: "cold", x: powers, y: trace, name: "heat trace, ± 2 standard errors" },
    { kind: "curve", style: "warm dashed", x: powers, y: directions, name: "directions" },
    { kind: "across", style: "plain dotted", y: [allowed], name: `directions for ${facts.n_components} components` },
    { kind: "down", style: "plain", x: [facts.power], name: `p = ${facts.power}, ${chosen ? "where the sum starts" : "given"}` },
  ];
  const now = facts.powers[state.time];
  const largest = powers[powers.length - 1];
  if (now <= largest) parts.push({ kind: "down", style: "now dashed", x: [now], name: `p = ${now}, shown` });
  chart(byId("trace"), parts, { xName: "power p", yName: "size of the heat kernel", xLog: true, yLog: true });
}

function drawBandwidth() {
  const bandwidth = facts.bandwidth;
  const words = byId("bandwidth-words");
  if (bandwidth.kind === "none") {
    words.textContent = "The affinities were given, so there is no bandwidth.";
    return;
  }
  if (bandwidth.kind === "local") {
    words.textContent =
      `Each point has a scale of its own, its distance to the seventh neighbour; half of them are below ${short(Number(bandwidth.median.toPrecision(3)))}.`;
    const parts = [
      { kind: "bars", style: "cold", edges: bandwidth.edges, x: bandwidth.edges, y: bandwidth.counts },
      { kind: "down", style: "warm dashed", x: [bandwidth.median], name: "median" },
    ];
    chart(byId("bandwidth"), parts, { xName: "local scale", yName: "points", xLog: true, zero: true });
    return;
  }
  const epsilon = `epsilon = ${short(Number(bandwidth.epsilon.toPrecision(3)))}`;
  const who = bandwidth.kind === "auto" ? "read from the curve" : "given";
  if (!bandwidth.epsilons) {
    words.textContent = `One bandwidth for all points, ${epsilon}, ${who}.`;
    return;
  }
  words.textContent =
    `One bandwidth for all points, ${epsilon}, ${who}. The curve is the dimension that a kernel of each bandwidth measures; the points have about ${bandwidth.dimension.toFixed(1)}.`;
  const parts = [
    { kind: "curve", style: "cold", x: bandwidth.epsilons, y: bandwidth.dimensions, name: "dimension" },
    { kind: "down", style: "warm dashed", x: [bandwidth.epsilon], name: epsilon },
    { kind: "across", style: "plain dotted", y: [bandwidth.dimension], name: `dimension ${bandwidth.dimension.toFixed(1)}` },
  ];
  chart(byId("bandwidth"), parts, { xName: "epsilon", yName: "dimension", xLog: true, zero: true });
}

function writeWords() {
  document.title = facts.title;
  byId("title").textContent = facts.title;
  const some = facts.n_drawn < facts.n_points ? `, of which ${count(facts.n_drawn)} are drawn` : "";
  byId("summary").textContent =
    `${count(facts.n_points)} points${some}, sketched in ${facts.n_components} components, at ${facts.powers.length} diffusion times.`;
  if (facts.n_sketched < facts.n_points) {
    byId("how").textContent =
      `Click two points, or type their rows. ${count(facts.n_sketched)} points, sampled at random, have their sketch in this page; a click takes the nearest of them.`;
  }
  byId("sure").textContent = `${Number((100 * facts.confidence).toPrecision(6))} %`;
  byId("meaning").textContent =
    `Distances are computed from all ${facts.n_components} components of the sketch, not from the picture. The interval covers the error of the sketch only, for points that were chosen without looking at it.`;
  byId("plane").textContent = wordsOfPlane();
  byId("trace-words").textContent = !facts.trace
    ? "The heat trace cannot be estimated from this sketch."
    : facts.trace.chosen
    ? `The sum over all diffusion times starts where the heat kernel extends in few enough directions for the sketch: p = ${facts.power}.`
    : `What is left of the heat kernel as heat flows; p = ${facts.power} was given.`;
  const one = facts.n_connected === 1;
  byId("connected-words").textContent = one
    ? "The graph is connected."
    : `The graph has ${count(facts.n_connected)} connected components; distances between them mean no more than "far".`;
  for (const size of facts.component_sizes) {
    const bar = document.createElement("span");
    bar.style.flex = String(size);
    bar.title = `${count(size)} points`;
    byId("connected").append(bar);
  }
  for (const [name, value] of facts.parameters) {
    const row = byId("parameters").insertRow();
    row.insertCell().textContent = name;
    row.insertCell().textContent = value;
  }
  byId("citation").textContent = facts.citation;
  byId("made").textContent = `Written by heatsketch ${facts.version}. This page needs no network, and sends nothing.`;
  drawBandwidth();
}

function wordsOfPlane() {
  const keys = "Arrow keys move between points, Enter picks one, Space selects, + and - zoom.";
  if (!facts.eigenvalues.length) {
    return `The first two principal components of the sketch, each scaled to fill the picture. ${keys}`;
  }
  const values = facts.eigenvalues.map((value) => value.toPrecision(3)).join(" and ");
  return `Diffusion map: the leading eigenvectors of the heat operator (eigenvalues ${values}), each scaled to fill the picture. It is the same at all diffusion times; distances and their colours change. ${keys}`;
}
