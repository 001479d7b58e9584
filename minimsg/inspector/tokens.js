// A row of tokens to walk through: one stop for the Tab key, then arrows, Home, End, PageUp and
// PageDown. A long one is shown a window at a time.

import { html, useEffect, useRef } from "./dom.js";
import { Pager } from "./pieces.js";
import { nameOf, visible } from "./words.js";

const WINDOW = 1500;
const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -10, ArrowDown: 10, PageUp: -100, PageDown: 100 };

let numStrips = 0;

// tokens: [{text, kind, weight, title}]; `selected` is an index; `onSelect(index)`, `onHover(index)`.
export function Tokens({ name, tokens, selected, onSelect, onHover }) {
  const prefix = useRef(null);
  prefix.current ??= `tokens-${numStrips++}`;
  const list = useRef(null);
  const start = WINDOW * Math.floor(selected / WINDOW);
  useEffect(() => {
    list.current.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  const row = { start, prefix: prefix.current, selected, onSelect, onHover };
  return html`
    <div class="tokens" role="listbox" tabindex="0" ref=${list} aria-label=${name}
      aria-activedescendant=${`${prefix.current}-${selected}`}
      onKeyDown=${(event) => walk(event, selected, tokens.length, onSelect)}
      onMouseLeave=${() => onHover?.(null)}>
      ${tokens.slice(start, start + WINDOW).map((token, place) => Token(token, start + place, row))}
    </div>
    ${tokens.length > WINDOW && html`
      <${Pager} noun="tokens" start=${start} size=${WINDOW} total=${tokens.length} go=${onSelect} />`}`;
}

function Token(token, index, { prefix, selected, onSelect, onHover }) {
  const isPlain = token.weight === undefined;
  return html`
    <span role="option" id=${`${prefix}-${index}`} key=${index} aria-selected=${String(index === selected)}
      aria-label=${nameOf(token.text)} class=${`token ${token.kind ?? ""}`}
      style=${isPlain ? undefined : { "--weight": token.weight.toFixed(3) }}
      onClick=${() => onSelect(index)} onMouseEnter=${() => onHover?.(index)}
      >${visible(token.text)}</span>`;
}

function walk(event, selected, length, onSelect) {
  const ends = { Home: 0, End: length - 1 };
  const step = STEPS[event.key];
  if (step === undefined && !(event.key in ends)) return;
  event.preventDefault();
  onSelect(Math.max(0, Math.min(length - 1, step === undefined ? ends[event.key] : selected + step)));
}
