// Follows /events: new rows and figures on the fleet page, a fresh story on a run's page.
// Rows are HTML that the server has escaped; everything else is put in as text.
(() => {
  "use strict";
  const REOPEN_MS = 1500;
  let source = null;
  let last = "";
  let timer = 0;
  let chart = null;
  let series = null;
  let held = [];
  let paused = false;

  const one = (selector) => document.querySelector(selector);
  const place = () => one("#verdicts") ?? one("#run");

  const say = (text, state) => {
    const line = one("#state");
    if (line && line.textContent !== text) line.textContent = text;
    document.body.dataset.stream = state;
  };

  const kafka = (connected) => {
    const pulse = one("#pulse");
    pulse.classList.toggle("lost", !connected);
    const text = connected ? "Kafka answers" : "Kafka does not answer";
    if (pulse.lastElementChild.textContent !== text) pulse.lastElementChild.textContent = text;
  };

  // A stream that the browser gives up (an error page in between) is opened again here; one that
  // breaks off it opens itself, and tells the server what it has seen.
  const open = () => {
    clearTimeout(timer);
    source?.close();
    const section = place();
    if (!section) return;
    const address = new URL(section.dataset.events, location.href);
    if (last) address.searchParams.set("after", last);
    source = new EventSource(address);
    source.addEventListener("open", () => say(paused ? "Paused" : "Live", "open"));
    source.addEventListener("error", () => {
      say("The dashboard does not answer; trying again…", "lost");
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, REOPEN_MS);
    });
    source.addEventListener("verdicts", (event) => {
      last = event.lastEventId;
      if (one("#verdicts")) add(event.data);
      else again();
    });
    source.addEventListener("resync", (event) => {
      last = event.lastEventId;
      if (one("#verdicts")) htmx.trigger("#filters", "submit");
      else again();
    });
    source.addEventListener("stats", (event) => figures(JSON.parse(event.data)));
  };

  const add = (html) => {
    if (paused) {
      held.push(html);
      if (held.length > 50) held.shift();
      say("Paused; there is more", "open");
      return;
    }
    const body = document.createElement("template");
    body.innerHTML = `<table><tbody>${html}</tbody></table>`;
    const rows = one("#rows");
    const fresh = [...body.content.querySelectorAll("tr")].filter(
      (row) => !document.getElementById(row.id),
    );
    for (const row of fresh.reverse()) put(rows, row);
    const limit = Number(one("#verdicts").dataset.limit);
    while (rows.children.length > limit) rows.lastElementChild.remove();
    one("#empty").hidden = rows.children.length > 0;
  };

  // A block that repeats the run's last one takes its place, and counts it.
  const put = (rows, row) => {
    const last = [...rows.children].find((each) => each.dataset.run === row.dataset.run);
    if (last && Number(last.dataset.seq) >= Number(row.dataset.seq)) return;
    if (last && row.dataset.same && last.dataset.same === row.dataset.same) {
      const times = Number(last.dataset.times) + Number(row.dataset.times);
      const count = row.querySelector(".times");
      row.dataset.times = String(times);
      count.textContent = `×${times}`;
      count.hidden = false;
      last.remove();
    }
    row.classList.add("fresh");
    rows.prepend(row);
  };

  let asked = 0;
  const again = () => {
    clearTimeout(asked);
    asked = setTimeout(async () => {
      htmx.trigger("#story", "again");
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const selector of ["#run", ".titled", "[aria-labelledby=h-standing]", "[aria-labelledby=h-verdicts]"]) {
        const [mine, theirs] = [one(selector), page.querySelector(selector)];
        if (mine && theirs) mine.replaceWith(document.adoptNode(theirs));
      }
    }, 1200);
  };

  const figures = (stats) => {
    kafka(stats.connected);
    const values = { ...stats.runs, minute: stats.minute };
    for (const [name, value] of Object.entries(values)) {
      const figure = one(`[data-figure=${name}]`);
      if (figure && figure.textContent !== String(value)) figure.textContent = value;
    }
    series = stats.series;
    draw();
  };

  const NAMES = ["warn", "block", "abort", "release"];
  const stacked = () => {
    const sums = series.t.map(() => 0);
    const layers = NAMES.map((name) => series[name].map((value, at) => (sums[at] += value)));
    return [series.t, ...layers.reverse()];
  };

  const draw = () => {
    if (!one("#chart") || !series) return;
    if (chart) chart.setData(stacked());
    else build();
  };

  const build = () => {
    const frame = one("#chart");
    if (!frame || !series) return;
    chart?.destroy();
    const style = getComputedStyle(document.documentElement);
    const shade = (name) => style.getPropertyValue(`--${name}`).trim();
    const bars = uPlot.paths.bars({ size: [0.75, 14], align: 1 });
    const axis = { stroke: shade("soft"), grid: { stroke: shade("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    chart = new uPlot(
      {
        width: frame.clientWidth,
        height: 116,
        legend: { show: false },
        cursor: { show: false },
        padding: [8, 18, 0, 0],
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
        scales: { y: { range: (_, low, high) => [0, Math.max(4, Math.ceil(high * 1.1))] } },
        axes: [
          { ...axis, size: 22, values: (_, ticks) => ticks.map((at) => new Date(at * 1000).toISOString().slice(11, 16)) },
          { ...axis, size: 34, values: (_, ticks) => ticks.map((at) => (Number.isInteger(at) ? at : "")) },
        ],
        series: [{}, ...[...NAMES].reverse().map((name) => ({ fill: shade(name), stroke: shade(name), width: 0, paths: bars, points: { show: false } }))],
      },
      stacked(),
      frame,
    );
  };

  document.addEventListener("theme", build);
  let width = 0;
  addEventListener("resize", () => {
    const frame = one("#chart");
    if (chart && frame && frame.clientWidth !== width) {
      width = frame.clientWidth;
      chart.setSize({ width, height: 116 });
    }
  });

  const pausing = () => {
    const button = one("#pause");
    button?.addEventListener("click", () => {
      paused = !paused;
      button.setAttribute("aria-pressed", String(paused));
      button.textContent = paused ? "Go on" : "Pause";
      say(paused ? "Paused" : "Live", "open");
      if (!paused) for (const html of held.splice(0)) add(html);
    });
  };

  document.addEventListener("DOMContentLoaded", () => {
    const frame = one("#chart");
    if (frame) {
      series = JSON.parse(frame.dataset.stats).series;
      build();
    }
    pausing();
    open();
  });
  // Other filters: the list is new, and so is what the stream has to tell.
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id !== "verdicts") return;
    last = "";
    paused = false;
    held = [];
    pausing();
    open();
  });
  document.addEventListener("htmx:responseError", (event) => {
    const target = event.detail.target;
    if (!target.id.startsWith("done")) return;
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = event.detail.xhr.responseText;
    target.replaceChildren(note);
  });
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => {
    if (event.persisted) open();
  });
})();
