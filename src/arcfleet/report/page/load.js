// The load along a route: it rises with every street and falls where the vehicle empties.

const drawing = document.getElementById("drawing").namespaceURI;
const CHART = { left: 6, right: 6, top: 16, bottom: 16 };

// Corners of the line: clock and load, at the start, after every street, around every visit.
function loadLine(route) {
  const corners = [[0, 0]];
  let visits = 0, load = 0;
  const visitAfter = (steps) => {
    for (; route.visits[visits]?.steps === steps; visits++, load = 0) {
      const { start, end } = route.visits[visits];
      corners.push([start, load], [end, 0]);
    }
  };
  for (const [position, step] of route.steps.entries()) {
    visitAfter(position);
    if (step.serves) {
      corners.push([step.start, load], [step.end, step.load]);
      load = step.load;
    }
  }
  visitAfter(route.steps.length);
  corners.push([route.duration, load]);
  return corners;
}

function loadChart(route, width = 300, height = 84) {
  const { left, right, top, bottom } = CHART;
  const most = Math.max(route.capacity, ...route.visits.map((visit) => visit.load), 1);
  const x = (time) => left + ((width - left - right) * time) / (route.duration || 1);
  const y = (load) => height - bottom - ((height - top - bottom) * load) / most;
  const corners = loadLine(route);
  const line = corners.map(([time, load]) => `${x(time).toFixed(1)},${y(load).toFixed(1)}`).join(" L");
  const chart = shape("svg", { viewBox: `0 0 ${width} ${height}`, class: "load", role: "img" });
  const peak = Math.max(...corners.map(([, load]) => load));
  const emptied = route.visits.length ? `, emptied ${countOf(route.visits.length, "time")}` : "";
  chart.setAttribute("aria-label", `Load along route ${route.number}: up to ${peak} of ${route.capacity}${emptied}`);
  const ink = `var(--route-${route.number})`;
  chart.append(
    shape("line", { x1: left, x2: width - right, y1: y(route.capacity), y2: y(route.capacity), class: "capacity" }),
    shape("path", { d: `M${x(0)},${y(0)} L${line} L${x(route.duration)},${y(0)} Z`, fill: ink, "fill-opacity": 0.18 }),
    shape("path", { d: `M${line}`, fill: "none", stroke: ink, "stroke-width": 2, "stroke-linejoin": "round" }),
    shape("line", { x1: left, x2: width - right, y1: y(0), y2: y(0), class: "axis" }),
    label(left, y(route.capacity) - 4, `capacity ${route.capacity}`),
    label(left, height - 3, "0"),
    label(width - right, height - 3, timed ? durationText(route.duration) : `cost ${route.duration}`, "end"),
    ...route.visits.map((visit) => {
      const mark = shape("path", { d: `M${x(visit.start)},${y(visit.load) - 6} l6,6 -6,6 -6,-6 Z`, class: "visit" });
      const title = shape("title");
      title.textContent = `${visit.facility.name}: load ${visit.load}, ${whenText(visit.start)}`;
      mark.append(title);
      return mark;
    }),
  );
  return chart;
}

function shape(tag, attributes = {}) {
  const made = document.createElementNS(drawing, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function label(x, y, text, anchor = "start") {
  const made = shape("text", { x, y, "text-anchor": anchor });
  made.textContent = text;
  return made;
}
