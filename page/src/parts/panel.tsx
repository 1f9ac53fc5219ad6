// A part of the page: a heading that keys lead to, and a body; and a table that scrolls by itself on a small screen.
import type { ComponentChildren, JSX } from "preact";

interface Props {
  id: string;
  title: ComponentChildren;
  aside?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}

export function Panel({ id, title, aside, children, class: more }: Props): JSX.Element {
  return (
    <section class={`panel ${more ?? ""}`} aria-labelledby={`${id}-title`} id={id}>
      <header class="panel-head">
        <h2 id={`${id}-title`} tabIndex={-1}>
          {title}
        </h2>
        {aside && <div class="panel-aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}

/** Wide things scroll here, and the page does not. */
export function Wide({ name, children, class: more }: { name: string; children: ComponentChildren; class?: string }): JSX.Element {
  return (
    <div class={`wide ${more ?? ""}`} role="region" aria-label={name} tabIndex={0}>
      {children}
    </div>
  );
}

/** What stands where there is nothing to show yet. */
export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="empty">{children}</p>;
}
