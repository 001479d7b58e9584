// Pieces that several panes are made of: a table that may be wide, a slider that says what it means,
// a bar, and a way through what is too long to be shown at once.

import { html } from "./dom.js";
import { count, percent } from "./words.js";

export const Table = ({ name, heads, kind, children }) => html`
  <div class="scroll" tabindex="0" role="region" aria-label=${name}>
    <table class=${kind}>
      <thead><tr>${heads.map((head) => html`<th key=${head} scope="col">${head}</th>`)}</tr></thead>
      <tbody>${children}</tbody>
    </table>
  </div>`;

export const Slider = ({ label, says, set, ...bounds }) => html`
  <label>${label} <output>${says}</output>
    <input type="range" aria-valuetext=${says} onInput=${(event) => set(Number(event.target.value))} ...${bounds} />
  </label>`;

export const Bar = ({ share }) => html`
  <span class="bar"><span class="fill" style=${{ width: `${100 * share}%` }}></span></span>
  <span class="figure">${share ? percent(share) : "cut"}</span>`;

export const Pager = ({ noun, start, size, total, go }) => html`
  <p class="row">
    <button disabled=${start === 0} onClick=${() => go(start - size)}>Earlier</button>
    <span>${noun} ${count(start + 1)} to ${count(Math.min(total, start + size))} of ${count(total)}</span>
    <button disabled=${start + size >= total} onClick=${() => go(start + size)}>Later</button>
  </p>`;
