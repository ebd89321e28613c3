/** Colours of routes: those of arcfleet's other maps (report/colours.py; a test compares them). */

const ROUTES = {
  light: [
    "#0072b2", "#dd00bb", "#009988", "#aa8855", "#552200", "#9900ff", "#557711",
    "#bb4466", "#005533", "#000099", "#8866ee", "#440055", "#990077", "#8811bb",
  ],
  dark: [
    "#56b4e9", "#eeaabb", "#339977", "#aa8844", "#ccbb00", "#aa00ff", "#66ff55",
    "#ff9977", "#aaffbb", "#0077cc", "#9966aa", "#aa77ff", "#dd0055", "#cc22cc",
  ],
};
export const DEPOT = "#e3000f";

const DARK = matchMedia("(prefers-color-scheme: dark)");

export function ground(): "light" | "dark" {
  return DARK.matches ? "dark" : "light";
}

export function whenGroundChanges(action: () => void): void {
  DARK.addEventListener("change", action);
}

/** Return the colour of a route. Routes beyond the table have hues in golden ratio steps. */
export function routeColour(number: number): string {
  const table = ROUTES[ground()];
  const extra = number - 1 - table.length;
  if (extra < 0) return table[number - 1]!;
  const dark = ground() === "dark";
  const hue = (0.07 + (extra * (Math.sqrt(5) - 1)) / 2) % 1;
  let light = (dark ? [0.5, 0.62, 0.76] : [0.28, 0.4, 0.52])[extra % 3]!;
  const saturation = [0.75, 0.55][extra % 2]!;
  const grounds = dark ? ["#14181b", "#1c2226"] : ["#ffffff", "#f6f7f8"];
  let colour = fromHue(hue, light, saturation);
  while (grounds.some((one) => contrast(colour, one) < 3)) {
    light += dark ? 0.01 : -0.01;
    colour = fromHue(hue, light, saturation);
  }
  return colour;
}

function fromHue(hue: number, light: number, saturation: number): string {
  const high = light <= 0.5 ? light * (1 + saturation) : light + saturation - light * saturation;
  const low = 2 * light - high;
  const part = (turn: number) => {
    const at = (((hue + turn) % 1) + 1) % 1;
    if (at < 1 / 6) return low + (high - low) * at * 6;
    if (at < 1 / 2) return high;
    if (at < 2 / 3) return low + (high - low) * (2 / 3 - at) * 6;
    return low;
  };
  return `#${[1 / 3, 0, -1 / 3].map((turn) => Math.round(part(turn) * 255).toString(16).padStart(2, "0")).join("")}`;
}

function contrast(one: string, other: string): number {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((i) => {
    const part = parseInt(colour.slice(i, i + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

/** Return black or white, whichever reads better on a colour. */
export function inkOn(colour: string): string {
  return luminance(colour) > 0.179 ? "#000000" : "#ffffff";
}

/** Return a colour of the style sheet. */
export function themed(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
