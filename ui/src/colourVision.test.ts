import { describe, expect, test } from "vitest";
import { difference, labOf, type Lab } from "./colourVision";

// Test data published by Sharma, Wu and Dalal with their paper.
const PUBLISHED: [Lab, Lab, number][] = [
  [[50, 2.6772, -79.7751], [50, 0, -82.7485], 2.0425],
  [[50, -1.3802, -84.2814], [50, 0, -82.7485], 1],
  [[50, 2.5, 0], [50, 0, -2.5], 4.3065],
  [[50, 2.5, 0], [73, 25, -18], 27.1492],
  [[60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387], 1.2644],
  [[22.7233, 20.0904, -46.694], [23.0331, 14.973, -42.5619], 2.0373],
  [[2.0776, 0.0795, -1.135], [0.9033, -0.0636, -0.5514], 0.9082],
];

test.each(PUBLISHED)("%j and %j differ by %d", (one, other, expected) => {
  expect(difference(one, other)).toBeCloseTo(expected, 4);
  expect(difference(other, one)).toBeCloseTo(expected, 4);
});

test("white has full lightness and no chroma", () => {
  const [lightness, a, b] = labOf("#ffffff", "usual");
  expect(lightness).toBeCloseTo(100, 3);
  expect(Math.hypot(a, b)).toBeLessThan(0.02);
});

describe("colour blindness", () => {
  test("does not change greys", () => {
    for (const vision of ["protanopia", "deuteranopia", "tritanopia"] as const) {
      expect(difference(labOf("#808080", vision), labOf("#808080", "usual"))).toBeLessThan(0.1);
    }
  });

  test("reduces the difference of red and green, or of blue and green for tritanopia", () => {
    const apart = (one: string, other: string, vision: "usual" | "deuteranopia" | "tritanopia") =>
      difference(labOf(one, vision), labOf(other, vision));
    const [red, green, blue] = ["#c84030", "#4a8f2a", "#3a70c8"] as const;
    expect(apart(red, green, "deuteranopia")).toBeLessThan(apart(red, green, "usual") / 2);
    expect(apart(blue, green, "tritanopia")).toBeLessThan(apart(blue, green, "usual"));
  });
});
