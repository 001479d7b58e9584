// The bench of the sampler: the same logits, other settings, and what would have come.
// Reads `tokens` and `sampling` of a record; `ask(index)` gives 256 candidates instead of 8.

import { html, useEffect, useMemo, useState } from "./dom.js";
import { Bar, Slider, Table } from "./pieces.js";
import { distribution, pick } from "./sampling.js";
import { Tokens } from "./tokens.js";
import { count, percent, quoted } from "./words.js";

export const title = "How each token was chosen";

const SHOWN = 16;
const KNOBS = [
  { name: "temperature", max: 2, step: 0.05, says: (value) => (value ? value.toFixed(2) : "0: always the likeliest") },
  { name: "top_k", max: 256, step: 1, says: (value) => (value ? `the ${value} likeliest` : "off") },
  { name: "top_p", max: 1, step: 0.01, says: (value) => (value < 1 ? `${value.toFixed(2)} of the mass` : "off") },
];

export const render = (record, { ask } = {}) => html`<${Sampler} key=${record.id} record=${record} ask=${ask} />`;

function Sampler({ record, ask }) {
  const { tokens, sampling } = record;
  const [index, select] = useState(0);
  const [knobs, turn] = useState(sampling);
  const [number, setNumber] = useState(0.5);
  const choice = useChoice(record, index, ask, setNumber);
  const strip = useMemo(() => tokens.map(surprise), [tokens]);
  if (!tokens.length) return html`<p class="empty">The reply has no tokens.</p>`;
  const outcome = distribution(choice, knobs);
  const picked = pick(outcome, number);
  return html`
    <p>The stronger its colour, the less the model expected a token. Choose one, then change how it is drawn.</p>
    <${Tokens} name="Tokens of the reply" tokens=${strip} selected=${index} onSelect=${select} />
    <${Knobs} ...${{ knobs, turn, number, setNumber, own: sampling }} />
    <${Needle} ...${{ outcome, number }} />
    <${Candidates} ...${{ outcome, chosen: tokens[index], picked, isWhole: choice.rest !== null }} />
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

// Not dark for a token that was certain, darkest for one of less than one in a thousand.
const surprise = ({ text, logprob }) => ({ text, kind: "surprise", weight: Math.min(1, -logprob / Math.log(1000)) });

function Knobs({ knobs, turn, number, setNumber, own }) {
  return html`
    <div class="knobs" role="group" aria-label="How it is drawn">
      ${KNOBS.map(({ name, max, step, says }) => html`
        <${Slider} key=${name} label=${name} says=${says(knobs[name])} min="0" max=${max} step=${step}
          value=${knobs[name]} set=${(value) => turn({ ...knobs, [name]: value })} />`)}
      <${Slider} label="random number" says=${number.toFixed(3)} min="0" max="0.999" step="0.001"
        value=${number} set=${setNumber} />
      <button onClick=${() => turn(own)}>As it was</button>
    </div>`;
}

// All that can come, side by side, and where the random number falls.
function Needle({ outcome, number }) {
  let start = 0;
  const wide = outcome.rows.filter((row) => row.share > 0.001);
  const parts = [...wide, { id: "rest", share: wide.reduce((left, row) => Math.max(0, left - row.share), 1) }];
  return html`
    <svg class="needle" viewBox="0 0 1000 60" role="img" preserveAspectRatio="none"
      aria-label="The random number picks from a bar that is cut by probability">
      ${parts.map((part, index) => {
        const x = 1000 * start;
        start += part.share;
        const width = 1000 * part.share;
        return html`<rect key=${part.id} class=${`slice-${index % 4}`} x=${x} y="12" width=${width} height="36" />`;
      })}
      <path class="pointer" d=${`M${1000 * number} 0V60`} />
    </svg>`;
}

function Candidates({ outcome, chosen, picked, isWhole }) {
  const isShown = (row, place) => place < SHOWN || place === picked || row.id === chosen.id;
  const hidden = outcome.rows.filter((row, place) => !isShown(row, place));
  const share = hidden.reduce((total, row) => total + row.share, outcome.rest);
  return html`
    <${Table} name="Candidates" kind="candidates" heads=${["token", "the model says", "drawn with", "outcome"]}>
      ${outcome.rows.map((row, place) => isShown(row, place) && html`
        <tr key=${row.id} class=${row.isKept ? "" : "cut"}>
          <th scope="row">${quoted(row.text)}</th>
          <td>${percent(row.model)}</td>
          <td><${Bar} share=${row.share} /></td>
          <td>${[place === picked && "picked", row.id === chosen.id && "came"].filter(Boolean).join(", ")}</td>
        </tr>`)}
      <tr>
        <th scope="row">all others</th><td></td>
        <td>${isWhole ? html`<${Bar} share=${share} />` : html`<span class="quiet">not known</span>`}</td>
        <td>${picked === null ? "picked" : ""}</td>
      </tr>
    <//>`;
}

function Facts({ token, choice }) {
  const notes = [`Entropy ${token.entropy.toFixed(2)} nats.`];
  if (token.allowed !== null && token.allowed < 1) {
    notes.push(`A grammar left ${percent(token.allowed)} of all tokens; the bench shows what the model wanted.`);
  }
  if (token.forced_by) notes.push(`It was forced by ${token.forced_by}.`);
  if (!choice.rest) notes.push(`Only the ${count(choice.top.length)} likeliest are known here.`);
  return html`<p class="quiet">${notes.join(" ")}</p>`;
}
