// What is in the state of a query: keys by partition, and some keys with their values. It is read on demand.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { exact, plural, sentence } from "../format";
import { steady, useAsked } from "../hooks";
import type { StateAnswer, StateStore } from "../wire";
import { Empty, Panel, Wide } from "./panel";
import { Bar } from "./sign";
import { Term } from "./term";

// So many partitions are listed, those with most keys.
const MOST = 12;

export const StatePanel = steady(function StatePanel({ query, keys, live }: { query: string; keys: number; live: boolean }): JSX.Element {
  const [open, setOpen] = useState(false);
  const asked = useAsked<StateAnswer>(open ? `api/statestore?query=${encodeURIComponent(query)}` : null, 15000, live);
  const note = asked.error || asked.value?.note;
  return (
    <Panel
      id="statestore"
      title={<Term of="statestore">State of {query}</Term>}
      aside={
        <>
          <span class="dim">{plural(keys, "row")}</span>
          <button type="button" class="button small" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Hide" : "Show"}</button>
        </>
      }
    >
      {open && note && <p class="note">{sentence(note)}</p>}
      {open && !asked.value && !note && <Empty>Reading the state.</Empty>}
      {open && asked.value?.stores.map((store) => <Store key={`${store.operator}/${store.state}`} store={store} />)}
      {open && asked.value && !note && asked.value.stores.length === 0 && <Empty>The checkpoint has no state yet.</Empty>}
    </Panel>
  );
});

function Store({ store }: { store: StateStore }): JSX.Element {
  const keys = store.partitions.reduce((sum, one) => sum + one, 0);
  const most = Math.max(1, ...store.partitions);
  const largest = store.partitions.map((own, at): [number, number] => [own, at]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, MOST);
  const grown = store.growth === 0 ? "unchanged" : `${store.growth > 0 ? "+" : "−"}${exact(Math.abs(store.growth))}`;
  return (
    <div class="sub">
      <div class="sub-head">
        <h3>{store.state}</h3>
        <span class="dim">{plural(keys, "key")} after batch {store.batch}, {grown} in {plural(store.batches, "batch", "batches")}</span>
      </div>
      <ul class="list partitions" aria-label="Keys by partition">
        {largest.map(([own, at]) => (
          <li key={at}><span class="dim">partition {at}</span> <Bar share={own / most} level="ok" /> <span class="num">{exact(own)}</span></li>
        ))}
        {store.partitions.length > MOST && <li class="dim">{store.partitions.length - MOST} more with fewer keys</li>}
      </ul>
      {store.rows.length > 0 && (
        <Wide name={`Some keys: ${store.state}`} class="short">
          <table class="table">
            <thead><tr>{store.columns.map((name, at) => <th key={at} scope="col">{name}</th>)}</tr></thead>
            <tbody>{store.rows.map((row, at) => <tr key={at}>{row.map((value, column) => <td key={column} class={typeof value === "number" ? "num" : ""}>{value === null ? <span class="dim">null</span> : String(value)}</td>)}</tr>)}</tbody>
          </table>
        </Wide>
      )}
    </div>
  );
}
