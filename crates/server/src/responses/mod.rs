//! OpenAI's responses: `/v1/responses`. Nothing is stored.
//!
//! - `body`: requests; `item`: items of their input; `tools`: tools in them
//! - `answer`: replies

mod answer;
mod body;
mod item;
mod tools;

pub use answer::{Echo, ResponseFormat};
pub use body::read;
