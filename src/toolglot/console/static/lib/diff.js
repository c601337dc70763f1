// Differences of two texts: by lines, then within a changed line.
const MAX_LINES = 20_000;
const MAX_STEPS = 2_000;
const MAX_PAIRS = 4_000; // of removed and added lines that are compared with each other
const LIKENESS = 0.3; // the share of a line that is the same, for two lines to be one that was changed
const WORDS = /[\p{L}\p{N}_]+|\s+|[^]/gu;
const MAX_WORDS = 4_000;
const MAX_WORD_STEPS = 300;

// How many characters two texts have in common at their beginnings.
export function commonPrefix(one, other) {
  const most = Math.min(one.length, other.length);
  let low = 0, high = most;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (one.slice(low, middle) === other.slice(low, middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

// The first byte that differs between two texts in UTF-8.
export function firstDifferentByte(one, other) {
  let start = commonPrefix(one, other);
  if (start && /[\ud800-\udbff]/.test(one[start - 1])) start -= 1; // the first half of a character
  const encoder = new TextEncoder();
  const [before, after] = [one, other].map((text) => encoder.encode(text.slice(start, start + 2)));
  let same = 0;
  while (same < before.length && same < after.length && before[same] === after[same]) same += 1;
  return encoder.encode(one.slice(0, start)).length + same;
}

export function commonSuffix(one, other, most) {
  let size = 0;
  while (size < most && one[one.length - 1 - size] === other[other.length - 1 - size]) size += 1;
  return size;
}

// Lines as [{kind: "same" | "removed" | "added", text}].
export function diffLines(before, after) {
  const one = before.split("\n"), other = after.split("\n");
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start += 1;
  let end = 0;
  const most = Math.min(one.length, other.length) - start;
  while (end < most && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  const middle = compare(one.slice(start, one.length - end), other.slice(start, other.length - end));
  return [
    ...one.slice(0, start).map((text) => ({ kind: "same", text })),
    ...middle,
    ...one.slice(one.length - end).map((text) => ({ kind: "same", text })),
  ];
}

// The greedy algorithm of Myers on two lists; those that differ too much are replaced as a whole.
function compare(one, other, most = MAX_STEPS) {
  const replaced = [...one.map((text) => ({ kind: "removed", text })), ...other.map((text) => ({ kind: "added", text }))];
  if (!one.length || !other.length || one.length + other.length > MAX_LINES) return replaced;
  const steps = Math.min(most, one.length + other.length), zero = steps + 1;
  const furthest = new Int32Array(2 * steps + 3).fill(-1), trace = [];
  furthest[zero + 1] = 0;
  for (let step = 0; step <= steps; step += 1) {
    trace.push(furthest.slice(zero - step - 1, zero + step + 2));
    for (let k = -step; k <= step; k += 2) {
      const down = k === -step || (k !== step && furthest[zero + k - 1] < furthest[zero + k + 1]);
      let x = down ? furthest[zero + k + 1] : furthest[zero + k - 1] + 1;
      let y = x - k;
      while (x < one.length && y < other.length && one[x] === other[y]) { x += 1; y += 1; }
      furthest[zero + k] = x;
      if (x >= one.length && y >= other.length) return walk(trace, one, other);
    }
  }
  return replaced;
}

function walk(trace, one, other) {
  const lines = [];
  let x = one.length, y = other.length;
  for (let step = trace.length - 1; step >= 0; step -= 1) {
    const furthest = trace[step], zero = step + 1, k = x - y;
    const down = k === -step || (k !== step && furthest[zero + k - 1] < furthest[zero + k + 1]);
    const before = down ? k + 1 : k - 1, fromX = furthest[zero + before], fromY = fromX - before;
    while (x > fromX && y > fromY) lines.push({ kind: "same", text: one[--x], at: y-- });
    if (step === 0) break;
    if (down) lines.push({ kind: "added", text: other[--y] });
    else lines.push({ kind: "removed", text: one[--x] });
  }
  return lines.reverse();
}

// Rows for display: long runs of equal lines are folded; pairs of changed lines get their changed characters.
export function foldDiff(lines, context = 3) {
  const rows = [];
  for (let at = 0; at < lines.length;) {
    const kind = lines[at].kind;
    let end = at;
    while (end < lines.length && lines[end].kind === kind) end += 1;
    if (kind === "same") {
      const head = at === 0 ? 0 : context, tail = end === lines.length ? 0 : context;
      if (end - at > head + tail + 1) {
        rows.push(...lines.slice(at, at + head).map(whole));
        rows.push({ kind: "fold", hidden: lines.slice(at + head, end - tail).map((line) => line.text) });
        rows.push(...lines.slice(end - tail, end).map(whole));
      } else rows.push(...lines.slice(at, end).map(whole));
    } else if (kind === "removed") {
      let last = end;
      while (last < lines.length && lines[last].kind === "added") last += 1;
      rows.push(...pair(lines.slice(at, end), lines.slice(end, last)));
      end = last;
    } else rows.push(...lines.slice(at, end).map(whole));
    at = end;
  }
  return rows;
}

function whole(line) {
  return { kind: line.kind, parts: [[false, line.text]] };
}

// Changed lines: each removed line with the first added one that is like it, and what differs within the two.
function pair(removed, added) {
  const rows = removed.map(whole), others = added.map(whole);
  const reach = removed.length === added.length ? 1 : removed.length * added.length > MAX_PAIRS ? 0 : added.length;
  for (let at = 0, free = 0; at < removed.length; at += 1) {
    const first = removed.length === added.length ? at : free;
    for (let to = first; to < Math.min(first + reach, added.length); to += 1) {
      const [one, other] = [removed[at].text, added[to].text];
      if (!alike(one, other)) continue;
      const [old, now] = diffWithin(one, other);
      rows[at] = { kind: "removed", parts: old };
      others[to] = { kind: "added", parts: now };
      free = to + 1;
      break;
    }
  }
  return [...rows, ...others];
}

function alike(one, other) {
  const most = Math.min(one.length, other.length), head = commonPrefix(one, other);
  return head + commonSuffix(one, other, most - head) >= LIKENESS * most && most > 0;
}

// What differs within two lines, as parts [isChanged, text] of each: by words, as far as they are not too many.
export function diffWithin(one, other) {
  const head = commonPrefix(one, other), tail = commonSuffix(one, other, Math.min(one.length, other.length) - head);
  const old = one.slice(head, one.length - tail), now = other.slice(head, other.length - tail);
  const [before, after] = [old.match(WORDS) ?? [], now.match(WORDS) ?? []];
  const steps = before.length + after.length > MAX_WORDS ? [{ kind: "removed", text: old }, { kind: "added", text: now }] : compare(before, after, MAX_WORD_STEPS);
  const parts = (kind) => joinParts([[false, one.slice(0, head)], ...steps.filter((step) => step.kind === kind || step.kind === "same").map((step) => [step.kind === kind, step.text]), [false, one.slice(one.length - tail)]]);
  return [parts("removed"), parts("added")];
}

// Parts of one kind become one; a sign or a space between changes is changed, too.
function joinParts(parts) {
  const joined = [];
  parts.filter(([, text]) => text).forEach(([isChanged, text], at, all) => {
    const isChangedToo = isChanged || (text.length < 2 && at > 0 && all[at - 1][0] && all[at + 1]?.[0]);
    const last = joined.at(-1);
    if (last && last[0] === isChangedToo) last[1] += text;
    else joined.push([isChangedToo, text]);
  });
  return joined;
}
