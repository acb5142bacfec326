// Light or dark: the system's choice, unless the reader has made one. Runs before the first paint.
(() => {
  "use strict";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const kept = () => {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null;
    }
  };
  const apply = () => {
    root.dataset.theme = kept() ?? (system.matches ? "dark" : "light");
    document.dispatchEvent(new CustomEvent("theme"));
  };
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      const next = root.dataset.theme === "dark" ? "light" : "dark";
      try {
        localStorage.setItem("theme", next);
      } catch {
        // Then it holds for this page only.
      }
      root.dataset.theme = next;
      document.dispatchEvent(new CustomEvent("theme"));
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest("input, select, textarea, [contenteditable]");
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        document.getElementById("q").focus();
        event.preventDefault();
      }
    });
  });
})();
