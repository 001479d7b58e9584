// Numbers and tokens as people read them.

const NAMES = { " ": "space", "\n": "line break", "\t": "tab", "": "nothing" };

export const count = (number) => number.toLocaleString("en");

export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

export function percent(share) {
  if (share === 0) return "0%";
  if (share < 0.001) return "< 0.1%";
  return `${(100 * share).toFixed(share < 0.1 || share > 0.995 ? 1 : 0)}%`;
}

// An error as a share of what it is an error of.
export function share(error) {
  if (error === null) return "no number";
  return error === 0 ? "0" : error.toExponential(1);
}

export function seconds(value) {
  if (value < 1e-3) return `${(1e6 * value).toFixed(0)} µs`;
  return value < 1 ? `${(1e3 * value).toFixed(value < 0.01 ? 1 : 0)} ms` : `${value.toFixed(2)} s`;
}

// A token's text with what cannot be seen made visible; it still breaks the line.
export function visible(text) {
  return text
    .replace(/[\0-\x08\x0b-\x1f\x7f]/g, (control) => String.fromCharCode(0x2400 + (control.charCodeAt(0) & 63)))
    .replace(/\t/g, "⇥\t")
    .replace(/\n/g, "↵\n")
    .replace(/^ $/, "␣");
}

// What a token is called where its text alone would say nothing.
export const nameOf = (text) => NAMES[text] ?? (text.trim() ? null : "white space");

// Text in quotes, on one line.
export const quoted = (text) => `“${visible(text).replace(/\n/g, "")}”`;
