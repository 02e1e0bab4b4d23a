//! Contexts on disk: damaged files of a text and a page, and damaged contents of a text in a file
//! whose checksum is right.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use candle_core::quantized::GgmlDType;
use foretoken_engine::decoder::Request;
use foretoken_engine::session::{ContextFiles, Form, Hash, Host, Session, TextBudget, ThisComputer};
use foretoken_forward::device::DeviceChoice;
use foretoken_library::{Contexts, Folders};
use foretoken_model::token::TokenId;
use foretoken_model::{ModelSource, Renderer};
use foretoken_testkit::{HEAD_SIZE, HIDDEN, INTERMEDIATE};

use super::gguf::{as_family, list};
use super::{Memory, Target, folder};

/// Hashes of the model and the page of the files, and their names.
const MODEL: (Hash, &str) = ([7; 32], "07070707070707070707070707070707");
const PAGE: (Hash, &str) = ([1; 32], "0101010101010101010101010101010101010101010101010101010101010101");
const NAME: &str = "x";

/// Bytes of the page in its file.
const PAGE_BYTES: usize = 64;

/// Tokens of the saved text: a page and a part of one.
const TOKENS: TokenId = 300;

/// Bytes of the saved text before its last keys and values: tokens and states.
const HEAD: usize = 2048;

/// Memory for the restored text.
const BUDGET: TextBudget = TextBudget::Bytes(1 << 20);

/// First byte of an input, which says what the others are.
const TEXT_FILE: u8 = 0;
const PAGE_FILE: u8 = 1;
const CONTENTS: u8 = 2;

/// Contexts in memory instead of files.
#[derive(Default)]
struct Files {
    pages: RefCell<HashMap<Hash, Vec<u8>>>,
    text: RefCell<Vec<u8>>,
}

impl ContextFiles for Files {
    fn save(
        &self,
        _: &str,
        pages: &[Hash],
        bytes_of: &mut dyn FnMut(usize) -> Vec<u8>,
        text: &[u8],
    ) -> io::Result<()> {
        let pages = pages.iter().enumerate().map(|(number, page)| (*page, bytes_of(number)));
        self.pages.borrow_mut().extend(pages);
        self.text.replace(text.to_vec());
        Ok(())
    }

    fn text(&self, _: &str) -> io::Result<Vec<u8>> {
        Ok(self.text.borrow().clone())
    }

    fn page(&self, page: &Hash, _: usize) -> io::Result<Vec<u8>> {
        self.pages.borrow().get(page).cloned().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

pub fn target() -> Target {
    let (folder, files) = (folder(), Files::default());
    let mut session = session(folder.path());
    session.keep_texts(BUDGET);
    let prompt: Vec<TokenId> = (0..TOKENS).map(|index| 3 + index * 37 % 250).collect();
    let request = Request { max_tokens: Some(1), ..Request::new(prompt) };
    session.reply(&request, &mut |_| ControlFlow::Continue(())).unwrap();
    session.text_to_save().unwrap().save(NAME, &files).unwrap();
    let contents = files.text(NAME).unwrap();

    let contexts = Contexts::new(&Folders::at(folder.path()));
    let model = contexts.of_model(MODEL.0);
    model.save(NAME, &[PAGE.0], &mut |_| vec![5; PAGE_BYTES], &[6; PAGE_BYTES]).unwrap();
    let path = |kind: &str, name: &str| folder.path().join("contexts").join(MODEL.1).join(kind).join(name);
    let (text, page) = (path("t", NAME), path("p", PAGE.1));
    let file = |kind: u8, path: &Path| [vec![kind], fs::read(path).unwrap()].concat();
    Target {
        name: "contexts",
        seeds: vec![file(TEXT_FILE, &text), file(PAGE_FILE, &page), [vec![CONTENTS], contents].concat()],
        words: &["FTKCTX01", "FTKCTX02"],
        head: HEAD,
        longest: 1 << 16,
        // The text in memory and in the model, and a page of the cache.
        memory: Memory { each: 8, beside: 1 << 20 },
        run: Box::new(move |input| {
            // The folder is removed with the target.
            let _ = &folder;
            let (kind, bytes) = input.split_first().unwrap_or((&0, &[]));
            let read = match *kind {
                TEXT_FILE => {
                    fs::write(&text, bytes).unwrap();
                    contexts.tidy(u64::MAX).and_then(|()| model.text(NAME)).map(drop)
                }
                PAGE_FILE => {
                    fs::write(&page, bytes).unwrap();
                    model.page(&PAGE.0, PAGE_BYTES).map(drop)
                }
                _ => {
                    files.text.replace(bytes.to_vec());
                    session.decoder.target_mut().truncate(0);
                    let read = session.restore(NAME, &files, &|| true);
                    // Whatever its numbers are, the text can be continued.
                    let _ = session.reply(&request, &mut |_| ControlFlow::Continue(()));
                    session.keep_texts(TextBudget::Bytes(0));
                    session.keep_texts(BUDGET);
                    read
                }
            };
            read.err().map(|error| format!("The context is computed again: {error}."))
        }),
    }
}

/// Session with a model of one layer with a convolution and one with attention.
fn session(folder: &Path) -> Session {
    let sizes = [("block_count", 2), ("shortconv.l_cache", 3), ("context_length", 1024)];
    let mut gguf = as_family("lfm2", sizes);
    gguf.set("lfm2.attention.head_count_kv", list(&[0, 2]));
    let moved: Vec<_> = gguf
        .tensors
        .extract_if(.., |name, _| name == "output_norm.weight" || name.starts_with("blk.0.attn_"))
        .collect();
    for (name, tensor) in moved {
        let name = name.replacen("output_norm", "token_embd_norm", 1).replacen("blk.0", "blk.1", 1);
        gguf.tensors.insert(name, tensor);
    }
    for (name, shape) in [
        ("blk.0.attn_norm", &[HIDDEN][..]),
        ("blk.0.shortconv.in_proj", &[3 * HIDDEN, HIDDEN]),
        ("blk.0.shortconv.conv", &[HIDDEN, 3]),
        ("blk.0.shortconv.out_proj", &[HIDDEN, HIDDEN]),
        ("blk.1.attn_q_norm", &[HEAD_SIZE]),
        ("blk.1.attn_k_norm", &[HEAD_SIZE]),
        ("blk.1.ffn_norm", &[HIDDEN]),
        ("blk.1.ffn_gate", &[INTERMEDIATE, HIDDEN]),
        ("blk.1.ffn_up", &[INTERMEDIATE, HIDDEN]),
        ("blk.1.ffn_down", &[HIDDEN, INTERMEDIATE]),
    ] {
        gguf.add(&format!("{name}.weight"), shape, GgmlDType::F32);
    }
    let source = ModelSource::open(&gguf.write(folder)).unwrap();
    let renderer = Renderer::in_this_process();
    let host = Host { hardware: Arc::new(ThisComputer), learning: None, renderer };
    Session::load(&host, &source, Form::Raw, DeviceChoice::Cpu).unwrap()
}
