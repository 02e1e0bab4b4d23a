//! Index of documents in memory: SQLite's FTS5 over their passages, and embeddings of them where a
//! model computes these.

use std::fmt;

use rusqlite::{Connection, OptionalExtension, params};

use crate::passage::passages;
use crate::ranking::fused;
use crate::vectors::Vectors;
use crate::words::{expression, searchable, words};

/// Most bytes of text that are held. The document that was searched longest ago is dropped first.
const MOST_BYTES: i64 = 256 << 20;

/// A word in more than one of `COMMON` passages says little, unless it is in at most `FEW`; so does
/// one in more than `MANY`, which take long to count and to rank.
const COMMON: i64 = 10;
const FEW: i64 = 50;
const MANY: i64 = 2_000;

/// An error of the index, such as a lack of memory.
#[derive(Debug)]
pub struct IndexError(rusqlite::Error);

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The attached documents cannot be searched: {}", self.0)
    }
}

impl std::error::Error for IndexError {}

impl From<rusqlite::Error> for IndexError {
    fn from(error: rusqlite::Error) -> Self {
        Self(error)
    }
}

/// Name of a document in the index. The same text has the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DocumentKey([u8; 32]);

impl DocumentKey {
    pub fn of(text: &str) -> Self {
        Self(*blake3::hash(text.as_bytes()).as_bytes())
    }
}

/// A question to the index.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub words: &'a str,
    /// Embedding of the question, by the model that embeds the passages.
    pub vector: Option<&'a [f32]>,
}

impl<'a> From<&'a str> for Query<'a> {
    fn from(words: &'a str) -> Self {
        Self { words, vector: None }
    }
}

/// A passage without an embedding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unembedded {
    document: i64,
    number: i64,
    /// Its heading and text.
    pub text: String,
}

/// How many of some passages have an embedding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    pub embedded: usize,
    pub passages: usize,
}

/// A passage that matches a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub document: DocumentKey,
    /// Number of the passage; those that follow each other have consecutive numbers.
    pub number: i64,
    pub text: String,
    pub page: Option<u32>,
    pub heading: Option<String>,
}

/// Documents whose passages can be searched.
#[derive(Debug)]
pub struct Index {
    connection: Connection,
    vectors: Vectors,
    most_bytes: i64,
}

/// Matches of a ranking that are merged with those of the other.
const CANDIDATES: usize = 50;

const TABLES: &str = "
    CREATE TABLE documents (
        id       INTEGER PRIMARY KEY,
        key      BLOB    NOT NULL UNIQUE,
        bytes    INTEGER NOT NULL,
        searched INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE passages (
        id       INTEGER PRIMARY KEY,
        document INTEGER NOT NULL,
        text     TEXT    NOT NULL,
        page     INTEGER,
        heading  TEXT
    ) STRICT;
    CREATE INDEX passages_of_document ON passages (document);
    CREATE VIRTUAL TABLE passages_text USING fts5 (
        text, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
    );
";

impl Index {
    /// Opens an empty index.
    ///
    /// # Errors
    /// Without memory.
    pub fn open() -> Result<Self, IndexError> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(TABLES)?;
        Ok(Self { connection, vectors: Vectors::default(), most_bytes: MOST_BYTES })
    }

    /// Returns whether a document can be searched.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn has(&self, document: DocumentKey) -> Result<bool, IndexError> {
        Ok(self.id(document)?.is_some())
    }

    /// Adds a document, unless it is there.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn add(&mut self, text: &str) -> Result<DocumentKey, IndexError> {
        let key = DocumentKey::of(text);
        if self.id(key)?.is_some() {
            return Ok(key);
        }
        self.make_room(text.len() as i64)?;
        let transaction = self.connection.transaction()?;
        {
            transaction.execute(
                "INSERT INTO documents (key, bytes, searched)
                 SELECT ?1, ?2, 1 + ifnull(max(searched), 0) FROM documents",
                params![key.0, text.len() as i64],
            )?;
            let document = transaction.last_insert_rowid();
            let mut passage = transaction.prepare_cached(
                "INSERT INTO passages (document, text, page, heading) VALUES (?1, ?2, ?3, ?4)",
            )?;
            let mut words =
                transaction.prepare_cached("INSERT INTO passages_text (rowid, text) VALUES (?1, ?2)")?;
            for found in passages(text) {
                let part = &text[found.range];
                passage.execute(params![document, part, found.page, found.heading])?;
                // Headings are found at the passages below them.
                let heading = found.heading.unwrap_or_default();
                words.execute(params![
                    transaction.last_insert_rowid(),
                    searchable(&format!("{heading}\n{part}"))
                ])?;
            }
        }
        transaction.commit()?;
        Ok(key)
    }

    /// Returns the passages of these documents that match a question best, best first, at most
    /// `most`. A passage matches with one word; words in more than a tenth of these documents'
    /// passages, or in more than 2,000, count only if the question has no rarer ones. With an
    /// embedding of the question, similar passages match too, and both rankings are merged.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn find<'a>(
        &self,
        documents: &[DocumentKey],
        question: impl Into<Query<'a>>,
        most: usize,
    ) -> Result<Vec<Found>, IndexError> {
        let Query { words, vector } = question.into();
        let mut ids = Vec::with_capacity(documents.len());
        for document in documents {
            ids.extend(self.id(*document)?);
        }
        self.touch(&ids)?;
        let Some(vector) = vector else { return self.found(&self.with_words(words, &ids, most)?) };
        let by_words = self.with_words(words, &ids, CANDIDATES)?;
        let similar = self.vectors.nearest(&ids, vector, CANDIDATES);
        self.found(&fused(&[by_words, similar], most))
    }

    /// Numbers of the passages with words of a question, best first.
    fn with_words(&self, question: &str, ids: &[i64], most: usize) -> Result<Vec<i64>, IndexError> {
        let ids = serde_json::Value::from(ids).to_string();
        let Some(expression) = self.telling(question, &ids)? else { return Ok(Vec::new()) };
        let mut statement = self.connection.prepare_cached(
            "SELECT passages.id
             FROM passages_text
             JOIN passages ON passages.id = passages_text.rowid
             WHERE passages_text MATCH ?1 AND document IN (SELECT value FROM json_each(?2))
             ORDER BY bm25(passages_text), passages.id
             LIMIT ?3",
        )?;
        let found = statement.query_map(params![expression, ids, most as i64], |row| row.get(0))?;
        Ok(found.collect::<rusqlite::Result<_>>()?)
    }

    /// The passages of these numbers, in their order.
    fn found(&self, numbers: &[i64]) -> Result<Vec<Found>, IndexError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT documents.key, passages.id, passages.text, page, heading
             FROM passages JOIN documents ON documents.id = passages.document
             WHERE passages.id = ?1",
        )?;
        let found = numbers.iter().map(|number| {
            statement.query_row([number], |row| {
                Ok(Found {
                    document: DocumentKey(row.get(0)?),
                    number: row.get(1)?,
                    text: row.get(2)?,
                    page: row.get(3)?,
                    heading: row.get(4)?,
                })
            })
        });
        Ok(found.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the next passage without an embedding, of the document searched last that has one.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn unembedded(&self) -> Result<Option<Unembedded>, IndexError> {
        let mut documents =
            self.connection.prepare_cached("SELECT id FROM documents ORDER BY searched DESC, id DESC")?;
        let documents = documents.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
        for document in documents {
            if let Some(passage) = self.unembedded_in(document)? {
                return Ok(Some(passage));
            }
        }
        Ok(None)
    }

    /// Returns a document's first passage without an embedding.
    fn unembedded_in(&self, document: i64) -> Result<Option<Unembedded>, IndexError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id, heading, text FROM passages WHERE document = ?1 AND id > ?2 ORDER BY id LIMIT 1",
        )?;
        let last = self.vectors.last(document).unwrap_or(0);
        let passage = statement.query_row([document, last], |row| {
            let (heading, text): (Option<String>, String) = (row.get(1)?, row.get(2)?);
            let text = heading.map_or_else(|| text.clone(), |heading| format!("{heading}\n{text}"));
            Ok(Unembedded { document, number: row.get(0)?, text })
        });
        Ok(passage.optional()?)
    }

    /// Adds the embedding of a passage, unless its document was dropped meanwhile.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn embed(&mut self, passage: &Unembedded, vector: &[f32]) -> Result<(), IndexError> {
        if self.unembedded_in(passage.document)?.is_some_and(|next| next == *passage) {
            self.vectors.add(passage.document, passage.number, vector);
        }
        Ok(())
    }

    /// Removes all embeddings, before another model computes them.
    pub fn forget_embeddings(&mut self) {
        self.vectors.clear();
    }

    /// Returns how many passages of all documents have an embedding.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn coverage(&self) -> Result<Coverage, IndexError> {
        let mut statement =
            self.connection.prepare_cached("SELECT document, count(*) FROM passages GROUP BY document")?;
        let documents = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
        let mut coverage = Coverage::default();
        for document in documents {
            let (document, passages) = document?;
            coverage.passages += passages as usize;
            coverage.embedded += self.vectors.count(document);
        }
        Ok(coverage)
    }

    fn id(&self, document: DocumentKey) -> Result<Option<i64>, IndexError> {
        let mut statement = self.connection.prepare_cached("SELECT id FROM documents WHERE key = ?1")?;
        Ok(statement.query_row([document.0], |row| row.get(0)).optional()?)
    }

    /// The expression of a question's words that occur in documents, whose ids are a JSON array: of
    /// the rare words, or of all if none is.
    fn telling(&self, question: &str, ids: &str) -> Result<Option<String>, IndexError> {
        let passages: i64 = self.connection.query_row(
            "SELECT count(*) FROM passages WHERE document IN (SELECT value FROM json_each(?1))",
            [ids],
            |row| row.get(0),
        )?;
        let rare = (passages / COMMON).clamp(FEW, MANY);
        let mut count = self.connection.prepare_cached(
            "SELECT count(*) FROM (
                 SELECT 1 FROM passages_text JOIN passages ON passages.id = passages_text.rowid
                 WHERE passages_text MATCH ?1 AND document IN (SELECT value FROM json_each(?3)) LIMIT ?2 + 1
             )",
        )?;
        let (mut known, mut telling) = (Vec::new(), Vec::new());
        for word in words(question) {
            let matches: i64 = count.query_row(params![word, rare, ids], |row| row.get(0))?;
            if (1..=rare).contains(&matches) {
                telling.push(word);
            } else if matches > 0 {
                known.push(word);
            }
        }
        Ok(expression(if telling.is_empty() { known } else { telling }))
    }

    /// Notes that documents were searched.
    fn touch(&self, ids: &[i64]) -> Result<(), IndexError> {
        let mut statement = self.connection.prepare_cached(
            "UPDATE documents SET searched = (SELECT 1 + max(searched) FROM documents) WHERE id = ?1",
        )?;
        for id in ids {
            statement.execute([id])?;
        }
        Ok(())
    }

    /// Drops the documents that were searched longest ago, until `bytes` more fit.
    fn make_room(&mut self, bytes: i64) -> Result<(), IndexError> {
        let transaction = self.connection.transaction()?;
        loop {
            let held: i64 =
                transaction.query_row("SELECT ifnull(sum(bytes), 0) FROM documents", [], |row| row.get(0))?;
            if held == 0 || held + bytes <= self.most_bytes {
                break;
            }
            let oldest: i64 =
                transaction
                    .query_row("SELECT id FROM documents ORDER BY searched LIMIT 1", [], |row| row.get(0))?;
            transaction.execute(
                "DELETE FROM passages_text WHERE rowid IN (SELECT id FROM passages WHERE document = ?1)",
                [oldest],
            )?;
            transaction.execute("DELETE FROM passages WHERE document = ?1", [oldest])?;
            transaction.execute("DELETE FROM documents WHERE id = ?1", [oldest])?;
            self.vectors.remove(oldest);
        }
        Ok(transaction.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(texts: &[&str]) -> (Index, Vec<DocumentKey>) {
        let mut index = Index::open().unwrap();
        let keys = texts.iter().map(|text| index.add(text).unwrap()).collect();
        (index, keys)
    }

    /// Passages of their own: a heading each.
    fn sections(texts: &[&str]) -> String {
        texts.iter().enumerate().map(|(number, text)| format!("# S{number}\n{text}\n")).collect()
    }

    fn headings(index: &Index, keys: &[DocumentKey], question: &str) -> Vec<String> {
        let found = index.find(keys, question, 10).unwrap();
        found.into_iter().filter_map(|found| found.heading).collect()
    }

    #[test]
    fn passages_with_more_and_rarer_words_of_the_question_come_first() {
        let mut texts = vec!["The town has a harbour."; 12];
        texts[3] = "The town has a lighthouse.";
        texts[7] = "The lighthouse keeper is called Ines.";
        let (index, keys) = index(&[&sections(&texts)]);
        let question = "What is the name of the keeper of the lighthouse?";
        assert_eq!(headings(&index, &keys, question)[..2], ["S7", "S3"]);
        assert_eq!(headings(&index, &keys, "zebra"), [""; 0]);
        assert_eq!(headings(&index, &keys, "?").len(), 0);
    }

    #[test]
    fn words_in_many_passages_count_only_without_rarer_ones() {
        let mut texts = vec!["The town has a harbour."; 600];
        texts[300] = "A lighthouse stands here.";
        let (index, keys) = index(&[&sections(&texts)]);
        assert_eq!(headings(&index, &keys, "Where in the town is the lighthouse?"), ["S300"]);
        assert_eq!(headings(&index, &keys, "Which town has a harbour?").len(), 10);
    }

    #[test]
    fn a_passage_has_its_place() {
        let text = "# One\nfox\u{c}# Two\nhen\n\nThe hen's egg.";
        let (index, keys) = index(&[text]);
        let found = index.find(&keys, "Eggs?", 5).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].page, found[0].heading.as_deref()), (Some(2), Some("Two")));
        assert_eq!(found[0].text, "\u{c}# Two\nhen\n\nThe hen's egg.");
        assert_eq!(found[0].document, keys[0]);
    }

    #[test]
    fn case_accents_and_endings_are_ignored_and_languages_without_spaces_are_found() {
        let texts =
            ["Übermäßige Kälte", "Foxes were running", "懒狗睡觉。狐狸跳过。", "きつねは跳ぶ", "หมาป่าวิ่งเร็ว"];
        let (index, keys) = index(&[&sections(&texts)]);
        for (question, section) in [
            ("KALTE", "S0"),
            ("Does a fox run?", "S1"),
            ("狐狸在哪里？", "S2"),
            ("きつねはどこ", "S3"),
            ("หมาป่า", "S4"),
        ] {
            assert_eq!(
                headings(&index, &keys, question).first().map(String::as_str),
                Some(section),
                "{question}"
            );
        }
    }

    #[test]
    fn only_the_named_documents_are_searched() {
        let (mut index, keys) = index(&["The fox runs.", "The fox sleeps."]);
        assert_eq!(index.find(&keys, "fox", 5).unwrap().len(), 2);
        let found = index.find(&keys[1..], "fox", 5).unwrap();
        assert_eq!(found.iter().map(|found| &*found.text).collect::<Vec<_>>(), ["The fox sleeps."]);
        assert_eq!(index.find(&[], "fox", 5).unwrap(), []);
        assert_eq!(index.add("The fox runs.").unwrap(), keys[0]);
        assert_eq!(index.find(&keys, "fox", 5).unwrap().len(), 2, "added once");
    }

    #[test]
    fn words_of_other_documents_say_nothing() {
        let towns = sections(&["The town has a harbour."; 600]);
        let (index, keys) = index(&[&towns, "The keeper sleeps."]);
        let found = index.find(&keys[..1], "Who is the keeper of the harbour?", 5).unwrap();
        assert_eq!(found.len(), 5, "'keeper' is in the other document only");
    }

    /// Adds embeddings of one number per passage: 1 for those that contain `word`.
    fn embed_all(index: &mut Index, word: &str) {
        while let Some(passage) = index.unembedded().unwrap() {
            let similar = f32::from(u8::from(passage.text.contains(word)));
            index.embed(&passage, &[similar, 1.0 - similar]).unwrap();
        }
    }

    #[test]
    fn passages_are_found_by_their_embeddings_too() {
        let (mut index, keys) = index(&[&sections(&["The fox runs.", "The hen sleeps.", "The dog barks."])]);
        let find = |index: &Index, words, vector: [f32; 2]| {
            let found = index.find(&keys, Query { words, vector: Some(&vector) }, 2).unwrap();
            found.into_iter().filter_map(|found| found.heading).collect::<Vec<_>>()
        };
        assert_eq!(find(&index, "vixen", [1.0, 0.0]), [""; 0]);
        assert_eq!(index.coverage().unwrap(), Coverage { embedded: 0, passages: 3 });
        embed_all(&mut index, "hen");
        assert_eq!(index.coverage().unwrap(), Coverage { embedded: 3, passages: 3 });
        assert_eq!(find(&index, "poultry", [1.0, 0.0])[0], "S1");
        assert_eq!(find(&index, "fox", [1.0, 0.0]), ["S0", "S1"], "the first of either ranking");
        assert_eq!(find(&index, "hen", [1.0, 0.0])[0], "S1");
        assert_eq!(headings(&index, &keys, "poultry"), [""; 0], "without an embedding of the question");
        index.forget_embeddings();
        assert_eq!(find(&index, "poultry", [1.0, 0.0]), [""; 0]);
    }

    #[test]
    fn the_document_searched_last_is_embedded_first_and_a_dropped_one_never() {
        let (mut index, keys) = index(&["fox one", "fox two"]);
        index.find(&keys[..1], "fox", 5).unwrap();
        let first = index.unembedded().unwrap().unwrap();
        assert_eq!(first.text, "fox one");
        index.find(&keys[1..], "fox", 5).unwrap();
        index.most_bytes = 15;
        index.add("fox six").unwrap();
        index.embed(&first, &[1.0]).unwrap();
        assert_eq!(index.coverage().unwrap(), Coverage { embedded: 0, passages: 2 });
        embed_all(&mut index, "six");
        assert_eq!(index.unembedded().unwrap(), None);
    }

    #[test]
    fn any_question_is_safe() {
        let (index, keys) = index(&["say \"fox\" AND run"]);
        for question in ["", "\"", "*", "NEAR(", "fox\0", "text:fox", "-fox", "^", "{fox}", "\u{301}", "'"] {
            index.find(&keys, question, 5).unwrap();
        }
        assert_eq!(index.find(&keys, "\"fox\" OR", 5).unwrap().len(), 1);
        let long = "fox hen ".repeat(100_000);
        assert_eq!(index.find(&keys, long.as_str(), 5).unwrap().len(), 1);
    }

    #[test]
    fn the_document_searched_longest_ago_is_dropped_first() {
        let (mut index, keys) = index(&["fox one", "fox two"]);
        index.most_bytes = 15;
        index.find(&keys[..1], "fox", 5).unwrap();
        let third = index.add("fox six").unwrap();
        assert_eq!([keys[0], keys[1], third].map(|key| index.has(key).unwrap()), [true, false, true]);
        assert_eq!(index.find(&[keys[0], keys[1], third], "fox", 5).unwrap().len(), 2);
        let large = index.add(&"hen ".repeat(100)).unwrap();
        assert!(index.has(large).unwrap(), "a document beyond the limit is held by itself");
        assert!(!index.has(third).unwrap());
    }
}
