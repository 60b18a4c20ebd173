// Points that are selected, and what is saved of them.

function select(chosen) {
  const size = chosen ? chosen.reduce((sum, one) => sum + one, 0) : 0;
  cloud.chosen = size ? chosen : null;
  byId("selected").textContent = size ? `${count(size)} selected` : "";
  byId("clear").disabled = !size;
  cloud.draw();
}

function toggle(point) {
  const chosen = cloud.chosen ? cloud.chosen.slice() : new Uint8Array(facts.n_drawn);
  chosen[point] ^= 1;
  select(chosen);
}

// The selection; or else the label that is shown alone; or else all points.
function pointsToSave() {
  const { lit, chosen } = cloud;
  const { places } = cloud.paints;
  const all = Array.from({ length: facts.n_drawn }, (_, point) => point);
  if (chosen) return all.filter((point) => chosen[point]);
  return lit === null ? all : all.filter((point) => places[point] === lit);
}

function valueOf(column, point) {
  const { kinds } = facts.colors[column];
  const value = columns[column][point];
  return kinds ? kinds[value] : Number.isNaN(value) ? undefined : value;
}

function csv() {
  const field = (value) => (typeof value === "number" ? String(value) : `"${String(value ?? "").replaceAll('"', '""')}"`);
  const head = ["row", ...(names ? ["name"] : []), ...facts.colors.map(({ name }) => name)];
  const line = (point) => [rows[point], ...(names ? [names[point]] : []), ...facts.colors.map((_, column) => valueOf(column, point))];
  return [head, ...pointsToSave().map(line)].map((fields) => `${fields.map(field).join(",")}\r\n`).join("");
}

function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function saveTable() {
  save("points.csv", new Blob([csv()], { type: "text/csv" }));
}

function savePicture() {
  byId("cloud").toBlob((blob) => save("points.png", blob), "image/png");
}
