import { expect, test } from "vitest";
import { detailOf, isPicture, pagePicture, pictureFile, withDetail } from "./picture";

const bytes = (text: string) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

test("a picture is known by its content, whatever its name", () => {
  for (const head of ["\x89PNG\r\n", "\xff\xd8\xff\xe0", "GIF89a", "RIFF1234WEBPVP8 "]) {
    expect(isPicture("notes.txt", bytes(head)), head).toBe(true);
  }
  // The letters begin many texts.
  expect(isPicture("notes.txt", bytes("BMW"))).toBe(false);
  expect(isPicture("a.bmp", bytes("BM"))).toBe(true);
  expect(isPicture("a.svg", bytes("<svg>"))).toBe(false);
});

test("a picture file is attached as it is", async () => {
  const png = bytes("\x89PNG\r\n\x1a\n");
  expect(await pictureFile("fox.txt", png)).toEqual({
    name: "fox.txt",
    kind: "picture",
    text: "data:image/png;base64,iVBORw0KGgo=",
  });
});

test("a long file is encoded whole", async () => {
  const png = new Uint8Array(100_003).fill(7);
  png.set(bytes("\x89PNG"));
  const { text } = await pictureFile("a.png", png);
  const decoded = bytes(atob(text.slice(text.indexOf(",") + 1)));
  expect(decoded).toEqual(png);
});

test("a kind that the web view cannot show is refused by name", async () => {
  await expect(pictureFile("photo.heic", bytes("????ftypheic"))).rejects.toThrow("photo.heic");
});

test("the detail of a picture is a parameter of its data URL", () => {
  const page = pagePicture("scan.pdf", 2, new Uint8Array([1, 2, 3]));
  expect(page).toEqual({
    name: "scan.pdf, page 2",
    kind: "picture",
    text: "data:image/jpeg;detail=high;base64,AQID",
  });
  expect(detailOf(page)).toBe("high");
  const normal = withDetail(page, "normal");
  expect(normal.text).toBe("data:image/jpeg;base64,AQID");
  expect(detailOf(normal)).toBe("normal");
  expect(withDetail(withDetail(normal, "high"), "high")).toEqual(page);
});
