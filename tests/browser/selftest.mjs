// The check of the check: pages with one fault each must be refused for that fault and no other, a sound one must pass.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Trouble } from "./chromium.mjs";
import { VIEWS, lookAt } from "./page.mjs";

const DOT = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
const CHART = '<svg viewBox="0 0 200 80" width="200"><path d="M5 70L195 10" stroke="currentColor" fill="none"/></svg>';

function page(body, { title = "A page", head = "", chart = CHART } = {}) {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>${title}</title>${head}</head><body>${chart}${body}</body></html>`;
}

const ALL = VIEWS.map((view) => view.name);
const PHONES = ALL.filter((name) => name.startsWith("phone"));
const DARK = ALL.filter((name) => name.endsWith("dark"));

/**
 * Name of the file, page, and kinds of findings that must come out. A fault that does not depend on the view is looked
 * for in the first one; `views` names those in which it must show, and then it must not show in the others.
 */
const CASES = [
  { name: "sound", html: page(`<p>All is well.</p><img alt="dot" src="${DOT}">`), kinds: [], options: { texts: ["All is  well."], images: 1 }, views: ALL },
  {
    name: "hostile name as text",
    html: page("<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
    kinds: [],
    options: { texts: ["<script>alert(1)</script>"] },
  },
  { name: "text in a closed part", html: page("<details><summary>more</summary><p>inside</p></details>"), kinds: [], options: { texts: ["inside"] } },
  { name: "table that scrolls by itself", html: page('<div style="overflow-x:auto"><div style="width:3000px">wide</div></div>'), kinds: [], views: ALL },
  { name: "late picture far below", html: page(`<div style="height:9000px"></div><img alt="dot" loading="lazy" src="${DOT}">`), kinds: [] },

  { name: "console error", html: page("<script>console.error('bad')</script>"), kinds: ["console", "script"] },
  { name: "console warning", html: page("<script>console.warn('odd')</script>"), kinds: ["console", "script"] },
  { name: "uncaught exception", html: page("<script>throw new Error('lost')</script>"), kinds: ["exception", "script"] },
  { name: "path that is no path", html: page('<svg width="200"><path d="MNaN 3L4 5"/></svg>'), kinds: ["console"] },
  { name: "what the content policy forbids", html: page('<img alt="x" src="https://a.invalid/x.png">', { head: '<meta http-equiv="Content-Security-Policy" content="img-src data:">' }), kinds: ["console", "picture", "request"] },
  { name: "broken picture", html: page('<img alt="torn" src="data:image/png;base64,AAAA">'), kinds: ["picture"] },
  { name: "external picture", html: page('<img alt="far" src="https://a.invalid/x.png">'), kinds: ["picture", "request"] },
  { name: "external style", html: page("", { head: '<style>@import "http://a.invalid/x.css";</style>' }), kinds: ["request"] },
  { name: "external font", html: page('<p style="font-family:far">a</p>', { head: "<style>@font-face{font-family:far;src:url(http://a.invalid/x.woff2)}</style>" }), kinds: ["request"] },
  { name: "external frame", html: page('<iframe src="http://a.invalid/"></iframe>'), kinds: ["request"] },
  { name: "file beside the page", html: page('<img alt="near" src="beside.png">'), kinds: ["picture", "request"] },
  { name: "script", html: page('<script type="text/plain">nothing</script>'), kinds: ["script"] },
  { name: "script in a drawing", html: page("<svg><script>1</script></svg>"), kinds: ["script"] },
  { name: "script in an attribute", html: page('<p onclick="x()">a</p>'), kinds: ["script"] },
  { name: "script in a link", html: page('<a href=" javascript:x()">a</a>'), kinds: ["script"] },
  { name: "too wide for a phone", html: page('<div style="width:600px">wide</div>'), kinds: ["width"], views: PHONES },
  { name: "too wide when opened", html: page('<details><summary>more</summary><div style="width:600px">wide</div></details>'), kinds: ["width"], views: PHONES },
  { name: "not made for a phone", html: page("").replace(/<meta name="viewport"[^>]*>/, ""), kinds: ["width"], views: PHONES },
  { name: "too wide for a desk", html: page('<div style="width:2000px">wide</div>'), kinds: ["width"], views: ALL },
  { name: "no chart", html: page("<p>words</p>", { chart: "" }), kinds: ["chart"] },
  { name: "empty chart", html: page("", { chart: '<svg viewBox="0 0 200 80" width="200"><path d="M5 5"/></svg>' }), kinds: ["chart"] },
  { name: "legend without chart", html: page("", { chart: '<svg viewBox="0 0 22 8" width="22"><path d="M1 4L21 4"/></svg>' }), kinds: ["chart"] },
  { name: "no title", html: page("", { title: " " }), kinds: ["title"] },
  { name: "missing text", html: page("<p>something else</p>"), kinds: ["text"], options: { texts: ["hello"] } },
  { name: "too few pictures", html: page(`<img alt="dot" src="${DOT}">`), kinds: ["pictures"], options: { images: 2 } },
  { name: "faint words", html: page('<p style="color:#bbb;background:#fff">faint</p>'), kinds: ["contrast"] },
  { name: "faint words in the dark", html: page('<p style="color:#333">faint</p>'), kinds: ["contrast"], views: DARK },
];

/** Runs all cases; gives sentences on those that came out otherwise. */
export async function selfTest(browser) {
  const folder = mkdtempSync(join(tmpdir(), "look-pages-"));
  const wrong = [];
  try {
    for (const { name, html, kinds, views, options } of CASES) {
      const file = join(folder, `${name}.html`);
      writeFileSync(file, html);
      const looked = views ? ALL : ALL.slice(0, 1);
      const findings = await lookAt(browser, file, { ...options, views: VIEWS.filter((view) => looked.includes(view.name)) });
      for (const view of looked) {
        const here = findings.filter((one) => one.view === view);
        const found = [...new Set(here.map((one) => one.kind))].sort().join(", ");
        const expected = (views ?? [view]).includes(view) ? kinds.join(", ") : "";
        if (found !== expected) {
          const told = here.map((one) => `\n    ${one.kind}: ${one.text}`).join("");
          wrong.push(`"${name}" in ${view}: expected ${expected || "nothing"}, found ${found || "nothing"}${told}`);
        }
      }
    }
    const shots = join(folder, "shots");
    await lookAt(browser, join(folder, "sound.html"), { shots });
    for (const view of ALL) {
      if (!existsSync(join(shots, `sound-${view}.png`))) wrong.push(`no picture was taken of "sound" in ${view}`);
    }
    // Last, because the tab of this page never comes to rest.
    const stuck = join(folder, "stuck.html");
    writeFileSync(stuck, page("<script>for (;;) ;</script>"));
    try {
      await lookAt(browser, stuck, { seconds: 3 });
      wrong.push('"stuck": a page that never ends loading was not refused');
    } catch (error) {
      if (!(error instanceof Trouble) || !/longer than 3 s/.test(error.message)) throw error;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return { wrong, count: CASES.length + 1 };
}
