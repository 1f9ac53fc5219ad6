// What the page may ask of the run, each with a second question before it.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { act } from "../feed";
import type { Link } from "../store";
import type { State } from "../wire";

interface Action {
  id: string;
  name: string;
  what: string;
  confirm: string;
  path: string;
  grave?: boolean;
}

function actions(state: State, query: string): Action[] {
  const offered: Action[] = [
    {
      id: "restart",
      name: `Restart ${query}`,
      what: "The batch in progress finishes and commits. Then the query starts again from its checkpoint: no row is lost or written twice.",
      confirm: `Yes, restart ${query}`,
      path: `api/actions/restart?query=${encodeURIComponent(query)}`,
    },
    {
      id: "resend",
      name: "Deliver dead letters again",
      what: "Sends each dead letter of a Kafka source to its topic again, as it was, and deletes it here. A record that is still malformed becomes a dead letter again. Do this after the cause is fixed.",
      confirm: "Yes, deliver them again",
      path: "api/actions/resend",
    },
    {
      id: "stop",
      name: "Stop the run",
      what: "Batches in progress finish and commit, then the run ends, and this page with it. Start it again with: millstream run.",
      confirm: "Yes, stop the run",
      path: "api/actions/stop",
      grave: true,
    },
  ];
  return offered.filter((action) => state.actions.includes(action.id) && (action.id !== "resend" || state.letters.records > 0));
}

export function Controls({ state, link }: { state: State; link: Link }): JSX.Element | null {
  const [open, setOpen] = useState(false);
  if (!state.actions.length || !state.run.live || link !== "open") return null;
  return (
    <>
      <button type="button" class="button small" id="actions" onClick={() => setOpen(true)}>Actions</button>
      {open && <Dialog state={state} onClose={() => setOpen(false)} />}
    </>
  );
}

function Dialog({ state, onClose }: { state: State; onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [query, setQuery] = useState(state.worst?.query ?? state.queries[0]?.name ?? "");
  const [asked, setAsked] = useState("");
  const [answer, setAnswer] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  const run = (action: Action): void => {
    setAsked("");
    setAnswer("asking the run …");
    act(action.path).then(setAnswer, (error: unknown) => setAnswer(error instanceof Error ? error.message : "the run did not respond"));
  };
  return (
    <dialog ref={dialog} class="help" aria-labelledby="actions-title" onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <header class="panel-head">
        <h2 id="actions-title">Actions</h2>
        <button type="button" class="button small" onClick={onClose}>Close</button>
      </header>
      <ul class="actions">
        {actions(state, query).map((action) => (
          <li key={action.id} data-action={action.id}>
            <p><b>{action.name}</b></p>
            <p class="dim">{action.what}</p>
            {action.id === "restart" && state.queries.length > 1 && (
              <label class="dim">
                Query{" "}
                <select value={query} onChange={(event) => { setQuery(event.currentTarget.value); setAsked(""); }}>
                  {state.queries.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}
                </select>
              </label>
            )}
            {asked === action.id ? (
              <span class="group">
                <button type="button" class={`button ${action.grave ? "grave" : "chief"}`} onClick={() => run(action)}>{action.confirm}</button>
                <button type="button" class="button" onClick={() => setAsked("")}>No</button>
              </span>
            ) : (
              <button type="button" class="button" onClick={() => { setAsked(action.id); setAnswer(""); }}>{action.name} …</button>
            )}
          </li>
        ))}
      </ul>
      <p class="note" role="status">{answer}</p>
    </dialog>
  );
}
