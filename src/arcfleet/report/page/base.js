// A base map of tiles below the plan, fetched from a server or held by the page itself.

const base = plan.base ?? null;
const MOST_TILES = 400; // that are kept
const FADED = 0.55; // so that routes stand out

const lonAt = (x) => plan.globe.longitude + x * plan.globe.perX;
const latAt = (y) => plan.globe.latitude - y * plan.globe.perY;
const xAt = (longitude) => (longitude - plan.globe.longitude) / plan.globe.perX;
const yAt = (latitude) => (plan.globe.latitude - latitude) / plan.globe.perY;

// Web Mercator: columns and rows of tiles from degrees and back.
const columnAt = (longitude, side) => ((longitude + 180) / 360) * side;
const rowAt = (latitude, side) => ((1 - Math.asinh(Math.tan((latitude * Math.PI) / 180)) / Math.PI) / 2) * side;
const longitudeOf = (column, side) => (column / side) * 360 - 180;
const latitudeOf = (row, side) => (Math.atan(Math.sinh(Math.PI * (1 - (2 * row) / side))) * 180) / Math.PI;

const tileImages = new Map();
function tileImage(zoom, column, row) {
  const key = `${zoom}/${column}/${row}`;
  if (tileImages.has(key)) return tileImages.get(key);
  const source = base.tiles ? base.tiles[key]
    : base.url.replaceAll("{z}", zoom).replaceAll("{x}", column).replaceAll("{y}", row);
  const tile = { image: null, ready: false };
  tileImages.set(key, tile);
  if (tileImages.size > MOST_TILES) tileImages.delete(tileImages.keys().next().value);
  if (source) {
    tile.image = new Image();
    tile.image.onload = () => {
      tile.ready = true;
      redraw();
    };
    tile.image.src = source; // one that cannot be had leaves a gap
  }
  return tile;
}

// Wait for tiles that are on their way, but not for ever.
function tilesLoaded() {
  const missing = [...tileImages.values()].filter((tile) => tile.image && !tile.ready);
  const loaded = missing.map((tile) => tile.image.decode().then(() => { tile.ready = true; }, () => {}));
  return Promise.race([Promise.all(loaded), new Promise((done) => setTimeout(done, 8000))]);
}

function drawBase() {
  const degrees = plan.globe.perX / view.scale; // to a pixel
  let zoom = Math.round(Math.log2(360 / (256 * degrees)));
  zoom = Math.min(Math.max(zoom, base.least), base.most);
  const side = 2 ** zoom;
  const ends = (low, high) => [Math.max(Math.floor(low), 0), Math.min(Math.floor(high), side - 1)];
  const [left, right] = ends(columnAt(lonAt(-view.x / view.scale), side), columnAt(lonAt((view.width - view.x) / view.scale), side));
  const [top, bottom] = ends(rowAt(latAt(-view.y / view.scale), side), rowAt(latAt((view.height - view.y) / view.scale), side));
  if ((right - left + 1) * (bottom - top + 1) > MOST_TILES / 2) return; // far outside its zooms
  pen.globalAlpha = FADED;
  for (let column = left; column <= right; column++) {
    for (let row = top; row <= bottom; row++) drawTile(zoom, column, row);
  }
  pen.globalAlpha = 1;
}

// A tile, or the part of a coarser one that is there already.
function drawTile(zoom, column, row) {
  const side = 2 ** zoom;
  const [x0, y0] = onScreen([xAt(longitudeOf(column, side)), yAt(latitudeOf(row, side))]);
  const [x1, y1] = onScreen([xAt(longitudeOf(column + 1, side)), yAt(latitudeOf(row + 1, side))]);
  for (let up = 0; zoom - up >= base.least && up <= 5; up++) {
    const key = `${zoom - up}/${column >> up}/${row >> up}`;
    const tile = up ? tileImages.get(key) : tileImage(zoom, column, row);
    if (!tile?.ready) continue;
    const { width, height } = tile.image, part = 2 ** up;
    const fromX = ((column % part) * width) / part, fromY = ((row % part) * height) / part;
    // Half a pixel more, so that no seams show.
    pen.drawImage(tile.image, fromX, fromY, width / part, height / part, x0, y0, x1 - x0 + 0.5, y1 - y0 + 0.5);
    return;
  }
}

if (base) {
  document.documentElement.classList.add("light"); // as tiles are
  const credit = document.getElementById("credit");
  credit.textContent = base.credit;
  credit.hidden = false;
}
