/** Dragging a street to a route, from the map or from the list, with mouse, pen and finger. */

import { byId } from "./dom";

export interface Drag {
  /** What is dragged, for people. */
  label: string;
  /** Return the route under a point of the window. */
  target(x: number, y: number): number | null;
  /** Called whenever the pointer is over another route, and with null at the end. */
  over(route: number | null): void;
  drop(route: number): void;
}

/** How far a pointer moves before it drags, and how near an edge the list scrolls. */
const DRAGGED = 6;
const EDGE = 40;

/** Follow a pressed pointer; `drag` begins once it has moved. */
export function follow(event: PointerEvent, drag: Drag): void {
  const ghost = byId("ghost");
  const panels = byId("panels");
  const { pointerId } = event;
  let dragging = false;
  let route: number | null = null;

  const move = (now: PointerEvent): void => {
    if (now.pointerId !== pointerId) return;
    if (!dragging && Math.hypot(now.clientX - event.clientX, now.clientY - event.clientY) < DRAGGED) return;
    dragging = true;
    now.preventDefault();
    const box = panels.getBoundingClientRect();
    if (now.clientX >= box.left && now.clientX <= box.right) {
      if (now.clientY < box.top + EDGE) panels.scrollBy(0, -12);
      else if (now.clientY > box.bottom - EDGE) panels.scrollBy(0, 12);
    }
    const found = drag.target(now.clientX, now.clientY);
    if (found !== route) drag.over((route = found));
    ghost.hidden = false;
    ghost.textContent = route === null ? drag.label : `${drag.label} → route ${route}`;
    ghost.style.transform = `translate(${Math.min(now.clientX + 14, innerWidth - 220)}px, ${now.clientY + 14}px)`;
  };
  const end = (now: PointerEvent | KeyboardEvent): void => {
    if (now instanceof PointerEvent ? now.pointerId !== pointerId : now.key !== "Escape") return;
    removeEventListener("pointermove", move, true);
    removeEventListener("pointerup", end, true);
    removeEventListener("pointercancel", end, true);
    removeEventListener("keydown", end, true);
    ghost.hidden = true;
    drag.over(null);
    if (dragging && now.type === "pointerup") {
      // The click that follows is no choice of what lies there.
      addEventListener("click", stop, { capture: true, once: true });
      setTimeout(() => removeEventListener("click", stop, true));
      if (route !== null) drag.drop(route);
    }
  };
  addEventListener("pointermove", move, true);
  addEventListener("pointerup", end, true);
  addEventListener("pointercancel", end, true);
  addEventListener("keydown", end, true);
}

function stop(event: Event): void {
  event.stopPropagation();
  event.preventDefault();
}
