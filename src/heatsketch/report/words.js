// Sentences about the model.

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
  const one = facts.n_connected === 1;
  byId("connected-words").textContent = one
    ? "The graph is connected."
    : `The graph has ${count(facts.n_connected)} connected components. Distances between components are not meaningful.`;
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
  byId("made").textContent = `Written by heatsketch ${facts.version}. This page needs no network, and sends nothing.`;
}

function wordsOfPlane() {
  const keys = "Arrow keys move between points, Enter picks one, Space selects, + and - zoom.";
  if (!facts.eigenvalues.length) {
    return `The first two principal components of the sketch, each scaled to fill the picture. ${keys}`;
  }
  const values = facts.eigenvalues.map((value) => value.toPrecision(3)).join(" and ");
  return `Diffusion map: the leading eigenvectors of the heat operator (eigenvalues ${values}), each scaled to fill the picture. It is the same at all diffusion times; distances and their colours change. ${keys}`;
}
