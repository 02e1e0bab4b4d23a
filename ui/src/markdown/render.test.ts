import { describe, expect, test } from "vitest";
import { renderMarkdown } from "./render";

function page(markdown: string): HTMLElement {
  const holder = document.createElement("div");
  holder.innerHTML = renderMarkdown(markdown);
  return holder;
}

test("Markdown becomes elements", () => {
  const shown = page("# One\n\n- **two**\n- `three`\n\n| a | b |\n| - | - |\n| 1 | 2 |");
  expect(shown.querySelector("h1")?.textContent).toBe("One");
  expect(shown.querySelector("li strong")?.textContent).toBe("two");
  expect(shown.querySelectorAll("td")).toHaveLength(2);
});

test("a code block keeps its text exactly, names its language and can be copied", () => {
  const code = 'if a < b && c > "d":\n    pass';
  const shown = page("```python\n" + code + "\n```");
  expect(shown.querySelector("pre")?.textContent).toBe(code);
  expect(shown.querySelector(".code-head span")?.textContent).toBe("python");
  expect(shown.querySelector("button[data-copy]")).not.toBeNull();
});

test("a list keeps the number it starts at, a column its alignment", () => {
  expect(page("3. three").querySelector("ol")?.getAttribute("start")).toBe("3");
  expect(page("| a |\n| -: |\n| 1 |").querySelector("td")?.getAttribute("align")).toBe("right");
});

test("an unfinished code block is already one while it streams", () => {
  expect(page("```js\nlet a").querySelector("pre")?.textContent).toBe("let a");
});

describe("what a model writes cannot", () => {
  test("bring tags in: they are shown as text", () => {
    const shown = page('<script>alert(1)</script> <b onclick="x()">hi</b>');
    expect(shown.querySelector("script, b, [onclick]")).toBeNull();
    expect(shown.textContent).toContain("<script>");
  });

  test("load a picture: its name becomes a link", () => {
    const shown = page("![a cat](https://example.com/cat.png)");
    expect(shown.querySelector("img")).toBeNull();
    expect(shown.querySelector("a")?.textContent).toBe("a cat");
  });

  test.each(["javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd"])(
    "link to %s",
    (address) => {
      expect(page(`[x](${address})`).querySelector("a")?.getAttribute("href") ?? null).toBeNull();
    },
  );

  test("break out of a code block's language", () => {
    const shown = page('```"><img/src=x/onerror=alert(1)>\nx\n```');
    expect(shown.querySelector("img")).toBeNull();
  });
});
