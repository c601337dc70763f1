// Differences of two texts: by lines, then by characters within a changed line.
const MAX_LINES = 20_000;
const MAX_STEPS = 2_000;

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

// The greedy algorithm of Myers; texts that differ too much are replaced as a whole.
function compare(one, other) {
  const replaced = [...one.map((text) => ({ kind: "removed", text })), ...other.map((text) => ({ kind: "added", text }))];
  if (!one.length || !other.length || one.length + other.length > MAX_LINES) return replaced;
  const furthest = new Map([[1, 0]]), trace = [];
  for (let step = 0; step <= MAX_STEPS; step += 1) {
    trace.push(new Map(furthest));
    for (let k = -step; k <= step; k += 2) {
      const down = k === -step || (k !== step && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
      let x = down ? furthest.get(k + 1) ?? 0 : (furthest.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < one.length && y < other.length && one[x] === other[y]) { x += 1; y += 1; }
      furthest.set(k, x);
      if (x >= one.length && y >= other.length) return walk(trace, one, other);
    }
  }
  return replaced;
}

function walk(trace, one, other) {
  const lines = [];
  let x = one.length, y = other.length;
  for (let step = trace.length - 1; step >= 0; step -= 1) {
    const furthest = trace[step], k = x - y;
    const down = k === -step || (k !== step && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
    const before = down ? k + 1 : k - 1, fromX = furthest.get(before) ?? 0, fromY = fromX - before;
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

function pair(removed, added) {
  if (removed.length !== added.length) return [...removed, ...added].map(whole);
  const rows = removed.map((line, at) => {
    const [one, other] = [line.text, added[at].text];
    const head = commonPrefix(one, other), tail = commonSuffix(one, other, Math.min(one.length, other.length) - head);
    const split = (text) => [
      [false, text.slice(0, head)], [true, text.slice(head, text.length - tail)], [false, text.slice(text.length - tail)],
    ].filter(([, part]) => part);
    return [{ kind: "removed", parts: split(one) }, { kind: "added", parts: split(other) }];
  });
  return [...rows.map(([one]) => one), ...rows.map(([, other]) => other)];
}
