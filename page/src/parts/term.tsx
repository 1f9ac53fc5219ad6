// A term with its explanation: on hover, on focus, and read out as its description.
import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { TERMS, type TermName } from "../terms";

const GAP = 6;

export function Term({ of, children }: { of: TermName; children: ComponentChildren }): JSX.Element {
  const [open, setOpen] = useState(false);
  const word = useRef<HTMLButtonElement>(null);
  const tip = useRef<HTMLSpanElement>(null);
  const id = useId();
  // Before the paint: who sees the explanation can close it.
  useLayoutEffect(() => {
    if (!open) return;
    const close = (): void => setOpen(false);
    const place = (): void => {
      if (!word.current || !tip.current) return;
      const at = word.current.getBoundingClientRect();
      const size = tip.current.getBoundingClientRect();
      const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - size.width - 8));
      const below = at.bottom + GAP + size.height < window.innerHeight;
      tip.current.style.left = `${left}px`;
      tip.current.style.top = `${below ? at.bottom + GAP : at.top - GAP - size.height}px`;
    };
    const key = (event: KeyboardEvent): void => {
      if (event.key === "Escape") close();
    };
    place();
    // A term that gets the focus off screen is scrolled to: its explanation follows it.
    window.addEventListener("scroll", place, { passive: true, capture: true });
    window.addEventListener("keydown", key);
    return () => {
      window.removeEventListener("scroll", place, { capture: true });
      window.removeEventListener("keydown", key);
    };
  }, [open]);
  return (
    <span class="term-holder">
      <button
        ref={word}
        type="button"
        class="term"
        aria-describedby={id}
        onMouseEnter={() => setOpen(true)}
        onMouseLeave={() => setOpen(false)}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
      >
        {children}
      </button>
      <span ref={tip} id={id} role="tooltip" class={open ? "tip open" : "tip"}>
        {TERMS[of]}
      </span>
    </span>
  );
}
