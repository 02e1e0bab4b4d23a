//! Office files and books made of their parts, as small as readers allow.

use std::io::Read;

use flate2::Compression;
use flate2::read::DeflateEncoder;

const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// A Word document; `paragraphs` are its elements.
pub fn word(paragraphs: impl Read) -> Vec<u8> {
    let begin: &[u8] = b"<w:document xmlns:w='w'><w:body>";
    let end: &[u8] = b"</w:body></w:document>";
    archive(&[part("word/document.xml", begin.chain(paragraphs).chain(end))])
}

/// A paragraph of a Word document.
pub fn paragraph(text: &str) -> String {
    format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
}

/// A workbook with one sheet; `rows` are its elements.
pub fn workbook(rows: impl Read) -> Vec<u8> {
    let book =
        "<workbook xmlns:r='r'><sheets><sheet name='Animals' sheetId='1' r:id='a'/></sheets></workbook>";
    let (begin, end): (&[u8], &[u8]) = (b"<worksheet><sheetData>", b"</sheetData></worksheet>");
    archive(&[
        part("xl/workbook.xml", book.as_bytes()),
        part("xl/_rels/workbook.xml.rels", relation("worksheet", "worksheets/sheet1.xml").as_bytes()),
        part("xl/worksheets/sheet1.xml", begin.chain(rows).chain(end)),
    ])
}

/// A row with one cell of text.
pub fn row(text: &str) -> String {
    format!("<row><c t='inlineStr'><is><t>{text}</t></is></c></row>")
}

/// A presentation with one slide.
pub fn slides(text: &str) -> Vec<u8> {
    let order = "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldIdLst><p:sldId r:id='a'/></p:sldIdLst></p:presentation>";
    let slide = format!("<p:sld xmlns:p='p' xmlns:a='a'><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>");
    archive(&[
        part("ppt/presentation.xml", order.as_bytes()),
        part("ppt/_rels/presentation.xml.rels", relation("slide", "slides/slide1.xml").as_bytes()),
        part("ppt/slides/slide1.xml", slide.as_bytes()),
    ])
}

/// A book (EPUB) with one chapter.
pub fn book(text: &str) -> Vec<u8> {
    let container = "<container><rootfiles><rootfile full-path='a.opf'/></rootfiles></container>";
    let package = "<package><manifest><item id='a' href='a.xhtml'/></manifest><spine><itemref idref='a'/></spine></package>";
    archive(&[
        part("mimetype", &b"application/epub+zip"[..]),
        part("META-INF/container.xml", container.as_bytes()),
        part("a.opf", package.as_bytes()),
        part("a.xhtml", format!("<html><body><p>{text}</p></body></html>").as_bytes()),
    ])
}

/// Relations of a part: one, named "a".
fn relation(kind: &str, target: &str) -> String {
    format!(
        "<Relationships><Relationship Id='a' Type='{RELATIONS}/{kind}' Target='{target}'/></Relationships>"
    )
}

/// A compressed part of an archive.
struct Part<'a> {
    name: &'a str,
    packed: Vec<u8>,
    /// Checksum and sizes, as archives have them.
    sizes: Vec<u8>,
}

fn part(name: &str, contents: impl Read) -> Part<'_> {
    let (mut packed, mut plain) = (Vec::new(), flate2::CrcReader::new(contents));
    DeflateEncoder::new(&mut plain, Compression::fast()).read_to_end(&mut packed).unwrap();
    let sizes = [plain.crc().sum(), packed.len() as u32, plain.crc().amount()];
    Part { name, packed, sizes: sizes.map(u32::to_le_bytes).concat() }
}

/// A zip archive.
fn archive(parts: &[Part<'_>]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for Part { name, packed, sizes } in parts {
        let start = bytes.len() as u32;
        let length = name.len() as u32;
        // Version, flags, method, time and date; checksum and sizes; lengths of name and extras.
        let facts = [&[20, 0, 0, 0, 8, 0, 0, 0, 0, 0], &sizes[..], &length.to_le_bytes()].concat();
        bytes.extend([b"PK\x03\x04", &facts[..], name.as_bytes(), packed].concat());
        directory.extend([b"PK\x01\x02\x14\0", &facts[..], &[0; 10], &start.to_le_bytes()].concat());
        directory.extend(name.as_bytes());
    }
    let count = (parts.len() as u16).to_le_bytes();
    let place = [directory.len(), bytes.len()].map(|number| (number as u32).to_le_bytes()).concat();
    bytes.extend(directory);
    bytes.extend([b"PK\x05\x06\0\0\0\0", &count[..], &count, &place, &[0; 2]].concat());
    bytes
}
