/** Embedding models to begin with. Sizes and languages are those of their model cards. */

export interface EmbeddingOffer {
  repository: string;
  bytes: number;
  languages: "many" | "english";
}

export const EMBEDDING_OFFERS: readonly EmbeddingOffer[] = [
  { repository: "intfloat/multilingual-e5-small", bytes: 494e6, languages: "many" },
  { repository: "sentence-transformers/all-MiniLM-L6-v2", bytes: 92e6, languages: "english" },
];
