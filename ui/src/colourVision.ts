/** Simulated colour blindness and colour differences, for the test of the theme. */

export type Vision = "usual" | "protanopia" | "deuteranopia" | "tritanopia";
type Triple = readonly [number, number, number];
type Matrix = readonly [Triple, Triple, Triple];

/**
 * Matrices for linear RGB: G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, "A
 * Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE TVCG 15 (6), 2009,
 * table 1 at severity 1.
 */
const SIMULATION: Record<Vision, Matrix> = {
  usual: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

/** sRGB to XYZ, and its white point (D65). */
const TO_XYZ: Matrix = [
  [0.4124564, 0.3575761, 0.1804375],
  [0.2126729, 0.7151522, 0.072175],
  [0.0193339, 0.119192, 0.9503041],
];
const WHITE: Triple = [0.95047, 1, 1.08883];

export type Lab = Triple;

/** CIELAB of `colour` ("#rrggbb") as seen with a colour vision. */
export function labOf(colour: string, vision: Vision): Lab {
  const seen = times(SIMULATION[vision], linear(colour));
  const xyz = times(
    TO_XYZ,
    map(seen, (part) => Math.min(1, Math.max(0, part))),
  );
  const [x, y, z] = map(xyz, (part, at) => {
    const share = part / WHITE[at];
    return share > 216 / 24389 ? Math.cbrt(share) : ((24389 / 27) * share + 16) / 116;
  });
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** Linear light of the three channels by the definition of sRGB. */
export function linear(colour: string): Triple {
  const channel = (at: number) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  return [channel(1), channel(3), channel(5)];
}

/**
 * CIEDE2000; about 1 is the smallest visible difference. Names as in G. Sharma, W. Wu, E. N. Dalal,
 * "The CIEDE2000 Color-Difference Formula", Color Research & Application 30 (1), 2005.
 */
export function difference([l1, a1, b1]: Lab, [l2, a2, b2]: Lab): number {
  const meanC = (Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2;
  const g = 0.5 * (1 - Math.sqrt(meanC ** 7 / (meanC ** 7 + 25 ** 7)));
  const c1 = Math.hypot((1 + g) * a1, b1);
  const c2 = Math.hypot((1 + g) * a2, b2);
  const h1 = hue((1 + g) * a1, b1);
  const h2 = hue((1 + g) * a2, b2);
  const grey = c1 * c2 === 0;

  let turn = grey ? 0 : h2 - h1;
  if (turn > 180) turn -= 360;
  if (turn < -180) turn += 360;
  const dL = l2 - l1;
  const dC = c2 - c1;
  const dH = 2 * Math.sqrt(c1 * c2) * sine(turn / 2);

  const l = (l1 + l2) / 2;
  const c = (c1 + c2) / 2;
  let h = grey ? h1 + h2 : (h1 + h2) / 2;
  if (!grey && Math.abs(h1 - h2) > 180) h += h1 + h2 < 360 ? 180 : -180;
  const t =
    1 -
    0.17 * cosine(h - 30) +
    0.24 * cosine(2 * h) +
    0.32 * cosine(3 * h + 6) -
    0.2 * cosine(4 * h - 63);
  const sL = 1 + (0.015 * (l - 50) ** 2) / Math.sqrt(20 + (l - 50) ** 2);
  const sC = 1 + 0.045 * c;
  const sH = 1 + 0.015 * c * t;
  const rC = 2 * Math.sqrt(c ** 7 / (c ** 7 + 25 ** 7));
  const rT = -sine(60 * Math.exp(-(((h - 275) / 25) ** 2))) * rC;
  return Math.sqrt((dL / sL) ** 2 + (dC / sC) ** 2 + (dH / sH) ** 2 + rT * (dC / sC) * (dH / sH));
}

function hue(a: number, b: number): number {
  if (a === 0 && b === 0) return 0;
  const degrees = (Math.atan2(b, a) * 180) / Math.PI;
  return degrees < 0 ? degrees + 360 : degrees;
}

const sine = (degrees: number) => Math.sin((degrees * Math.PI) / 180);
const cosine = (degrees: number) => Math.cos((degrees * Math.PI) / 180);

function times(matrix: Matrix, [x, y, z]: Triple): Triple {
  return map(matrix, ([a, b, c]) => a * x + b * y + c * z);
}

function map<T>([a, b, c]: readonly [T, T, T], by: (part: T, at: 0 | 1 | 2) => number): Triple {
  return [by(a, 0), by(b, 1), by(c, 2)];
}
