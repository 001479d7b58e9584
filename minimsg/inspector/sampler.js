// The bench of the sampler: the same logits, other settings, and what would have come.
// Reads `tokens` and `sampling` of a record; `ask(index)` gives 256 candidates instead of 8.

import { html, useEffect, useMemo, useState } from "./dom.js";
import { distribution, pick } from "./sampling.js";
import { Tokens } from "./tokens.js";
import { count, percent, quoted } from "./words.js";

export const title = "How each token was chosen";

const SHOWN = 16;
const KNOBS = [
  { name: "temperature", max: 2, step: 0.05, says: (value) => (value === 0 ? "0: always the likeliest" : value.toFixed(2)) },
  { name: "top_k", max: 256, step: 1, says: (value) => (value === 0 ? "off" : `the ${value} likeliest`) },
  { name: "top_p", max: 1, step: 0.01, says: (value) => (value === 1 ? "off" : `${value.toFixed(2)} of the mass`) },
];

export const render = (record, { ask } = {}) => html`<${Sampler} key=${record.id} record=${record} ask=${ask} />`;

function Sampler({ record, ask }) {
  const { tokens, sampling } = record;
  const [index, select] = useState(0);
  const [knobs, turn] = useState(sampling);
  const [number, setNumber] = useState(0.5);
  const choice = useChoice(record, index, ask, setNumber);
  const strip = useMemo(() => tokens.map((token) => ({ text: token.text, kind: "surprise", weight: surprise(token) })), [tokens]);
  if (!tokens.length) return html`<p class="empty">The reply has no tokens.</p>`;
  const outcome = distribution(choice, knobs);
  return html`
    <p>The darker a token, the less the model expected it. Choose one, then change how it is drawn.</p>
    <${Tokens} name="Tokens of the reply" tokens=${strip} selected=${index} onSelect=${select} />
    <${Knobs} ...${{ knobs, turn, number, setNumber, own: sampling }} />
    <${Needle} ...${{ outcome, number }} />
    <${Candidates} ...${{ outcome, chosen: tokens[index], picked: pick(outcome, number), isWhole: choice.rest !== null }} />
    <${Facts} ...${{ token: tokens[index], choice }} />`;
}

// What the token was chosen from: what the record has, and soon what the server has.
function useChoice(record, index, ask, setNumber) {
  const [asked, setAsked] = useState(null);
  useEffect(() => {
    let isOver = false;
    const take = (answer) => {
      if (isOver) return;
      setAsked({ index, ...answer });
      setNumber(answer.number);
    };
    ask?.(index).then(take, () => {});
    return () => { isOver = true; };
  }, [index]);
  const token = record.tokens[index];
  return asked?.index === index ? asked : { top: token?.top ?? [], rest: null };
}

// 0 for a token that was certain, 1 for one of less than one in a thousand.
const surprise = (token) => Math.min(1, -token.logprob / Math.log(1000));

function Knobs({ knobs, turn, number, setNumber, own }) {
  return html`
    <div class="knobs" role="group" aria-label="How it is drawn">
      ${KNOBS.map(({ name, max, step, says }) => html`
        <label key=${name}>${name} <output>${says(knobs[name])}</output>
          <input type="range" min="0" max=${max} step=${step} value=${knobs[name]}
            aria-valuetext=${says(knobs[name])}
            onInput=${(event) => turn({ ...knobs, [name]: Number(event.target.value) })} />
        </label>`)}
      <label>random number <output>${number.toFixed(3)}</output>
        <input type="range" min="0" max="0.999" step="0.001" value=${number}
          onInput=${(event) => setNumber(Number(event.target.value))} />
      </label>
      <button onClick=${() => turn(own)}>As it was</button>
    </div>`;
}

// All that can come, side by side, and where the random number falls.
function Needle({ outcome, number }) {
  let start = 0;
  const parts = [...outcome.rows.filter((row) => row.share > 0.001), { id: "rest", share: outcome.rest }];
  return html`
    <svg class="needle" viewBox="0 0 1000 60" role="img" preserveAspectRatio="none"
      aria-label="The random number picks from a bar that is cut by probability">
      ${parts.map((part, index) => {
        const x = 1000 * start;
        start += part.share;
        return html`<rect key=${part.id} class=${`slice slice-${index % 4}`} x=${x} y="12" width=${1000 * part.share} height="36" />`;
      })}
      <path class="pointer" d=${`M${1000 * number} 0V60`} />
    </svg>`;
}

function Candidates({ outcome, chosen, picked, isWhole }) {
  const rows = outcome.rows.slice(0, SHOWN);
  const hidden = outcome.rows.slice(SHOWN);
  const share = hidden.reduce((total, row) => total + row.share, outcome.rest);
  const others = isWhole ? html`<${Bar} share=${share} />` : html`<span class="quiet">not known</span>`;
  const isPickHidden = picked === null || picked >= SHOWN;
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label="Candidates">
    <table class="candidates">
      <thead><tr><th scope="col">token</th><th scope="col">the model says</th><th scope="col">drawn with</th><th scope="col"></th></tr></thead>
      <tbody>
        ${rows.map((row, index) => html`
          <tr key=${row.id} class=${row.isKept ? "" : "cut"}>
            <th scope="row">${quoted(row.text)}</th>
            <td>${percent(row.model)}</td>
            <td><${Bar} share=${row.share} /></td>
            <td>${[index === picked && "picked", row.id === chosen.id && "came"].filter(Boolean).join(", ")}</td>
          </tr>`)}
        <tr><th scope="row">all others</th><td></td><td>${others}</td><td>${isPickHidden ? "picked" : ""}</td></tr>
      </tbody>
    </table>
    </div>`;
}

export const Bar = ({ share }) => html`
  <span class="bar"><span class="fill" style=${{ width: `${100 * share}%` }}></span></span>
  <span class="figure">${share ? percent(share) : "cut"}</span>`;

function Facts({ token, choice }) {
  const notes = [`Entropy ${token.entropy.toFixed(2)} nats.`];
  if (token.allowed !== null && token.allowed < 1) {
    notes.push(`A grammar left ${percent(token.allowed)} of all tokens; the bench shows what the model wanted.`);
  }
  if (token.forced_by) notes.push(`It was forced by ${token.forced_by}.`);
  if (!choice.rest) notes.push(`Only the ${count(choice.top.length)} likeliest are known here.`);
  return html`<p class="quiet">${notes.join(" ")}</p>`;
}
