//! `foretoken-bench quotes`: replies that quote excerpts of a document, with n-grams of the
//! excerpts, without them, and with the whole document; and replies beside a thread that indexes
//! documents.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use foretoken_cli::args::PairDeviceArgs;
use foretoken_cli::commands::bench::numbers::median;
use foretoken_cli::error::{Error, Result};
use foretoken_cli::{output, session};
use foretoken_documents::{FileBudget, Index, PASSAGES, excerpts, quoted};
use foretoken_engine::context::Context;
use foretoken_engine::decoder::{Progress, Reply, Request};
use foretoken_engine::draft::{
    Draft, DraftRequest, Drafter, Drafters, ForcedDrafter, NgramDrafter, RecyclingDrafter,
};
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::sampler::Sampler;
use foretoken_engine::session::{Session, estimated_tokens};
use foretoken_model::token::TokenId;
use foretoken_model::{ChatMessage, Conversation, ModelSource, Role};
use serde::Serialize;

use crate::documents::made_up;

/// Words in a row that make a quotation.
const QUOTED: usize = 8;

/// Pages that are indexed beside a reply.
const PAGES: u32 = 100;

#[derive(Debug, clap::Args)]
pub struct QuotesArgs {
    /// Model
    target: PathBuf,
    /// Document with headings; each question asks for a quotation of what is below one
    #[arg(long, value_name = "FILE", default_value = "docs/security.md")]
    document: PathBuf,
    /// Number of questions
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..))]
    questions: u32,
    /// Maximum length of a reply in tokens
    #[arg(long, value_name = "N", default_value = "128", value_parser = clap::value_parser!(u32).range(2..))]
    tokens: u32,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub device: PairDeviceArgs,
}

/// Way of writing a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    Plain,
    /// N-grams of everything but the excerpts.
    WithoutExcerpts,
    WithExcerpts,
    /// The whole document, too, as a text that drafts may repeat.
    WithDocument,
    /// Plain, while a thread indexes 100 pages once.
    Indexing,
    /// Plain, while a thread indexes without end.
    IndexingOften,
}

const WAYS: [Way; 6] = [
    Way::Plain,
    Way::WithoutExcerpts,
    Way::WithExcerpts,
    Way::WithDocument,
    Way::Indexing,
    Way::IndexingOften,
];

/// Figures of one question.
#[derive(Debug, Serialize)]
struct Measured {
    question: String,
    prompt_tokens: u32,
    tokens: u32,
    /// Share of the reply's words in quotations.
    quoted: f64,
    /// Milliseconds after the first round, and tokens per round, by way.
    ms: [f64; WAYS.len()],
    per_round: [f64; WAYS.len()],
    /// True if all ways wrote the same tokens.
    same: bool,
}

impl QuotesArgs {
    /// Measures one question after the other, all ways in turn.
    ///
    /// # Errors
    /// Errors of the model, the document and the index.
    pub fn run(&self) -> Result<()> {
        let read = |source| Error::Read { path: self.document.clone(), source };
        let document = fs::read_to_string(&self.document).map_err(read)?;
        let source = ModelSource::open(&self.target)?;
        let mut session = session::load(&source, session::form(&source, false)?, &self.device)?;
        let headings: Vec<&str> = document.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        if headings.is_empty() {
            return Err(Error::Usage("expected a document with headings ('## ').".to_owned()));
        }
        let name = self.document.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut index = Index::open()?;
        let key = index.add(&document)?;
        let budget = FileBudget::new(session.context() / 2, estimated_tokens);
        let mut bench = Bench::new(self.tokens, &document);
        let mut all: Vec<Measured> = Vec::new();
        // The first reply, which is not counted, teaches the drafters their costs.
        for number in 0..=self.questions as usize {
            let heading = match number {
                0 => "everything",
                _ => headings[(number - 1) % headings.len()],
            };
            let question =
                format!("Quote word for word, in full sentences, what the document says about: {heading}");
            let found = index.find(&[key], question.as_str(), PASSAGES)?;
            let excerpts = quoted(&excerpts(found, &budget, &[(key, &name)]));
            let measured = bench.measure(&mut session, &excerpts, &question, number)?;
            if number > 0 {
                if self.json {
                    output::json(&measured)?;
                } else {
                    output::line(&measured)?;
                }
                all.push(measured);
            }
        }
        if self.json { Ok(()) } else { output::line(summary(&all)) }
    }
}

/// Drafters of every way, and texts.
struct Bench<'a> {
    drafters: [Drafters; WAYS.len()],
    /// Tokens of the prompt up to the end of the excerpts.
    hidden: Arc<AtomicUsize>,
    document: &'a str,
    tokens: u32,
}

impl<'a> Bench<'a> {
    fn new(tokens: u32, document: &'a str) -> Self {
        let hidden = Arc::new(AtomicUsize::new(0));
        let drafters = WAYS.map(|way| {
            let ngrams: Box<dyn Drafter> = match way {
                Way::Plain | Way::Indexing | Way::IndexingOften => return Drafters::default(),
                Way::WithoutExcerpts => Box::new(Later {
                    ngrams: NgramDrafter::default(),
                    hidden: Arc::clone(&hidden),
                    context: Context::new(Vec::new()),
                }),
                Way::WithExcerpts | Way::WithDocument => Box::<NgramDrafter>::default(),
            };
            Drafters::new(vec![ngrams, Box::<RecyclingDrafter>::default(), Box::new(ForcedDrafter)])
        });
        Self { drafters, hidden, document, tokens }
    }

    fn measure(
        &mut self,
        session: &mut Session,
        excerpts: &str,
        question: &str,
        number: usize,
    ) -> Result<Measured> {
        let prompt = prompt(session, &format!("{excerpts}\n\n{question}"))?;
        let without = prompt_ends(&prompt, &self::prompt(session, question)?);
        self.hidden.store(prompt.len() - without, Ordering::Relaxed);
        // The prompt is in the cache before the first way.
        session.draft.drafters = Drafters::default();
        reply(session, &prompt, 1)?;
        let (mut ms, mut per_round) = ([0.0; WAYS.len()], [0.0; WAYS.len()]);
        let mut first: Option<Reply> = None;
        let mut same = true;
        for turn in 0..WAYS.len() {
            // Which one comes first changes with the question.
            let way = (turn + number) % WAYS.len();
            session.draft.drafters = std::mem::take(&mut self.drafters[way]);
            let texts = [self.document.to_owned()];
            session.repeat(if WAYS[way] == Way::WithDocument { &texts } else { &[] });
            let written = self.beside(WAYS[way], || reply(session, &prompt, self.tokens))?;
            self.drafters[way] = std::mem::take(&mut session.draft.drafters);
            ms[way] = written.summary.elapsed_ms - written.summary.ttft_ms;
            per_round[way] = written.summary.tokens_per_round;
            same &= first.get_or_insert_with(|| written.clone()).tokens == written.tokens;
        }
        let (text, tokens) = first.map_or_else(Default::default, |reply| (reply.text, reply.tokens.len()));
        let (prompt_tokens, tokens) = (prompt.len() as u32, tokens as u32);
        let quoted = quoted_share(&text, excerpts);
        Ok(Measured { question: question.to_owned(), prompt_tokens, tokens, quoted, ms, per_round, same })
    }

    /// Runs `write`, beside a thread that indexes documents where the way asks for it.
    fn beside(&self, way: Way, write: impl FnOnce() -> Result<Reply>) -> Result<Reply> {
        if !matches!(way, Way::Indexing | Way::IndexingOften) {
            return write();
        }
        let text = made_up(PAGES);
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let added = Index::open().and_then(|mut index| index.add(&text).map(|_| ()));
                    if added.is_err() || way == Way::Indexing {
                        break;
                    }
                }
            });
            let written = write();
            ended.store(true, Ordering::Relaxed);
            written
        })
    }
}

/// N-grams of the text after the excerpts only.
struct Later {
    ngrams: NgramDrafter,
    /// Tokens of the prompt up to the end of the excerpts.
    hidden: Arc<AtomicUsize>,
    context: Context,
}

impl Drafter for Later {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Ngram
    }

    fn draft(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> foretoken_model::error::Result<Draft> {
        let seen = &context[self.hidden.load(Ordering::Relaxed).min(context.len() - 1)..];
        let same = self.context.common(seen, 0);
        self.context.truncate(same);
        self.context.extend(seen[same..].iter().copied());
        self.ngrams.draft(&self.context, request, sampler)
    }
}

/// A prompt with one message of a person.
fn prompt(session: &Session, text: &str) -> Result<Vec<TokenId>> {
    let messages = &[ChatMessage::new(Role::User, text)];
    Ok(session.conversation(&Conversation { messages, tools: &[], thinking: None })?)
}

/// Number of tokens in which two prompts end alike.
fn prompt_ends(one: &[TokenId], other: &[TokenId]) -> usize {
    one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count()
}

/// Writes a greedy reply.
fn reply(session: &mut Session, prompt: &[TokenId], tokens: u32) -> Result<Reply> {
    let mut request = Request::new(prompt.to_vec());
    request.max_tokens = Some(tokens as usize);
    request.sampling.temperature = 0.0;
    let mut go_on = |_: Progress<'_>| ControlFlow::Continue(());
    Ok(session.reply(&request, &mut go_on)?)
}

/// Share of a text's words that are part of a quotation of `source`.
fn quoted_share(text: &str, source: &str) -> f64 {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let (text, source) = (words(text), words(source));
    let quotable: std::collections::HashSet<&[String]> = source.windows(QUOTED).collect();
    let mut quoted = vec![false; text.len()];
    for (start, run) in text.windows(QUOTED).enumerate() {
        if quotable.contains(run) {
            quoted[start..start + QUOTED].fill(true);
        }
    }
    quoted.iter().filter(|&&quoted| quoted).count() as f64 / text.len().max(1) as f64
}

impl Display for Measured {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { question, prompt_tokens, tokens, quoted, ms, per_round, same } = self;
        let subject = question.rsplit(": ").next().unwrap_or_default();
        write!(f, "{subject}: {prompt_tokens} + {tokens} tokens, {:.0} % quoted", 100.0 * quoted)?;
        for ((way, ms), per_round) in WAYS.iter().zip(ms).zip(per_round) {
            write!(f, "; {way:?} {:.1} tokens/s, {per_round:.2} a round", f64::from(*tokens) / ms * 1e3)?;
        }
        write!(f, "{}", if *same { "" } else { "; TEXTS DIFFER" })
    }
}

/// Ratios of the ways over all questions.
fn summary(all: &[Measured]) -> String {
    let at = |way: Way| WAYS.iter().position(|other| *other == way).unwrap_or_default();
    // Speed of one way over another: of all tokens, and by question.
    let ratio = |fast: Way, slow: Way| {
        let sum = |way: Way| all.iter().map(|one| one.ms[at(way)]).sum::<f64>();
        let mut each: Vec<f64> = all.iter().map(|one| one.ms[at(slow)] / one.ms[at(fast)]).collect();
        each.sort_by(f64::total_cmp);
        let ends = [each.first(), each.last()].map(|end| end.copied().unwrap_or_default());
        let all = sum(slow) / sum(fast);
        format!("{all:.2} (median {:.2}, {:.2} to {:.2})", median(each).unwrap_or_default(), ends[0], ends[1])
    };
    let quoted = all.iter().map(|one| one.quoted * f64::from(one.tokens)).sum::<f64>();
    let tokens = all.iter().map(|one| f64::from(one.tokens)).sum::<f64>();
    let differing = all.iter().filter(|one| !one.same).count();
    format!(
        "{} questions, {:.0} % quoted, {differing} with differing texts\n\
         excerpts as n-grams over n-grams without them: {}\n\
         over plain decoding: {}; without them: {}\n\
         the whole document besides: {}\n\
         plain beside 100 pages indexed: {}; beside indexing without end: {}",
        all.len(),
        100.0 * quoted / tokens,
        ratio(Way::WithExcerpts, Way::WithoutExcerpts),
        ratio(Way::WithExcerpts, Way::Plain),
        ratio(Way::WithoutExcerpts, Way::Plain),
        ratio(Way::WithDocument, Way::WithExcerpts),
        ratio(Way::Indexing, Way::Plain),
        ratio(Way::IndexingOften, Way::Plain),
    )
}

#[cfg(test)]
mod tests {
    use foretoken_model::sampling::Sampling;

    use super::*;

    #[test]
    fn words_in_runs_of_eight_are_quoted() {
        let source = "one two three four five six seven eight nine ten";
        assert_eq!(quoted_share("Two, three FOUR five six seven eight nine; and so on", source), 8.0 / 11.0);
        assert_eq!(quoted_share("two three four five six seven eight", source), 0.0);
        assert_eq!(quoted_share("", source), 0.0);
    }

    #[test]
    fn ngrams_do_not_repeat_what_is_hidden() {
        let drafted = |hidden: usize, text: &[TokenId]| -> Vec<TokenId> {
            let hidden = Arc::new(AtomicUsize::new(hidden));
            let context = Context::new(Vec::new());
            let mut drafter = Later { ngrams: NgramDrafter::default(), hidden, context };
            let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
            let draft =
                drafter.draft(&Context::new(text.to_vec()), &DraftRequest::chain(2), &mut sampler).unwrap();
            draft.guesses.iter().map(|guess| guess.token).collect()
        };
        let text = [1, 2, 3, 4, 9, 1, 2];
        assert_eq!(drafted(0, &text), [3, 4]);
        assert_eq!(drafted(4, &text), [0; 0]);
        assert_eq!(drafted(100, &text), [0; 0]);
    }

    #[test]
    fn prompts_are_compared_from_their_ends() {
        assert_eq!(prompt_ends(&[1, 7, 8, 3, 4], &[1, 3, 4]), 2);
    }
}
