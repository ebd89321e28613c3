/** Tools of the map: draw an area, pick streets, set depots and facilities; by pointer, touch and keys. */

import type { Position } from "geojson";
import type { Place } from "./api";
import { byId, isTouch } from "./dom";
import type { StreetMap } from "./map";

export type Tool = "area" | "box" | "pick" | "depot" | "facility";

export interface ToolActions {
  area(ring: Position[]): void;
  place(tool: "depot" | "facility", place: Place): void;
  pick(x: number, y: number, reach: number): void;
}

const HINTS: Record<Tool, string> = {
  area: "Click the corners of the area, then the first again. By keyboard: arrows and Enter.",
  box: "Drag over the area, or click two opposite corners.",
  pick: "Click a street to serve it or to leave it out.",
  depot: "Click where vehicles start; the nearest junction is taken.",
  facility: "Click where vehicles empty or refill; the nearest junction is taken.",
};

/** How far a pointer moves in a drag, and how near the first corner closes an area. */
const DRAGGED = 8;
const NEAR = { mouse: 12, touch: 24 };

export class Tools {
  tool: Tool | null = null;
  private corners: Position[] = [];
  private dragFrom: [number, number] | null = null;
  private ignoreClick = false;

  constructor(
    private readonly map: StreetMap,
    private readonly actions: ToolActions,
  ) {
    for (const one of document.querySelectorAll<HTMLButtonElement>("[data-tool]")) {
      one.addEventListener("click", () => {
        const tool = one.dataset["tool"] as Tool;
        this.choose(this.tool === tool ? null : tool);
      });
    }
    byId("tool-done").addEventListener("click", () => (this.tool === "area" ? this.close() : this.choose(null)));
    byId("tool-back").addEventListener("click", () => this.removeCorner());
    byId("tool-cancel").addEventListener("click", () => this.choose(null));
    const stage = byId("stage");
    // Before Leaflet sees them, so that a box is drawn and the map stays.
    stage.addEventListener("pointerdown", (event) => this.down(event), true);
    stage.addEventListener("pointermove", (event) => this.move(event), true);
    addEventListener("pointerup", (event) => this.up(event), true);
  }

  choose(tool: Tool | null): void {
    this.tool = tool;
    this.corners = [];
    this.dragFrom = null;
    this.map.leaflet.dragging.enable();
    for (const one of document.querySelectorAll<HTMLButtonElement>("[data-tool]")) {
      one.setAttribute("aria-pressed", String(one.dataset["tool"] === tool));
    }
    this.map.element.classList.toggle("aiming", tool !== null);
    if (tool) this.map.element.focus({ preventScroll: true });
    this.show(null);
  }

  /** Use the tool at a point of the map; returns whether there was one. */
  click(x: number, y: number, touch: boolean): boolean {
    if (this.ignoreClick) {
      this.ignoreClick = false;
      return true;
    }
    const place = this.map.placeAt(x, y);
    switch (this.tool) {
      case null:
        return false;
      case "depot":
      case "facility": {
        const tool = this.tool;
        this.choose(null);
        this.actions.place(tool, place);
        return true;
      }
      case "pick":
        this.actions.pick(x, y, touch ? NEAR.touch : NEAR.mouse);
        return true;
      case "box":
        if (this.corners.length) this.finish(rectangle(this.corners[0]!, place));
        else this.corners = [place];
        this.show(place);
        return true;
      case "area": {
        const [first] = this.corners;
        if (first && this.corners.length >= 3) {
          const [fx, fy] = this.map.pointAt(first);
          if (Math.hypot(fx - x, fy - y) <= (touch ? NEAR.touch : NEAR.mouse)) {
            this.close();
            return true;
          }
        }
        this.corners.push(place);
        this.show(null);
        return true;
      }
    }
  }

  /** Return whether a key was for a tool. */
  key(event: KeyboardEvent): boolean {
    if (!this.tool) return false;
    if (event.key === "Escape") this.choose(null);
    else if (event.key === "Backspace") this.removeCorner();
    else return false;
    return true;
  }

  private removeCorner(): void {
    this.corners.pop();
    this.show(null);
  }

  private close(): void {
    if (this.corners.length >= 3) this.finish(this.corners);
  }

  private finish(ring: Position[]): void {
    this.choose(null);
    this.actions.area(ring);
  }

  private show(pointer: Position | null): void {
    const hint = byId("hint");
    hint.hidden = this.tool === null;
    if (this.tool) {
      hint.querySelector("span")!.textContent = HINTS[this.tool];
      byId("tool-done").hidden = this.tool === "area" ? this.corners.length < 3 : this.tool !== "pick";
      byId("tool-back").hidden = this.tool !== "area" || !this.corners.length;
      byId("tool-cancel").hidden = this.tool === "pick";
    }
    if (this.tool !== "area" && this.tool !== "box") this.map.draft = null;
    else if (this.tool === "box" && this.corners.length && pointer) {
      this.map.draft = { corners: rectangle(this.corners[0]!, pointer), pointer: null };
    } else this.map.draft = { corners: this.corners, pointer };
    this.map.redraw();
  }

  private down(event: PointerEvent): void {
    this.ignoreClick = false;
    if (this.tool !== "box" || !event.isPrimary || !this.map.element.contains(event.target as Node)) return;
    this.map.leaflet.dragging.disable();
    this.dragFrom = this.map.inside(event);
  }

  private move(event: PointerEvent): void {
    if (this.tool !== "area" && this.tool !== "box") return;
    const [x, y] = this.map.inside(event);
    if (this.dragFrom && !this.corners.length && this.isDrag(x, y)) {
      this.corners = [this.map.placeAt(...this.dragFrom)];
    }
    if (this.dragFrom || !isTouch(event)) this.show(this.corners.length ? this.map.placeAt(x, y) : null);
  }

  private up(event: PointerEvent): void {
    if (!this.dragFrom) return;
    const [x, y] = this.map.inside(event);
    const dragged = this.isDrag(x, y);
    if (dragged && this.corners.length) {
      this.finish(rectangle(this.corners[0]!, this.map.placeAt(x, y)));
      this.ignoreClick = true;
    }
    this.dragFrom = null;
  }

  private isDrag(x: number, y: number): boolean {
    return this.dragFrom !== null && Math.hypot(x - this.dragFrom[0], y - this.dragFrom[1]) > DRAGGED;
  }
}

function rectangle(one: Position, other: Position): Position[] {
  return [one, [other[0]!, one[1]!], other, [one[0]!, other[1]!]];
}
