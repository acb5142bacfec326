(() => {
  "use strict";
  const entries = JSON.parse(document.getElementById("data").textContent);
  const timeline = document.getElementById("timeline");
  const detail = document.getElementById("detail");
  if (!timeline || !entries.length) return;
  const marks = timeline.querySelectorAll(".event");
  let chosen = -1;

  const line = (text, className) => {
    const element = document.createElement("p");
    element.textContent = text;
    if (className) element.className = className;
    detail.append(element);
  };

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
    detail.replaceChildren();
    const what = [entry.group, entry.tool, entry.detail].filter(Boolean).join(" ");
    const how = entry.disposition ? ` (${entry.disposition})` : "";
    const heading = document.createElement("h3");
    heading.textContent = `#${entry.n} ${entry.kind} ${what}${how}`;
    detail.append(heading);
    line(`seq ${entry.seq ?? "none"}, offset ${entry.offset}, ${new Date(entry.append_time).toISOString()}`, "quiet");
    if (entry.preview) line(entry.preview, "code");
    if (entry.kind === "tool_outcome") {
      line(`result ${entry.result ?? "not recorded"}${entry.failed ? ", failed" : ""}${entry.executed ? "" : ", not executed"}`);
    }
    if (entry.streak !== undefined) line(`streak ${entry.streak} of ${entry.records} records`);
    for (const sight of entry.saw ?? []) {
      if (sight.counts.length) line(seen(sight));
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
    if (chosen >= 0) marks[chosen].classList.remove("chosen");
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
      timeline.scrollIntoView({ block: "start" });
      timeline.focus({ preventScroll: true });
    });
  }
  const first = entries.findIndex((entry) => entry.verdicts.length);
  choose(first < 0 ? 0 : first);
})();
