// Dead letters by reason with samples of each, and batches that a sink refused.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { exact, moment, plural, when } from "../format";
import { steady, useAsked } from "../hooks";
import type { Letter, Letters, LettersAnswer } from "../wire";
import { Empty, Panel } from "./panel";
import { Term } from "./term";

const SAMPLES = 8;

export const LettersPanel = steady(function LettersPanel({ letters, today, live }: { letters: Letters; today: number; live: boolean }): JSX.Element {
  const some = letters.records > 0 || letters.set_aside.length > 0;
  const asked = useAsked<LettersAnswer>(some ? "api/letters" : null, 5000, live);
  const groups = grouped(asked.value?.latest ?? []);
  const stored = asked.value?.stored ?? null;
  return (
    <Panel id="letters" title={<Term of="letters">Dead letters</Term>} aside={<span class={letters.records ? "warn" : "dim"}>{plural(letters.records, "record")} in this run</span>}>
      {!some && <Empty>There are no dead letters.</Empty>}
      {letters.set_aside.length > 0 && (
        <ul class="list">
          {letters.set_aside.map((aside) => (
            <li key={aside.query + aside.sink}>
              <b class="warn">▲ {plural(aside.batches, "batch", "batches")}</b> of {aside.query} {aside.batches === 1 ? "waits" : "wait"} for {aside.sink}
              <span class="dim"> since {when(moment(aside.since), today)}: {aside.reason}</span>
            </li>
          ))}
        </ul>
      )}
      {letters.reasons.length > 0 && (
        <ul class="list reasons-list">
          {letters.reasons.map((reason) => (
            <li key={`${reason.reason}/${reason.source}/${reason.query}`}>
              <b class="num">{exact(reason.records)}</b> {reason.reason} <span class="dim">from {reason.source} in {reason.query}, last at {when(moment(reason.last), today)}</span>
            </li>
          ))}
        </ul>
      )}
      {asked.error && <p class="note">{asked.error}</p>}
      {groups.length > 0 && (
        <div class="sub">
          <h3>Samples of the latest, by error</h3>
          <ul class="list letters">
            {groups.map(([reason, own]) => (
              <li key={reason}>
                <details>
                  <summary>{reason} <span class="dim">×{own.length}</span></summary>
                  <ul>{own.slice(0, SAMPLES).map((letter, at) => <Sample key={`${letter.place}/${at}`} letter={letter} today={today} />)}</ul>
                </details>
              </li>
            ))}
          </ul>
        </div>
      )}
      {some && (
        <p class="note">
          {stored !== null && `At its last count, at most 30 seconds ago, the store had ${plural(stored, "record")} of all runs; a record that two queries rejected counts once. `}
          {asked.value?.note || "All of them: millstream deadletter list --limit 1000"}
        </p>
      )}
    </Panel>
  );
});

function Sample({ letter, today }: { letter: Letter; today: number }): JSX.Element {
  /** Null until it is asked; false if this browser does not let the page copy. */
  const [copied, setCopied] = useState<boolean | null>(null);
  const command = letter.show ? `millstream deadletter show ${letter.show}` : "";
  const copy = (): void => {
    // A page over plain HTTP from another machine has no clipboard.
    if (navigator.clipboard) navigator.clipboard.writeText(command).then(() => setCopied(true), () => setCopied(false));
    else setCopied(false);
  };
  return (
    <li class="sample">
      <span class="dim">{when(moment(letter.at), today)} · {letter.query} · {letter.place}</span>
      {command && (
        <button type="button" class="button small" title={command} onClick={copy}>
          {copied ? "Copied" : "Copy command"}
        </button>
      )}
      {copied === false && <p>Copy it here: <code>{command}</code></p>}
      {letter.value !== null && <pre>{letter.value}</pre>}
    </li>
  );
}

/** Letters of one reason together, the most frequent first. */
function grouped(latest: Letter[]): [string, Letter[]][] {
  const groups = new Map<string, Letter[]>();
  for (const letter of latest) groups.set(letter.reason, [...(groups.get(letter.reason) ?? []), letter]);
  return [...groups].sort(([, a], [, b]) => b.length - a.length);
}
