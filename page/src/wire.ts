// The shapes of what the server tells: docs/reference/page-api.md.

export type Level = "ok" | "start" | "warn" | "bad" | "off";
export type Kind = "source" | "view" | "query" | "sink";
export type Maybe<T> = T | null;

export interface Run {
  id: string;
  pipeline: string;
  started: string;
  ended: Maybe<string>;
  exit_code: Maybe<number>;
  live: boolean;
  millstream: string;
}

export interface Worst {
  query: string;
  state: string;
  level: Level;
  since: Maybe<string>;
  why: string;
}

/** The sentence at the top, which the server composes. */
export interface Headline {
  level: Level;
  word: string;
  text: string;
  detail: string;
  also: string;
  since: Maybe<string>;
  alert: Maybe<string>;
}

export interface Part {
  kind: "source" | "plan" | "sink" | "work" | "commit" | "other" | "state";
  name: string;
  seconds: number;
}

export interface Running {
  batch: number;
  seconds: number;
  sinks: string[];
  written: string[];
}

export interface Node {
  id: string;
  kind: Kind;
  name: string;
  label: string;
  state: Maybe<string>;
  level: Level;
  rate: Maybe<number>;
  /** Records per second that arrive in the topics of a source, whether they are read or not. */
  arrival_rate: Maybe<number>;
  busy: Maybe<number>;
  queries: string[];
  messages: boolean;
  rows: boolean;
}

export interface Edge {
  from: string;
  to: string;
  rate: Maybe<number>;
}

export interface Failure {
  cause: string;
  reason: string;
  fix: string;
  batch: Maybe<number>;
  reads: string[];
  record: string[];
  place: Maybe<{ topic: string; partition: number; offset: number }>;
  value: Maybe<string>;
}

export interface Query {
  name: string;
  state: string;
  level: Level;
  since: Maybe<string>;
  why: string;
  trigger: string;
  trigger_seconds: Maybe<number>;
  batch: Maybe<number>;
  last_batch_at: Maybe<string>;
  rows_in: number;
  rows_out: Maybe<number>;
  input_rate: Maybe<number>;
  processed_rate: Maybe<number>;
  output_rate: Maybe<number>;
  batch_seconds: Maybe<number>;
  busy: Maybe<number>;
  watermark: Maybe<string>;
  newest: Maybe<string>;
  watermark_lag_seconds: Maybe<number>;
  state_rows: Maybe<number>;
  state_bytes: Maybe<number>;
  late_rows: number;
  malformed: number;
  dead_letters: number;
  broken: number;
  rows_removed: number;
  restarts: number;
  behind: Maybe<number>;
  behind_at: Maybe<string>;
  arrival_rate: Maybe<number>;
  /** An estimate, which is null unless the lag shrinks and its figures are current. */
  caught_up_in_seconds: Maybe<number>;
  running: Maybe<Running>;
  parts: Part[];
  rates: Maybe<number>[];
  failure: Maybe<Failure>;
}

export interface Lag {
  query: string;
  source: string;
  topic: string;
  partitions: number;
  latest_at: string;
  behind: Maybe<number>;
  growing_since: Maybe<string>;
  history: Maybe<number>[];
  arrival_rate: Maybe<number>;
  read_rate: Maybe<number>;
}

/** What `/api/partitions` tells: those with the largest lag first. */
export interface PartitionLag {
  source: string;
  topic: string;
  partition: number;
  offset: Maybe<number>;
  latest: number;
  behind: Maybe<number>;
}

export interface Reason {
  reason: string;
  source: Maybe<string>;
  query: string;
  records: number;
  last: Maybe<string>;
}

export interface SetAside {
  query: string;
  sink: string;
  batches: number;
  reason: string;
  since: Maybe<string>;
}

export interface Letters {
  records: number;
  reasons: Reason[];
  set_aside: SetAside[];
}

export interface Letter {
  at: Maybe<string>;
  query: string;
  source: Maybe<string>;
  batch: Maybe<number>;
  reason: string;
  place: string;
  value: Maybe<string>;
  /** The name of the record for `millstream deadletter show`. */
  show: Maybe<string>;
}

export interface LettersAnswer extends Letters {
  latest: Letter[];
  /** Records in the store, of all runs. */
  stored: Maybe<number>;
  note: string;
}

/** One part of an operator's state, as of a batch: keys by partition, and some of them. */
export interface StateStore {
  operator: number;
  state: string;
  batch: number;
  partitions: number[];
  /** Of all partitions together, over the last batches. */
  growth: number;
  batches: number;
  columns: string[];
  rows: (string | number | boolean | null)[][];
}

export interface StateAnswer {
  query: string;
  stores: StateStore[];
  note: string;
}

export interface Entry {
  id: string;
  at: string;
  event: string;
  query: Maybe<string>;
  level: Level;
  text: string;
}

export interface Point {
  time: number;
  batch: Maybe<number>;
  input_rate: Maybe<number>;
  processed_rate: Maybe<number>;
  phases: Record<string, Maybe<number>>;
  newest: Maybe<number>;
  watermark: Maybe<number>;
  state_rows: Maybe<number>;
  state_bytes: Maybe<number>;
}

export interface EntryEvent extends Entry {
  point: Maybe<Point>;
}

export interface Finding {
  code: string;
  name: string;
  severity: string;
  message: string;
  file: Maybe<string>;
  line: Maybe<number>;
  column: Maybe<number>;
  why: Maybe<string>;
  fix: Maybe<string>;
  query: Maybe<string>;
}

export interface Guarantee {
  query: string;
  sink: string;
  guarantee: string;
  reasons: string[];
  conditions: string[];
  planned: boolean;
}

export interface Plan {
  query: string;
  steps: string[];
  operators?: { name: string; text: string; times: number; state: boolean }[];
}

export interface Alert {
  name: string;
  query: Maybe<string>;
  firing: boolean;
  since: Maybe<string>;
  value: Maybe<number>;
  text: string;
}

/** What changes: the `state` events. */
export interface Live {
  at: string;
  id: Maybe<string>;
  run: Run;
  state: string;
  level: Level;
  worst: Maybe<Worst>;
  headline: Headline;
  freshness_seconds: Maybe<number>;
  rows_in: number;
  input_rate: Maybe<number>;
  behind: Maybe<number>;
  behind_at: Maybe<string>;
  caught_up_in_seconds: Maybe<number>;
  busy: Maybe<number>;
  history: { input_rate: Maybe<number>[]; behind: Maybe<number>[]; freshness: Maybe<number>[]; busy: Maybe<number>[] };
  graph: { nodes: Node[]; edges: Edge[] };
  queries: Query[];
  lag: Lag[];
  letters: Letters;
  alerts: Alert[];
  /** What may be asked of the run: `stop`, `restart`, `resend`. */
  actions: string[];
  open_files: { process: string; open: number; max: number }[];
}

/** `/api/state`. */
export interface State extends Live {
  version: number;
  log: Entry[];
  findings: Finding[];
  guarantees: Guarantee[];
  plans: Plan[];
}

export interface Series {
  query: string;
  id: Maybe<string>;
  trigger_seconds: Maybe<number>;
  /** Runs in this history: seconds since 1970; `to` is null while one goes on. */
  runs: { id: string; from: number; to: Maybe<number> }[];
  time: number[];
  batch: Maybe<number>[];
  input_rate: Maybe<number>[];
  processed_rate: Maybe<number>[];
  phases: Record<string, Maybe<number>[]>;
  newest: Maybe<number>[];
  watermark: Maybe<number>[];
  state_rows: Maybe<number>[];
  state_bytes: Maybe<number>[];
}

export interface Rows {
  sink: string;
  at: Maybe<string>;
  columns: { name: string; type: string }[];
  rows: unknown[][];
  /** The sink may have more rows than these. */
  truncated: boolean;
  note: string;
  time_column: Maybe<string>;
  value_columns: string[];
}

export interface Message {
  topic: string;
  partition: number;
  offset: number;
  timestamp: Maybe<string>;
  key: Maybe<string>;
  value: Maybe<string>;
  cut: boolean;
}

export interface Messages {
  source: string;
  at: Maybe<string>;
  messages: Message[];
  note: string;
}
