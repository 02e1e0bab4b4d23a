//! `foretoken-bench meaning`: how often passages of this project's documents are found for
//! questions in other words than theirs, in English and in German, by words, by embeddings and by
//! both; and how fast an embedding model is.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use foretoken_cli::error::Result;
use foretoken_cli::output;
use foretoken_documents::{Coverage, Found, Index, PASSAGES, Query};
use foretoken_model::embedding::{TextEmbedder, TextUse};
use foretoken_senses::embedding::EmbeddingModel;
use serde::Serialize;

/// Documents that are searched.
const DOCUMENTS: [&str; 5] = ["conversations", "models", "pictures", "remote", "tools"];

/// Questions in English, each with a text of the passage that answers it.
const ENGLISH: [(&str, &str); 16] = [
    ("Can I get my chats on paper?", "prints the shown branch or saves it as PDF"),
    (
        "What happens to duplicates when I read a backup twice?",
        "Conversations that are here already are left out",
    ),
    ("How big may an upload of old chats be?", "A file may be of any length"),
    ("Who invents the name of a chat?", "A new conversation is called by the first words"),
    (
        "Why is the second answer in a long chat quick?",
        "What the model has read of a conversation is kept in memory",
    ),
    ("Does the program alter files of competitors?", "They are never copied, changed or deleted"),
    ("Is my login sent in the clear to other machines?", "The access token is never sent unencrypted"),
    ("How does it guess how quick a download will be?", "from the measured memory bandwidth"),
    ("Which image types can I show?", "PNG, JPEG"),
    (
        "Is traffic to my other machine protected from eavesdroppers?",
        "None of these connections is encrypted",
    ),
    ("Where does my password for the other machine live?", "The key is kept in the system's keyring"),
    ("What leaves my computer when I talk to another machine?", "When you write to its model"),
    ("How long until it gives up on a silent machine?", "A server has 30 minutes to the first word"),
    ("Is a plug-in locked into a cage?", "there is no sandbox"),
    ("Does it ask me again if somebody swaps a plug-in?", "a tool that changes asks again"),
    ("Can a website give orders to the assistant?", "can contain instructions to the model"),
];

/// Questions in German.
const GERMAN: [(&str, &str); 8] = [
    ("Kann ich Gespräche ausdrucken?", "prints the shown branch or saves it as PDF"),
    (
        "Wer denkt sich die Überschrift eines Gesprächs aus?",
        "A new conversation is called by the first words",
    ),
    ("Werden Modelle anderer Programme verändert?", "They are never copied, changed or deleted"),
    ("Ist die Verbindung zum anderen Rechner verschlüsselt?", "None of these connections is encrypted"),
    ("Wo wird mein Schlüssel aufbewahrt?", "The key is kept in the system's keyring"),
    ("Welche Daten verlassen meinen Rechner?", "When you write to its model"),
    ("Läuft ein Werkzeug abgeschottet?", "there is no sandbox"),
    ("Wie groß darf eine importierte Datei sein?", "A file may be of any length"),
];

#[derive(Debug, clap::Args)]
pub struct MeaningArgs {
    /// Embedding model
    model: PathBuf,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
}

/// Questions whose passage is among those found.
#[derive(Debug, Default, Serialize)]
struct Right {
    questions: usize,
    words: usize,
    embeddings: usize,
    both: usize,
}

#[derive(Debug, Serialize)]
struct Measured {
    english: Right,
    german: Right,
    passages: usize,
    passages_per_second: f64,
    tokens_per_second: f64,
    /// Milliseconds of a question's embedding, on average.
    question: f64,
}

impl MeaningArgs {
    /// # Errors
    /// Errors of the model, and of reading the documents.
    pub fn run(&self) -> Result<()> {
        let model = EmbeddingModel::open(&self.model, "model")?;
        let mut searched = Searched::open()?;
        let (begun, mut tokens) = (Instant::now(), 0);
        while let Some(passage) = searched.index.unembedded()? {
            let embedding = model.embed(&passage.text, TextUse::Passage)?;
            tokens += embedding.tokens;
            searched.index.embed(&passage, &embedding.vector)?;
        }
        let took = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let (english, german) = (searched.right(&model, &ENGLISH)?, searched.right(&model, &GERMAN)?);
        let question = begun.elapsed().as_secs_f64() * 1e3 / (ENGLISH.len() + GERMAN.len()) as f64;
        let Coverage { passages, .. } = searched.index.coverage()?;
        let measured = Measured {
            english,
            german,
            passages,
            passages_per_second: passages as f64 / took,
            tokens_per_second: tokens as f64 / took,
            question,
        };
        if self.json { output::json(&measured) } else { measured.print() }
    }
}

impl Measured {
    fn print(&self) -> Result<()> {
        for (language, right) in [("English", &self.english), ("German", &self.german)] {
            let Right { questions, words, embeddings, both } = right;
            output::line(format_args!(
                "{language}: of {questions} questions {words} found by words, {embeddings} by embeddings, {both} by both"
            ))?;
        }
        output::line(format_args!(
            "{} passages, {:.1} a second ({:.0} tokens/s); a question with its searches takes {:.1} ms",
            self.passages, self.passages_per_second, self.tokens_per_second, self.question
        ))
    }
}

/// The documents in an index.
struct Searched {
    index: Index,
    keys: Vec<foretoken_documents::DocumentKey>,
}

impl Searched {
    fn open() -> Result<Self> {
        let mut index = Index::open()?;
        let mut keys = Vec::new();
        for name in DOCUMENTS {
            keys.push(index.add(&fs::read_to_string(format!("docs/{name}.md"))?)?);
        }
        Ok(Self { index, keys })
    }

    fn right(&self, model: &EmbeddingModel, questions: &[(&str, &str)]) -> Result<Right> {
        let mut right = Right { questions: questions.len(), ..Right::default() };
        for (question, answer) in questions {
            let vector = model.embed(question, TextUse::Query)?.vector;
            let find = |words: &str, vector| self.index.find(&self.keys, Query { words, vector }, PASSAGES);
            let has = |found: Vec<Found>| usize::from(found.iter().any(|found| found.text.contains(answer)));
            right.words += has(find(question, None)?);
            right.embeddings += has(find("", Some(&vector))?);
            right.both += has(find(question, Some(&vector))?);
        }
        Ok(right)
    }
}
