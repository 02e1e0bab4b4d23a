//! `foretoken-bench documents`: time of indexing and searching documents of made-up words, which
//! are as frequent as those of a language; by words, and by embeddings of random numbers.

use std::time::Instant;

use foretoken_cli::commands::bench::numbers::median;
use foretoken_cli::error::Result;
use foretoken_cli::output;
use foretoken_documents::{Index, Query};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

/// Different words of all documents.
const WORDS: f64 = 50_000.0;

/// Words of a sentence, of a paragraph and of a document.
const SENTENCE: usize = 12;
const PARAGRAPH: usize = 120;
const DOCUMENT: usize = 50_000;

/// Words of a question, which are taken from one place of a document.
const QUESTION: usize = 10;

/// Passages of a question.
const FOUND: usize = 12;

/// Numbers of a made-up embedding, as many as those of small models.
const WIDTH: usize = 384;

/// Words of a page.
const PAGE: f64 = 500.0;

#[derive(Debug, clap::Args)]
pub struct DocumentsArgs {
    /// Pages of 500 words
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "100,30000", value_parser = clap::value_parser!(u32).range(1..=40_000))]
    pages: Vec<u32>,
    /// Questions; figures are medians
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    questions: u32,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Measured {
    pages: u32,
    megabytes: f64,
    /// Seconds of adding all documents to the index.
    indexing: f64,
    /// Milliseconds of a search: median and longest.
    search: f64,
    longest: f64,
    /// Share of the questions whose place is among the passages.
    right: f64,
    passages: usize,
    /// Milliseconds of a search by words and embeddings: median and longest.
    fused: f64,
    longest_fused: f64,
}

impl DocumentsArgs {
    /// Measures one size after the other.
    ///
    /// # Errors
    /// Returns an error of the index.
    pub fn run(&self) -> Result<()> {
        for &pages in &self.pages {
            let measured = measure(pages, self.questions)?;
            if self.json {
                output::json(&measured)?;
                continue;
            }
            let Measured {
                megabytes, indexing, search, longest, right, passages, fused, longest_fused, ..
            } = measured;
            output::line(format!(
                "{pages:>6} pages, {megabytes:>6.1} MB: indexed in {indexing:.2} s; a question takes \
                 {search:.2} ms, at most {longest:.1} ms, and finds its place in {:.0} %; with embeddings of \
                 {passages} passages {fused:.2} ms, at most {longest_fused:.1} ms",
                100.0 * right
            ))?;
        }
        Ok(())
    }
}

fn measure(pages: u32, questions: u32) -> Result<Measured> {
    let mut random = StdRng::seed_from_u64(7);
    let words = (f64::from(pages) * PAGE) as usize;
    let sizes = (0..words).step_by(DOCUMENT).map(|from| DOCUMENT.min(words - from));
    let documents: Vec<String> = sizes.map(|size| document(size, &mut random)).collect();
    let mut index = Index::open()?;
    let start = Instant::now();
    let mut keys = Vec::with_capacity(documents.len());
    for text in &documents {
        keys.push(index.add(text)?);
    }
    let indexing = start.elapsed().as_secs_f64();
    let places =
        (0..questions).map(|_| place(&documents[random.random_range(0..documents.len())], &mut random));
    let places: Vec<String> = places.collect();
    let (mut times, mut right) = (Vec::new(), 0);
    for place in &places {
        let start = Instant::now();
        let found = index.find(&keys, place.as_str(), FOUND)?;
        times.push(milliseconds(start));
        right += usize::from(found.iter().any(|found| found.text.contains(place)));
    }
    while let Some(passage) = index.unembedded()? {
        index.embed(&passage, &vector(&mut random))?;
    }
    let mut fused = Vec::new();
    for place in &places {
        let vector = vector(&mut random);
        let start = Instant::now();
        index.find(&keys, Query { words: place, vector: Some(&vector) }, FOUND)?;
        fused.push(milliseconds(start));
    }
    let bytes: usize = documents.iter().map(String::len).sum();
    Ok(Measured {
        pages,
        megabytes: bytes as f64 / 1e6,
        indexing,
        longest: longest(&times),
        search: median(times).unwrap_or_default(),
        right: right as f64 / f64::from(questions),
        passages: index.coverage()?.passages,
        longest_fused: longest(&fused),
        fused: median(fused).unwrap_or_default(),
    })
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn longest(times: &[f64]) -> f64 {
    times.iter().copied().fold(0.0, f64::max)
}

/// A made-up embedding.
fn vector(random: &mut StdRng) -> Vec<f32> {
    (0..WIDTH).map(|_| random.random::<f32>() - 0.5).collect()
}

/// A text of as many pages.
pub fn made_up(pages: u32) -> String {
    document((f64::from(pages) * PAGE) as usize, &mut StdRng::seed_from_u64(7))
}

/// A text of as many words, drawn by Zipf's law, in sentences and paragraphs.
fn document(words: usize, random: &mut StdRng) -> String {
    let mut text = String::new();
    for at in 1..=words {
        // The n-th word has a share of 1/n, so the logarithm of its rank is uniform.
        let rank = WORDS.powf(random.random::<f64>()) as u32;
        text.push_str(&word(rank));
        text.push_str(match at {
            at if at % PARAGRAPH == 0 => ".\n\n",
            at if at % SENTENCE == 0 => ". ",
            _ => " ",
        });
    }
    text
}

/// The word with this rank: a number in syllables.
fn word(mut rank: u32) -> String {
    const FIRST: &[u8] = b"bdfgklmnprstvz";
    const SECOND: &[u8] = b"aeiou";
    let mut word = String::new();
    loop {
        word.push(char::from(FIRST[rank as usize % FIRST.len()]));
        rank /= FIRST.len() as u32;
        word.push(char::from(SECOND[rank as usize % SECOND.len()]));
        rank /= SECOND.len() as u32;
        if rank == 0 {
            return word;
        }
    }
}

/// Words of a sentence of a document.
fn place(document: &str, random: &mut StdRng) -> String {
    let sentences: Vec<&str> = document.split(['.', '\n']).filter(|part| part.trim().len() > 1).collect();
    let sentence = sentences[random.random_range(0..sentences.len())].trim();
    sentence.split(' ').take(QUESTION).collect::<Vec<_>>().join(" ")
}
