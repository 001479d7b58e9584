// How far the kernel that runs was from the reference, layer by layer: of the steps in which both
// attended. Errors are shares of the largest value of their layer; null: no finite number came.

import { html } from "./dom.js";
import { Table } from "./pieces.js";
import { plural, share } from "./words.js";

// `checks`: {num_steps, latest, worst}, as inspector/state.py makes it; null where nothing was checked.
export function Checked({ checks }) {
  if (!checks) return null;
  const { latest, worst } = checks;
  return html`
    <section class="checked">
      <h3>Beside the reference kernel</h3>
      <p>${sentence(checks)} <span class="quiet">Rounding alone is below 1e-5 in float32, 3e-2 in bfloat16.</span></p>
      <details><summary>Layer by layer</summary>
        <${Table} name="Largest error by layer" heads=${["layer", "last", "worst"]}>
          ${latest.map((error, layer) => html`
            <tr key=${layer}><th scope="row">${layer}</th><td>${share(error)}</td><td>${share(worst[layer])}</td></tr>`)}
        <//>
      </details>
    </section>`;
}

// Of the steps of a record, those that were checked, as one.
export function checksOf(steps) {
  const errors = steps.map((step) => step.layer_errors).filter((each) => each !== null);
  if (!errors.length) return null;
  const worst = errors[0].map((_, layer) => largest(errors.map((each) => each[layer])));
  return { num_steps: errors.length, latest: errors.at(-1), worst };
}

export function sentence({ num_steps: number, latest, worst }) {
  return `${plural(number, "step")} checked: largest error ${farthest(latest)} in the last of them, ` +
    `${farthest(worst)} in all.`;
}

function farthest(errors) {
  const error = largest(errors);
  return error === 0 ? "0" : `${share(error)} (layer ${errors.indexOf(error)})`;
}

// No number is further off than any.
const largest = (errors) => (errors.includes(null) ? null : Math.max(...errors));
