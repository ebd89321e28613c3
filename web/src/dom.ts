/** Small helpers for the document. Styles are set through CSSOM only: the CSP allows no inline styles. */

type Child = Node | string | null | undefined | false;

interface Options {
  class?: string;
  attributes?: Record<string, string>;
  on?: Record<string, (event: Event) => void>;
}

/** Make an element. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  options: Options = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (options.class) element.className = options.class;
  for (const [name, value] of Object.entries(options.attributes ?? {})) element.setAttribute(name, value);
  for (const [name, action] of Object.entries(options.on ?? {})) element.addEventListener(name, action);
  for (const child of children) if (child) element.append(child);
  return element;
}

/** Make a button. */
export function button(text: string, action: () => void, options: Options = {}): HTMLButtonElement {
  const made = make("button", { ...options, on: { click: action, ...options.on } }, text);
  made.type = "button";
  return made;
}

/** Return the element with this id. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found as T;
}

const shownKeys = new WeakMap<Element, string>();

/** Replace the children of a list when what they show has changed; the focus stays where it was. */
export function fill(list: Element, shown: unknown, build: () => Child[]): void {
  const key = JSON.stringify(shown);
  if (shownKeys.get(list) === key) return;
  shownKeys.set(list, key);
  const focused = document.activeElement;
  const name = focused && list.contains(focused) ? focused.getAttribute("data-key") : null;
  list.replaceChildren(...build().filter((child): child is Node | string => !!child));
  if (name) list.querySelector<HTMLElement>(`[data-key="${CSS.escape(name)}"]`)?.focus();
}

/** Let the arrow keys move between the buttons of a list. */
export function arrowKeys(list: HTMLElement, selector: string): void {
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !(event.target instanceof HTMLElement) || !event.target.matches(selector)) return;
    const all = [...list.querySelectorAll<HTMLElement>(selector)].filter((one) => one.offsetParent);
    all[(all.indexOf(event.target) + step + all.length) % all.length]?.focus();
    event.preventDefault();
  });
}

const NUMBERS = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Return a number with separators. */
export function figure(value: number): string {
  return NUMBERS.format(value);
}

/** Return metres as people write them. */
export function distance(metres: number): string {
  return metres < 1000 ? `${figure(metres)} m` : `${(metres / 1000).toFixed(1)} km`;
}

/** Return seconds as people write them. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")} h`;
}

/** Return a count with its noun. */
export function count(number: number, noun: string): string {
  return `${figure(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** Whether the pointer's user needs larger targets. */
export function isTouch(event: { pointerType?: string }): boolean {
  return event.pointerType === "touch" || event.pointerType === "pen";
}
