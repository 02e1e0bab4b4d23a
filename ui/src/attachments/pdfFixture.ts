/** Generated PDFs for tests. */

/** A PDF with a page for each text; `extra` is added to its trailer. */
export function pdfOf(pages: readonly string[], extra = ""): Uint8Array<ArrayBuffer> {
  const kids = pages.map((_, page) => `${4 + 2 * page} 0 R`).join(" ");
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ...pages.flatMap((text, page) => {
      const content = text === "" ? "" : `BT /F1 12 Tf 20 700 Td (${text}) Tj ET`;
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents ${5 + 2 * page} 0 R
            /Resources << /Font << /F1 3 0 R >> >> >>`,
        `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
      ];
    }),
  ];
  let file = "%PDF-1.4\n";
  const places = objects.map((object, at) => {
    const place = file.length;
    file += `${at + 1} 0 obj\n${object}\nendobj\n`;
    return place;
  });
  const table = file.length;
  const entries = places.map((place) => `${String(place).padStart(10, "0")} 00000 n \n`).join("");
  const size = objects.length + 1;
  file += `xref\n0 ${size}\n0000000000 65535 f \n${entries}`;
  file += `trailer << /Size ${size} /Root 1 0 R ${extra} >>\nstartxref\n${table}\n%%EOF`;
  return new TextEncoder().encode(file);
}

/** A PDF whose only page has deflated streams. */
export function packedPdf(streams: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const refs = streams.map((_, at) => `${5 + at} 0 R`).join(" ");
  const head = [
    "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n",
    "2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n",
    `3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents [${refs}]\n`,
    "/Resources << /Font << /F1 4 0 R >> >> >>\nendobj\n",
    "4 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\n",
  ];
  const parts = streams.flatMap((stream, at) => [
    Buffer.from(`${5 + at} 0 obj\n<< /Length ${stream.length} /Filter /FlateDecode >>\nstream\n`),
    stream,
    Buffer.from("\nendstream\nendobj\n"),
  ]);
  // Without a cross-reference table: readers search for objects.
  const end = Buffer.from("trailer << /Root 1 0 R >>\n%%EOF");
  return new Uint8Array(Buffer.concat([Buffer.from(head.join("")), ...parts, end]));
}

/** A PDF with a password. */
export function lockedPdf(): Uint8Array<ArrayBuffer> {
  const key = `<${"5a".repeat(32)}>`;
  const encrypt = `/Encrypt << /Filter /Standard /V 1 /R 2 /O ${key} /U ${key} /P -4 >>`;
  return pdfOf(["secret"], `${encrypt} /ID [<00> <00>]`);
}
