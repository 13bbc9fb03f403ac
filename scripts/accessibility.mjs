// Check pages with axe-core in Chromium, in both color schemes and two widths. Reads JSON from standard input and prints JSON.
//
// Arguments: the folder with node_modules, the path of Chromium, and optionally a folder for screenshots.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , modules, chromium, screenshots] = process.argv;
const require = createRequire(join(modules, "package.json"));
const { chromium: browserType } = require("playwright-core");
const { source } = require("axe-core");

const RULES = { runOnly: { type: "tag", values: ["wcag2a", "wcag2aa"] } };
const SCHEMES = ["light", "dark"];
// On the narrow page tables are wider than the window, so they must scroll with the keyboard too.
const WIDTHS = { wide: 1280, narrow: 400 };
const FLAGS = [
  "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
  "--disable-sync",
];

async function problemsOf(context, page, scheme, width) {
  const tab = await context.newPage();
  // Chromium writes an error to the console for each script, style or image that the content security policy blocks.
  const blocked = [];
  tab.on("console", (message) => message.type() === "error" && blocked.push(message.text()));
  await tab.route("**/*", (route) => route.fulfill({ headers: page.headers, body: page.html }));
  await tab.goto("http://pages.invalid/");
  await tab.evaluate(source);
  const found = await tab.evaluate((rules) => axe.run(document, rules), RULES);
  if (screenshots) {
    await tab.screenshot({ path: join(screenshots, `${page.name}-${scheme}-${width}.png`), fullPage: true });
  }
  await tab.close();
  return {
    page: page.name, scheme, width, passed: found.passes.length, blocked,
    violations: found.violations.flatMap((rule) => rule.nodes.map((node) => ({
      rule: rule.id, help: rule.help, target: node.target.join(" "), reason: node.failureSummary.replace(/\s+/g, " "),
    }))),
  };
}

const pages = JSON.parse(readFileSync(0, "utf-8"));
const browser = await browserType.launch({ executablePath: chromium, args: FLAGS, chromiumSandbox: false });
try {
  const outcomes = [];
  for (const scheme of SCHEMES) {
    for (const [width, pixels] of Object.entries(WIDTHS)) {
      const context = await browser.newContext({ colorScheme: scheme, viewport: { width: pixels, height: 900 } });
      for (const page of pages) outcomes.push(await problemsOf(context, page, scheme, width));
      await context.close();
    }
  }
  console.log(JSON.stringify(outcomes));
} finally {
  await browser.close();
}
