// One page in all its views: loaded as a file without network, listened to, inspected, and photographed.

import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

import { Trouble, within } from "./chromium.mjs";
import { inspect } from "./inspect.mjs";

export const SECONDS_PER_PAGE = 60;

const DESK = { width: 1280, height: 900, mobile: false, deviceScaleFactor: 1 };
const PHONE = { width: 390, height: 844, mobile: true, deviceScaleFactor: 1 };
export const VIEWS = [
  { name: "light", scheme: "light", screen: DESK },
  { name: "dark", scheme: "dark", screen: DESK },
  { name: "phone-light", scheme: "light", screen: PHONE },
  { name: "phone-dark", scheme: "dark", screen: PHONE },
];
/** Taller pictures than this the browser does not draw. */
const TALLEST = 16000;
/** Time for what starts by itself after loading, as a redirection does. */
const SETTLE = 150;

/** All findings of a page as `{ view, kind, text }`; none means that it is sound. */
export async function lookAt(browser, file, options = {}) {
  const { texts = [], images = 0, shots = null, views = VIEWS, seconds = SECONDS_PER_PAGE } = options;
  const all = (async () => {
    const findings = [];
    for (const view of views) {
      const photo = shots && join(shots, `${basename(file).replace(/\.html?$/i, "")}-${view.name}.png`);
      for (const [kind, text] of await lookOnce(browser, file, view, { texts, images, photo })) {
        findings.push({ view: view.name, kind, text });
      }
    }
    return findings;
  })();
  // When time is up nobody waits for this any more, and the end of the browser is its end.
  all.catch(() => {});
  return within(seconds, all, `Looking at ${file}`);
}

async function lookOnce(browser, file, view, { texts, images, photo }) {
  const address = pathToFileURL(resolve(file)).href;
  const findings = new Map();
  // The browser tells of some things twice.
  const find = (kind, text) => findings.set(`${kind} ${text}`, [kind, text]);
  const requests = new Map();
  let isLoaded;
  const loaded = new Promise((done) => { isLoaded = done; });
  const allowed = (url) => url === address || url.startsWith("data:");
  const refuse = (url, type) => find("request", `the page asks for something outside itself (${type.toLowerCase()}): ${url.slice(0, 200)}`);

  const hear = (event, told) => {
    if (event === "Page.loadEventFired") isLoaded();
    else if (event === "Fetch.requestPaused") {
      const { requestId, request, resourceType } = told;
      const may = allowed(request.url);
      if (!may) refuse(request.url, resourceType);
      const answer = may
        ? tab.send("Fetch.continueRequest", { requestId })
        : tab.send("Fetch.failRequest", { requestId, errorReason: "BlockedByClient" });
      answer.catch(() => {});
    } else if (event === "Network.requestWillBeSent") {
      requests.set(told.requestId, told.request.url);
      if (!allowed(told.request.url)) refuse(told.request.url, told.type ?? "other");
    } else if (event === "Network.loadingFailed") {
      const url = requests.get(told.requestId) ?? "an unknown address";
      if (allowed(url)) find("request", `a request failed (${told.errorText}): ${url.slice(0, 200)}`);
    } else if (event === "Runtime.consoleAPICalled") {
      if (["error", "warning", "assert"].includes(told.type)) {
        find("console", `console ${told.type}: ${told.args.map((one) => one.value ?? one.description ?? one.type).join(" ")}`);
      }
    } else if (event === "Runtime.exceptionThrown") {
      const { text, exception } = told.exceptionDetails;
      find("exception", `uncaught exception: ${exception?.description ?? text}`);
    } else if (event === "Log.entryAdded") {
      const { level, source, text, url } = told.entry;
      // Requests are reported as such above.
      if (["error", "warning"].includes(level) && source !== "network") find("console", `browser ${level} (${source}): ${text}${url ? ` [${url.slice(0, 200)}]` : ""}`);
    } else if (event === "Inspector.targetCrashed") {
      find("crash", "the page crashed the browser's tab");
      isLoaded();
    }
  };

  const tab = await browser.openTab((event, told) => hear(event, told));
  for (const domain of ["Page", "Runtime", "Log", "Network", "Inspector"]) await tab.send(`${domain}.enable`);
  await tab.send("Fetch.enable", { patterns: [{ urlPattern: "*" }] });
  await tab.send("Network.emulateNetworkConditions", { offline: true, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
  await tab.send("Emulation.setDeviceMetricsOverride", view.screen);
  await tab.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: view.scheme }] });

  const { errorText } = await tab.send("Page.navigate", { url: address });
  if (errorText) throw new Trouble(`${file} could not be loaded: ${errorText}.`);
  await loaded;
  await new Promise((done) => setTimeout(done, SETTLE));
  if (photo) await photograph(tab, view, photo);

  const task = { width: view.screen.width, texts, images };
  const { result, exceptionDetails } = await tab.send("Runtime.evaluate", {
    expression: `(${inspect})(${JSON.stringify(task)})`,
    awaitPromise: true,
    returnByValue: true,
  });
  if (exceptionDetails) throw new Trouble(`${file} could not be inspected: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
  for (const [kind, text] of result.value) find(kind, text);
  await tab.close();
  return findings.values();
}

export async function photograph(tab, view, file) {
  // Pictures further down are loaded when a reader comes near; here they must be there at once.
  const load = "Promise.all([...document.images].map((one) => { one.loading = 'eager'; return one.decode().catch(() => {}); }))";
  await tab.send("Runtime.evaluate", { expression: load, awaitPromise: true });
  const { cssContentSize } = await tab.send("Page.getLayoutMetrics");
  const height = Math.min(Math.ceil(cssContentSize.height), TALLEST);
  const clip = { x: 0, y: 0, width: Math.max(view.screen.width, Math.ceil(cssContentSize.width)), height, scale: 1 };
  const { data } = await tab.send("Page.captureScreenshot", { format: "png", captureBeyondViewport: true, clip });
  mkdirSync(resolve(file, ".."), { recursive: true });
  writeFileSync(file, Buffer.from(data, "base64"));
}
