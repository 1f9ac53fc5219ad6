// Where the nodes of the graph stand: columns by the longest way from a source, rows by the mean of the neighbours.

export interface Box {
  id: string;
  x: number;
  y: number;
  width: number;
}

export interface Placed {
  boxes: Map<string, Box>;
  width: number;
  height: number;
  /** Edges lead down, not to the right: the columns have become rows. */
  upright: boolean;
}

export interface Shape {
  height: number;
  gap: number;
  /** Least room between two columns, and between two rows of a graph that stands upright. */
  between: number;
  below: number;
  /** Least width of a node. */
  least: number;
}

type Edge = { from: string; to: string };

// Four sweeps there and back settle graphs of the size a pipeline has; more change nothing.
const SWEEPS = 4;

/**
 * Place nodes of a graph without cycles into a room; an edge that closes a cycle is ignored. `last` are in the last
 * column. Nodes are as wide as `preferred` says where there is room. Columns reach from edge to edge; where they do not fit,
 * they become rows.
 */
export function place(preferred: Map<string, number>, edges: Edge[], last: Set<string>, room: [number, number], shape: Shape): Placed {
  const columns = split([...preferred.keys()], edges, last);
  order(columns, edges);
  const [wide, tall] = room;
  if (columns.length * shape.least + (columns.length - 1) * shape.between > wide) return stack(columns, wide, shape);
  const wishes = columns.map((column) => Math.max(shape.least, ...column.map((id) => preferred.get(id) ?? 0)));
  const free = wide - (columns.length - 1) * shape.between;
  // What is too wide gives way in proportion to what it has above the least.
  const over = Math.max(0, wishes.reduce((sum, one) => sum + one, 0) - free);
  const spare = wishes.reduce((sum, one) => sum + one - shape.least, 0);
  const widths = wishes.map((one) => one - (spare > 0 ? (over * (one - shape.least)) / spare : 0));
  const between = columns.length < 2 ? 0 : (wide - widths.reduce((sum, one) => sum + one, 0)) / (columns.length - 1);
  const most = Math.max(1, ...columns.map((column) => column.length));
  const height = Math.max(most * (shape.height + shape.gap) - shape.gap, Math.min(tall, most * (shape.height + 56)));
  const boxes = new Map<string, Box>();
  let x = 0;
  columns.forEach((column, at) => {
    const width = widths[at] ?? shape.least;
    const step = height / column.length;
    column.forEach((id, row) => boxes.set(id, { id, x, y: step * (row + 0.5) - shape.height / 2, width }));
    x += width + between;
  });
  return { boxes, width: wide, height, upright: false };
}

/** Columns as rows, one below the other; two nodes beside each other where a row has several. */
function stack(columns: string[][], wide: number, shape: Shape): Placed {
  const boxes = new Map<string, Box>();
  let y = 0;
  for (const column of columns) {
    const abreast = column.length > 1 ? 2 : 1;
    const width = Math.min(abreast === 1 ? 220 : wide, (wide - (abreast - 1) * shape.gap) / abreast);
    column.forEach((id, at) => {
      const alone = at === column.length - 1 && column.length % 2 === 1;
      const x = alone ? (wide - width) / 2 : (at % 2) * (width + shape.gap);
      boxes.set(id, { id, x, y: y + Math.floor(at / 2) * (shape.height + shape.gap), width });
    });
    y += Math.ceil(column.length / abreast) * (shape.height + shape.gap) - shape.gap + shape.below;
  }
  return { boxes, width: wide, height: y - shape.below, upright: true };
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
