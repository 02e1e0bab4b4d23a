//! Text of .pptx files: the slides in order, with their notes.

use crate::archive::Archive;
use crate::relations::Relations;
use crate::text::Text;
use crate::unread::Unread;
use crate::xml::{Node, walk};

/// Most slides that are read.
const MAX_SLIDES: usize = 5_000;

const PRESENTATION: &str = "ppt/presentation.xml";

/// Extracts the text of all slides, each under a heading with its number.
///
/// # Errors
/// `Damaged`, `Encrypted`, `TooLong`, `UnpacksTooLarge`.
pub fn text_of(archive: &mut Archive<'_>) -> Result<String, Unread> {
    let mut ids = Vec::new();
    walk(archive.part(PRESENTATION)?, &mut |node| {
        if let Node::Open(element) = node
            && element.name() == "sldId"
        {
            if ids.len() == MAX_SLIDES {
                return Err(Unread::TooLong);
            }
            ids.extend(element.relationship());
        }
        Ok(())
    })?;
    let relations = Relations::of(archive, PRESENTATION)?;
    let mut text = Text::default();
    for (number, id) in ids.iter().enumerate() {
        let slide = relations.target(id).ok_or(Unread::Damaged)?.to_owned();
        text.heading(1, &format!("Slide {}", number + 1))?;
        push_paragraphs(archive, &slide, &mut text)?;
        let notes = Relations::of(archive, &slide)?.of_kind("notesSlide").map(str::to_owned);
        if let Some(notes) = notes.filter(|notes| archive.has(notes)) {
            text.heading(2, "Notes")?;
            push_paragraphs(archive, &notes, &mut text)?;
        }
    }
    Ok(text.into_string())
}

/// Appends the paragraphs of a slide, or of its notes.
fn push_paragraphs(archive: &mut Archive<'_>, part: &str, text: &mut Text) -> Result<(), Unread> {
    let (mut line, mut in_text, mut cells, mut copies) = (Text::default(), false, 0usize, 0usize);
    // Fields hold the slide's number and the date.
    let mut in_field = false;
    walk(archive.part(part)?, &mut |node| {
        match node {
            Node::Open(element) => match element.name() {
                "Fallback" => copies += 1,
                "fld" => in_field = true,
                "t" => in_text = copies == 0 && !in_field,
                "tc" => cells += 1,
                "br" => line.push(" ")?,
                _ => {}
            },
            Node::Text(words) if in_text => line.push(words)?,
            Node::Text(_) => {}
            Node::Close(name) => match name {
                "Fallback" => copies = copies.saturating_sub(1),
                "fld" => in_field = false,
                "t" => in_text = false,
                "tc" => {
                    cells = cells.saturating_sub(1);
                    line.push(" | ")?;
                }
                "p" if cells == 0 => text.line(&std::mem::take(&mut line).into_string())?,
                "tr" => {
                    text.line(std::mem::take(&mut line).into_string().trim_end().trim_end_matches('|'))?
                }
                _ => {}
            },
        }
        Ok(())
    })
}
