// Keys of the page. Not while somebody types or chooses, and not together with Ctrl, Alt or Meta.
import { PLACES } from "./parts/help";

export interface Actions {
  help: () => void;
  theme: () => void;
  span: () => void;
  /** Choose a query by its row, from 0. */
  row: (row: number) => void;
  /** One down, or one up. */
  step: (by: number) => void;
}

export function listenKeys(actions: () => Actions): () => void {
  const pressed = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector("dialog[open]")) return;
    const place = PLACES.find(([key]) => key === event.key);
    if (place) go(place[1]);
    else if (event.key === "?") actions().help();
    else if (event.key === "t") actions().theme();
    else if (event.key === "w") actions().span();
    else if (event.key === "j") actions().step(1);
    else if (event.key === "k") actions().step(-1);
    else if (/^[1-9]$/.test(event.key)) actions().row(Number(event.key) - 1);
    else return;
    event.preventDefault();
  };
  window.addEventListener("keydown", pressed);
  return () => window.removeEventListener("keydown", pressed);
}

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
}

function go(id: string): void {
  document.getElementById(id)?.scrollIntoView({ block: "start" });
  document.getElementById(`${id}-title`)?.focus({ preventScroll: true });
}
