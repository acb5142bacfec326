// Moves through a run's events with mouse and keys; all texts are put in as text.
(() => {
  "use strict";
  let entries = [];
  let marks = [];
  let chosen = -1;
  const one = (id) => document.getElementById(id);

  const counts = (sight) =>
    sight.counts.map((c) => `${c.count}/${c.threshold} ${c.level}`).join(", ");

  const seen = (sight) => {
    const keyed = sight.keyed_on ? ` by ${sight.keyed_on}` : "";
    const speaks = sight.speaks ? `speaks: ${sight.speaks}` : "silent";
    const levels = Object.entries(sight.levels ?? {}).map(([name, value]) => `, ${name} ${value}`).join("");
    const gone = sight.escalation ? `, ${sight.escalation}` : "";
    return `${sight.detector}${keyed}: ${counts(sight)}; ${speaks}${sight.muted ? " (muted)" : ""}${levels}${gone}`;
  };

  const marked = (verdict) =>
    verdict.mode === "shadow" ? " (shadow)" : verdict.instead_of ? ` (mode warn: no ${verdict.instead_of})` : "";

  const tell = (entry) => {
    const detail = one("detail");
    const line = (text, kind = "p", className = "") => {
      const element = document.createElement(kind);
      element.textContent = text;
      element.className = className;
      detail.append(element);
    };
    detail.replaceChildren();
    const what = [entry.group, entry.tool, entry.detail].filter(Boolean).join(" ");
    line(`#${entry.n} ${entry.kind} ${what}${entry.disposition ? ` (${entry.disposition})` : ""}`, "h3");
    line(`seq ${entry.seq ?? "none"}, events ${entry.partition}@${entry.offset}, ${new Date(entry.append_time).toISOString()}`, "p", "quiet");
    if (entry.preview) line(entry.preview, "p", "code");
    if (entry.kind === "tool_outcome") {
      line(`result ${entry.result ?? "not recorded"}${entry.failed ? ", failed" : ""}${entry.executed ? "" : ", not executed"}`);
    }
    if (entry.streak !== undefined) line(`streak ${entry.streak} of ${entry.records} records`);
    for (const sight of entry.saw ?? []) {
      if (sight.counts.length) {
        line(seen(sight));
      }
    }
    if (entry.why) line(`why: ${entry.why}`);
    if (entry.muted) line(`muted: ${entry.muted}`);
    for (const verdict of entry.verdicts) {
      line(`${verdict.action.toUpperCase()}${marked(verdict)} ${verdict.detector} ${verdict.count}/${verdict.threshold}: ${verdict.reason}`);
    }
    if (entry.after) line(entry.after);
  };

  const choose = (at) => {
    const next = Math.max(0, Math.min(entries.length - 1, at));
    if (next === chosen) return;
    const timeline = one("timeline");
    marks[chosen]?.classList.remove("chosen");
    chosen = next;
    const mark = marks[chosen];
    mark.classList.add("chosen");
    const box = mark.getBoundingClientRect();
    const frame = timeline.getBoundingClientRect();
    if (box.left < frame.left + 40) timeline.scrollLeft -= frame.left + 80 - box.left;
    if (box.right > frame.right - 20) timeline.scrollLeft += box.right - frame.right + 80;
    timeline.setAttribute("aria-valuenow", String(chosen + 1));
    timeline.setAttribute("aria-valuetext", `#${entries[chosen].n} ${entries[chosen].kind}`);
    tell(entries[chosen]);
  };

  const begin = () => {
    const timeline = one("timeline");
    if (!timeline) return;
    const before = entries[chosen]?.n;
    entries = JSON.parse(one("entries").dataset.entries);
    marks = timeline.querySelectorAll(".event");
    chosen = -1;
    const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    timeline.addEventListener("keydown", (event) => {
      if (event.key in moves) choose(chosen + moves[event.key]);
      else if (event.key === "Home") choose(0);
      else if (event.key === "End") choose(entries.length - 1);
      else return;
      event.preventDefault();
    });
    timeline.addEventListener("click", (event) => {
      const mark = event.target.closest(".event");
      if (mark) choose(Number(mark.dataset.at));
    });
    for (const button of document.querySelectorAll("button.go")) {
      button.addEventListener("click", () => {
        choose(Number(button.dataset.at));
        timeline.scrollIntoView({ block: "center" });
        timeline.focus({ preventScroll: true });
      });
    }
    if (!entries.length) return;
    const same = entries.findIndex((entry) => entry.n === before);
    const stops = (entry) => entry.verdicts.some((v) => v.action === "block" || v.action === "abort");
    const stop = entries.findIndex(stops);
    choose(same >= 0 ? same : stop >= 0 ? stop : entries.length - 1);
  };

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id === "told") begin();
  });
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.target.id !== "told") return;
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = event.detail.xhr.responseText;
    one("told").replaceChildren(note);
  });
})();
