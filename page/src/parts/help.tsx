// The keys of the page, in a dialog of the browser's own.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

export const PLACES: [string, string, string][] = [
  ["g", "graph", "the pipeline"],
  ["q", "queries", "the table of queries"],
  ["p", "plots", "the plots"],
  ["l", "lag", "lag and messages"],
  ["r", "results", "results"],
  ["d", "letters", "dead letters"],
  ["e", "log", "events"],
  ["f", "plan", "plan, guarantee and findings"],
];

const KEYS: [string, string][] = [
  ["j  k", "next, previous query"],
  ["1 … 9", "choose a query by its row"],
  ...PLACES.map(([key, , word]): [string, string] => [key, `go to ${word}`]),
  ["w", "next time range of the plots"],
  ["t", "colours: system, dark or light"],
  ["?", "this list"],
  ["Esc", "close this dialog or an explanation"],
];

export function Help({ open, onClose }: { open: boolean; onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const here = dialog.current;
    if (!here) return;
    if (open && !here.open) here.showModal();
    if (!open && here.open) here.close();
  }, [open]);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <div class="help-body">
        <header class="panel-head">
          <h2 id="help-title">Keys</h2>
          <button type="button" class="button small" onClick={onClose}>Close</button>
        </header>
        <dl class="key-list">
          {KEYS.map(([key, what]) => (
            <div key={key}>
              <dt>{key.split(" ").filter(Boolean).map((one) => one === "…" ? " … " : <kbd key={one}>{one}</kbd>)}</dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <p class="dim">
          Signs: <span class="ok">● well</span> · <span class="start">◐ starting</span> · <span class="warn">▲ needs attention</span> · <span class="bad">✕ stuck or failed</span> · <span class="idle">■ ended</span>.
          Hover over a dotted word, or focus it, to see its explanation. Times are in the time zone of this machine.
        </p>
      </div>
    </dialog>
  );
}
