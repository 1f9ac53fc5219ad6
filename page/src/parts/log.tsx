// What happened, newest first.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { moment, when } from "../format";
import { steady } from "../hooks";
import type { Entry } from "../wire";
import { SIGNS } from "../words";
import { Empty, Panel } from "./panel";
import { CLASSES } from "./sign";
import { Term } from "./term";

const SHOWN = 100;

export const LogPanel = steady(function LogPanel({ log, today }: { log: Entry[]; today: number }): JSX.Element {
  const [grave, setGrave] = useState(false);
  const shown = (grave ? log.filter((entry) => entry.level === "warn" || entry.level === "bad") : log).slice(-SHOWN).reverse();
  return (
    <Panel
      id="log"
      title={<Term of="events">Events</Term>}
      aside={
        <button type="button" class="button small" aria-pressed={grave} onClick={() => setGrave(!grave)}>
          Only warnings
        </button>
      }
    >
      {shown.length === 0 ? (
        <Empty>{grave ? "There are no warnings." : "There are no events yet."}</Empty>
      ) : (
        <div class="wide tall" role="region" aria-label="Events of the run" tabIndex={0}>
          <ol class="log">
            {shown.map((entry) => (
              <li key={entry.id} class={CLASSES[entry.level]}>
                <time class="dim" dateTime={entry.at}>{when(moment(entry.at), today)}</time>
                <span class="mark" aria-hidden="true">{SIGNS[entry.level]}</span>
                <span class="hidden">{entry.level === "bad" ? "error" : entry.level === "warn" ? "warning" : ""}</span>
                <span class="said">{entry.text}</span>
              </li>
            ))}
          </ol>
        </div>
      )}
    </Panel>
  );
});
