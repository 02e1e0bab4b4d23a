/** Short names of models, for where there is no room for the whole: the header. */

/** "SmolLM2 135M" of "SmolLM2 135M Instruct · Q4_1": without weight format, and without what all chat models are. */
export function shortName(label: string): string {
  const [name = label] = label.split(" · ");
  return name.replaceAll(/\s(?:Instruct|Chat|it)(?=\s|$)/gi, "") || name;
}

/** "0.5B" of "Qwen2.5 Coder 0.5B" beside "Qwen2.5 Coder 1.5B": a draft of the same family is told by its size. */
export function shortDraftName(label: string, target: string): string {
  const [name, beside] = [shortName(label), shortName(target)].map((words) => words.split(" "));
  if (!name || !beside) return shortName(label);
  const same = name.findIndex((word, at) => word !== beside[at]);
  const sized = [name[same], beside[same]].every((word) => /^\d/.test(word ?? ""));
  return (same > 0 && sized ? name.slice(same) : name).join(" ");
}
