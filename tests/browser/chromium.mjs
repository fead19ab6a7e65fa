// A headless Chromium, spoken to by the DevTools protocol over a pipe: descriptor 3 takes commands, descriptor 4 gives
// answers and events, each a JSON text that ends with a zero byte. A pipe needs no port, no WebSocket and no package.

import { spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];
const START_SECONDS = 30;

/** What keeps the check from being made, in contrast to what it finds. */
export class Trouble extends Error {}

function runs(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The path of a browser: $CHROMIUM, else the first known name on the PATH. */
export function findBrowser(environment = process.env) {
  const folders = (environment.PATH ?? "").split(delimiter).filter(Boolean);
  const search = (name) => (name.includes("/") ? [name] : folders.map((folder) => join(folder, name))).find(runs);
  if (environment.CHROMIUM) {
    const asked = search(environment.CHROMIUM);
    if (asked) return asked;
    throw new Trouble(`CHROMIUM names "${environment.CHROMIUM}", which is no program; unset it or give the path of a browser.`);
  }
  for (const name of NAMES) {
    const found = search(name);
    if (found) return found;
  }
  throw new Trouble(`No browser found (${NAMES.join(", ")}): install one with "apt-get install chromium", or name one in $CHROMIUM.`);
}

/** The promise, or a Trouble after so many seconds. */
export function within(seconds, promise, what) {
  let timer;
  const late = new Promise((_, refuse) => {
    timer = setTimeout(() => refuse(new Trouble(`${what} took longer than ${seconds} s.`)), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** A running browser. `quit` must be called, whatever happens; it ends every process and removes the profile. */
export class Browser {
  #child;
  #profile = mkdtempSync(join(tmpdir(), "look-profile-"));
  #waiting = new Map();
  #listeners = new Map();
  #last = 0;
  #rest = "";
  #said = "";
  #gone = null;
  #ended;

  constructor(program, isLocal) {
    const flags = [
      "--headless=new", "--remote-debugging-pipe", `--user-data-dir=${this.#profile}`,
      "--no-first-run", "--no-default-browser-check", "--disable-extensions", "--disable-sync", "--disable-breakpad",
      "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
      "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio", "--hide-scrollbars", "--force-color-profile=srgb",
      `--host-resolver-rules=MAP * ~NOTFOUND${isLocal ? ", EXCLUDE 127.0.0.1" : ""}`,
    ];
    // Chromium refuses to start its sandbox for root, as in most containers.
    if (process.getuid?.() === 0) flags.push("--no-sandbox");
    this.#child = spawn(program, [...flags, "about:blank"], {
      // A group of its own, so that quit reaches the children of a browser that hangs.
      detached: true,
      env: { ...process.env, XDG_CONFIG_HOME: this.#profile, XDG_CACHE_HOME: this.#profile },
      stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
    });
    const [, , said, commands, answers] = this.#child.stdio;
    said.setEncoding("utf8").on("data", (text) => { this.#said = (this.#said + text).slice(-2000); });
    answers.setEncoding("utf8").on("data", (text) => this.#receive(text));
    for (const stream of [said, commands, answers]) stream.on("error", () => {});
    this.#ended = new Promise((done) => {
      const end = (why) => {
        this.#fail(new Trouble(`The browser ${program} ${why}. It said:\n${this.#said.trim() || "(nothing)"}`));
        done();
      };
      this.#child.once("error", (error) => end(`did not start (${error.message})`));
      this.#child.once("exit", (code, signal) => end(`ended (${signal ?? `exit code ${code}`})`));
    });
  }

  /** `isLocal`: pages of this machine may be asked for. */
  static async start(program, isLocal = false) {
    const browser = new Browser(program, isLocal);
    try {
      await within(START_SECONDS, browser.send("Browser.getVersion"), `Starting ${program}`);
      return browser;
    } catch (error) {
      await browser.quit();
      throw error;
    }
  }

  send(method, params = {}, sessionId = undefined) {
    if (this.#gone) return Promise.reject(this.#gone);
    const id = ++this.#last;
    return new Promise((take, refuse) => {
      this.#waiting.set(id, { take, refuse, method });
      this.#child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  /** A new empty tab with nothing remembered from others; `hear(method, params)` gets its events. */
  async openTab(hear) {
    const { browserContextId } = await this.send("Target.createBrowserContext", { disposeOnDetach: true });
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank", browserContextId });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    this.#listeners.set(sessionId, hear);
    return {
      send: (method, params) => this.send(method, params, sessionId),
      close: async () => {
        this.#listeners.delete(sessionId);
        await this.send("Target.disposeBrowserContext", { browserContextId });
      },
    };
  }

  async quit() {
    const { pid } = this.#child;
    if (pid !== undefined) {
      try {
        process.kill(-pid, "SIGKILL");
      } catch {
        // All of them are gone already.
      }
      await this.#ended;
    }
    this.removeProfile();
  }

  /** The same at once, for the moment before this process ends itself. */
  quitNow() {
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // Never started, or gone already.
    }
    this.removeProfile();
  }

  removeProfile() {
    // Killed processes may hold on to the folder for a moment.
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  #receive(text) {
    const parts = (this.#rest + text).split("\0");
    this.#rest = parts.pop();
    for (const part of parts) {
      const { id, method, params, sessionId, result, error } = JSON.parse(part);
      if (id === undefined) {
        this.#listeners.get(sessionId)?.(method, params);
        continue;
      }
      const asked = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) asked?.refuse(new Trouble(`${asked.method}: ${error.message}`));
      else asked?.take(result);
    }
  }

  #fail(trouble) {
    this.#gone = trouble;
    for (const { refuse } of this.#waiting.values()) refuse(trouble);
    this.#waiting.clear();
  }
}
