
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);

  // Everything is put into the page as text; nothing of the data is ever read as HTML.
  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === undefined || value === null || value === false) continue;
      if (name === "class") node.className = value;
      else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
    return node;
  };
  const drawn = (tag, attributes = {}, ...children) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const code = (text) => make("code", {}, text);
  /* What to do: a command is code, up to where words about it begin; in words, what stands in backticks is. */
  const COMMAND = /^(?:git|ssh-keygen|ssh-add|chmod|rm|mkdir)\b/;
  const advice = (remedy) => {
    const end = COMMAND.test(remedy) ? remedy.search(/[,;] | \(/) : 0;
    const head = end < 0 ? remedy : remedy.slice(0, end), rest = end < 0 ? "" : remedy.slice(end);
    const words = rest.split("`").map((part, place) => (place % 2 ? code(part) : part));
    return [head ? code(head) : "", ...words].filter((part) => part !== "");
  };
  const glyphs = { ...data.glyphs, inconclusive: "?", skipped: "–", mismatched: "≠" };
  const mark = (state) => make("span", { class: `mark ${state}`, "aria-hidden": "true" }, glyphs[state] ?? "?");
  const short = (id) => (id ? id.slice(0, 12) : "");
  const when = (text) => (text ? `${text.slice(0, 10)} ${text.slice(11, 16)}` : "");
  const plural = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const span = (seconds) => {
    if (seconds < 10) return `${seconds.toFixed(1)} s`;
    if (seconds < 60) return `${Math.round(seconds)} s`;
    const minutes = Math.floor(seconds / 60);
    if (minutes < 60) return `${minutes} min ${String(Math.floor(seconds % 60)).padStart(2, "0")} s`;
    return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
  };

  const shards = data.shards.map((shard, place) => ({
    ...shard, place, title: shard.variant === null ? shard.name : `${shard.name}@${shard.variant}`,
  }));
  const kindAt = (shard, column) => {
    if (data.columns[column].verdict === "unknown") return { state: "unknown", fault: data.columns[column].fault };
    const number = data.cells[shard][column];
    return number < 0 ? null : data.kinds[number];
  };
  const recordOf = (kind) => (kind && kind.record !== null && kind.record !== undefined ? data.records[kind.record] : null);
  const placeOf = new Map(data.columns.map((column, place) => [column.commit, place]));

  // Runs of each shard whose signature counts, oldest first: what trends are drawn from.
  const runs = new Map();
  for (const record of data.records) {
    if (data.signers[record.signer].why || record.outcome === "incomplete") continue;
    if (!runs.has(record.shard)) runs.set(record.shard, []);
    runs.get(record.shard).push(record);
  }
  for (const list of runs.values()) list.sort((a, b) => (a.ended_at < b.ended_at ? -1 : 1));

  /* ---- what is said of a cell ---- */

  const away = (shard, column) => {
    const distance = data.distances[shard][column];
    return distance === null ? "no ancestor" : `${distance} back`;
  };
  const origin = (shard, column) => {
    const record = recordOf(kindAt(shard, column));
    return !record || record.commit === data.columns[column].commit ? "" : `from ${short(record.commit)}, ${away(shard, column)}`;
  };
  const why = (shard, column) => {
    const kind = kindAt(shard, column);
    if (!kind) return "not declared at this commit";
    if (kind.fault !== undefined) return kind.fault;
    const others = kind.against.filter((told) => told !== kind.reason);
    const against = others.length ? `against it: ${others.join(", ")}` : "";
    const changed = kind.changed.length ? kind.changed.join(", ") : "";
    return [kind.reason, origin(shard, column), kind.detail, changed, against].filter(Boolean).join("; ");
  };
  const spoken = (shard, column) => {
    const kind = kindAt(shard, column);
    const many = kind && kind.attempts && kind.attempts.length > 1 ? `, ${kind.attempts.length} attempts` : "";
    return `${shards[shard].title}, commit ${data.columns[column].commit.slice(0, 7)}: ${kind ? kind.state : "none"}, ${why(shard, column)}${many}`;
  };

  /* ---- the head of the page ---- */

  const counted = (column) => {
    const counts = Object.fromEntries(Object.keys(data.glyphs).map((state) => [state, 0]));
    for (const shard of shards) {
      const kind = kindAt(shard.place, column);
      if (kind) counts[kind.state] += 1;
    }
    return counts;
  };
  const now = counted(0);
  const declared = Object.values(now).reduce((sum, number) => sum + number, 0);

  const percent = (covered, total, digits) => (total ? `${(Math.floor((covered / total) * 100 * 10 ** digits) / 10 ** digits).toFixed(digits)} %` : "–");
  const figure = (term, value, rest) => make("div", {}, make("dt", {}, term), make("dd", {}, value, rest ? make("small", {}, ` ${rest}`) : null));

  const head = () => {
    const passed = data.verdict === "passed";
    const first = data.columns[0];
    let tests = 0; let good = 0;
    for (const shard of shards) {
      const kind = kindAt(shard.place, 0);
      const record = recordOf(kind);
      if (record && (kind.verdict !== "stale" || record.commit === data.commit)) { good += record.counts[0]; tests += record.counts[1]; }
    }
    const standing = now.passed + now.carried;
    const policy = data.policy.from === "self" ? "its own policy (nothing is pinned)" : `the policy of ${data.policy.from}`;
    document.title = `${passed ? "✓" : "✗"} ${data.title}: ${data.verdict}`;
    $("repository").textContent = data.title;
    const lanes = data.lanes ? data.lanes.cells.filter((cell) => cell.required) : [];
    $("verdict").append(
      make("div", { class: `stamp ${passed ? "passed" : "failed"}` },
        make("div", { class: "sign", "aria-hidden": "true" }, passed ? "✓" : "✗"),
        make("div", {},
          make("h1", { id: "verdict-word" }, passed ? "Passed" : "Failed"),
          make("p", { class: "subject" }, code(short(data.commit)), " ", first.summary),
          make("p", {}, `committed ${when(first.at)} UTC, judged by ${policy}, `, code(data.policy.commit.slice(0, 12))),
          data.lanes ? make("p", { class: `release ${data.lanes.verdict}` }, `${data.lanes.verdict === "passed" ? "✓" : "✗"} its hardware lanes: ${data.lanes.verdict}, which `, code("verify --lanes"), " asks as well") : null)),
      make("dl", { class: "figures" },
        figure("shards that stand", String(standing), `of ${declared}`),
        figure("tests that passed", String(good), `of ${tests}`),
        data.coverage ? figure("coverage", percent(data.coverage.covered, data.coverage.total, 2), data.coverage.threshold ? `asked ${data.coverage.threshold} %` : "") : null,
        data.lanes ? figure("required lane cells", String(lanes.filter((cell) => cell.status === "passed").length), `of ${lanes.length}`) : null),
      make("p", { class: "proviso" },
        `This page is a rendering, made ${when(data.made.at)} UTC by ${data.made.by}, and no evidence. The signed records are in the repository: `,
        code(data.made.verify), " judges them anew."));
  };

  const findings = () => {
    if (!data.findings.length) return;
    const blocking = data.findings.filter((finding) => finding.blocks);
    const notes = data.findings.length - blocking.length;
    const parts = [blocking.length ? `${plural(blocking.length, "reason")} against it` : "", notes ? plural(notes, "note") : ""];
    $("findings").hidden = false;
    $("findings-title").textContent = parts.filter(Boolean).join(", ");
    for (const finding of data.findings) {
      $("findings-list").append(
        make("li", { class: finding.blocks ? "blocks" : "" },
          make("span", { class: "sign", "aria-hidden": "true" }, finding.blocks ? "✗" : "·"),
          make("div", { class: "what" }, make("b", {}, finding.subject), ` ${finding.found} `, code(finding.code), finding.blocks ? "" : " a note, it blocks nothing"),
          make("div", { class: "why" }, `expected ${finding.expected}`, finding.blocks && finding.remedy ? [COMMAND.test(finding.remedy) ? ". Type " : ". To do: ", ...advice(finding.remedy)] : "", "; what it means: ", code(`git ledger explain ${finding.code}`))));
    }
  };

  /* ---- filters, kept in the address ---- */

  const empty = { shard: "", variant: "", signer: "", since: "", order: "", state: new Set(), cell: "" };
  let filter = { ...empty };
  const form = $("filters");
  const read = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    filter = { ...empty, state: new Set((given.get("state") || "").split(",").filter((state) => state in data.glyphs)) };
    for (const name of ["shard", "variant", "signer", "since", "order", "cell"]) filter[name] = given.get(name) || "";
    for (const name of ["shard", "variant", "signer", "since", "order"]) {
      form.elements[name].value = filter[name];
      if (form.elements[name].value !== filter[name]) filter[name] = "";
    }
  };
  const write = () => {
    const kept = new URLSearchParams();
    for (const name of ["shard", "variant", "signer", "since", "order", "cell"]) if (filter[name]) kept.set(name, filter[name]);
    if (filter.state.size) kept.set("state", [...filter.state].join(","));
    const text = kept.toString().replaceAll("%40", "@").replaceAll("%2C", ",");
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  };

  let rows = []; let columns = [];
  const rank = Object.fromEntries(["failed", "error", "incomplete", "rejected", "unknown", "missing", "stale", "carried", "passed"].map((state, place) => [state, place]));
  const seconds = (shard) => { const list = runs.get(shard.title); return list ? list[list.length - 1].seconds : 0; };
  const signedBy = (shard, column) => {
    const record = recordOf(kindAt(shard, column));
    return record ? nameOf(data.signers[record.signer]) : "";
  };
  const nameOf = (signer) => signer.name || (signer.key ? `unknown ${signer.key.slice(0, 19)}…` : "unsigned");

  const choose = () => {
    columns = data.columns.map((_, place) => place).filter((place) => !filter.since || data.columns[place].at.slice(0, 10) >= filter.since);
    const newest = columns[0];
    const part = filter.shard.toLowerCase();
    rows = shards.filter((shard) => {
      if (part && !shard.title.toLowerCase().includes(part)) return false;
      if (filter.variant && (shard.variant ?? "none") !== filter.variant) return false;
      if (newest === undefined) return true;
      const kind = kindAt(shard.place, newest);
      if (filter.state.size && !(kind && filter.state.has(kind.state))) return false;
      return !filter.signer || columns.some((column) => signedBy(shard.place, column) === filter.signer);
    });
    const at = newest ?? 0;
    const by = {
      trouble: (a, b) => rank[kindAt(a.place, at)?.state ?? "passed"] - rank[kindAt(b.place, at)?.state ?? "passed"],
      slow: (a, b) => seconds(b) - seconds(a),
      name: (a, b) => (a.title < b.title ? -1 : 1),
    }[filter.order];
    if (by) rows.sort((a, b) => by(a, b) || a.place - b.place);
  };

  const chips = () => {
    const counts = columns.length ? counted(columns[0]) : now;
    $("states").replaceChildren(...Object.keys(data.glyphs).map((state) =>
      make("button", {
        type: "button", class: "chip", "data-state": state, "aria-pressed": String(filter.state.has(state)),
        disabled: !counts[state] && !filter.state.has(state),
        onclick: () => { filter.state.has(state) ? filter.state.delete(state) : filter.state.add(state); refresh(); $("states").querySelector(`[data-state="${state}"]`).focus(); },
      }, mark(state), make("b", {}, state), make("span", {}, String(counts[state])))));
  };

  const options = (name, values, all) => {
    form.elements[name].replaceChildren(make("option", { value: "" }, all), ...values.map(([value, text]) => make("option", { value }, text)));
    form.elements[name].parentElement.hidden = values.length < 2;
  };

  /* ---- the matrix: only what is in sight is in the page ---- */

  const frame = $("frame"); const grid = $("grid");
  const HEAD = 108; const SPARE = 8;
  let size = 24; let names = 220;
  let focus = { row: 0, column: 0 };
  let wants = false; // whether the cell of the focus is to be focused once it is drawn
  let printing = false;
  let seen = "";

  const layout = () => {
    if (!printing) size = columns.length <= 24 ? 30 : 24;
    grid.style.setProperty("--cell", `${size}px`);
    const longest = rows.reduce((most, shard) => Math.max(most, shard.title.length), 8);
    names = Math.round(Math.min(260, Math.max(120, longest * 8 + 32)));
    grid.style.setProperty("--names", `${names}px`);
    grid.style.width = `${names + columns.length * size + 14}px`;
    grid.style.height = `${HEAD + rows.length * size + 4}px`;
    grid.setAttribute("aria-rowcount", String(rows.length + 1));
    grid.setAttribute("aria-colcount", String(columns.length + 1));
    seen = "";
  };

  const windowed = () => {
    if (printing) return [0, rows.length, 0, columns.length];
    const top = Math.max(0, Math.floor((frame.scrollTop) / size) - SPARE);
    const left = Math.max(0, Math.floor(frame.scrollLeft / size) - SPARE);
    const high = Math.ceil((frame.clientHeight - HEAD) / size) + 2 * SPARE;
    const wide = Math.ceil((frame.clientWidth - names) / size) + 2 * SPARE;
    return [top, Math.min(rows.length, top + high), left, Math.min(columns.length, left + wide)];
  };

  const day = (column) => data.columns[column].at.slice(0, 10);
  const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const dated = (text) => `${months[Number(text.slice(5, 7)) - 1]} ${Number(text.slice(8, 10))}`;
  const heading = (place) => {
    const column = data.columns[columns[place]];
    const isFirst = place > 0 && day(columns[place - 1]) !== day(columns[place]);
    const following = columns.slice(place, place + 3);
    const hasRoom = following.length === 3 && following.every((other) => day(other) === day(columns[place]));
    return make("div", {
      class: `head${isFirst ? " first" : ""}`, role: "columnheader", "data-row": "-1", "data-column": String(place), "aria-colindex": String(place + 2),
      tabindex: focus.row === -1 && focus.column === place ? "0" : "-1",
      title: `${column.summary}\n${when(column.at)} UTC: ${column.verdict}`,
      "aria-label": `commit ${column.commit.slice(0, 7)}, ${column.summary}, ${column.verdict}`,
    }, isFirst && hasRoom ? make("span", { class: "day", "aria-hidden": "true" }, dated(day(columns[place]))) : null,
    make("span", { class: "hash mono", "aria-hidden": "true" }, column.commit.slice(0, 7)), mark(column.verdict));
  };

  const cell = (row, place) => {
    const shard = rows[row]; const column = columns[place];
    const kind = kindAt(shard.place, column);
    const isFirst = place && day(columns[place - 1]) !== day(column);
    const classes = [isFirst && "first", kind?.attempts?.length > 1 && recordOf(kind)?.commit === data.columns[column].commit && "again", filter.signer && signedBy(shard.place, column) !== filter.signer && "dim", opened === `${row} ${place}` && "open"];
    return make("div", {
      role: "gridcell", "data-row": String(row), "data-column": String(place), "aria-colindex": String(place + 2), class: classes.filter(Boolean).join(" "),
      tabindex: focus.row === row && focus.column === place ? "0" : "-1", "data-state": kind ? kind.state : "none",
      "aria-label": spoken(shard.place, column),
    }, kind ? mark(kind.state) : null);
  };

  const draw = () => {
    if (!rows.length || !columns.length) {
      grid.replaceChildren(make("p", { class: "nothing" }, "Nothing matches these filters. “Show all” takes them away."));
      grid.style.width = ""; grid.style.height = "";
      return;
    }
    const [top, bottom, left, right] = windowed();
    const foremost = columns[Math.min(columns.length - 1, Math.floor(frame.scrollLeft / size))];
    const key = [top, bottom, left, right, focus.row, focus.column, opened, day(foremost)].join();
    if (key === seen) return;
    seen = key;
    const width = grid.style.width;
    const heads = make("div", { role: "row", class: "heads", "aria-rowindex": "1" }, make("div", { class: "corner", role: "columnheader", "aria-colindex": "1" }, make("span", { class: "day", "aria-hidden": "true" }, dated(day(foremost))), "shard", make("span", { "aria-hidden": "true" }, "verdict")));
    heads.style.width = width;
    const put = (node, place) => { node.style.left = `${names + place * size}px`; return node; };
    for (let place = left; place < right; place += 1) heads.append(put(heading(place), place));
    const lines = [heads];
    for (let row = top; row < bottom; row += 1) {
      const shard = rows[row];
      const line = make("div", { role: "row", "aria-rowindex": String(row + 2), class: focus.row === row ? "row-on" : "" },
        make("div", { role: "rowheader", "aria-colindex": "1", title: shard.title }, make("span", {}, shard.name, shard.variant === null ? null : make("i", {}, `@${shard.variant}`))));
      line.style.top = `${HEAD + row * size + 2}px`; line.style.width = width;
      for (let place = left; place < right; place += 1) line.append(put(cell(row, place), place));
      lines.push(line);
    }
    const had = wants || grid.contains(document.activeElement);
    grid.replaceChildren(...lines);
    if (had) { at(focus.row, focus.column)?.focus({ preventScroll: true }); wants = false; }
  };
  const at = (row, column) => grid.querySelector(`[data-row="${row}"][data-column="${column}"]`);

  const move = (row, column) => {
    focus = { row: Math.max(-1, Math.min(rows.length - 1, row)), column: Math.max(0, Math.min(columns.length - 1, column)) };
    const y = focus.row * size; const x = focus.column * size;
    if (focus.row < 0) frame.scrollTop = 0;
    else if (y < frame.scrollTop) frame.scrollTop = y;
    else if (y + size + HEAD + 8 > frame.scrollTop + frame.clientHeight) frame.scrollTop = y + size + HEAD + 8 - frame.clientHeight;
    if (x < frame.scrollLeft) frame.scrollLeft = x;
    else if (x + size + names + 8 > frame.scrollLeft + frame.clientWidth) frame.scrollLeft = x + size + names + 8 - frame.clientWidth;
    wants = true;
    draw();
  };

  grid.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor((frame.clientHeight - HEAD) / size) - 1);
    const { row, column } = focus;
    const steps = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      PageUp: [Math.max(0, row - page), column], PageDown: [row + page, column],
      Home: event.ctrlKey ? [0, 0] : [row, 0], End: event.ctrlKey ? [rows.length - 1, columns.length - 1] : [row, columns.length - 1],
    };
    if (event.key in steps && !event.altKey && !event.metaKey) { event.preventDefault(); move(...steps[event.key]); }
    else if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(row, column, true); }
  });
  grid.addEventListener("click", (event) => {
    const target = event.target.closest("[data-row]");
    if (!target) return;
    focus = { row: Number(target.dataset.row), column: Number(target.dataset.column) };
    open(focus.row, focus.column, false);
  });
  frame.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  addEventListener("resize", () => requestAnimationFrame(draw));

  /* ---- details ---- */

  let opened = ""; let back = null;
  const panel = $("details");
  const term = (name, ...value) => (value.flat().some((part) => part !== "" && part !== null && part !== undefined) ? [make("dt", {}, name), make("dd", {}, ...value)] : []);
  const told = (record) => {
    const [passed, collected, bad, skipped] = record.counts;
    return `${passed} of ${collected} passed${bad ? `, ${bad} failed` : ""}${skipped ? `, ${skipped} skipped` : ""}`;
  };
  const signerText = (record) => {
    const signer = data.signers[record.signer];
    return signer.why ? `${nameOf(signer)}, which does not count: ${signer.why}` : nameOf(signer);
  };

  const cellDetails = (shard, column) => {
    const kind = kindAt(shard.place, column); const commit = data.columns[column];
    const record = recordOf(kind);
    const title = make("h2", { id: "details-title" }, kind ? mark(kind.state) : null, `${shard.title}: ${kind ? kind.state : "not declared"}`);
    if (!kind || kind.fault !== undefined) return [title, make("p", {}, kind ? kind.fault : "This commit's configuration has no such shard.")];
    const about = column === 0 ? data.findings.filter((finding) => finding.subject === shard.title) : [];
    const list = runs.get(shard.title) || [];
    return [
      title,
      make("dl", {},
        term("reason", code(kind.reason), kind.detail ? ` ${kind.detail}` : ""),
        term("at commit", code(short(commit.commit)), ` ${commit.summary}`),
        term("against it", kind.against.filter((told) => told !== kind.reason).join(", ")),
        kind.changed.length ? term("changed", kind.changed.join(", ")) : [],
        record ? [
          term("recorded on", code(short(record.commit)), record.commit === commit.commit ? " this commit" : ` ${away(shard.place, column)}`),
          term("outcome", record.outcome, record.reasons.length ? ` (${record.reasons.join(", ")})` : "", record.dirty ? ", with uncommitted changes" : ""),
          term("tests", told(record)),
          term("took", span(record.seconds)),
          term("ended", `${when(record.ended_at)} UTC`),
          term("signer", signerText(record)),
          term("mode", record.mode),
          term("record", code(short(record.id))),
        ] : []),
      kind.attempts.length > 1 ? [make("h3", {}, `${kind.attempts.length} attempts, newest first`), make("ol", {}, kind.attempts.map((place) => {
        const run = data.records[place];
        return make("li", {}, `${run.outcome}, ${told(run)}, ${span(run.seconds)}, ${when(run.ended_at)} `, code(short(run.id)));
      }))] : null,
      list.length > 1 ? [make("h3", {}, `Duration of ${list.length} runs`), spark(list, 380, 56)] : null,
      make("h3", {}, "What to type"),
      make("div", { class: "type" },
        record ? code(`git ledger show ${short(record.id)} --tests`) : null,
        [...new Set(about.map((finding) => finding.remedy).filter(Boolean))].map((remedy) => make("p", {}, advice(remedy))),
        kind.state !== "passed" ? code(`git ledger explain ${kind.against[0] || kind.reason}`) : null),
    ];
  };

  const commitDetails = (column) => {
    const commit = data.columns[column]; const counts = counted(column);
    return [
      make("h2", { id: "details-title" }, mark(commit.verdict), `${commit.commit.slice(0, 12)}: ${commit.verdict}`),
      make("p", {}, commit.summary),
      make("dl", {},
        term("committed", `${when(commit.at)} UTC`),
        term("not judged", commit.fault),
        commit.coverage ? term("coverage", `${commit.coverage[0]} of ${commit.coverage[1]}, ${percent(commit.coverage[0], commit.coverage[1], 2)}${commit.coverage[2] === false ? ", under its threshold" : ""}`) : [],
        term("shards", Object.entries(counts).filter(([, number]) => number).map(([state, number]) => `${number} ${state}`).join(", ")),
        commit.findings.length ? term("against it", commit.findings.join(", ")) : []),
      make("h3", {}, "What to type"),
      make("div", { class: "type" }, code(data.made.verify.replace(short(data.commit), short(commit.commit))), code(`git ledger show ${short(commit.commit)}`)),
    ];
  };

  const open = (row, place, byKeyboard) => {
    const column = columns[place];
    if (column === undefined || (row >= 0 && !rows[row])) return;
    opened = `${row} ${place}`;
    filter.cell = `${row < 0 ? "" : rows[row].title}:${data.columns[column].commit.slice(0, 12)}`;
    back = { row, place };
    panel.replaceChildren(
      make("button", { type: "button", class: "close", onclick: close, "aria-label": "Close details" }, "Close"),
      ...(row < 0 ? commitDetails(column) : cellDetails(rows[row], column)).flat(3).filter(Boolean));
    panel.hidden = false;
    write();
    wants = false;
    draw();
    if (byKeyboard) panel.focus({ preventScroll: true });
    else at(row, place)?.focus({ preventScroll: true });
  };
  const close = () => {
    if (panel.hidden) return;
    panel.hidden = true; opened = ""; filter.cell = "";
    write();
    if (back) move(back.row, back.place);
  };
  addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });

  const reopen = () => {
    if (!filter.cell) return;
    const [title, commit] = [filter.cell.slice(0, filter.cell.lastIndexOf(":")), filter.cell.slice(filter.cell.lastIndexOf(":") + 1)];
    const place = columns.findIndex((column) => data.columns[column].commit.startsWith(commit));
    const row = title ? rows.findIndex((shard) => shard.title === title) : -1;
    if (place < 0 || (title && row < 0)) { filter.cell = ""; return; }
    move(row, place);
    open(row, place, true);
  };

  /* ---- lines of a trend ---- */

  function spark(list, width, height) {
    const most = Math.max(...list.map((record) => record.seconds), 0.001);
    const step = list.length > 1 ? (width - 6) / (list.length - 1) : 0;
    const points = list.map((record, place) => [3 + place * step, height - 3 - (record.seconds / most) * (height - 8)]);
    const path = points.map(([x, y], place) => `${place ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    const last = points[points.length - 1];
    const text = `from ${span(list[0].seconds)} to ${span(list[list.length - 1].seconds)}, at most ${span(most)}`;
    const svg = drawn("svg", { class: "spark", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `durations: ${text}` });
    const title = drawn("title"); title.textContent = text;
    svg.append(title);
    if (list.length > 1) svg.append(drawn("path", { class: "area", d: `${path}L${last[0]} ${height}L3 ${height}Z` }), drawn("path", { d: path }));
    list.forEach((record, place) => {
      if (record.outcome !== "passed") svg.append(drawn("circle", { class: "bad", cx: points[place][0], cy: points[place][1], r: 2.5 }));
    });
    svg.append(drawn("circle", { cx: last[0], cy: last[1], r: 2, class: list[list.length - 1].outcome === "passed" ? "" : "bad" }));
    return svg;
  }

  /* ---- the other sections ---- */

  const table = (node, heads, lines) => {
    node.replaceChildren(
      make("thead", {}, make("tr", {}, heads.map(([text, kind]) => make("th", { class: kind, scope: "col" }, text)))),
      make("tbody", {}, lines));
    node.parentElement?.classList.toggle("long", lines.length > 60); // what is out of sight is drawn when it comes into it
    return node;
  };
  const stateCell = (state) => make("td", {}, make("span", { class: "state" }, mark(state), state));

  const shardTable = () => {
    table($("shards-table"),
      [["state", ""], ["shard", ""], ["why", ""], ["tests", "number"], ["took", "number"], ["trend", ""], ["attempts", "number"], ["signer", ""], ["recorded", ""]],
      shards.filter((shard) => data.columns[0].verdict === "unknown" || data.cells[shard.place][0] >= 0).map((shard) => {
        const kind = kindAt(shard.place, 0); const record = recordOf(kind); const list = runs.get(shard.title) || [];
        return make("tr", { "data-shard": shard.title, "data-state": kind.state },
          stateCell(kind.state), make("td", { class: "name" }, shard.title), make("td", { class: "wide" }, why(shard.place, 0)),
          make("td", { class: "number" }, record ? `${record.counts[0]} of ${record.counts[1]}` : "–"),
          make("td", { class: "number" }, record ? span(record.seconds) : "–"),
          make("td", {}, list.length > 1 ? spark(list.slice(-40), 96, 22) : null),
          make("td", { class: "number" }, kind.attempts && kind.attempts.length ? String(kind.attempts.length) : ""),
          make("td", {}, record ? signerText(record) : ""), make("td", { class: "dim-text" }, record ? when(record.ended_at) : ""));
      }));
  };

  const coverage = () => {
    const known = data.columns.filter((column) => column.coverage && column.coverage[1]).reverse();
    if (!data.coverage_text.length && !known.length) return;
    $("coverage").hidden = false;
    const body = $("coverage-body");
    if (known.length > 1) {
      const width = 560; const height = 96; const shares = known.map((column) => (100 * column.coverage[0]) / column.coverage[1]);
      const asked = data.coverage && data.coverage.threshold ? Number(data.coverage.threshold) : null;
      const low = Math.max(0, Math.min(...shares, asked ?? 100) - 2); const high = Math.min(100, Math.max(...shares, asked ?? 0) + 2);
      const y = (share) => 6 + (1 - (share - low) / (high - low || 1)) * (height - 12);
      const step = (width - 60) / (known.length - 1);
      const path = shares.map((share, place) => `${place ? "L" : "M"}${(3 + place * step).toFixed(1)} ${y(share).toFixed(1)}`).join("");
      const svg = drawn("svg", { class: "spark", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `coverage over ${known.length} commits, from ${shares[0].toFixed(1)} to ${shares[shares.length - 1].toFixed(1)} percent` });
      if (asked !== null) {
        svg.append(drawn("path", { class: "bar", d: `M3 ${y(asked).toFixed(1)}H${width - 54}` }));
        const label = drawn("text", { x: width - 48, y: y(asked) + 4 }); label.textContent = `asked ${asked}`; svg.append(label);
      }
      svg.append(drawn("path", { d: path }));
      known.forEach((column, place) => { if (column.coverage[2] === false) svg.append(drawn("circle", { class: "bad", cx: 3 + place * step, cy: y(shares[place]), r: 2.5 })); });
      svg.append(drawn("circle", { cx: 3 + (known.length - 1) * step, cy: y(shares[shares.length - 1]), r: 3 }));
      body.append(svg);
    }
    const lines = data.coverage_text.map((line) => line.trim());
    if (!data.coverage) {
      const newest = known.length ? placeOf.get(known[known.length - 1].commit) : 0;
      lines.unshift("There is no number for this commit: not every measured shard stands, or what was measured does not fit.");
      if (newest) lines.push(`The line ends ${plural(newest, "commit")} before it, at ${short(known[known.length - 1].commit)}.`);
    }
    body.append(make("div", { class: "text" }, lines.map((line) => make("p", {}, line))));
  };

  const lanes = () => {
    if (!data.lanes) return;
    $("lanes").hidden = false;
    const body = $("lanes-body");
    if (data.lanes.fault) { body.append(make("p", { class: "nothing" }, mark("unknown"), ` not judged: ${data.lanes.fault}`)); return; }
    const recipes = [...new Set(data.lanes.cells.map((cell) => cell.recipe))];
    const groups = new Map();
    for (const cell of data.lanes.cells) {
      const layers = cell.layers ? `layers ${cell.layers[0]} to ${cell.layers[1]}` : "the whole model";
      const key = JSON.stringify([cell.lane, cell.model, layers, cell.quantization, cell.required]);
      if (!groups.has(key)) groups.set(key, new Map());
      groups.get(key).set(cell.recipe, cell);
    }
    body.append(table(make("table"), [["lane", ""], ["model", ""], ["", ""], ...recipes.map((recipe) => [recipe, ""])],
      [...groups].map(([key, cells]) => {
        const [lane, model, layers, quantization, required] = JSON.parse(key);
        return make("tr", {}, make("td", { class: "name" }, lane), make("td", {}, `${model}, ${layers}, ${quantization}`), make("td", { class: "dim-text" }, required ? "required" : "advisory"),
          recipes.map((recipe) => {
            const found = cells.get(recipe);
            if (!found) return make("td", { class: "dim-text" }, "not asked");
            const rest = [found.detail, found.hardware, found.signer, found.finished_at && when(found.finished_at)].filter(Boolean).join(", ");
            return make("td", { class: "wide" }, make("span", { class: "state" }, mark(found.status), found.status), rest ? make("div", { class: "dim-text" }, rest) : null);
          }));
      })));
  };

  const tests = () => {
    if (!data.slowest.length && !data.flaky.length) return;
    $("tests").hidden = false;
    const most = data.slowest.length ? data.slowest[0].seconds || 1 : 1;
    const holder = (place, title, empty, heads, lines) => {
      $(place).append(make("h3", {}, title));
      if (lines.length) $(place).append(make("div", { class: "scroll" }, table(make("table"), heads, lines)));
      else $(place).append(make("p", { class: "note" }, empty));
    };
    holder("slowest", "Slowest", "No test results stand for this commit.", [["took", "number"], ["test", ""], ["shard", ""]], data.slowest.map((test) => {
      const bar = make("i"); bar.style.width = `${(100 * test.seconds) / most}%`;
      return make("tr", {}, make("td", { class: "number" }, span(test.seconds)), make("td", { class: "wide mono" }, test.test, make("span", { class: "meter" }, bar)), make("td", {}, test.shard));
    }));
    holder("flaky", "Flaky: another outcome, or another attempt, with the same inputs", "None is known.", [["ended", ""], ["test", ""], ["shard", ""]], data.flaky.map((test) => {
      const ends = Object.entries(test.outcomes).map(([outcome, number]) => `${number} ${outcome}`).join(", ");
      const again = test.reruns ? `, ${test.reruns} repeated` : "";
      return make("tr", {}, make("td", {}, ends + again), make("td", { class: "wide mono" }, test.node_id), make("td", {}, test.variant === null ? test.name : `${test.name}@${test.variant}`));
    }));
  };

  const signers = () => {
    if (!data.signers.length) return;
    $("signers").hidden = false;
    const sorted = [...data.signers].sort((a, b) => Boolean(a.why) - Boolean(b.why) || b.records - a.records);
    table($("signers-table"), [["", ""], ["signer", ""], ["key", ""], ["receipts", "number"], ["newest", ""]], sorted.map((signer) =>
      make("tr", {}, make("td", {}, make("span", { class: "state" }, mark(signer.why ? "rejected" : "passed"), signer.why ? `does not count: ${signer.why}` : "counts by policy")),
        make("td", { class: "name" }, nameOf(signer), signer.why && signer.says ? make("span", { class: "dim-text" }, ` calls itself ${signer.says}`) : null),
        make("td", { class: "mono dim-text" }, signer.key || "–"), make("td", { class: "number" }, String(signer.records)), make("td", { class: "dim-text" }, when(signer.last)))));
  };

  const about = () => {
    const lines = [
      `Made ${when(data.made.at)} UTC by ${data.made.by} at commit ${data.commit}, by policy ${data.policy.from} (${data.policy.commit}), whose text has the digest ${data.policy.digest}.`,
      `${plural(data.columns.length, "commit")} shown${data.left_out ? `; ${data.left_out} older ones that carry evidence are left out` : ""}. Every commit is judged as of that moment: what is too old today is stale, whenever it was recorded.`,
    ];
    $("about").append(...lines.map((line) => make("p", {}, line)));
    if (data.ignored.length) {
      $("about").append(make("details", {}, make("summary", {}, `${plural(data.ignored.length, "record")} of this commit that ${data.ignored.length === 1 ? "counts" : "count"} for nothing`),
        make("ul", {}, data.ignored.map((item) => make("li", {}, code(short(item.record) || "a line"), ` ${item.reason}`)))));
    }
  };

  /* ---- light and dark ---- */

  const dark = matchMedia("(prefers-color-scheme: dark)");
  let theme = "auto";
  const paint = () => {
    const isDark = theme === "auto" ? dark.matches : theme === "dark";
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    $("theme").textContent = { auto: "Auto", light: "Light", dark: "Dark" }[theme];
    $("theme").setAttribute("aria-label", `Colours: ${theme}`);
  };
  $("theme").addEventListener("click", () => {
    theme = { auto: dark.matches ? "light" : "dark", light: "dark", dark: "light" }[theme];
    try { localStorage.setItem("git-ledger-theme", theme); } catch { /* a page from disk may have no storage */ }
    paint();
  });
  dark.addEventListener("change", paint);
  try { theme = localStorage.getItem("git-ledger-theme") || "auto"; } catch { /* likewise */ }
  if (!["light", "dark"].includes(theme)) theme = "auto";
  paint();

  /* ---- printing: all shards, as many of the newest commits as fit on paper ---- */

  addEventListener("beforeprint", () => {
    printing = true; size = 21;
    columns = columns.slice(0, Math.floor((1000 - names) / size));
    layout(); draw();
    $("shown").textContent = `${plural(rows.length, "shard")}, the ${columns.length} newest of ${plural(data.columns.length, "commit")}`;
  });
  addEventListener("afterprint", () => { printing = false; refresh(); });

  /* ---- all of it ---- */

  const refresh = () => {
    choose();
    focus = { row: Math.min(focus.row, rows.length - 1), column: Math.min(focus.column, columns.length - 1) };
    focus = { row: Math.max(focus.row, rows.length ? 0 : -1), column: Math.max(focus.column, 0) };
    if (!panel.hidden && !filter.cell) panel.hidden = true;
    opened = "";
    layout();
    chips();
    draw();
    write();
    $("shown").textContent = `${rows.length} of ${plural(shards.length, "shard")}, ${columns.length} of ${plural(data.columns.length, "commit")}, the newest first`;
  };

  head();
  findings();
  options("variant", [...new Set(shards.map((shard) => shard.variant ?? "none"))].sort().map((variant) => [variant, variant]), "all");
  options("signer", [...new Set(data.signers.map(nameOf))].sort().map((name) => [name, name]), "all");
  read();
  form.addEventListener("input", (event) => { filter[event.target.name] = event.target.value; filter.cell = ""; refresh(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    filter = { ...empty, state: new Set() };
    for (const name of ["shard", "variant", "signer", "since", "order"]) form.elements[name].value = "";
    refresh();
  });
  addEventListener("hashchange", () => { const kept = location.hash.slice(1); if (kept && !kept.includes("=")) return; read(); const wanted = filter.cell; refresh(); filter.cell = wanted; reopen(); });
  const wanted = filter.cell;
  refresh();
  filter.cell = wanted;
  reopen();
  shardTable();
  coverage();
  lanes();
  tests();
  signers();
  about();
  for (const section of document.querySelectorAll("main > section:not([hidden])")) {
    const title = section.querySelector("h2");
    if (title) $("sections").append(make("a", { href: `#${section.id}`, onclick: (event) => { event.preventDefault(); section.scrollIntoView(); section.querySelector("[tabindex='0']")?.focus({ preventScroll: true }); } }, { findings: "Findings", matrix: "Matrix", shards: "Shards", coverage: "Coverage", lanes: "Lanes", tests: "Tests", signers: "Signers" }[section.id]));
  }
  document.documentElement.dataset.ready = "yes";
})();
