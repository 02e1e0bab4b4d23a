//! Scanned PDFs: pages of pictures without text.

use std::fmt::Write;

use foretoken_model::Picture;

/// A PDF with a page for each picture, and a blank one at the end.
pub fn scanned_pdf(pictures: &[Picture]) -> Vec<u8> {
    let mut objects = vec!["<< /Type /Catalog /Pages 2 0 R >>".to_owned(), String::new()];
    let mut kids = String::new();
    for picture in pictures {
        let (width, height) = (picture.width(), picture.height());
        let hex = picture.pixels().iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let image = format!(
            "<< /Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace /DeviceRGB \
             /BitsPerComponent 8 /Filter /ASCIIHexDecode /Length {} >>\nstream\n{hex}>\nendstream",
            hex.len() + 1
        );
        let content = "q 500 0 0 700 50 50 cm /Scan Do Q";
        let content = format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len());
        let first = objects.len() + 1;
        objects.extend([image, content]);
        objects.push(page(
            &format!("/Contents {} 0 R", first + 1),
            &format!("/XObject << /Scan {first} 0 R >>"),
        ));
        let _ = write!(kids, "{} 0 R ", first + 2);
    }
    objects.push(page("", ""));
    let _ = write!(kids, "{} 0 R", objects.len());
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pictures.len() + 1);
    file_of(&objects)
}

fn page(contents: &str, resources: &str) -> String {
    format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] {contents} /Resources << {resources} >> >>")
}

fn file_of(objects: &[String]) -> Vec<u8> {
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = String::new();
    for (number, object) in objects.iter().enumerate() {
        let _ = writeln!(places, "{:010} 00000 n ", file.len());
        let _ = writeln!(file, "{} 0 obj\n{object}\nendobj", number + 1);
    }
    let (start, size) = (file.len(), objects.len() + 1);
    let _ = write!(file, "xref\n0 {size}\n0000000000 65535 f \n{places}");
    let _ = write!(file, "trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF");
    file.into_bytes()
}
