// The first page shows fresh figures as they come. Everything else works without script.
"use strict";
(() => {
  const live = document.getElementById("live");
  const state = document.getElementById("live-state");
  const pause = document.getElementById("live-pause");
  if (!live || !state || !pause || !window.EventSource) return;

  let events = null;

  // Nothing moves under the hands of somebody who is using the figures.
  const inUse = () => {
    const selected = document.getSelection();
    return live.contains(document.activeElement) ||
      selected && !selected.isCollapsed && live.contains(selected.anchorNode);
  };

  const start = () => {
    state.textContent = "connecting";
    events = new EventSource("live");
    events.onmessage = (event) => {
      state.textContent = "live";
      if (!inUse()) live.innerHTML = JSON.parse(event.data);
    };
    events.onerror = () => {
      state.textContent = events.readyState === EventSource.CLOSED ? "not live: load the page again" : "connecting";
    };
  };

  const stop = (text) => {
    if (events) events.close();
    events = null;
    state.textContent = text;
  };

  pause.hidden = false;
  pause.addEventListener("click", () => {
    const paused = events !== null;
    pause.textContent = paused ? "Resume" : "Pause";
    paused ? stop("paused") : start();
  });
  window.addEventListener("pagehide", () => stop("not live"));
  window.addEventListener("pageshow", (event) => { if (event.persisted) start(); });
  start();
})();
