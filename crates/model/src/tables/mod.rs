//! Tables of a model's tensors, one for each kind of module: names in both file formats, shapes,
//! and whether a layer has them. Canonical names are GGUF's. A file must have exactly the tensors
//! that the tables require, in their shapes.

pub mod assistant;
pub(crate) mod attention;
pub mod block_head;
mod check;
pub mod eagle3;
pub mod experts;
pub(crate) mod feed_forward;
pub mod latent;
pub(crate) mod layer;
pub mod lilicorr;
mod modules;
pub mod mtp;
mod names;
pub mod outer;
pub(crate) mod recurrent;
mod spec;
mod storage;

pub(crate) use self::check::check;
pub(crate) use self::names::Names;
pub(crate) use self::storage::split;
