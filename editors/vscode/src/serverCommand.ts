/** The command that starts the language server, from the settings and the opened folder. */

/** Settings of the extension, by the names in package.json. */
export interface Settings {
  /** The program, or "" for the one that is found. */
  readonly path: string;
  /** Whether Spark checks a file when it is saved. */
  readonly spark: boolean;
}

/** A program and its arguments. */
export interface ServerCommand {
  readonly command: string;
  readonly args: string[];
}

/**
 * Return the command. Without a path in the settings, the program of `.venv` in the folder is taken if it exists, else
 * the one on the PATH. `folder` is undefined if none is opened.
 */
export function findServerCommand(
  settings: Settings,
  folder: string | undefined,
  platform: string,
  exists: (path: string) => boolean,
): ServerCommand {
  const args = settings.spark ? ["lsp"] : ["lsp", "--no-spark"];
  if (settings.path !== "") {
    return { command: settings.path, args };
  }
  const own = platform === "win32" ? "\\.venv\\Scripts\\millstream.exe" : "/.venv/bin/millstream";
  const found = folder !== undefined && exists(folder + own);
  return { command: found ? folder + own : "millstream", args };
}
