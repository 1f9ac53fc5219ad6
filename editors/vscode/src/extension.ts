/** Starts `millstream lsp` for specs, test files and PySpark scripts, and restarts it when its settings change. */

import { existsSync } from "node:fs";
import { commands, type ExtensionContext, window, workspace } from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";
import { findServerCommand } from "./serverCommand";

const SECTION = "millstream";
const OPTIONS: LanguageClientOptions = {
  documentSelector: [
    { scheme: "file", language: "yaml" },
    { scheme: "file", language: "python" },
  ],
};

let client: LanguageClient | undefined;

export async function activate(context: ExtensionContext): Promise<void> {
  context.subscriptions.push(
    commands.registerCommand("millstream.restart", restart),
    workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration(SECTION)) {
        await restart();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.stop();
  client = undefined;
}

async function restart(): Promise<void> {
  await deactivate();
  await start();
}

async function start(): Promise<void> {
  const configuration = workspace.getConfiguration(SECTION);
  const folder = workspace.workspaceFolders?.[0]?.uri.fsPath;
  const settings = { path: configuration.get("path", ""), spark: configuration.get("spark", true) };
  const { command, args } = findServerCommand(settings, folder, process.platform, existsSync);
  const server: ServerOptions = { command, args, options: folder === undefined ? {} : { cwd: folder } };
  client = new LanguageClient(SECTION, "Millstream", server, OPTIONS);
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    window.showErrorMessage(
      `${command} cannot be started: ${error}. Install it with pip install 'millstream[lsp]', or set millstream.path.`,
    );
  }
}
