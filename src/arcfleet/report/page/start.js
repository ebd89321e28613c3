// Starting the page, and following the window and the colour scheme.

function followScheme() {
  readTheme();
  paintRoutes();
}

followScheme();
showPlan();
showChanges();
new ResizeObserver(resize).observe(canvas);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  followScheme();
  redraw();
});
setTime(duration);
resize();

// For tests and for the curious: what the page shows, and a frame drawn now.
window.arcfleetMap = { plan, plans, links, routes, state, view, draw, setTime, showAll, zoom, move, fit, tileImages };
