// Light, dark, or as the system has it.
import { effect, signal } from "console/lib/html.js";

const KEY = "toolglot-theme";
const CHOICES = ["auto", "light", "dark"];

export const theme = signal(read());

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  try {
    localStorage.setItem(KEY, theme.value);
  } catch { /* a file, or storage is off */ }
});

export function switchTheme() {
  theme.value = CHOICES[(CHOICES.indexOf(theme.value) + 1) % CHOICES.length];
}

function read() {
  try {
    const kept = localStorage.getItem(KEY);
    return CHOICES.includes(kept) ? kept : "auto";
  } catch {
    return "auto";
  }
}
