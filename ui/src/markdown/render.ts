/**
 * Markdown of a reply to HTML that is safe to show: `marked` parses, DOMPurify lets through a short
 * list of elements. Nothing a model writes can load anything, run anything or leave the page.
 */
import DOMPurify from "dompurify";
import { Marked, type Tokens } from "marked";

const ELEMENTS = [
  ...["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote"],
  ...["ul", "ol", "li", "strong", "em", "del", "sub", "sup", "a", "span", "div"],
  ...["code", "pre", "button", "table", "thead", "tbody", "tr", "th", "td"],
];

const ATTRIBUTES = ["href", "title", "class", "start", "align", "type", "data-copy"];

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    code({ text, lang }: Tokens.Code) {
      const language = escape(lang?.trim().split(/\s/)[0] ?? "");
      const head = `<div class="code-head"><span>${language || "text"}</span><button type="button" data-copy="code">Copy</button></div>`;
      return `<div class="code">${head}<pre><code>${escape(text)}</code></pre></div>\n`;
    },
    // Tags in a model's text are text: it cannot mean them for this page.
    html({ text }: Tokens.HTML | Tokens.Tag) {
      return escape(text);
    },
    // A picture would be fetched from elsewhere, so its name and address stand for it.
    image({ href, text }: Tokens.Image) {
      return `<a href="${escape(href)}">${escape(text || href)}</a>`;
    },
    checkbox({ checked }: Tokens.Checkbox) {
      return checked ? "☑ " : "☐ ";
    },
  },
});

export function renderMarkdown(text: string): string {
  return DOMPurify.sanitize(marked.parse(text, { async: false }), {
    ALLOWED_TAGS: ELEMENTS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    // Attributes that hold no address are not held to the pattern for addresses.
    ADD_URI_SAFE_ATTR: ATTRIBUTES.filter((name) => name !== "href"),
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  });
}

function escape(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
