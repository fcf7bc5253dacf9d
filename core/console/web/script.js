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

  const show = (html) => {
    const scrolled = live.querySelector(".scroll")?.scrollLeft ?? 0;
    live.innerHTML = html;
    live.querySelector(".scroll")?.scrollTo(scrolled, 0);
  };

  const start = () => {
    state.textContent = "connecting";
    events = new EventSource("live");
    events.onmessage = (event) => {
      state.textContent = "live";
      if (!inUse()) show(JSON.parse(event.data));
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

  // A page that nobody sees holds no connection: browsers have six for a host, over all its pages.
  let paused = false;
  const follow = () => {
    const wanted = !paused && !document.hidden;
    if (wanted && !events) start();
    if (!wanted && events) stop(paused ? "paused" : "not live");
  };

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume" : "Pause";
    follow();
  });
  document.addEventListener("visibilitychange", follow);
  window.addEventListener("pagehide", () => stop("not live"));
  window.addEventListener("pageshow", follow);
  follow();
})();
