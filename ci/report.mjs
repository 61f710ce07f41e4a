// Looks at a report in headless Chromium: node ci/report.mjs PAGE RESULTS...
// Speaks the DevTools protocol by two pipes, so nothing has to be installed and no port is open.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [page, ...files] = process.argv.slice(2);
const results = files.map((file) => JSON.parse(readFileSync(file, "utf8")));
const folder = mkdtempSync(join(tmpdir(), "report-"));
const WIDTHS = [380, 1400];
const SCHEMES = ["light", "dark"];

class Browser {
  constructor() {
    this.process = spawn(
      process.env.CHROMIUM ?? "chromium",
      [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--remote-debugging-pipe", `--user-data-dir=${join(folder, "profile")}`,
      ],
      { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] },
    );
    this.process.on("error", (error) => fail(`chromium does not start: ${error.message}`));
    this.next = 1;
    this.waiting = new Map();
    this.events = [];
    let rest = "";
    this.process.stdio[4].on("data", (data) => {
      const messages = (rest + data).split("\0");
      rest = messages.pop();
      for (const message of messages) this.take(JSON.parse(message));
    });
  }

  take(message) {
    if (message.id === undefined) return this.events.push(message);
    const { resolve, reject } = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    message.error ? reject(new Error(message.error.message)) : resolve(message.result);
  }

  send(method, params = {}, sessionId = this.session) {
    const id = this.next++;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  async open() {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    this.session = sessionId;
    for (const domain of ["Page", "Network", "Runtime", "Log"]) await this.send(`${domain}.enable`);
  }

  async evaluate(source) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression: source, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async show(path) {
    this.events.length = 0;
    await this.send("Page.navigate", { url: pathToFileURL(path).href });
    for (;;) {
      if (this.events.some((event) => event.method === "Page.loadEventFired")) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

// What of these runs in the page must not need anything from here.
function inspect() {
  const faults = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) faults.push(`overflow: ${root.scrollWidth} pixels in ${root.clientWidth}`);
  for (const box of document.querySelectorAll("body *:not(.scroll *)")) {
    const { right, width } = box.getBoundingClientRect();
    if (width > 0 && right > root.clientWidth + 1) faults.push(`overflow: ${box.tagName} reaches ${Math.round(right)}`);
  }
  const luminance = ([r, g, b]) => {
    const linear = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  };
  const parse = (color) => {
    const [r, g, b, a = 1] = color.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    return { rgb: [r, g, b], a };
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const { rgb, a } = parse(getComputedStyle(at).backgroundColor);
      if (a > 0) return rgb;
    }
    return [255, 255, 255];
  };
  const poor = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || ["STYLE", "SCRIPT"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const { rgb } = parse(element instanceof SVGElement ? style.fill : style.color);
    const [one, other] = [luminance(rgb), luminance(behind(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (contrast < least) poor.set(element.tagName, `contrast: ${element.tagName} has ${contrast.toFixed(2)} of ${least}`);
  }
  faults.push(...poor.values());
  if (!root.lang) faults.push("structure: no language");
  if (!document.title) faults.push("structure: no title");
  if (!document.querySelector("meta[name=viewport]")) faults.push("structure: no viewport");
  const levels = [...document.querySelectorAll("h1,h2,h3,h4,h5,h6")].map((heading) => Number(heading.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1) faults.push("structure: not one h1");
  levels.forEach((level, at) => {
    if (level > (levels[at - 1] ?? 0) + 1) faults.push(`structure: h${level} after h${levels[at - 1]}`);
  });
  for (const figure of document.querySelectorAll("figure")) {
    if (!figure.querySelector("svg") || !figure.querySelector("figcaption")?.textContent) faults.push("structure: a figure without picture or caption");
  }
  if (!document.querySelector("figure")) faults.push("structure: no figures");
  return faults;
}

function numbers() {
  return [...document.querySelectorAll("[data-at]")].map((cell) => [cell.dataset.at, cell.dataset.value, cell.textContent]);
}

// Every number is that of the results, as far as it is shown, and every point's median is there.
function compare(found) {
  const faults = [];
  const missing = new Set();
  results.forEach((result, file) =>
    result.experiments.forEach((experiment, e) =>
      experiment.points.forEach((_, p) => missing.add(`${file}:/experiments/${e}/points/${p}/wall/median`))));
  for (const [at, value, shown] of found) {
    const [file, pointer] = at.split(/:(.*)/s);
    const real = pointer.split("/").slice(1).reduce((part, key) => part?.[key], results[Number(file)]);
    missing.delete(at);
    if (real !== Number(value)) faults.push(`numbers: ${at} is ${real} and not ${value}`);
    const digits = shown.split(".")[1]?.length ?? 0;
    if (!/^\d+(\.\d+)?$/.test(shown) || Math.abs(real - Number(shown)) > 0.5000001 * 10 ** -digits) {
      faults.push(`numbers: ${at} is ${real} and shown as ${shown}`);
    }
  }
  if (missing.size > 0) faults.push(`numbers: ${missing.size} medians are missing, such as ${[...missing][0]}`);
  return faults;
}

async function look(browser, path) {
  const faults = [];
  for (const scheme of SCHEMES) {
    for (const width of WIDTHS) {
      await browser.send("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile: width < 500 });
      await browser.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
      await browser.show(path);
      await browser.evaluate("for (const part of document.querySelectorAll('details')) part.open = true");
      const found = await browser.evaluate(`(${inspect})()`);
      faults.push(...found.map((fault) => `${fault} (${width} pixels, ${scheme})`));
      if (width === WIDTHS[0] && scheme === SCHEMES[0]) faults.push(...compare(await browser.evaluate(`(${numbers})()`)));
      for (const { method, params } of browser.events) {
        if (method === "Network.requestWillBeSent" && !/^(file|data):/.test(params.request.url)) faults.push(`network: ${params.request.url}`);
        if (method === "Runtime.exceptionThrown") faults.push(`console: ${params.exceptionDetails.text}`);
        if (method === "Runtime.consoleAPICalled") faults.push(`console: ${params.type}`);
        if (method === "Log.entryAdded" && params.entry.level === "error") faults.push(`console: ${params.entry.text}`);
      }
    }
  }
  return faults;
}

// Each spoils the page in one way: what is replaced, by what, and which kind of fault must be found.
const MUTANTS = [
  ["network", "</main>", '<img src="http://127.0.0.1:9/x.png" alt=""></main>'],
  ["console", "</main>", "<script>throw new Error('x')</script></main>"],
  ["overflow", "</main>", '<div style="width: 900px">wide</div></main>'],
  ["contrast", "--ink: #1b1f24", "--ink: #8a8f94"],
  ["contrast", "--ink: #e4e8ec", "--ink: #5c6268"],
  ["contrast", /fill="currentColor"/g, 'fill="#777777"'],
  ["structure", '<html lang="en">', "<html>"],
  ["structure", "<h1>", "<h1>x</h1><h1>"],
  ["structure", /<h3>/g, "<h6>"],
  ["structure", /<meta name="viewport"[^>]*>/, ""],
  ["structure", /<figcaption>[^<]*/, "<figcaption>"],
  ["numbers", 'data-value="', 'data-value="1'],
  ["numbers", /<data [^>]*>/, "$&1"],
  ["numbers", /<data [^>]*>/, "<data>"],
];

function fail(message) {
  console.error(`ci/report: ${message}`);
  rmSync(folder, { recursive: true, force: true });
  process.exit(1);
}

const limit = setTimeout(() => fail("it takes too long"), 240_000);
const browser = new Browser();
await browser.open();
const faults = await look(browser, page);
if (faults.length > 0) fail(`${faults.length} faults\n  ${faults.slice(0, 20).join("\n  ")}`);
const text = readFileSync(page, "utf8");
for (const [kind, what, by] of MUTANTS) {
  const path = join(folder, "spoilt.html");
  const spoilt = text.replace(what, by);
  if (spoilt === text) fail(`${what} is not in the page`);
  writeFileSync(path, spoilt);
  const found = await look(browser, path);
  if (!found.some((fault) => fault.startsWith(kind))) fail(`${kind}: not found when ${what} became ${by}`);
}
clearTimeout(limit);
const count = results.flatMap((result) => result.experiments.flatMap((experiment) => experiment.points)).length;
console.log(`the page is as it should be with ${count} numbers, and ${MUTANTS.length} spoilt pages are found`);
browser.process.kill();
browser.process.on("exit", () => {
  rmSync(folder, { recursive: true, force: true });
  process.exit(0);
});
