/** Lines of streets, in pixels of the world at zoom 0 (Web Mercator), and geometry on them. */

import type { FeatureCollection, LineString, Position } from "geojson";
import type { Place, StreetFacts } from "./api";

/** Width of the world at zoom 0. */
const WORLD = 256;

export interface Line {
  id: number;
  name: string;
  /** x and y of each point in turn. */
  points: Float64Array;
  /** Left, top, right, bottom. */
  box: [number, number, number, number];
}

export interface Street extends Line {
  kind: string;
  length: number;
  oneWay: boolean;
}

export function project([longitude, latitude]: Position): [number, number] {
  const sine = Math.sin(((latitude ?? 0) * Math.PI) / 180);
  return [
    (((longitude ?? 0) + 180) / 360) * WORLD,
    (0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)) * WORLD,
  ];
}

export function unproject(x: number, y: number): Place {
  return [(x / WORLD) * 360 - 180, (Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / WORLD))) * 180) / Math.PI];
}

/** Return a place with as many decimals as a junction needs. */
export function rounded([longitude, latitude]: Position): Place {
  return [Number((longitude ?? 0).toFixed(6)), Number((latitude ?? 0).toFixed(6))];
}

export function lineOf(id: number, name: string, coordinates: readonly Position[]): Line {
  const points = new Float64Array(2 * coordinates.length);
  const box: Line["box"] = [Infinity, Infinity, -Infinity, -Infinity];
  coordinates.forEach((place, index) => {
    const [x, y] = project(place);
    points[2 * index] = x;
    points[2 * index + 1] = y;
    box[0] = Math.min(box[0], x);
    box[1] = Math.min(box[1], y);
    box[2] = Math.max(box[2], x);
    box[3] = Math.max(box[3], y);
  });
  return { id, name, points, box };
}

export function streetsOf(collection: FeatureCollection<LineString, StreetFacts>): Street[] {
  return collection.features.map((feature) => ({
    ...lineOf(Number(feature.id), feature.properties.name, feature.geometry.coordinates),
    kind: feature.properties.kind,
    length: feature.properties.length,
    oneWay: feature.properties.one_way,
  }));
}

/** Return the box around some lines. */
export function boxOf(lines: readonly Line[]): Line["box"] | null {
  if (!lines.length) return null;
  const box: Line["box"] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const line of lines) {
    box[0] = Math.min(box[0], line.box[0]);
    box[1] = Math.min(box[1], line.box[1]);
    box[2] = Math.max(box[2], line.box[2]);
    box[3] = Math.max(box[3], line.box[3]);
  }
  return box;
}

/** Return the point half way along a line, and its direction there. */
export function middle(line: Line): { x: number; y: number; angle: number } {
  const { points } = line;
  let total = 0;
  for (let i = 2; i < points.length; i += 2) total += step(points, i);
  let left = total / 2;
  for (let i = 2; i < points.length; i += 2) {
    const here = step(points, i);
    if (here >= left && here > 0) {
      const share = left / here;
      const [x0, y0, x1, y1] = [points[i - 2]!, points[i - 1]!, points[i]!, points[i + 1]!];
      return { x: x0 + share * (x1 - x0), y: y0 + share * (y1 - y0), angle: Math.atan2(y1 - y0, x1 - x0) };
    }
    left -= here;
  }
  return { x: points[0] ?? 0, y: points[1] ?? 0, angle: 0 };
}

function step(points: Float64Array, i: number): number {
  return Math.hypot(points[i]! - points[i - 2]!, points[i + 1]! - points[i - 1]!);
}

/** Return the distance of a point from a line. */
export function distanceTo(line: Line, x: number, y: number): number {
  const { points } = line;
  let least = Infinity;
  for (let i = 2; i < points.length; i += 2) {
    const [x0, y0, dx, dy] = [
      points[i - 2]!,
      points[i - 1]!,
      points[i]! - points[i - 2]!,
      points[i + 1]! - points[i - 1]!,
    ];
    const along = dx || dy ? Math.min(Math.max(((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy), 0), 1) : 0;
    least = Math.min(least, Math.hypot(x - x0 - along * dx, y - y0 - along * dy));
  }
  return least;
}

/** Return whether a street is in one of some areas; without areas every street is. */
export function inArea(street: Line, areas: readonly Position[][], border: "middle" | "leave"): boolean {
  if (!areas.length) return true;
  const { points } = street;
  const centre = middle(street);
  const places =
    border === "middle"
      ? [[centre.x, centre.y]]
      : [
          [points[0]!, points[1]!],
          [points[points.length - 2]!, points[points.length - 1]!],
        ];
  return places.every(([x, y]) => areas.some((ring) => inRing(ring, unproject(x!, y!))));
}

function inRing(ring: readonly Position[], [x, y]: Place): boolean {
  let inside = false;
  for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) {
    const [xi, yi, xj, yj] = [ring[i]![0]!, ring[i]![1]!, ring[j]![0]!, ring[j]![1]!];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

/** Return a name without case and accents, for searching. */
export function folded(name: string): string {
  return name
    .normalize("NFD")
    .replace(/\p{M}/gu, "")
    .toLowerCase();
}
