//! Real weights that nobody here trained, in Hugging Face form: whether the model, run by us,
//! predicts the kind of text it was made for.

use foretoken_engine::model::{ModelSource, Special};
use foretoken_engine::trace::TokenId;
use foretoken_engine::tree::TokenTree;
use foretoken_tests::{loaded, shared_data};

/// Mean negative log-likelihood of `tokens`, in nats a token.
fn surprise(source: &ModelSource, tokens: &[TokenId]) -> f32 {
    let mut model = loaded(source);
    let logits = model.forward(&TokenTree::chain(tokens.to_vec()), 0..tokens.len()).unwrap();
    let of = |(position, &token): (usize, &TokenId)| {
        let row = logits.row(position).logits().unwrap();
        let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = row.iter().map(|logit| (logit - highest).exp()).sum();
        highest + sum.ln() - row[token as usize]
    };
    tokens[1..].iter().enumerate().map(of).sum::<f32>() / (tokens.len() - 1) as f32
}

#[test]
fn a_folder_of_safetensors_predicts_the_text_it_was_trained_for() {
    let (Some(folder), Some(sample)) =
        (shared_data("tinystories-656k"), shared_data("tinystories-sample.txt"))
    else {
        return;
    };
    let source = ModelSource::open(&folder).unwrap();
    let tokenizer = source.tokenizer().unwrap();
    let text = std::fs::read_to_string(sample).unwrap();
    let story: String = text.chars().take(1500).collect();
    let mut tokens: Vec<TokenId> = tokenizer.bos().into_iter().collect();
    tokens.extend(tokenizer.encode(&story, Special::Ignore).unwrap());
    tokens.truncate(400);
    let found = surprise(&source, &tokens);
    // 3.64 nats a token. Knowing nothing costs ln 2048 = 7.6; pairing the dimensions of a head for the
    // rotary embedding as GGUF files do, 6.0.
    assert!(found < 4.2, "{found} nats a token");
}
