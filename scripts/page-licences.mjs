// Refuses packages of the page with a licence that deny.toml does not allow; called by audit.sh.
// Build and test packages count too: some, such as Svelte, put code into the page.
import { readFileSync } from "node:fs";

const read = (path) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");

/** Beside those of crates: of the fonts, which may be given on with a program, and one that asks for no more than MIT. */
const ALSO = ["OFL-1.1", "BlueOak-1.0.0"];

function allowedByCrates() {
  const list = /^allow = \[(.*?)^\]/ms.exec(read("deny.toml"))?.[1] ?? "";
  return [...list.replace(/#.*/g, "").matchAll(/"([^"]+)"/g)].map(([, name]) => name);
}

const allowed = new Set([...allowedByCrates(), ...ALSO]);

/** Of an SPDX expression without parentheses: one of the choices, with all that it asks for. */
function allows(licence) {
  const choices = licence.replace(/^\((.*)\)$/, "$1").split(" OR ");
  return choices.some((choice) => choice.split(" AND ").every((one) => allowed.has(one)));
}

const { packages } = JSON.parse(read(process.argv[2] ?? "ui/package-lock.json"));
const others = Object.entries(packages).filter(([path]) => path !== "");
const refused = others.filter(([, { license }]) => typeof license !== "string" || !allows(license));
for (const [path, { license }] of refused) {
  const name = path.replace("node_modules/", "");
  console.error(`audit: ${name} has the licence “${license ?? "none"}”, which deny.toml does not allow`);
}
if (others.length === 0 || refused.length > 0) process.exit(1);
console.error(`audit: ${others.length} packages of the page are under allowed licences`);
