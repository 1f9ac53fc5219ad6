/** The command that starts the language server follows from the settings and the opened folder. */

import assert from "node:assert/strict";
import test from "node:test";
import { findServerCommand } from "../dist/serverCommand.mjs";

const DEFAULTS = { path: "", spark: true };
const nothing = () => false;
const everything = () => true;

test("the program on the PATH is taken where the folder has none", () => {
  assert.deepEqual(findServerCommand(DEFAULTS, "/shop", "linux", nothing), { command: "millstream", args: ["lsp"] });
  assert.equal(findServerCommand(DEFAULTS, undefined, "linux", everything).command, "millstream");
});

test("the program of the folder's own environment comes before the one on the PATH", () => {
  assert.equal(findServerCommand(DEFAULTS, "/shop", "linux", everything).command, "/shop/.venv/bin/millstream");
  assert.equal(
    findServerCommand(DEFAULTS, "C:\\shop", "win32", everything).command,
    "C:\\shop\\.venv\\Scripts\\millstream.exe",
  );
});

test("the setting comes before both, and Spark can be left out", () => {
  assert.deepEqual(findServerCommand({ path: "/opt/millstream", spark: false }, "/shop", "linux", everything), {
    command: "/opt/millstream",
    args: ["lsp", "--no-spark"],
  });
});
