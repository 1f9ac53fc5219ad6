// Where the nodes of the graph stand: columns by the longest way from a source, rows by the mean of the neighbours.

export interface Box {
  id: string;
  x: number;
  y: number;
}

export interface Placed {
  boxes: Map<string, Box>;
  width: number;
  height: number;
}

export interface Shape {
  width: number;
  height: number;
  gap: number;
  /** Least and greatest room between two columns, in pixels. */
  between: [number, number];
}

type Edge = { from: string; to: string };

// Four sweeps there and back settle graphs of the size a pipeline has; more change nothing.
const SWEEPS = 4;

/** Place nodes of a graph without cycles; an edge that closes a cycle is ignored. `last` stand in the last column. */
export function place(ids: string[], edges: Edge[], last: Set<string>, room: number, shape: Shape): Placed {
  const columns = split(ids, edges, last);
  order(columns, edges);
  const most = Math.max(1, ...columns.map((column) => column.length));
  const height = most * (shape.height + shape.gap) - shape.gap;
  const free = columns.length < 2 ? 0 : (room - columns.length * shape.width) / (columns.length - 1);
  const between = Math.max(shape.between[0], Math.min(shape.between[1], free));
  const boxes = new Map<string, Box>();
  columns.forEach((column, at) => {
    const tall = column.length * (shape.height + shape.gap) - shape.gap;
    // Columns that are shorter stand in the middle, their nodes a little further apart.
    const spare = (height - tall) / (column.length + 1);
    column.forEach((id, row) => {
      boxes.set(id, {
        id,
        x: at * (shape.width + between),
        y: spare * (row + 1) + row * (shape.height + shape.gap),
      });
    });
  });
  return { boxes, width: columns.length * (shape.width + between) - between, height };
}

function split(ids: string[], edges: Edge[], last: Set<string>): string[][] {
  const depth = new Map(ids.map((id) => [id, 0]));
  for (let round = 0; round < ids.length; round++) {
    let moved = false;
    for (const { from, to } of edges) {
      const next = (depth.get(from) ?? 0) + 1;
      if (depth.has(from) && depth.has(to) && next > (depth.get(to) ?? 0) && next < ids.length) {
        depth.set(to, next);
        moved = true;
      }
    }
    if (!moved) break;
  }
  const deepest = Math.max(0, ...depth.values());
  const columns: string[][] = Array.from({ length: deepest + 1 }, () => []);
  for (const id of ids) columns[last.has(id) ? deepest : (depth.get(id) ?? 0)]?.push(id);
  return columns.filter((column) => column.length > 0);
}

function order(columns: string[][], edges: Edge[]): void {
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const forward = sweep % 2 === 0;
    const rows = new Map<string, number>();
    columns.forEach((column) => column.forEach((id, row) => rows.set(id, (row + 0.5) / column.length)));
    for (const column of forward ? columns : [...columns].reverse()) {
      const wish = new Map(
        column.map((id) => {
          const near = edges
            .filter((edge) => (forward ? edge.to : edge.from) === id)
            .map((edge) => rows.get(forward ? edge.from : edge.to) ?? 0);
          return [id, near.length ? near.reduce((a, b) => a + b, 0) / near.length : (rows.get(id) ?? 0)];
        }),
      );
      column.sort((a, b) => (wish.get(a) ?? 0) - (wish.get(b) ?? 0));
      column.forEach((id, row) => rows.set(id, (row + 0.5) / column.length));
    }
  }
}
