// Starting the page, and following the window and the colour scheme.

showPlan();
readTheme();
new ResizeObserver(resize).observe(canvas);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readTheme();
  redraw();
});
setTime(duration);
resize();

// For tests and for the curious: what the page shows, and a frame drawn now.
window.arcfleetMap = { plan, links, routes, state, view, draw, setTime, showAll, zoom, move };
