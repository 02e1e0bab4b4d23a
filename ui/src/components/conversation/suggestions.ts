/** Suggested prompts of the welcome page. */
import { t, type Key } from "../../messages/say";

export interface Suggestion {
  title: string;
  prompt: string;
}

/** A prompt in English, for models with little other knowledge; the title is translated. */
type Written = [title: Key, prompt: string];

/** Prompts the starter was trained for. */
const FOR_THE_STARTER: Written[] = [
  ["welcome.story", "Tell me a story about a fox who finds a lantern."],
  ["welcome.question", "What is speculative decoding?"],
  ["welcome.count", "Count from one to twelve."],
];

/** Prompts that suit SmolLM2 135M: each includes its text. Tested with 20 seeds each. */
const FOR_SMOLLM2: Written[] = [
  [
    "welcome.rewrite",
    "Make this sentence shorter:\n\nDue to the fact that it was raining very heavily, we made the decision to stay at home for the whole day.",
  ],
  [
    "welcome.summarise",
    "Make this text shorter:\n\nThe train was late this morning because of the snow. We waited at the station for more than an hour. In the end, we took the bus.",
  ],
  [
    "welcome.list",
    "Write the steps of this recipe as a numbered list.\n\nRecipe: Peel the apples. Cut them up. Add some sugar. Cook for twenty minutes. Let the sauce cool. Enjoy.",
  ],
];

/** Prompts that suit instruct models; repetition suits n-gram drafts. */
const FOR_OTHERS: [title: Key, prompt: Key][] = [
  ["welcome.story", "welcome.storyPrompt"],
  ["welcome.explain", "welcome.explainPrompt"],
  ["welcome.code", "welcome.codePrompt"],
];

/** Three suggestions for a target. */
export function suggestionsFor(target: string): Suggestion[] {
  const say = t as (key: Key) => string;
  if (target === "starter" || target === "smollm2") {
    const written = target === "starter" ? FOR_THE_STARTER : FOR_SMOLLM2;
    return written.map(([title, prompt]) => ({ title: say(title), prompt }));
  }
  return FOR_OTHERS.map(([title, prompt]) => ({ title: say(title), prompt: say(prompt) }));
}
