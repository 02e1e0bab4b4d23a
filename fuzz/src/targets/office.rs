//! Office documents, spreadsheets, books and web pages, whose text is extracted.

use std::io::{Cursor, Write};

use foretoken_documents::{MAX_TEXT, text_of};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::{Memory, Target};

const WORDS: &[&str] = &[
    "<w:p>",
    "</w:p>",
    "<w:t>",
    "<w:tc>",
    "<w:tr>",
    "<row r=\"1048576\">",
    "<c r=\"XFD1\" t=\"s\">",
    "<v>",
    "number-rows-repeated=\"4294967295\"",
    "number-columns-repeated=\"4294967295\"",
    "<!DOCTYPE html>",
    "<table>",
    "<![CDATA[",
    "<!ENTITY",
    "&#x10FFFF;",
    "PK\u{3}\u{4}",
    "../",
];

pub fn target() -> Target {
    let seeds = vec![
        archive(&[(
            "word/document.xml",
            "<w:document><w:p><w:r><w:t>A fox</w:t></w:r></w:p><w:tbl><w:tr><w:tc/></w:tr></w:tbl></w:document>",
        )]),
        archive(&[
            ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
            (
                "content.xml",
                "<c><table name=\"a\"><table-row><table-cell><p>fox</p></table-cell></table-row></table></c>",
            ),
        ]),
        archive(&[
            ("xl/workbook.xml", "<workbook><sheet name=\"a\" r:id=\"x\"/></workbook>"),
            (
                "xl/_rels/workbook.xml.rels",
                "<r><Relationship Id=\"x\" Target=\"worksheets/a.xml\" Type=\"a/worksheet\"/></r>",
            ),
            ("xl/worksheets/a.xml", "<worksheet><row r=\"2\"><c r=\"B2\"><v>7</v></c></row></worksheet>"),
        ]),
        b"<!DOCTYPE html><html><h1>Foxes</h1><table><tr><td>a<td>b</table></html>".to_vec(),
    ];
    Target {
        name: "office",
        longest: 2 * seeds.iter().map(Vec::len).max().unwrap(),
        seeds,
        words: WORDS,
        head: usize::MAX,
        memory: Memory { each: 1024, beside: 64 << 20 },
        run: Box::new(|input| match text_of(input) {
            Ok(text) => {
                assert!(!text.is_empty() && text.len() <= MAX_TEXT);
                None
            }
            Err(unread) => Some(format!("The file cannot be used: {}.", unread.reason())),
        }),
    }
}

/// Archive of parts that are not compressed, so that mutations reach them.
fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        zip.start_file(*name, stored).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}
