/** Why a file cannot be attached, in a sentence that names it. */
export class Refusal extends Error {
  constructor(sentence: string) {
    super(sentence);
    this.name = "Refusal";
  }
}
