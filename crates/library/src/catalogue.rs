//! Known pairs: which small model drafts for which large one, and where the hub has them.

/// A file of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueModel {
    /// "Qwen3 8B, Q4_K_M"
    pub label: &'static str,
    /// `owner/name`
    pub repository: &'static str,
    /// The path in the repository; of a split file its first part.
    pub file: &'static str,
    /// All parts together.
    pub bytes: u64,
    pub parameters: u64,
    pub licence: &'static str,
    /// Whether its licence has to be accepted on the hub before it can be downloaded.
    pub gated: bool,
}

/// Models of one family, which share a vocabulary: any of the drafts suits any of the targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueFamily {
    /// "Qwen3"
    pub name: &'static str,
    pub drafts: &'static [CatalogueModel],
    pub targets: &'static [CatalogueModel],
}

/// The known families.
pub fn catalogue() -> &'static [CatalogueFamily] {
    &[]
}
