"use strict";
// The review page. Texts of the data are only ever set as text.

const $ = (id) => document.getElementById(id);
const isBlind = document.body.dataset.blind === "true";
let view = "one";
let busy = false;
let since = performance.now();

/** Signs that would be invisible or turn what stands around them, as their numbers: a text must be read as it is. */
const visible = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g,
  (sign) => `\u27e8U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`);

/** An element with properties and children; strings become text. */
function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.map((child) => typeof child === "string" ? visible(child) : child));
  return element;
}

const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;
const length = (share) => `${100 * share}%`;
const count = (number) => number.toLocaleString("en");
const say = (text) => { $("status").textContent = visible(text); };

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The program does not answer. Is `negscale review` still running? What was decided before is safe.");
  }
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error);
  return value;
}

/** One thing at a time; keys pressed meanwhile would decide what nobody has seen. */
async function act(deed) {
  if (busy) return;
  busy = true;
  try {
    await deed();
    $("trouble").hidden = true;
  } catch (error) {
    $("trouble").textContent = visible(error.message);
    $("trouble").hidden = false;
  } finally {
    busy = false;
  }
}

function progress({ decided, rows }) {
  $("bar").max = rows;
  $("bar").value = decided;
  $("progress").textContent = `${count(decided)} of ${count(rows)} decided`;
}

/** A cell with more than this, or with lines, is a text. */
const SHORT = 80;

/** The columns of a row: first texts, over the whole width and scrolled where they are long, then the others. */
function columns(sample) {
  const list = make("dl", { className: "columns" });
  const isText = ([, value]) => value.length > SHORT || value.includes("\n");
  for (const [name, value] of sample.columns.filter(isText)) {
    list.append(make("dt", { className: "wide" }, name), make("dd", { className: "wide text", dir: "auto", tabIndex: 0, role: "region", "aria-label": visible(name) }, value));
  }
  for (const [name, value] of sample.columns.filter((column) => !isText(column))) list.append(make("dt", {}, name), make("dd", { dir: "auto" }, value));
  return list;
}

/** The picture, the columns or, where there is neither, the number of a row. */
function subject(sample, isSmall) {
  if (sample.picture) {
    const image = make("img", { src: `/picture/${sample.row}`, alt: visible(`Sample ${sample.row}, labelled ${sample.given}`), loading: isSmall ? "lazy" : "eager" });
    image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth < 160));
    return image;
  }
  if (sample.columns.length > 0) return columns(sample);
  return make("p", { className: "note" }, sample.path ? `Row ${sample.row}: ${sample.path}` : `Row ${sample.row}; its numbers have no names`);
}

const swap = (given, suggested) => [make("s", {}, given), make("span", { className: "arrow" }, " → "), make("strong", {}, suggested)];

// One by one

let sample = null;
let informed = false;

function showNext(state, first) {
  progress(state);
  const next = state.next.filter((one) => one.row !== first?.row);
  sample = first ?? next.shift() ?? null;
  informed = !isBlind;
  for (const one of next) if (one.picture) new Image().src = `/picture/${one.row}`;
  closeSearch();
  $("near").hidden = true;
  if (sample === null) {
    $("subject").replaceChildren(make("p", {}, "Everything is decided. `negscale review export` writes the labels."));
    for (const id of ["swap", "path", "tree", "choices"]) $(id).replaceChildren();
    $("evidence").hidden = true;
    say("Everything is decided.");
    return;
  }
  $("subject").replaceChildren(subject(sample, false));
  $("swap").replaceChildren(...swap(sample.given, sample.suggested));
  $("path").textContent = visible(sample.path ? `Row ${sample.row} · ${sample.path}` : `Row ${sample.row}`);
  $("tree").replaceChildren(...(sample.tree ? tree(sample) : []));
  const choice = (key, ...words) => make("button", { type: "button", "data-key": key }, make("kbd", {}, key), " ", make("span", {}, ...words));
  const class_ = (name) => make("b", {}, name);
  $("choices").replaceChildren(
    choice("1", "keep ", class_(sample.given)),
    choice("2", "take ", class_(sample.suggested)),
    ...sample.others.map((name, at) => choice(`${at + 3}`, class_(name))),
    choice("/", "another class"), choice("x", "drop the sample"), choice("?", "unsure"), choice("u", "undo"),
  );
  $("evidence").hidden = false;
  if (sample.evidence) showEvidence(sample.evidence);
  else $("evidence").replaceChildren(make("button", { type: "button", "data-key": "e" }, make("kbd", {}, "e"), " what the audit says"));
  since = performance.now();
  say(`Row ${sample.row}: labelled ${sample.given}, suggested ${sample.suggested}.`);
}

/** Where the two classes are in the class tree: what they share, and where they part. */
function tree({ tree: { shared, given, suggested } }) {
  const NEAREST = 3;
  const way = (names) => names.length > 0 ? names.join(" \u203a ") : "the class itself";
  const above = shared.length > NEAREST ? `\u2026 \u203a ${way(shared.slice(-NEAREST))}` : way(shared);
  const branch = (name, names) => make("li", {}, make("span", {}, `${name}: `), make("b", {}, way(names)));
  return [make("p", { title: visible(way(shared)) }, "in the class tree, below ", make("b", {}, above)),
    make("ul", {}, branch("given", given), branch("suggested", suggested))];
}

/** The nearest neighbours with their labels. */
function neighbours(near) {
  const item = (one) => {
    const parts = [make("b", {}, one.label)];
    if (one.picture) parts.unshift(make("img", { src: `/picture/${one.row}`, alt: visible(`Neighbour, row ${one.row}, labelled ${one.label}`), loading: "lazy" }));
    else parts.push(make("span", { dir: "auto" }, one.words ?? `row ${one.row}`));
    return make("li", { title: `row ${one.row}` }, ...parts);
  };
  return [make("h3", {}, "Nearest neighbours, with their labels"),
    make("ol", { className: near[0].picture ? "near pictures" : "near" }, ...near.map(item))];
}

function gauge(name, value) {
  const bar = make("i");
  bar.style.width = length(value);
  return make("div", { className: "gauge" }, make("span", {}, name), make("span", { className: "track" }, bar), make("b", {}, percent(value)));
}

function showEvidence(evidence) {
  const rows = [gauge("suspicion", evidence.score)];
  if (evidence.suggested !== null) rows.push(gauge("suggestion likely", evidence.suggested));
  if (evidence.given !== null) rows.push(gauge("label as given likely", evidence.given));
  const words = [...evidence.reasons];
  if (!evidence.flagged) words.push("the audit does not doubt this label");
  if (evidence.distance > 0 && !words.some((text) => text.includes("class tree"))) words.push(`distance of the two classes in the class tree: ${evidence.distance}`);
  $("evidence").replaceChildren(...rows, make("ul", {}, ...words.map((text) => make("li", {}, text))));
  $("near").hidden = evidence.near.length === 0;
  if (!$("near").hidden) $("near").replaceChildren(...neighbours(evidence.near));
}

async function decide(decision) {
  const row = sample.row;
  showNext(await ask("/api/decide", { rows: [[row, decision]], milliseconds: Math.round(performance.now() - since), informed }));
}

async function undo() {
  const state = await ask("/api/undo", {});
  if (view === "groups") {
    passed.clear();
    progress(state);
    await loadGroups();
  } else if (view === "figures") await loadFigures();
  if (view === "one" && (state.undone > 0 || sample === null)) showNext(state, state.undone === 1 ? state.first : null);
  say(state.undone === 0 ? "There is nothing to undo." : `Undone: ${state.undone}.`);
}

// Another class

let found = [];
let chosen = 0;
let searches = 0;

function closeSearch() {
  $("search").hidden = true;
  $("text").value = "";
  found = [];
}

async function search() {
  const mine = ++searches;
  const { classes } = await ask("/api/classes", { text: $("text").value });
  if (mine !== searches) return;
  found = classes;
  choose(0);
}

function choose(at) {
  chosen = Math.max(0, Math.min(at, found.length - 1));
  const item = (name, place) => make("li", { id: `found-${place}`, role: "option", "aria-selected": String(place === chosen) }, name);
  $("found").replaceChildren(...found.map(item));
  $("text").setAttribute("aria-activedescendant", found.length > 0 ? `found-${chosen}` : "");
  $("found").children[chosen]?.scrollIntoView({ block: "nearest" });
}

const take = (at) => { if (found[at] !== undefined) act(() => decide({ label: found[at] })); };

// Groups

let groups = [];
let group = null;
let rows = [];
/** Of each group so many unticked rows are passed over. */
const passed = new Map();
const key = (one) => `${one.given} ${one.suggested}`;

async function loadGroups() {
  groups = (await ask("/api/groups")).groups;
  group = groups.find((one) => group && key(one) === key(group)) ?? groups[0] ?? null;
  $("list").replaceChildren(...groups.map((one) => {
    const button = make("button", { type: "button", className: one.left > 0 ? "" : "done", "aria-current": String(one === group) },
      make("span", {}, make("b", {}, one.names[0]), " → ", make("b", {}, one.names[1])), make("span", {}, `${one.left} of ${one.all}`));
    button.addEventListener("click", () => act(() => openGroup(one)));
    return make("li", {}, button);
  }));
  await loadTiles();
}

async function openGroup(one) {
  group = one;
  await loadGroups();
}

async function loadTiles() {
  rows = group === null ? [] : (await ask(`/api/group?given=${group.given}&suggested=${group.suggested}&from=${passed.get(key(group)) ?? 0}`)).rows;
  $("group").replaceChildren(...(group === null ? ["There are no groups."] : swap(...group.names)));
  $("tiles").classList.toggle("wide", rows.length > 0 && !rows[0].picture);
  $("tiles").replaceChildren(...rows.map((one) => {
    const box = make("input", { type: "checkbox", checked: true, "aria-label": visible(`Row ${one.row}: ${one.given} is ${one.suggested}`) });
    box.addEventListener("change", tell);
    const score = make("span", {}, box, `row ${one.row}`, make("b", { title: "suspicion" }, percent(one.evidence.score)));
    return make("li", {}, make("label", { className: "tile panel", title: visible(one.evidence.reasons.join("\n")) }, score, subject(one, true)));
  }));
  if (group !== null && rows.length === 0) {
    const rest = group.left > 0 ? `${group.left} are left for one by one.` : "All of this group are decided.";
    $("tiles").replaceChildren(make("li", { className: "note" }, rest));
  }
  tell();
  boxes()[0]?.focus();
  since = performance.now();
  if (group !== null) say(`Group ${group.names[0]} to ${group.names[1]}: ${rows.length} shown, ${group.left} left.`);
}

const boxes = () => [...$("tiles").querySelectorAll("input")];

function tell() {
  const ticked = boxes().filter((box) => box.checked).length;
  $("accept").querySelector("span").textContent = rows.length === 0 ? "Nothing to accept" : `Accept ${ticked} of ${rows.length}`;
  $("accept").disabled = rows.length === 0;
}

async function accept() {
  if (rows.length === 0) return;
  const ticks = boxes().map((box) => box.checked);
  const taken = rows.filter((_, at) => ticks[at]);
  if (taken.length > 0) {
    const body = { rows: taken.map((one) => [one.row, { label: one.suggested }]), milliseconds: Math.round(performance.now() - since), informed: true };
    progress(await ask("/api/decide", body));
  }
  passed.set(key(group), (passed.get(key(group)) ?? 0) + rows.length - taken.length);
  await loadGroups();
}

/** To the tile in that direction. */
function move(event) {
  const all = boxes();
  const at = all.indexOf(document.activeElement);
  const across = Math.max(1, all.findIndex((box) => box.getBoundingClientRect().top > all[0].getBoundingClientRect().top + 1));
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[event.key];
  all[at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + step))]?.focus();
}

// Figures

function share(title, { part, of, interval }, words) {
  const range = make("i", { className: "range" });
  const point = make("i", { className: "point" });
  range.style.left = length(interval[0]);
  range.style.width = length(interval[1] - interval[0]);
  point.style.left = length(of > 0 ? part / of : 0);
  if (of === 0) range.hidden = point.hidden = true;
  const between = `${percent(interval[0])} to ${percent(interval[1])}`;
  return make("div", { className: "panel" }, make("h3", {}, title), make("p", { className: "big" }, of > 0 ? percent(part / of) : "not known yet"),
    make("div", { className: "track", role: "img", "aria-label": between }, range, point), make("p", { className: "note" }, of > 0 ? `${words} 95 % interval: ${between}.` : words));
}

async function loadFigures() {
  const now = await ask("/api/figures");
  progress(now);
  const { right, suggested, missed, unflagged } = now;
  const [low, high] = missed.interval.map((end) => count(Math.round(end * unflagged)));
  const missing = missed.of > 0 ? ` So of ${count(unflagged)} labels without a flag ${low} to ${high} may be wrong.` : " Decide some samples one by one, without asking what the audit says.";
  const parts = [
    make("h2", {}, "So far"),
    ...(now.advice ? [make("p", {}, now.advice)] : []),
    make("div", { className: "figure" },
      share("Flags that were right", right, `${count(right.part)} of ${count(right.of)} decided flags were wrong labels; ${count(now.unsure)} unsure. Flags come most suspicious first, so later ones are right less often.`),
      share("Suggestions that were taken", suggested, `${count(suggested.part)} of ${count(suggested.of)} wrong labels.`),
      share("Wrong labels without a flag", missed, `${count(missed.part)} of ${count(missed.of)} that were mixed in and decided blindly.${missing}`)),
  ];
  const table = (caption, head, lines) => make("div", { className: "scroll" }, make("table", { "aria-label": caption },
    make("thead", {}, make("tr", {}, ...head.map((text, at) => make("th", { scope: "col", className: at > 1 ? "number" : "" }, text)))),
    make("tbody", {}, ...lines.map((line) => make("tr", {}, ...line.map((text, at) => make("td", { className: at > 1 ? "number" : "" }, text)))))));
  if (now.groups.length > 0) {
    const line = ({ given, suggested: to, right: { part, of, interval } }) => [given, to, `${part} of ${of}`, percent(part / of), `${percent(interval[0])} to ${percent(interval[1])}`];
    parts.push(make("h2", {}, "By group"), table("Flags by group", ["labelled", "suggested", "right", "share", "95 % interval"], now.groups.map(line)));
  }
  if (now.agreement.length > 0) {
    const line = ({ reviewers, rows: both, alike, kappa }) => [...reviewers, count(both), count(alike), kappa === null ? "-" : kappa.toFixed(2)];
    parts.push(make("h2", {}, "Agreement"), table("Agreement", ["reviewer", "and", "rows of both", "alike", "Cohen's kappa"], now.agreement.map(line)));
  }
  $("figures").replaceChildren(...parts);
}

// Keys

async function open(which) {
  view = which;
  for (const section of document.querySelectorAll(".view")) section.hidden = section.id !== which;
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-current", String(button.dataset.view === which));
  if (which === "one") showNext(await ask("/api/next"));
  if (which === "groups") await loadGroups();
  if (which === "figures") await loadFigures();
}

function nextGroup() {
  const at = groups.indexOf(group);
  if (groups.length > 0) act(() => openGroup(groups[(at + 1) % groups.length]));
}

/** What a key does in every view and in each; nothing of others. */
function press(name) {
  const views = { o: "one", g: "groups", f: "figures" };
  if (name === "h") return $("help").showModal();
  if (name === "u") return act(undo);
  if (name in views) return act(() => open(views[name]));
  if (view === "groups" && name === "n") return nextGroup();
  if (view !== "one" || sample === null) return undefined;
  const others = sample.others[Number(name) - 3];
  if (name === "1") return act(() => decide({ label: sample.given }));
  if (name === "2") return act(() => decide({ label: sample.suggested }));
  if (/^[3-9]$/.test(name) && others !== undefined) return act(() => decide({ label: others }));
  if (name === "x") return act(() => decide("drop"));
  if (name === "?") return act(() => decide("unsure"));
  if (name === "e" && !informed) return act(async () => {
    const evidence = await ask(`/api/evidence?row=${sample.row}`);
    informed = true;
    showEvidence(evidence);
  });
  if (name === "/") {
    $("search").hidden = false;
    $("text").focus();
    return act(search);
  }
  return undefined;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat && !event.key.startsWith("Arrow")) return;
  if ($("help").open) {
    if (event.key === "h") $("help").close();
    return;
  }
  if (event.target === $("text")) {
    if (event.key === "Escape") closeSearch();
    else if (event.key === "Enter") take(chosen);
    else if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else return;
    event.preventDefault();
    return;
  }
  if (view === "groups" && event.key.startsWith("Arrow")) {
    event.preventDefault();
    move(event);
  } else if (view === "groups" && event.key === "Enter" && event.target.tagName !== "BUTTON") act(accept);
  else if (event.key.length === 1 && event.key !== " ") {
    event.preventDefault();
    press(event.key);
  }
});
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-key], [data-view]");
  if (button?.dataset.key) press(button.dataset.key);
  if (button?.dataset.view) act(() => open(button.dataset.view));
});
$("text").addEventListener("input", () => search().catch((error) => act(() => { throw error; })));
$("found").addEventListener("click", (event) => take([...$("found").children].indexOf(event.target.closest("li"))));
$("accept").addEventListener("click", () => act(accept));
act(() => open("one"));
