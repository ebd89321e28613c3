// Playing the order of work: all vehicles leave the depot together.

const WHOLE = 40; // seconds that the longest route takes at speed 1
const playButton = document.getElementById("play");
const clock = document.getElementById("clock");

function setTime(time) {
  state.time = Math.min(Math.max(time, 0), duration);
  const share = duration > 0 ? state.time / duration : 1;
  clock.value = String(1000 * share);
  const text = clockText(share >= 1);
  document.getElementById("clock-text").textContent = text;
  clock.setAttribute("aria-valuetext", text);
  showProgress();
  redraw();
}

function clockText(done) {
  if (timed) {
    return done ? `done after ${durationText(duration)}` : `${durationText(state.time)} of ${durationText(duration)}`;
  }
  return done ? `done at cost ${duration}` : `cost ${Math.floor(state.time)} of ${duration}`;
}

let last = null;
function tick(moment) {
  if (!state.playing) return;
  if (last !== null) {
    // After a pause of the page itself, go on from where it was.
    const seconds = Math.min((moment - last) / 1000, 0.25);
    setTime(state.time + (seconds * state.speed * duration) / WHOLE);
  }
  last = moment;
  if (state.time >= duration) togglePlay();
  else requestAnimationFrame(tick);
}

function togglePlay() {
  state.playing = !state.playing && duration > 0;
  playButton.textContent = state.playing ? "❚❚" : "▶";
  playButton.setAttribute("aria-label", state.playing ? "Pause" : "Play the order of work");
  if (!state.playing) return;
  if (state.time >= duration) setTime(0);
  last = null;
  requestAnimationFrame(tick);
}

playButton.addEventListener("click", togglePlay);
clock.addEventListener("input", () => setTime((Number(clock.value) / 1000) * duration));
document.getElementById("speed").addEventListener("change", (event) => {
  state.speed = Number(event.target.value);
});
