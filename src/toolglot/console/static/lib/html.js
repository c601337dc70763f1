// What every view imports: markup, state, effects.
import { createElement, Fragment, render } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { computed, effect, signal, useComputed, useSignal } from "@preact/signals";
import htm from "htm";

const html = htm.bind(createElement);

export { html, render, Fragment };
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState };
export { computed, effect, signal, useComputed, useSignal };
