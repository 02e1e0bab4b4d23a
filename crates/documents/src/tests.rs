//! Documents that are made here: every format, and files that are damaged, hostile or misnamed.

use std::io::{Cursor, Read, Write};

use flate2::Compression;
use flate2::read::DeflateEncoder;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::{DocumentText, MAX_TEXT, Unread, text_of};

const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// Archive of parts that are not compressed.
fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        zip.start_file(*name, stored).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Archive of one deflated part.
fn deflated(name: &str, data: impl Read) -> Vec<u8> {
    let mut packed = Vec::new();
    DeflateEncoder::new(data, Compression::best()).read_to_end(&mut packed).unwrap();
    let number = |number: usize| (number as u32).to_le_bytes();
    let mut facts = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    facts.extend([number(packed.len()), number(packed.len()), number(name.len())].concat());
    let mut bytes = [b"PK\x03\x04".as_slice(), &facts, name.as_bytes(), &packed].concat();
    let start = bytes.len();
    bytes.extend([b"PK\x01\x02\x14\0".as_slice(), &facts, &[0; 14], name.as_bytes()].concat());
    let size = bytes.len() - start;
    let one = 1u16.to_le_bytes();
    bytes.extend(
        [b"PK\x05\x06\0\0\0\0".as_slice(), &one, &one, &number(size), &number(start), &[0; 2]].concat(),
    );
    bytes
}

fn relations(targets: &[(&str, &str, &str)]) -> String {
    let one = |(id, kind, target): &(&str, &str, &str)| {
        format!("<Relationship Id=\"{id}\" Type=\"{RELATIONS}/{kind}\" Target=\"{target}\"/>")
    };
    format!("<Relationships>{}</Relationships>", targets.iter().map(one).collect::<String>())
}

fn word(body: &str) -> Vec<u8> {
    let styles = "<w:styles xmlns:w='w'><w:style w:styleId='berschrift2'><w:name w:val='heading 2'/></w:style></w:styles>";
    let document = format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>");
    archive(&[("word/document.xml", &document), ("word/styles.xml", styles)])
}

fn workbook(rows: &str) -> Vec<u8> {
    let book =
        "<workbook xmlns:r='r'><sheets><sheet name='Foxes' sheetId='1' r:id='rId1'/></sheets></workbook>";
    let relations = relations(&[
        ("rId1", "worksheet", "worksheets/sheet1.xml"),
        ("rId2", "sharedStrings", "/xl/sharedStrings.xml"),
        ("rId3", "styles", "styles.xml"),
    ]);
    let shared =
        "<sst><si><t>Name</t></si><si><r><t>Fo</t></r><r><t>x</t></r><rPh><t>no</t></rPh></si></sst>";
    let styles = "<styleSheet><numFmts><numFmt numFmtId='164' formatCode='yyyy'/></numFmts>\
        <cellXfs><xf numFmtId='0'/><xf numFmtId='164'/><xf numFmtId='9'/></cellXfs></styleSheet>";
    let sheet = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
    archive(&[
        ("xl/workbook.xml", book),
        ("xl/_rels/workbook.xml.rels", &relations),
        ("xl/sharedStrings.xml", shared),
        ("xl/styles.xml", styles),
        ("xl/worksheets/sheet1.xml", &sheet),
    ])
}

fn open_sheet(table: &str) -> Vec<u8> {
    let content =
        format!("<o:document-content xmlns:o='o' xmlns:t='t' xmlns:x='x'>{table}</o:document-content>");
    archive(&[("mimetype", "application/vnd.oasis.opendocument.spreadsheet"), ("content.xml", &content)])
}

fn book(encryption: &str) -> Vec<u8> {
    let package = "<package><manifest><item id='b' href='two%20b.xhtml'/><item id='a' href='../one.xhtml'/></manifest>\
        <spine><itemref idref='a'/><itemref idref='gone'/><itemref idref='b'/></spine></package>";
    archive(&[
        ("mimetype", "application/epub+zip"),
        (
            "META-INF/container.xml",
            "<container><rootfiles><rootfile full-path='in/book.opf'/></rootfiles></container>",
        ),
        ("META-INF/encryption.xml", encryption),
        ("in/book.opf", package),
        ("one.xhtml", "<?xml version='1.0'?><html><body><h1>One</h1><p>A fox.</p></body></html>"),
        ("in/two b.xhtml", "<html><body><h1>Two</h1><p>A hen.</p></body></html>"),
    ])
}

#[test]
fn a_word_document_keeps_headings_lists_and_tables() {
    let body = "<w:p><w:pPr><w:pStyle w:val='berschrift2'/></w:pPr><w:r><w:t>Foxes</w:t></w:r></w:p>\
        <w:p><w:r><w:t xml:space='preserve'>A fox </w:t></w:r><w:r><w:t>&amp; a hen.&#228;</w:t></w:r>\
        <w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>\
        <w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>first</w:t></w:r></w:p>\
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>\
        <m:AlternateContent><m:Choice><w:p><w:r><w:t>box</w:t></w:r></w:p></m:Choice>\
        <m:Fallback><w:p><w:r><w:t>box</w:t></w:r></w:p></m:Fallback></m:AlternateContent>";
    let text = text_of(&word(body)).unwrap();
    assert_eq!(text, "## Foxes\nA fox & a hen.ä\n- first\na | b\nbox");
}

#[test]
fn slides_stand_in_their_order_with_their_notes() {
    let slide = |text: &str| {
        format!(
            "<p:sld xmlns:a='a'><a:p><a:r><a:t>{text}</a:t></a:r></a:p><a:p><a:fld><a:t>7</a:t></a:fld></a:p></p:sld>"
        )
    };
    let order = "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldIdLst><p:sldId id='256' r:id='rId2'/>\
        <p:sldId id='257' r:id='rId1'/></p:sldIdLst></p:presentation>";
    let targets =
        relations(&[("rId1", "slide", "slides/slide1.xml"), ("rId2", "slide", "slides/slide2.xml")]);
    let notes = relations(&[("rId1", "notesSlide", "../notesSlides/notesSlide1.xml")]);
    let bytes = archive(&[
        ("ppt/presentation.xml", order),
        ("ppt/_rels/presentation.xml.rels", &targets),
        ("ppt/slides/slide1.xml", &slide("Second")),
        ("ppt/slides/slide2.xml", &slide("First")),
        ("ppt/slides/_rels/slide2.xml.rels", &notes),
        ("ppt/notesSlides/notesSlide1.xml", &slide("Say hello")),
    ]);
    let text = text_of(&bytes).unwrap();
    assert_eq!(text, "# Slide 1\nFirst\n\n## Notes\nSay hello\n\n# Slide 2\nSecond");
}

#[test]
fn a_book_has_its_chapters_in_reading_order() {
    let text = text_of(&book("<encryption/>")).unwrap();
    let places = ["# One", "A fox.", "# Two", "A hen."].map(|part| text.find(part).unwrap());
    assert!(places.is_sorted(), "{text}");
    let fonts = "<encryption><CipherReference URI='font.otf'/></encryption>";
    assert!(text_of(&book(fonts)).is_ok());
    let chapter = "<encryption><CipherReference URI='in/two%20b.xhtml'/></encryption>";
    assert_eq!(text_of(&book(chapter)), Err(Unread::Encrypted));
}

#[test]
fn a_web_page_is_text_in_any_encoding() {
    let page = "<!-- x --><!DOCTYPE html><html><head><title>T</title><script>var x;</script></head>\
        <body><h2>Füchse</h2><p>Ein <a href='http://a.b'>Fuchs</a>.</p></body></html>";
    let (latin, _, _) = encoding_rs::WINDOWS_1252.encode(page);
    let wide: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(page.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for bytes in [page.as_bytes(), &latin, &wide] {
        let text = text_of(bytes).unwrap();
        assert!(text.contains("## Füchse") && text.contains("Fuchs"), "{text}");
        assert!(!text.contains("var x") && !text.contains("http:"), "{text}");
    }
}

#[test]
fn rows_of_a_workbook_have_their_numbers_and_values_as_shown() {
    let rows = "<row r='2'><c r='A2' t='s'><v>0</v></c><c r='D2' t='inlineStr'><is><t>in\tline</t></is></c></row>\
        <row r='900'><c r='A900' t='s'><v>1</v></c><c r='B900' s='1'><v>45000</v></c><c s='2'><v>0.25</v></c>\
        <c t='b'><v>1</v></c><c t='s'><v>99</v></c><c t='e'><v>#REF!</v></c></row>";
    let text = text_of(&workbook(rows)).unwrap();
    assert_eq!(text, "# Sheet Foxes\n2\tName\t\t\tin line\n900\tFox\t2023-03-15\t25%\tTRUE\t\t#REF!");
}

#[test]
fn rows_of_an_open_document_sheet_have_their_numbers() {
    let table = "<t:table t:name='Foxes'><t:table-row t:number-rows-repeated='3'><t:table-cell/></t:table-row>\
        <t:table-row><t:table-cell><x:p>a<x:s/>b</x:p><o:annotation><x:p>no</x:p></o:annotation></t:table-cell>\
        <t:table-cell t:number-columns-repeated='2'/><t:table-cell t:number-columns-repeated='2'><x:p>c</x:p></t:table-cell>\
        <t:table-cell t:number-columns-repeated='16000'/></t:table-row></t:table>";
    assert_eq!(text_of(&open_sheet(table)).unwrap(), "# Sheet Foxes\n4\ta b\t\t\tc\tc");
    let manifest = "<manifest><file-entry><encryption-data/></file-entry></manifest>";
    let locked = archive(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        ("META-INF/manifest.xml", manifest),
        ("content.xml", "?"),
    ]);
    assert_eq!(text_of(&locked), Err(Unread::Encrypted));
}

#[test]
fn a_sheet_of_millions_of_rows_or_cells_is_refused() {
    let rows = "<row><c><v>1</v></c></row>".repeat(1_000_000);
    assert_eq!(text_of(&workbook(&rows)), Err(Unread::TooLong));
    for [rows, columns] in [["4000000000", "1"], ["1", "4000000000"], ["99999999999999999999", "9"]] {
        let cell = format!("<t:table-cell t:number-columns-repeated='{columns}'><x:p>c</x:p></t:table-cell>");
        let table =
            format!("<t:table><t:table-row t:number-rows-repeated='{rows}'>{cell}</t:table-row></t:table>");
        assert_eq!(text_of(&open_sheet(&table)), Err(Unread::TooLong), "{rows} {columns}");
    }
}

#[test]
fn a_bomb_is_refused_at_the_limits() {
    let begin: &[u8] = b"<w:document xmlns:w='w'><w:p><w:r><w:t>";
    let text = deflated("word/document.xml", begin.chain(std::io::repeat(b'a')).take(300 << 20));
    assert!(text.len() < 1 << 20);
    assert_eq!(text_of(&text), Err(Unread::UnpacksTooLarge));
    // Elements without text.
    let element: &[u8] = b"<w:document xmlns:w='w'><w:p>";
    let deep = [element, &b"<w:p>".repeat(5_000)].concat();
    assert_eq!(text_of(&deflated("word/document.xml", &*deep)), Err(Unread::Damaged));
    let long = word(&format!("<w:p><w:r><w:t>{}</w:t></w:r></w:p>", "a".repeat(MAX_TEXT + 1)));
    assert_eq!(text_of(&long), Err(Unread::TooLong));
}

#[test]
fn entities_of_a_document_are_not_expanded() {
    let body = "<w:p><w:r><w:t>a&b;c</w:t></w:r></w:p>";
    let document = format!("<!DOCTYPE d [<!ENTITY b 'bomb'>]><w:document xmlns:w='w'>{body}</w:document>");
    assert_eq!(text_of(&archive(&[("word/document.xml", &document)])).unwrap(), "ac");
}

#[test]
fn text_without_spaces_is_read() {
    let text = "狐狸找到了一盏灯。".repeat(2_000);
    let body = format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>");
    assert_eq!(text_of(&word(&body)).unwrap(), text);
    let page = format!("<html><body><p>{text}</p></body></html>");
    assert_eq!(text_of(page.as_bytes()).unwrap().replace('\n', ""), text);
}

#[test]
fn other_files_old_ones_and_encrypted_ones_have_their_reasons() {
    let compound = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec();
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(text_of(&compound), Err(Unread::Old));
    assert_eq!(text_of(&[compound, name].concat()), Err(Unread::Encrypted));
    assert_eq!(text_of(&archive(&[("a.txt", "fox")])), Err(Unread::Unknown));
    for other in [&b"%PDF-1.7"[..], b"", b"a fox", b"<svg/>", b"\x89PNG\r\n\x1a\n"] {
        assert_eq!(text_of(other), Err(Unread::Unknown));
    }
    assert_eq!(text_of(&word("<w:p/>")), Err(Unread::Empty));
}

#[test]
fn a_cut_or_changed_document_is_refused_or_read_but_never_panics() {
    let body = "<w:p><w:r><w:t>fox</w:t></w:r></w:p>";
    for whole in [word(body), workbook("<row><c t='s'><v>1</v></c></row>"), book("<encryption/>")] {
        for end in 0..whole.len() {
            assert!(text_of(&whole[..end]).is_err());
            let mut changed = whole.clone();
            changed[end] ^= 0x55;
            let _ = text_of(&changed);
        }
    }
}

#[test]
fn an_answer_of_the_child_process_is_one_line() {
    let answer = serde_json::to_string(&DocumentText::Text("a\nb".to_owned())).unwrap();
    assert_eq!(answer, r#"{"text":"a\nb"}"#);
    let unread = serde_json::to_string(&DocumentText::from(Err(Unread::UnpacksTooLarge))).unwrap();
    assert_eq!(unread, r#"{"unread":"unpacks_too_large"}"#);
}
