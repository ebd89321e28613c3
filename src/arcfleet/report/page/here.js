// Where the reader is, on a device that knows and if it may tell.

const hereButton = document.getElementById("here");
hereButton.hidden = plan.globe === null || !window.isSecureContext || !("geolocation" in navigator);
let watch = null;

function stopWatching() {
  if (watch !== null) navigator.geolocation.clearWatch(watch);
  watch = null;
  state.here = null;
  hereButton.setAttribute("aria-pressed", "false");
  redraw();
}

function showHere({ coords }) {
  const place = [xAt(coords.longitude), yAt(coords.latitude)];
  const isFirst = state.here === null;
  state.here = { place, reach: coords.accuracy / plan.metresPerUnit };
  const [x, y] = place, [left, top, right, bottom] = bounds;
  if (x < left || x > right || y < top || y > bottom) {
    stopWatching();
    say("You are outside of this map.");
    return;
  }
  const [px, py] = onScreen(place);
  if (isFirst) move(view.width / 2 - px, view.height / 2 - py);
  redraw();
}

function drawHere() {
  const [x, y] = onScreen(state.here.place);
  pen.fillStyle = pen.strokeStyle = theme.focus;
  pen.globalAlpha = 0.15;
  pen.beginPath();
  pen.arc(x, y, Math.max(state.here.reach * view.scale, 14), 0, 7);
  pen.fill();
  pen.globalAlpha = 1;
  pen.beginPath();
  pen.arc(x, y, 7, 0, 7);
  pen.fill();
  pen.strokeStyle = "#ffffff";
  pen.lineWidth = 2;
  pen.stroke();
}

// A word about something that did not happen; it goes by itself.
function say(text) {
  pointAtNothing();
  tip.replaceChildren(text);
  tip.hidden = false;
  tip.style.transform = "translate(12px, 12px)";
  setTimeout(() => { if (state.pointed === null) tip.hidden = true; }, 4000);
}

hereButton.addEventListener("click", () => {
  if (watch !== null) {
    stopWatching();
    return;
  }
  hereButton.setAttribute("aria-pressed", "true");
  const refused = () => {
    stopWatching();
    say("Your position is not known to this page.");
  };
  watch = navigator.geolocation.watchPosition(showHere, refused, { enableHighAccuracy: true });
});
