#!/usr/bin/env node
// Reviews audits in headless Chromium, with the keyboard: one by one, groups, undo, another class, a restart in the middle, two reviewers at
// once, neighbours, texts, hostile names.
// Exit code 0: all is as it should be; 1: something is not; 2: the check could not be made.

import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { crc32, deflateSync } from "node:zlib";

import { Browser, Trouble, findBrowser, within } from "./chromium.mjs";
import { inspect } from "./inspect.mjs";
import { VIEWS, photograph } from "./page.mjs";

const USAGE = "Usage: node tests/browser/review.mjs NEGSCALE [--shots FOLDER]";
const NAMES = ["=cmd|calc", "<img src=x onerror=document.title=1>", "cat & \"dog\"", "ordinary"];
const SECONDS = 240;

/** A picture of one colour with a corner of another. */
function png(side, colour, corner) {
  const rows = Buffer.alloc(side * (1 + 3 * side));
  for (let y = 0; y < side; y++) for (let x = 0; x < side; x++) Buffer.from(x + y < side / 2 ? corner : colour).copy(rows, y * (1 + 3 * side) + 1 + 3 * x);
  const chunk = (name, data) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    const ends = [Buffer.alloc(4), Buffer.alloc(4)];
    ends[0].writeUInt32BE(data.length);
    ends[1].writeUInt32BE(crc32(body));
    return Buffer.concat([ends[0], body, ends[1]]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(side, 0);
  head.writeUInt32BE(side, 4);
  head.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

/** Pictures of four classes, in a table of files, one in six labelled wrongly; audited by predictions that are made up. */
function audited(program, here) {
  const data = join(here, "pictures");
  mkdirSync(data);
  const colours = [[43, 106, 153], [185, 87, 42], [70, 140, 80], [120, 60, 170]];
  const cell = (text) => `"${text.replaceAll("\"", "\"\"")}"`;
  const labels = [];
  const probabilities = [];
  for (let row = 0; row < 400; row++) {
    const truth = row % 4;
    const given = row % 6 === 1 ? (truth + 1 + (row % 3)) % 4 : truth;
    const file = `${row} <b>&'.png`;
    writeFileSync(join(data, file), png(40, colours[truth].map((one) => (one + row) % 256), colours[given]));
    labels.push(`${cell(file)},${cell(NAMES[given])}`);
    probabilities.push(NAMES.map((_, at) => (at === truth ? 0.9 - 0.0001 * row : (0.1 + 0.0001 * row) / 3)).join(","));
  }
  writeFileSync(join(data, "metadata.csv"), `file_name,label\n${labels.join("\n")}\n`);
  writeFileSync(join(here, "p.csv"), `${NAMES.map(cell).join(",")}\n${probabilities.join("\n")}\n`);
  const run = join(here, "run");
  command(program, ["audit", data, "--pred-probs", join(here, "p.csv"), "--out", run, "--quiet"]);
  // Predictions have no neighbours: these are made up.
  const near = (row) => [4, 8, 12, 1].map((step) => `${(row + step) % 400}:${(row + step) % 4}`).join(" ");
  const evidence = readFileSync(join(run, "evidence.csv"), "utf8").trim().split("\n").slice(1);
  writeFileSync(join(run, "evidence.csv"), `index,likeliest,neighbours\n${evidence.map((line, row) => line + near(row)).join("\n")}\n`);
  return run;
}

/** A table with a column of long texts, some of them from right to left or with signs that turn text around; audited by its numbers. */
function auditedTexts(program, here) {
  const rows = [];
  for (let row = 0; row < 300; row++) {
    const truth = row % 3;
    const given = row % 6 === 1 ? (truth + 1) % 3 : truth;
    const odd = ["\u202egnp.exe", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "bell\u0007", "<script>alert(1)</script>"][Math.floor(row / 6) % 4];
    const words = `Review ${row}: ${odd}. ${"It was as one would expect, neither better nor worse. ".repeat(40)}`;
    const numbers = [0, 1, 2].map((at) => (at === truth ? 3 : 0) + ((row * (at + 7)) % 17) / 17);
    rows.push(`"${words}",${numbers.join(",")},${["good", "bad", "neither"][given]}`);
  }
  writeFileSync(join(here, "texts.csv"), `text,a,b,c,kind\n${rows.join("\n")}\n`);
  const run = join(here, "texts");
  command(program, ["audit", join(here, "texts.csv"), "--label-column", "kind", "--ignore-columns", "text", "--out", run, "--quiet"]);
  return run;
}

function command(program, words) {
  const { status, stdout, stderr } = spawnSync(program, words, { encoding: "utf8" });
  if (status !== 0) throw new Trouble(`negscale ${words[0]}: ${stderr}`);
  return stdout;
}

/** A review that goes on. */
class Review {
  constructor(program, words) {
    this.child = spawn(program, ["review", ...words, "--no-open"], { stdio: ["ignore", "pipe", "pipe"] });
    this.ended = new Promise((done) => this.child.once("exit", done));
    this.address = within(20, new Promise((take, refuse) => {
      let said = "";
      this.child.stdout.setEncoding("utf8").on("data", (text) => { if ((said += text).includes("\n")) take(said.trim()); });
      this.child.once("exit", () => refuse(new Trouble(`negscale review ended at once: ${said}`)));
    }), "Starting a review");
  }

  async end(signal) {
    this.child.kill(signal);
    await this.ended;
  }
}

/** A tab with what it complained about. */
async function openTab(browser, complaints) {
  const tab = await browser.openTab((event, told) => {
    if (event === "Runtime.exceptionThrown") complaints.push(`exception: ${told.exceptionDetails.exception?.description ?? told.exceptionDetails.text}`);
    if (event === "Runtime.consoleAPICalled") complaints.push(`console: ${told.args.map((one) => one.value).join(" ")}`);
    if (event === "Log.entryAdded" && told.entry.source !== "network") complaints.push(`${told.entry.level}: ${told.entry.text}`);
    if (event === "Page.javascriptDialogOpening") complaints.push(`dialog: ${told.message}`);
  });
  for (const domain of ["Page", "Runtime", "Log"]) await tab.send(`${domain}.enable`);
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await tab.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  /** Waits until the expression is true. */
  const until = async (expression) => {
    for (let tries = 0; tries < 400; tries++) {
      if (await evaluate(`Boolean(${expression})`).catch(() => false)) return;
      await new Promise((done) => setTimeout(done, 25));
    }
    throw new Error(`this did not become true: ${expression}`);
  };
  const press = async (key) => {
    const known = { Enter: "\r", " ": " " };
    const text = known[key] ?? (key.length === 1 ? key : undefined);
    const code = { Enter: 13, " ": 32, ArrowRight: 39, ArrowLeft: 37, ArrowDown: 40, ArrowUp: 38, Escape: 27 }[key] ?? 0;
    await tab.send("Input.dispatchKeyEvent", { type: "keyDown", key, text, windowsVirtualKeyCode: code });
    await tab.send("Input.dispatchKeyEvent", { type: "keyUp", key, windowsVirtualKeyCode: code });
  };
  const decided = (count) => until(`!busy && document.getElementById("progress").textContent.startsWith("${count} of ")`);
  return { ...tab, evaluate, until, press, decided, go: (url) => tab.send("Page.navigate", { url }) };
}

async function session(browser, program, here, shots) {
  const complaints = [];
  const wrong = [];
  const expect = (is, what) => { if (!is) wrong.push(what); };
  const run = audited(program, here);
  const record = () => readFileSync(join(run, "review.jsonl"), "utf8").trim().split("\n").slice(1).map((line) => JSON.parse(line));
  let review = new Review(program, [run, "--reviewer", "ann"]);
  const reviews = [review];
  try {
    const tab = await openTab(browser, complaints);
    await tab.go((await review.address).replace(/token=.*/, "token=wrong"));
    await tab.until("document.body.textContent.includes('holds a token')");
    await tab.go(await review.address);
    await tab.decided(0);
    expect(await tab.evaluate("location.search") === "", "the token stays in the address bar");
    await tab.until("document.querySelector('#subject img')?.naturalWidth === 40");
    expect(await tab.evaluate("document.title.startsWith('Review of')"), "a name of a class ran as a script");

    // One by one: keep, take, drop, unsure, another class; then undo two of them.
    const now = () => tab.evaluate("({ row: sample.row, given: sample.given, suggested: sample.suggested, others: sample.others })");
    const seen = [];
    for (const key of ["1", "2", "x", "?"]) {
      seen.push(await now());
      await tab.press(key);
      await tab.decided(seen.length);
    }
    seen.push(await now());
    await tab.press("/");
    await tab.until("document.activeElement.id === 'text' && found.length === 4");
    for (const letter of "ordin") await tab.press(letter);
    await tab.until("found.length === 1");
    await tab.press("Enter");
    await tab.decided(5);
    const [a, b, c, d, e] = seen;
    const expected = [{ label: a.given }, { label: b.suggested }, "drop", "unsure", { label: "ordinary" }];
    expect(JSON.stringify(record().map((line) => line.after)) === JSON.stringify(expected), `recorded: ${JSON.stringify(record())}`);
    await tab.press("u");
    await tab.decided(4);
    expect((await now()).row === e.row, "undoing does not show what was undone");
    await tab.press("u");
    await tab.decided(3);
    expect((await now()).row === d.row, "undoing goes one step deep only");
    await tab.press("e");
    await tab.until("document.querySelector('#evidence .gauge')");
    await tab.until("[...document.querySelectorAll('#near .near img')].filter((one) => one.naturalWidth === 40).length === 4");
    if (shots) await pictures(tab, shots, "evidence");
    await tab.press("h");
    await tab.until("document.getElementById('help').open");
    await tab.press("h");
    await tab.until("!document.getElementById('help').open");

    // A key that means nothing here changes nothing.
    await tab.press("9");
    await tab.press("9");
    expect((await now()).others.length >= 7 || record().length === 7, "a key without a class decided something");

    // A second tab, then a restart in the middle.
    await review.end("SIGKILL");
    await tab.press("1");
    await tab.until("!document.getElementById('trouble').hidden");
    review = new Review(program, [run, "--reviewer", "ann"]);
    reviews.push(review);
    await tab.go(await review.address);
    await tab.decided(3);
    expect((await now()).row === d.row, "after a restart it does not go on where it was");
    const second = await openTab(browser, complaints);
    await second.go(await review.address);
    await second.decided(3);
    await second.press("1");
    await second.decided(4);
    await tab.press("1");
    await tab.decided(4);
    await second.close();
    if (shots) await pictures(tab, shots, "one");

    // Groups: untick the second, accept the rest, undo all at once, accept again.
    await tab.press("g");
    await tab.until("!busy && rows.length > 1");
    const { size, left } = await tab.evaluate("({ size: rows.length, left: group.left })");
    expect(size <= 20 && left >= size, `${size} of ${left} shown`);
    await tab.press("ArrowRight");
    await tab.press(" ");
    expect(await tab.evaluate("boxes().filter((box) => !box.checked).length === 1 && !boxes()[1].checked"), "space does not untick the second");
    if (shots) await pictures(tab, shots, "groups");
    await tab.press("Enter");
    await tab.decided(4 + size - 1);
    await tab.press("u");
    await tab.decided(4);
    await tab.until(`!busy && rows.length === ${size}`);
    await tab.press("Enter");
    await tab.decided(4 + size);

    // Figures, then a second reviewer at the same time, who agrees in part.
    await tab.press("f");
    await tab.until("document.querySelector('#figures table')");
    const other = new Review(program, [run, "--reviewer", "bob"]);
    reviews.push(other);
    const bob = await openTab(browser, complaints);
    await bob.go(await other.address);
    await bob.decided(0);
    await tab.press("o");
    await tab.decided(4 + size);
    for (let at = 1; at <= 6; at++) {
      await Promise.all([bob.press("2"), tab.press("1")]);
      await Promise.all([bob.decided(at), tab.decided(4 + size + at)]);
    }
    await bob.close();
    expect(record().filter((line) => line.reviewer === "bob").length === 6, "decisions of the second reviewer are lost");
    await tab.press("f");
    await tab.until("document.querySelector('#figures').textContent.includes('kappa')");
    if (shots) await pictures(tab, shots, "figures");
    for (const view of ["one", "groups", "figures"]) {
      await tab.press(view[0]);
      await tab.until(`!busy && !document.getElementById('${view}').hidden`);
      for (const { name, scheme, screen } of VIEWS) {
        await tab.send("Emulation.setDeviceMetricsOverride", screen);
        await tab.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
        const found = await tab.evaluate(`(${inspect})(${JSON.stringify({ width: screen.width, texts: [], images: 0 })})`);
        for (const [kind, text] of found) if (!["script", "chart"].includes(kind)) wrong.push(`${view}, ${name}: ${kind}: ${text}`);
      }
    }
    await review.end("SIGINT");
    await other.end("SIGINT");

    // Texts: all of them can be read, and nothing in them runs or turns what is around it.
    const texts = new Review(program, [auditedTexts(program, here), "--blind", "0"]);
    reviews.push(texts);
    await tab.go(await texts.address);
    await tab.decided(0);
    for (const expected of ["\u27e8U+202E\u27e9gnp.exe", "\u27e8U+0007\u27e9", "<script>"]) {
      for (let tries = 0; tries < 40 && !(await tab.evaluate(`document.querySelector(".text").textContent.includes(${JSON.stringify(expected)})`)); tries++) {
        const at = await tab.evaluate("document.getElementById('bar').value");
        await tab.press("2");
        await tab.decided(at + 1);
      }
      expect(await tab.evaluate(`document.querySelector(".text")?.textContent.includes(${JSON.stringify(expected)})`), `no text with ${expected}`);
    }
    expect(await tab.evaluate("(() => { const text = document.querySelector('.text'); return text.scrollHeight > text.clientHeight && text.scrollWidth <= text.clientWidth; })()"), "a long text is not scrolled within its place");
    expect(await tab.evaluate("document.querySelectorAll('#near .near span').length === 10"), "neighbours of texts are not told");
    if (shots) await pictures(tab, shots, "text");
    await texts.end("SIGINT");
    const said = command(program, ["review", "export", run]);
    expect(said.includes("labels changed"), said);
    expect(readFileSync(join(run, "review", "corrected.csv"), "utf8").includes("'=cmd|calc"), "names are not guarded in what is exported");
    JSON.parse(readFileSync(join(run, "review", "label-studio.json"), "utf8"));
  } finally {
    for (const one of reviews) one.child.kill("SIGKILL");
  }
  return [...wrong, ...complaints];
}

async function pictures(tab, shots, name) {
  for (const view of VIEWS) {
    await tab.send("Emulation.setDeviceMetricsOverride", view.screen);
    await tab.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: view.scheme }] });
    await photograph(tab, view, join(shots, `review-${name}-${view.name}.png`));
  }
  await tab.send("Emulation.setDeviceMetricsOverride", VIEWS[0].screen);
}

async function main() {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { shots: { type: "string" } } });
  if (positionals.length !== 1) throw new Trouble(USAGE);
  const browser = await Browser.start(findBrowser(), true);
  const here = mkdtempSync(join(tmpdir(), "review-"));
  try {
    const wrong = await within(SECONDS, session(browser, positionals[0], here, values.shots), "Reviewing");
    for (const sentence of wrong) console.error(`review: ${sentence}`);
    if (wrong.length === 0) console.log("review: a session by keyboard went well");
    return wrong.length === 0 ? 0 : 1;
  } finally {
    await browser.quit();
    rmSync(here, { recursive: true, force: true });
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Trouble ? `review: ${error.message}` : error);
  process.exitCode = error instanceof Trouble ? 2 : 1;
}
