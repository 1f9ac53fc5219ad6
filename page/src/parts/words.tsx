// Findings, guarantees and plans of the pipeline, in words.
import type { JSX } from "preact";
import { moment, plural, when } from "../format";
import { steady } from "../hooks";
import type { Alert, Finding, Guarantee, Level, Plan } from "../wire";
import { SIGNS, alertText } from "../words";
import { Empty, Panel } from "./panel";
import { CLASSES } from "./sign";
import { Term } from "./term";

const GRAVITY: Record<string, Level> = { error: "bad", warning: "warn", info: "off" };
const KEPT: Record<string, Level> = { "exactly-once": "ok", "effectively-once": "ok", "at-least-once": "warn", "at-most-once": "bad" };

export const FindingsPanel = steady(function FindingsPanel({ findings }: { findings: Finding[] }): JSX.Element | null {
  if (findings.length === 0) return null;
  return (
    <Panel id="findings" title={<Term of="finding">Findings</Term>} aside={<span class="dim">{plural(findings.length, "finding")}</span>}>
      <ul class="list">
        {findings.map((finding, at) => {
          const level = GRAVITY[finding.severity] ?? "off";
          return (
            <li key={`${finding.code}/${at}`}>
              <span class={CLASSES[level]}><span aria-hidden="true">{SIGNS[level]}</span> {finding.severity} {finding.code}</span> {finding.message}
              <div class="dim">{[finding.file && `${finding.file}${finding.line ? `:${finding.line}` : ""}`, finding.why].filter(Boolean).join(" · ")}</div>
              {finding.fix && <div><span class="dim">fix: </span>{finding.fix}</div>}
            </li>
          );
        })}
      </ul>
    </Panel>
  );
});

export const GuaranteesPanel = steady(function GuaranteesPanel({ guarantees, query }: { guarantees: Guarantee[]; query: string }): JSX.Element {
  const own = guarantees.filter((guarantee) => guarantee.query === query);
  return (
    <Panel id="guarantees" title={<Term of="guarantee">Guarantee</Term>} aside={<span class="dim">{query}</span>}>
      {own.length === 0 && <Empty>No guarantees are available yet.</Empty>}
      <ul class="list">
        {own.map((guarantee) => {
          const level = KEPT[guarantee.guarantee] ?? "off";
          return (
            <li key={guarantee.sink}>
              <details open={own.length === 1}>
                <summary>
                  <b class={CLASSES[level]}><span aria-hidden="true">{SIGNS[level]}</span> {guarantee.guarantee}</b> <span class="dim">into</span> {guarantee.sink}
                </summary>
                <ul class="reasons">
                  {guarantee.reasons.map((reason) => <li key={reason}>{reason}</li>)}
                  {guarantee.conditions.map((condition) => <li key={condition}>provided that: {condition}</li>)}
                </ul>
              </details>
            </li>
          );
        })}
      </ul>
    </Panel>
  );
});

export const PlanPanel = steady(function PlanPanel({ plans, query }: { plans: Plan[]; query: string }): JSX.Element {
  const plan = plans.find((one) => one.query === query);
  const operators = plan?.operators ?? [];
  return (
    <Panel id="plan" title={<Term of="plan">Plan</Term>} aside={<span class="dim">{query}</span>}>
      {!plan || plan.steps.length === 0 ? (
        <Empty>No plan is available yet.</Empty>
      ) : (
        <>
          {operators.length > 0 && (
            <ol class="operators">
              {operators.map((operator, at) => (
                <li key={at} class={operator.state ? "stateful" : ""} title={operator.text}>
                  {operator.name}{operator.times > 1 && <span class="dim"> ×{operator.times}</span>}
                </li>
              ))}
            </ol>
          )}
          <details class="in-words" open>
            <summary>In sentences</summary>
            <ol class="steps">
              {plan.steps.map((step, at) => <li key={at}>{step}</li>)}
            </ol>
          </details>
        </>
      )}
    </Panel>
  );
});

/** Alerts that the headline does not tell already, and the names of those that are quiet. */
export function AlertsPanel({ alerts, except, now }: { alerts: Alert[]; except: string | null; now: number }): JSX.Element | null {
  if (alerts.length === 0) return null;
  const firing = alerts.filter((alert) => alert.firing);
  const names = [...new Set(firing.map((alert) => alert.name))];
  const quiet = alerts.filter((alert) => !alert.firing && !names.includes(alert.name));
  return (
    <section class="alerts" aria-label="Alerts">
      {names.filter((name) => name !== except).map((name) => {
        const own = firing.filter((alert) => alert.name === name);
        return (
          <p key={name} class="alert warn">
            <span aria-hidden="true">▲</span> <b>{name}</b> <span>{alertText(own)}</span>
            <span class="dim"> since {when(Math.min(...own.map((alert) => moment(alert.since) ?? now)), now)}</span>
          </p>
        );
      })}
      {quiet.length > 0 && (
        <p class="alert dim">
          <Term of="alert">Alerts</Term>, quiet: {[...new Set(quiet.map((alert) => alert.name))].join(" · ")}
        </p>
      )}
    </section>
  );
}
