/** The map: Leaflet moves and zooms, one canvas below it draws all streets. */

import * as L from "leaflet";
import type { Position } from "geojson";
import type { Place } from "./api";
import { DEPOT, themed } from "./colours";
import type { Line } from "./streets";
import { distanceTo, middle, project, rounded, unproject } from "./streets";

export interface Stroke {
  colour: string;
  width: number;
  dash?: [number, number];
  alpha?: number;
  /** Draw beside the line, this many pixels to the right. */
  beside?: number;
  /** Draw small arrows in driving direction. */
  arrows?: boolean;
}

/** Lines drawn together; `style` says how each is drawn, null leaves it out. */
export interface Layer<T extends Line = Line> {
  lines: readonly T[];
  style(line: T): Stroke | null;
}

export interface Marker {
  place: Place;
  mark: "depot" | "facility" | "start";
}

/** Least distance of two names on the map, and the zoom from which they are shown. */
const NAMES_APART = 130;
const NAMES_FROM = 15;
/** Zoom from which arrows are shown. */
const ARROWS_FROM = 16;

export class StreetMap {
  readonly leaflet: L.Map;
  /** Lines to draw, the lowest first. */
  layers: Layer[] = [];
  /** Lines whose names are shown. */
  named: readonly Line[] = [];
  markers: Marker[] = [];
  areas: readonly Position[][] = [];
  /** Corners of the area that is being drawn, and where the pointer is. */
  draft: { corners: Position[]; pointer: Position | null } | null = null;
  /** Lines that can be dragged, and lines with a ring around them. */
  chosen: readonly Line[] = [];
  ringed: readonly Line[] = [];
  /** Whether a cross shows the middle, which Enter acts on. */
  cross = false;
  private readonly canvas: HTMLCanvasElement;
  private waiting = false;
  private readonly middles = new WeakMap<Line, ReturnType<typeof middle>>();

  constructor(readonly element: HTMLElement) {
    this.leaflet = L.map(element, {
      center: [39.74, -104.99],
      zoom: 12,
      zoomControl: false,
      attributionControl: false,
      zoomAnimation: false,
      fadeAnimation: false,
      doubleClickZoom: false,
      zoomSnap: 0.25,
      zoomDelta: 0.5,
      wheelPxPerZoomLevel: 120,
      maxZoom: 20,
      minZoom: 1,
    });
    this.canvas = document.createElement("canvas");
    this.canvas.className = "streets";
    element.prepend(this.canvas);
    this.leaflet.on("move zoom resize", () => this.redraw());
    new ResizeObserver(() => this.leaflet.invalidateSize({ animate: false })).observe(element);
    element.addEventListener("focus", () => this.redraw());
    element.addEventListener("blur", () => this.redraw());
  }

  /** Draw before the next frame. */
  redraw(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  /** Show a box of the world. */
  fit(box: Line["box"] | null, closest = 17): void {
    if (!box) return;
    const [west, north] = unproject(box[0], box[1]);
    const [east, south] = unproject(box[2], box[3]);
    this.leaflet.fitBounds([[south, west], [north, east]], { padding: [28, 28], maxZoom: closest, animate: false });
  }

  /** Show a line without zooming out, if it is not in sight. */
  show(line: Line): void {
    const at = this.middleOf(line);
    const [longitude, latitude] = unproject(at.x, at.y);
    this.leaflet.setView([latitude, longitude], Math.max(this.leaflet.getZoom(), 15.5), { animate: false });
  }

  /** Return the place at a point of the map's element. */
  placeAt(x: number, y: number): Place {
    const { lng, lat } = this.leaflet.containerPointToLatLng([x, y]);
    return rounded([lng, lat]);
  }

  /** Return the point of the map's element where a place is. */
  pointAt(place: Position): [number, number] {
    const { x, y } = this.leaflet.latLngToContainerPoint([place[1]!, place[0]!]);
    return [x, y];
  }

  /** Return the point of a window's place in the map's element. */
  inside(event: { clientX: number; clientY: number }): [number, number] {
    const box = this.element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** Return the line nearest to a point of the map's element, if one is within reach. */
  pick<T extends Line>(lines: readonly T[], x: number, y: number, reach: number): T | null {
    const { scale, left, top } = this.view();
    const [wx, wy, limit] = [(x + left) / scale, (y + top) / scale, reach / scale];
    let [found, least]: [T | null, number] = [null, limit];
    for (const line of lines) {
      const { box } = line;
      if (wx < box[0] - limit || wx > box[2] + limit || wy < box[1] - limit || wy > box[3] + limit) continue;
      const away = distanceTo(line, wx, wy);
      if (away < least) [found, least] = [line, away];
    }
    return found;
  }

  /** Return the point of the map's element half way along a line. */
  middlePoint(line: Line): [number, number] {
    const { scale, left, top } = this.view();
    const at = this.middleOf(line);
    return [at.x * scale - left, at.y * scale - top];
  }

  private middleOf(line: Line): ReturnType<typeof middle> {
    let found = this.middles.get(line);
    if (!found) this.middles.set(line, (found = middle(line)));
    return found;
  }

  private view(): { scale: number; left: number; top: number; zoom: number } {
    const zoom = this.leaflet.getZoom();
    const size = this.leaflet.getSize();
    const centre = this.leaflet.project(this.leaflet.getCenter(), zoom);
    return { scale: 2 ** zoom, left: centre.x - size.x / 2, top: centre.y - size.y / 2, zoom };
  }

  private draw(): void {
    const { x: width, y: height } = this.leaflet.getSize();
    const ratio = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
    }
    const context = this.canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.lineCap = context.lineJoin = "round";
    const view = this.view();
    const seen: Line["box"] = [
      view.left / view.scale,
      view.top / view.scale,
      (view.left + width) / view.scale,
      (view.top + height) / view.scale,
    ];
    // Lines are thin on a whole city and wide on a few streets.
    const factor = Math.min(Math.max(0.55 + (view.zoom - 12.5) * 0.3, 0.4), 2.2);
    this.drawAreas(context, view);
    this.drawRings(context, view, factor);
    for (const layer of this.layers) this.drawLayer(context, layer, view, seen, factor);
    if (view.zoom >= NAMES_FROM) this.drawNames(context, view, seen);
    this.drawMarkers(context);
    this.drawDraft(context);
    if (this.cross && document.activeElement === this.element) this.drawCross(context, width / 2, height / 2);
  }

  private drawLayer(
    context: CanvasRenderingContext2D,
    layer: Layer,
    view: { scale: number; left: number; top: number; zoom: number },
    seen: Line["box"],
    factor: number,
  ): void {
    const groups = new Map<string, { stroke: Stroke; lines: Line[] }>();
    for (const line of layer.lines) {
      const { box } = line;
      if (box[2] < seen[0] || box[0] > seen[2] || box[3] < seen[1] || box[1] > seen[3]) continue;
      const stroke = layer.style(line);
      if (!stroke) continue;
      const key = `${stroke.colour}${stroke.width}${stroke.dash ?? ""}${stroke.alpha ?? ""}${stroke.arrows ?? ""}${stroke.beside ?? ""}`;
      const group = groups.get(key);
      if (group) group.lines.push(line);
      else groups.set(key, { stroke, lines: [line] });
    }
    for (const { stroke, lines } of groups.values()) {
      context.strokeStyle = stroke.colour;
      context.globalAlpha = stroke.alpha ?? 1;
      context.lineWidth = stroke.width * factor;
      context.setLineDash(stroke.dash ? stroke.dash.map((one) => one * Math.max(factor, 0.7)) : []);
      context.beginPath();
      for (const line of lines) trace(context, line, view, (stroke.beside ?? 0) * factor);
      context.stroke();
      context.setLineDash([]);
      if (stroke.arrows && view.zoom >= ARROWS_FROM) {
        context.beginPath();
        for (const line of lines) this.arrow(context, line, view, 1.8 * factor);
        context.lineWidth = 0.9 * factor;
        context.strokeStyle = themed("--paper");
        context.stroke();
      }
    }
    context.globalAlpha = 1;
  }

  private arrow(
    context: CanvasRenderingContext2D,
    line: Line,
    view: { scale: number; left: number; top: number },
    size: number,
  ): void {
    const { box } = line;
    if (Math.max(box[2] - box[0], box[3] - box[1]) * view.scale < 14 * size) return;
    const at = this.middleOf(line);
    const [x, y] = [at.x * view.scale - view.left, at.y * view.scale - view.top];
    const back = (turn: number): [number, number] => [
      x + size * Math.cos(at.angle + Math.PI + turn),
      y + size * Math.sin(at.angle + Math.PI + turn),
    ];
    context.moveTo(...back(0.7));
    context.lineTo(x, y);
    context.lineTo(...back(-0.7));
  }

  private drawRings(
    context: CanvasRenderingContext2D,
    view: { scale: number; left: number; top: number },
    factor: number,
  ): void {
    for (const [colour, width] of [[themed("--focus"), 13], [themed("--paper"), 8]] as const) {
      context.strokeStyle = colour;
      context.lineWidth = width * Math.max(factor, 0.8);
      context.beginPath();
      for (const line of this.ringed) trace(context, line, view);
      context.stroke();
    }
  }

  private drawNames(
    context: CanvasRenderingContext2D,
    view: { scale: number; left: number; top: number },
    seen: Line["box"],
  ): void {
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = themed("--ink");
    context.strokeStyle = themed("--halo");
    context.lineWidth = 3;
    const taken: { x: number; y: number; name: string }[] = [];
    for (const line of this.named) {
      const { box } = line;
      if (!line.name || box[2] < seen[0] || box[0] > seen[2] || box[3] < seen[1] || box[1] > seen[3]) continue;
      const length = Math.hypot(box[2] - box[0], box[3] - box[1]) * view.scale;
      const at = this.middleOf(line);
      const [x, y] = [at.x * view.scale - view.left, at.y * view.scale - view.top];
      if (length < 6 * line.name.length) continue;
      if (taken.some((one) => Math.hypot(one.x - x, one.y - y) < (one.name === line.name ? 3 : 0.35) * NAMES_APART)) continue;
      taken.push({ x, y, name: line.name });
      context.save();
      context.translate(x, y);
      context.rotate(Math.abs(at.angle) > Math.PI / 2 ? at.angle + Math.PI : at.angle);
      context.strokeText(line.name, 0, -9);
      context.fillText(line.name, 0, -9);
      context.restore();
    }
  }

  private drawAreas(context: CanvasRenderingContext2D, view: { scale: number; left: number; top: number }): void {
    if (!this.areas.length) return;
    context.beginPath();
    for (const ring of this.areas) {
      ring.forEach((place, index) => {
        const [x, y] = project(place);
        const at = [x * view.scale - view.left, y * view.scale - view.top] as const;
        if (index) context.lineTo(...at);
        else context.moveTo(...at);
      });
      context.closePath();
    }
    context.fillStyle = context.strokeStyle = themed("--focus");
    context.globalAlpha = 0.07;
    context.fill();
    context.globalAlpha = 0.8;
    context.lineWidth = 1.5;
    context.stroke();
    context.globalAlpha = 1;
  }

  private drawMarkers(context: CanvasRenderingContext2D): void {
    for (const { place, mark } of this.markers) {
      const [x, y] = this.pointAt(place);
      context.strokeStyle = themed("--halo");
      context.lineWidth = 2.5;
      context.fillStyle = mark === "depot" ? DEPOT : themed("--ink");
      context.beginPath();
      if (mark === "depot") context.rect(x - 7, y - 7, 14, 14);
      else {
        context.moveTo(x, y - 9);
        context.lineTo(x + 9, y);
        context.lineTo(x, y + 9);
        context.lineTo(x - 9, y);
        context.closePath();
      }
      context.stroke();
      context.fill();
    }
  }

  private drawDraft(context: CanvasRenderingContext2D): void {
    if (!this.draft) return;
    const points = [...this.draft.corners, ...(this.draft.pointer ? [this.draft.pointer] : [])].map((place) =>
      this.pointAt(place),
    );
    if (!points.length) return;
    context.strokeStyle = context.fillStyle = themed("--focus");
    context.lineWidth = 2;
    context.beginPath();
    points.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
    context.globalAlpha = 0.12;
    context.fill();
    context.globalAlpha = 1;
    context.stroke();
    for (const place of this.draft.corners) {
      const [x, y] = this.pointAt(place);
      context.beginPath();
      context.arc(x, y, 5, 0, 2 * Math.PI);
      context.fill();
    }
  }

  private drawCross(context: CanvasRenderingContext2D, x: number, y: number): void {
    for (const [colour, width] of [[themed("--halo"), 5], [themed("--focus"), 2]] as const) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]] as const) {
        context.moveTo(x + 4 * dx, y + 4 * dy);
        context.lineTo(x + 14 * dx, y + 14 * dy);
      }
      context.stroke();
    }
  }
}

/** Add a line to the path, `beside` pixels to its right. */
function trace(
  context: CanvasRenderingContext2D,
  line: Line,
  view: { scale: number; left: number; top: number },
  beside = 0,
): void {
  const { points } = line;
  for (let i = 0; i < points.length; i += 2) {
    let [x, y] = [points[i]! * view.scale - view.left, points[i + 1]! * view.scale - view.top];
    if (beside) {
      // Across the line from the point before to the point after.
      const [before, after] = [Math.max(i - 2, 0), Math.min(i + 2, points.length - 2)];
      const [dx, dy] = [points[after]! - points[before]!, points[after + 1]! - points[before + 1]!];
      const length = Math.hypot(dx, dy) || 1;
      x -= (dy / length) * beside;
      y += (dx / length) * beside;
    }
    if (i) context.lineTo(x, y);
    else context.moveTo(x, y);
  }
}
