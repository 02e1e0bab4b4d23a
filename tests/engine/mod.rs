//! The engine across its crates: texts, distributions, rows and traces of models and drafters.

mod assistants;
mod bad_heads;
mod block_heads;
mod broken_models;
mod drafted_distribution;
mod evaluation;
mod exact;
mod families;
mod goldens;
mod hashes;
mod head_features;
mod heads;
mod hybrids;
mod invariance;
mod lossless;
mod mock_drafter;
mod model_script;
mod mtp;
mod passes;
mod recurrent;
mod replay;
mod safetensors;
mod shaders;
mod statistics;
mod tensors;
mod traces;
