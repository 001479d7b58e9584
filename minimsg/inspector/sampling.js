// From log probabilities to the next token, as engine/draw.py does it: temperature, then top-k,
// then top-p, then one random number. tests/inspector/test_sampling.py holds the two together.
//
// `choice` is {top: [[id, text, logprob]], rest: [[count, logprob]]}: the likeliest, best first,
// equal ones by id; all others as groups of about the same log probability, or null: not known.

const MIN_TEMPERATURE = 1e-30;

// What becomes of each candidate: {rows: [{id, text, model, share, isKept}], rest}.
// `model` is the model's own probability, `share` the one that is drawn with; they are of all ids.
export function distribution(choice, { temperature, top_k, top_p }) {
  const { weights, rest } = weigh(choice, temperature);
  const isLimited = top_k > 0 && top_k <= weights.length;
  const kept = isLimited ? weights.map((weight, index) => (index < top_k ? weight : 0)) : weights;
  const mass = sum(kept) + (isLimited ? 0 : rest);
  const numKept = temperature === 0 ? 1 : nucleus(kept, mass, top_p);
  const inside = sum(kept.slice(0, numKept));
  const isOpen = numKept === weights.length && !isLimited && temperature > 0; // it may go on in the rest
  const outside = isOpen ? Math.max(0, Math.min(rest, top_p * mass - inside)) : 0;
  const total = inside + outside;
  const rows = choice.top.map(([id, text, logprob], index) => ({
    id, text, model: Math.exp(logprob), isKept: index < numKept,
    share: index < numKept ? kept[index] / total : 0,
  }));
  return { rows, rest: outside / total };
}

// The place in `rows` of what a random number in [0, 1) picks; null: it is one of the rest.
export function pick({ rows, rest }, number) {
  let end = 0;
  for (const [index, row] of rows.entries()) {
    end += row.share;
    if (number < end) return index;
  }
  const kept = rows.filter((row) => row.isKept).length;
  return rest > 0 ? null : kept - 1;
}

// The weights of the candidates and of all others together, where the best one weighs 1.
function weigh({ top, rest }, temperature) {
  const best = top[0][2];
  const heat = Math.max(temperature, MIN_TEMPERATURE);
  const weight = (logprob) => Math.exp((logprob - best) / heat);
  return {
    weights: top.map(([, , logprob]) => weight(logprob)),
    rest: (rest ?? []).reduce((total, [count, logprob]) => total + count * weight(logprob), 0),
  };
}

// How many of the weights, best first, it takes to have `topP` of the mass; one at least.
function nucleus(weights, mass, topP) {
  let before = 0;
  for (const [index, weight] of weights.entries()) {
    if (index > 0 && (weight === 0 || before >= topP * mass)) return index;
    before += weight;
  }
  return weights.length;
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
