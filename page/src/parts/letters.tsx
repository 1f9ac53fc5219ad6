// Dead letters by reason, the latest of them, and batches that a sink refused.
import type { JSX } from "preact";
import { exact, moment, plural, when } from "../format";
import { steady, useAsked } from "../hooks";
import type { Letters, LettersAnswer } from "../wire";
import { Empty, Panel, Wide } from "./panel";
import { Term } from "./term";

export const LettersPanel = steady(function LettersPanel({ letters, today, live }: { letters: Letters; today: number; live: boolean }): JSX.Element {
  const some = letters.records > 0 || letters.set_aside.length > 0;
  const asked = useAsked<LettersAnswer>(some ? "api/letters" : null, 5000, live);
  return (
    <Panel id="letters" title={<Term of="letters">Dead letters</Term>} aside={<span class={letters.records ? "warn" : "dim"}>{plural(letters.records, "record")}</span>}>
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
        <Wide name="Dead letters by reason">
          <table class="table">
            <thead>
              <tr><th scope="col">Reason</th><th scope="col">Source</th><th scope="col">Query</th><th scope="col" class="num">Records</th><th scope="col" class="num">Last</th></tr>
            </thead>
            <tbody>
              {letters.reasons.map((reason) => (
                <tr key={`${reason.reason}/${reason.source}/${reason.query}`}>
                  <th scope="row">{reason.reason}</th>
                  <td>{reason.source}</td>
                  <td>{reason.query}</td>
                  <td class="num">{exact(reason.records)}</td>
                  <td class="num dim">{when(moment(reason.last), today)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Wide>
      )}
      {asked.error && <p class="note">{asked.error}</p>}
      {asked.value && asked.value.latest.length > 0 && (
        <div class="sub">
          <h3>Latest</h3>
          <ul class="list letters">
            {asked.value.latest.slice(0, 8).map((letter, at) => (
              <li key={`${letter.at}/${letter.place}/${at}`}>
                <span class="dim">{when(moment(letter.at), today)}</span> {letter.query}: {letter.reason} <span class="dim">· {letter.place}</span>
                {letter.value !== null && <pre>{letter.value}</pre>}
              </li>
            ))}
          </ul>
        </div>
      )}
      {some && asked.value?.note && <p class="note">{asked.value.note}</p>}
    </Panel>
  );
});
