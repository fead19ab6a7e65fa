#!/usr/bin/env node
// Opens a review of an audit whose names and texts are hostile, in headless Chromium, looks at forty rows, groups and figures, and tells whether any
// of those texts became more than text: tests/campaign/campaign web makes the audit.
// Exit code 0: nothing did; 1: something did; 2: the check could not be made.

import { spawn } from "node:child_process";

import { Browser, Trouble, findBrowser, within } from "./chromium.mjs";

const ROWS = 40;
const SECONDS = 240;
// What a page of ours is made of, and what none of its elements has.
const FOREIGN = `[...document.querySelectorAll("*")].filter((one) =>
  (one.localName === "script" && new URL(one.src).pathname !== "/review.js") || ["iframe", "object", "embed", "base", "math", "details", "marquee"].includes(one.localName)
  || [...one.attributes].some((a) => a.name.startsWith("on") || (["href", "src", "action", "srcdoc"].includes(a.name) && /^\\s*javascript:/i.test(a.value)))).map((one) => one.outerHTML.slice(0, 200))`;

async function look(browser, address) {
  const wrong = [];
  const tab = await browser.openTab((event, told) => {
    if (event === "Runtime.exceptionThrown") wrong.push(`exception: ${told.exceptionDetails.exception?.description ?? told.exceptionDetails.text}`);
    if (event === "Runtime.consoleAPICalled") wrong.push(`console: ${told.args.map((one) => one.value).join(" ")}`);
    if (event === "Page.javascriptDialogOpening") wrong.push(`dialog: ${told.message}`);
    if (event === "Network.requestWillBeSent" && !told.request.url.startsWith(new URL(address).origin) && !told.request.url.startsWith("data:")) wrong.push(`request: ${told.request.url}`);
  });
  for (const domain of ["Page", "Runtime", "Network"]) await tab.send(`${domain}.enable`);
  const evaluate = async (expression) => (await tab.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true })).result.value;
  const until = async (expression) => {
    for (let tries = 0; tries < 2400; tries++) {
      if (await evaluate(`Boolean(${expression})`).catch(() => false)) return;
      await new Promise((done) => setTimeout(done, 25));
    }
    throw new Trouble(`this did not become true: ${expression}; the page says: ${(await evaluate("document.body.innerText")).slice(0, 500)}`);
  };
  const press = async (key) => {
    await tab.send("Input.dispatchKeyEvent", { type: "keyDown", key, text: key });
    await tab.send("Input.dispatchKeyEvent", { type: "keyUp", key });
  };
  const check = async (where) => {
    const title = await evaluate("document.title");
    if (/xss/.test(title)) wrong.push(`${where}: a script ran`);
    for (const html of await evaluate(FOREIGN)) wrong.push(`${where}: ${html}`);
  };
  await tab.send("Page.navigate", { url: address });
  await until("!busy && document.getElementById('progress').textContent.includes(' of ')");
  for (let row = 0; row < ROWS && wrong.length === 0; row++) {
    await press("e");
    await check(`row ${row}`);
    const before = await evaluate("document.getElementById('progress').textContent");
    if (!/^\d+ of \d+/.test(before) || (await evaluate("document.body.textContent.includes('Nothing is left')"))) break;
    await press("12"[row % 2]);
    await until(`!busy && document.getElementById('progress').textContent !== ${JSON.stringify(before)}`);
  }
  for (const key of ["g", "f", "h"]) {
    await press(key);
    await new Promise((done) => setTimeout(done, 400));
    await check(`page ${key}`);
  }
  return { wrong, shown: await evaluate("document.getElementById('progress').textContent") };
}

async function main() {
  const [program, run] = process.argv.slice(2);
  if (!run) throw new Trouble("Usage: node tests/browser/hostile.mjs NEGSCALE RUN");
  const review = spawn(program, ["review", run, "--no-open"], { stdio: ["ignore", "pipe", "inherit"] });
  const browser = await Browser.start(findBrowser(), true);
  try {
    const address = await within(20, new Promise((take) => {
      let said = "";
      review.stdout.setEncoding("utf8").on("data", (text) => { if ((said += text).includes("\n")) take(said.trim()); });
    }), "Starting a review");
    const { wrong, shown } = await within(SECONDS, look(browser, address), "Looking at the review");
    for (const sentence of wrong) console.error(`hostile: ${sentence}`);
    if (wrong.length === 0) console.log(`hostile: all texts stayed texts (${shown})`);
    return wrong.length === 0 ? 0 : 1;
  } finally {
    await browser.quit();
    review.kill("SIGKILL");
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Trouble ? `hostile: ${error.message}` : error);
  process.exitCode = 2;
}
