/** The cost of the best plan over time, as a step line. */

const SPACE = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [340, 120, 8, 18, 16];

export interface Point {
  seconds: number;
  cost: number;
}

/** Draw the curve; `end` is the time up to which the last cost holds. */
export function drawCurve(
  svg: SVGSVGElement,
  points: readonly Point[],
  end: number,
  words: (cost: number) => string,
): void {
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  const first = points[0];
  const last = points[points.length - 1];
  if (!first || !last) {
    svg.replaceChildren();
    return;
  }
  const until = Math.max(end, last.seconds, 0.1);
  const [low, high] = [Math.min(...points.map((p) => p.cost)), Math.max(...points.map((p) => p.cost))];
  const x = (seconds: number) => LEFT + (seconds / until) * (WIDTH - 2 * LEFT);
  const y = (cost: number) =>
    TOP + (high === low ? 0.5 : (high - cost) / (high - low)) * (HEIGHT - TOP - BOTTOM - 4);
  let path = `M${x(first.seconds).toFixed(1)},${y(first.cost).toFixed(1)}`;
  for (const point of points.slice(1)) path += `H${x(point.seconds).toFixed(1)}V${y(point.cost).toFixed(1)}`;
  path += `H${x(until).toFixed(1)}`;
  svg.replaceChildren(
    part("path", { class: "axis", d: `M${LEFT},${HEIGHT - BOTTOM}H${WIDTH - LEFT}` }),
    part("path", { class: "line", d: path }),
    part("text", { x: LEFT, y: 11 }, words(first.cost)),
    part("text", { x: WIDTH - LEFT, y: y(last.cost) - 5, class: "end" }, words(last.cost)),
    part("text", { x: LEFT, y: HEIGHT - 4 }, "0 s"),
    part("text", { x: WIDTH - LEFT, y: HEIGHT - 4, class: "end" }, `${until.toFixed(until < 10 ? 1 : 0)} s`),
  );
  svg.setAttribute("aria-label", `Cost over time: from ${words(first.cost)} to ${words(last.cost)}`);
}

function part(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.textContent = text;
  return made;
}
