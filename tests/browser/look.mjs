#!/usr/bin/env node
// Looks at report pages as a reader's browser does: in light and dark, on a desk and on a phone, without network.
// Exit code 0: all pages are sound; 1: something was found; 2: the check could not be made.

import { statSync } from "node:fs";
import { parseArgs } from "node:util";

import { Browser, Trouble, findBrowser } from "./chromium.mjs";
import { VIEWS, lookAt } from "./page.mjs";
import { selfTest } from "./selftest.mjs";

const USAGE = `Usage: node tests/browser/look.mjs [OPTION...] PAGE.html...
       node tests/browser/look.mjs --self-test

Loads every page as a file, in headless Chromium with the network off, in these views: ${VIEWS.map((view) => view.name).join(", ")}.
Refuses it for console errors and warnings, exceptions, failed requests, requests for anything but the page itself and
data: addresses, scripts, an empty title, no drawn chart, pictures that cannot be shown, sideways scrolling, and text
of too little contrast.

  --expect-text TEXT   TEXT must be shown on every page; may be repeated
  --min-images N       every page must have at least N pictures
  --shots FOLDER       write a picture of the whole page, one per view
  --self-test          check the check: bad pages must be refused for the right reason
  --help               this text

The browser is $CHROMIUM, or the first of chromium, chromium-browser and google-chrome.`;

function readArguments() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        "expect-text": { type: "string", multiple: true, default: [] },
        "min-images": { type: "string", default: "0" },
        shots: { type: "string" },
        "self-test": { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
    if (!/^\d{1,6}$/.test(values["min-images"])) throw new Error(`--min-images takes a whole number, not "${values["min-images"]}".`);
    if (!values.help && !values["self-test"] && positionals.length === 0) throw new Error("No page given.");
    for (const file of positionals) {
      if (!statSync(file, { throwIfNoEntry: false })?.isFile()) throw new Error(`${file} is no file.`);
    }
    return { values, pages: positionals };
  } catch (error) {
    throw new Trouble(`${error.message}\n\n${USAGE}`);
  }
}

async function lookAtAll(browser, pages, options) {
  let sound = true;
  for (const file of pages) {
    // One kind of fault often shows in several views: told once, with the views.
    const faults = new Map();
    for (const { view, kind, text } of await lookAt(browser, file, options)) {
      const fault = `${kind}: ${text}`;
      faults.set(fault, [...(faults.get(fault) ?? []), view]);
    }
    if (faults.size === 0) console.log(`${file}: sound in ${VIEWS.length} views`);
    else {
      sound = false;
      console.error(`${file}: refused`);
      for (const [fault, views] of faults) console.error(`  ${fault} (${views.join(", ")})`);
    }
  }
  return sound;
}

async function main() {
  const { values, pages } = readArguments();
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const browser = await Browser.start(findBrowser());
  for (const [signal, number] of [["SIGINT", 2], ["SIGTERM", 15], ["SIGHUP", 1]]) {
    process.on(signal, () => {
      browser.quitNow();
      process.exit(128 + number);
    });
  }
  try {
    let sound = true;
    if (pages.length > 0) {
      const options = { texts: values["expect-text"], images: Number(values["min-images"]), shots: values.shots ?? null };
      sound = await lookAtAll(browser, pages, options);
    }
    if (values["self-test"]) {
      const { wrong, count } = await selfTest(browser);
      for (const sentence of wrong) console.error(`self-test: ${sentence}`);
      if (wrong.length === 0) console.log(`self-test: ${count} pages judged rightly`);
      sound &&= wrong.length === 0;
    }
    return sound ? 0 : 1;
  } finally {
    await browser.quit();
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Trouble ? `look: ${error.message}` : error);
  process.exitCode = 2;
}
