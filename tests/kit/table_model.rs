//! Mock model whose logits depend only on the last token, so that passes cost next to nothing and
//! every probability of a text is known.

use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Features, Logits, Model, Pass, Peak, Runner, Want};
use foretoken_model::ModelConfig;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

pub struct TableModel {
    config: ModelConfig,
    cached: Vec<TokenId>,
    /// Logits after a token, `[rows][vocabulary]`; token `t` has row `t % rows`.
    rows: Vec<Vec<f32>>,
    values: Vec<f32>,
    peaks: Vec<Peak>,
}

impl TableModel {
    /// Creates a model with the logits `rows`; the rest of its configuration is that of `config`.
    pub fn new(config: &ModelConfig, context: usize, rows: Vec<Vec<f32>>) -> Self {
        Self {
            config: ModelConfig { context, vocabulary: rows[0].len(), ..config.clone() },
            cached: Vec::with_capacity(context),
            rows,
            values: Vec::new(),
            peaks: Vec::new(),
        }
    }
}

impl Model for TableModel {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn cached(&self) -> &[TokenId] {
        &self.cached
    }

    fn run(&mut self, tree: &TokenTree, want: &Want<'_>) -> Result<Pass<'_>> {
        Pass::run(self, tree, want)
    }

    fn truncate(&mut self, length: usize) -> usize {
        self.cached.truncate(length);
        self.cached.len()
    }
}

impl Runner for TableModel {
    fn extend(&mut self, tree: &TokenTree, first: usize, want: &Want<'_>) -> Result<()> {
        self.values.clear();
        self.peaks.clear();
        self.cached.extend(tree.tokens().skip(first));
        for node in want.rows_between(first, tree.len()) {
            let row = &self.rows[tree.token(first + node) as usize % self.rows.len()];
            self.values.extend(row);
            self.peaks.push(Peak::of(row));
        }
        Ok(())
    }

    fn logits(&self) -> Logits<'_> {
        Logits::of(&self.values, &self.peaks)
    }

    fn features(&self) -> Option<Features<'_>> {
        None
    }

    fn keep(&mut self, nodes: usize, path: &[usize]) -> Result<()> {
        let base = self.cached.len() - nodes;
        for (place, &node) in path.iter().enumerate() {
            self.cached[base + place] = self.cached[base + node];
        }
        self.cached.truncate(base + path.len());
        Ok(())
    }
}
