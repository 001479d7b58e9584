// preact and htm as one: `html` makes nodes from a template. What stands in ${} becomes text or
// an attribute, never markup.

import { h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { render } from "./vendor/preact.js";
export { useEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export const html = htm.bind(h);
