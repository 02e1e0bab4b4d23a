//! Contexts of one model, for its engine.

use std::io;

use foretoken_engine::session::{ContextFiles, Hash};
use foretoken_library::ModelContexts;

/// See the module.
pub struct ModelFiles(pub ModelContexts);

impl ContextFiles for ModelFiles {
    fn save(
        &self,
        name: &str,
        pages: &[Hash],
        bytes_of: &mut dyn FnMut(usize) -> Vec<u8>,
        text: &[u8],
    ) -> io::Result<()> {
        self.0.save(name, pages, bytes_of, text)
    }

    fn text(&self, name: &str) -> io::Result<Vec<u8>> {
        Ok(self.0.text(name)?.1)
    }

    fn page(&self, page: &Hash, length: usize) -> io::Result<Vec<u8>> {
        self.0.page(page, length)
    }
}
