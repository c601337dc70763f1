// What every view imports: markup, state, effects. Texts and labels of elements are shown by visible(), wherever they come from.
import { createElement as create, Fragment, render } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { computed, effect, signal, useComputed, useSignal } from "@preact/signals";
import htm from "htm";
import { visible } from "console/lib/format.js";

const LABELS = ["title", "alt", "label", "placeholder", "aria-label", "aria-valuetext", "aria-roledescription"];
const html = htm.bind(createElement);

function createElement(type, props, ...children) {
  const shown = typeof type === "string" && props ? { ...props } : props;
  if (shown !== props) for (const name of LABELS) if (typeof shown[name] === "string") shown[name] = visible(shown[name]);
  return create(type, shown, ...children.map(show));
}

function show(child) {
  if (typeof child === "string") return visible(child);
  return Array.isArray(child) ? child.map(show) : child;
}

export { html, render, Fragment };
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState };
export { computed, effect, signal, useComputed, useSignal };
