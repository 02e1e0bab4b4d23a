//! Grammars in llama.cpp's form, GBNF, converted to Lark. Rules that do not contain themselves are
//! regular expressions; of the others, the longest parts that are. These are matched greedily, as
//! llguidance does.

use std::collections::HashMap;
use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

/// Rule that is the whole text.
const ROOT: &str = "root";

/// Most rules, deepest nesting of groups, and most repetitions of an item.
const MOST_RULES: usize = 2000;
const DEEPEST: usize = 64;
const MOST_REPEATED: u32 = 2000;

/// Longest regular expression that a rule becomes, in bytes.
const LONGEST: usize = 1 << 12;

/// Returns `source` as a Lark grammar.
///
/// # Errors
/// The reason, with its line, if the source is not GBNF or has syntax that is unknown here.
pub fn lark(source: &str) -> Result<String, String> {
    let rules = Parser::new(source).rules()?;
    let mut converter = Converter { rules: &rules, regular: HashMap::new() };
    let mut lines = vec!["start: root".to_owned()];
    for (number, (_, body)) in rules.iter().enumerate() {
        lines.push(format!("{}: {}", converter.rule_name(number), converter.written(body)));
    }
    Ok(lines.join("\n"))
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// Characters, as a regular expression.
    Characters(String),
    /// Rule by its number.
    Rule(usize),
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
    /// An item, from so many times to so many, if there is a limit.
    Repeated(Box<Node>, u32, Option<u32>),
}

type Rules = Vec<(String, Node)>;

/// Reads a source.
struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
    depth: usize,
    /// Numbers of rules by their names, in the order in which they occur.
    numbers: HashMap<String, usize>,
}

impl<'a> Parser<'a> {
    fn new(source: &'a str) -> Self {
        Self { rest: source.chars().peekable(), line: 1, depth: 0, numbers: HashMap::new() }
    }

    fn rules(mut self) -> Result<Rules, String> {
        let mut bodies: HashMap<usize, Node> = HashMap::new();
        self.skip(true);
        while self.rest.peek().is_some() {
            let name = self.name()?;
            self.skip(false);
            for expected in "::=".chars() {
                if self.next() != Some(expected) {
                    return Err(self.error(&format!("expected ::= after {name}")));
                }
            }
            self.skip(true);
            let number = self.number(&name)?;
            let body = self.choice(false)?;
            if bodies.insert(number, body).is_some() {
                return Err(self.error(&format!("{name} is defined twice")));
            }
            if !matches!(self.rest.peek(), None | Some('\n' | '\r')) {
                return Err(self.error("expected the end of the rule"));
            }
            self.skip(true);
        }
        if !self.numbers.contains_key(ROOT) {
            return Err(format!("it has no rule {ROOT}"));
        }
        let mut named: Vec<(String, usize)> = self.numbers.into_iter().collect();
        named.sort_unstable_by_key(|(_, number)| *number);
        let body = |(name, number): (String, usize)| match bodies.remove(&number) {
            Some(body) => Ok((name, body)),
            None => Err(format!("the rule {name} is missing")),
        };
        named.into_iter().map(body).collect()
    }

    fn error(&self, reason: &str) -> String {
        format!("line {}: {reason}", self.line)
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    /// Skips spaces and comments, and line ends if `lines`.
    fn skip(&mut self, lines: bool) {
        while let Some(&character) = self.rest.peek() {
            match character {
                ' ' | '\t' => {}
                '\n' | '\r' if lines => {}
                '#' => {
                    while self.rest.peek().is_some_and(|&character| !matches!(character, '\n' | '\r')) {
                        self.next();
                    }
                    continue;
                }
                _ => return,
            }
            self.next();
        }
    }

    fn name(&mut self) -> Result<String, String> {
        let mut name = String::new();
        while let Some(character) = self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
            name.push(character);
        }
        if name.is_empty() { Err(self.error("expected the name of a rule")) } else { Ok(name) }
    }

    fn number(&mut self, name: &str) -> Result<usize, String> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        let number = self.numbers.len();
        if number == MOST_RULES {
            return Err(format!("it has more than {MOST_RULES} rules"));
        }
        self.numbers.insert(name.to_owned(), number);
        Ok(number)
    }

    fn choice(&mut self, nested: bool) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("its groups are nested too deeply"));
        }
        let mut all = vec![self.sequence(nested)?];
        while self.rest.next_if_eq(&'|').is_some() {
            self.skip(true);
            all.push(self.sequence(nested)?);
        }
        self.depth -= 1;
        Ok(if all.len() == 1 { all.remove(0) } else { Node::Choice(all) })
    }

    fn sequence(&mut self, nested: bool) -> Result<Node, String> {
        let mut items = Vec::new();
        while let Some(&character) = self.rest.peek() {
            let item = match character {
                '"' => self.literal()?,
                '[' => self.class()?,
                '.' => {
                    self.next();
                    Node::Characters("(?s:.)".to_owned())
                }
                '(' => {
                    self.next();
                    self.skip(true);
                    let group = self.choice(true)?;
                    if self.next() != Some(')') {
                        return Err(self.error("expected a closing bracket"));
                    }
                    group
                }
                _ if character.is_ascii_alphanumeric() => {
                    let name = self.name()?;
                    Node::Rule(self.number(&name)?)
                }
                '|' | ')' | '\n' | '\r' => break,
                _ => return Err(self.error(&format!("{character:?} is not supported here"))),
            };
            items.push(self.repeated(item)?);
            self.skip(nested);
        }
        Ok(if items.len() == 1 { items.remove(0) } else { Node::Sequence(items) })
    }

    /// The item with the repetitions behind it.
    fn repeated(&mut self, mut item: Node) -> Result<Node, String> {
        loop {
            let (least, most) = match self.rest.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => {
                    self.next();
                    let bounds = self.bounds()?;
                    item = Node::Repeated(Box::new(item), bounds.0, bounds.1);
                    continue;
                }
                _ => return Ok(item),
            };
            self.next();
            item = Node::Repeated(Box::new(item), least, most);
        }
    }

    /// Bounds of a repetition, after its opening brace.
    fn bounds(&mut self) -> Result<(u32, Option<u32>), String> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some('}') => break,
                Some(character) if text.len() < 16 => text.push(character),
                _ => return Err(self.error("expected a closing brace")),
            }
        }
        let number = |text: &str| text.trim().parse().ok().filter(|&count: &u32| count <= MOST_REPEATED);
        let bounds = match text.split_once(',') {
            None => number(&text).map(|count| (count, Some(count))),
            Some((least, most)) if most.trim().is_empty() => number(least).map(|least| (least, None)),
            Some((least, most)) => number(least).zip(number(most)).map(|(least, most)| (least, Some(most))),
        };
        let bounds = bounds.filter(|(least, most)| most.is_none_or(|most| *least <= most));
        bounds.ok_or_else(|| {
            self.error(&format!("expected up to {MOST_REPEATED} repetitions in ascending order"))
        })
    }

    fn literal(&mut self) -> Result<Node, String> {
        self.next();
        let mut text = String::new();
        loop {
            match self.rest.peek() {
                Some('"') => break,
                _ => push_character(&mut text, self.character()?),
            }
        }
        self.next();
        Ok(Node::Characters(text))
    }

    fn class(&mut self) -> Result<Node, String> {
        self.next();
        let mut class = String::from("[");
        if self.rest.next_if_eq(&'^').is_some() {
            class.push('^');
        }
        let empty = class.len();
        while !matches!(self.rest.peek(), Some(']')) {
            let first = self.character()?;
            push_character(&mut class, first);
            if self.rest.next_if_eq(&'-').is_none() {
                continue;
            }
            if self.rest.peek() == Some(&']') {
                push_character(&mut class, '-');
                break;
            }
            let last = self.character()?;
            if last < first {
                return Err(self.error("a range ends before it begins"));
            }
            class.push('-');
            push_character(&mut class, last);
        }
        self.next();
        match class.len() == empty {
            true => Err(self.error("a class has no characters")),
            false => Ok(Node::Characters(class + "]")),
        }
    }

    /// A character of a literal or a class.
    fn character(&mut self) -> Result<char, String> {
        let character = self.next().filter(|character| !matches!(character, '\n' | '\r'));
        let Some(character) = character else { return Err(self.error("a text or class has no end")) };
        if character != '\\' {
            return Ok(character);
        }
        let digits = match self.next() {
            Some('n') => return Ok('\n'),
            Some('r') => return Ok('\r'),
            Some('t') => return Ok('\t'),
            Some(plain @ ('\\' | '"' | '[' | ']' | '-' | '^')) => return Ok(plain),
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => return Err(self.error("an escape sequence is unknown")),
        };
        let code: String = (0..digits).filter_map(|_| self.next()).collect();
        let character = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
        character.ok_or_else(|| self.error("an escape sequence is no character"))
    }
}

/// Appends a character to a regular expression.
fn push_character(regex: &mut String, character: char) {
    if character.is_ascii_alphanumeric() || character == ' ' {
        regex.push(character);
    } else {
        // Writing to a string does not fail.
        let _ = write!(regex, "\\x{{{:X}}}", u32::from(character));
    }
}

/// Converts expressions.
struct Converter<'a> {
    rules: &'a Rules,
    /// Regular expressions of rules by their numbers; `None` for those that are none, or while it is
    /// not known.
    regular: HashMap<usize, Option<String>>,
}

impl Converter<'_> {
    fn rule_name(&self, number: usize) -> String {
        match self.rules[number].0.as_str() {
            ROOT => ROOT.to_owned(),
            _ => format!("rule_{number}"),
        }
    }

    /// Regular expression of a node; `None` if it contains itself or is too long.
    fn regex(&mut self, node: &Node) -> Option<String> {
        let regex = match node {
            Node::Characters(regex) => regex.clone(),
            Node::Rule(number) => self.regular(*number)?,
            Node::Sequence(items) => self.joined(items, "")?,
            Node::Choice(items) => format!("({})", self.joined(items, "|")?),
            Node::Repeated(item, least, most) => {
                let most = most.map(|most| most.to_string()).unwrap_or_default();
                format!("({}){{{least},{most}}}", self.regex(item)?)
            }
        };
        (regex.len() <= LONGEST).then_some(regex)
    }

    fn joined(&mut self, items: &[Node], between: &str) -> Option<String> {
        let mut joined = String::new();
        for (number, item) in items.iter().enumerate() {
            joined.push_str(if number == 0 { "" } else { between });
            joined.push_str(&self.regex(item)?);
            if joined.len() > LONGEST {
                return None;
            }
        }
        Some(joined)
    }

    fn regular(&mut self, number: usize) -> Option<String> {
        if let Some(known) = self.regular.get(&number) {
            return known.clone();
        }
        // A rule that is found again within itself is none.
        self.regular.insert(number, None);
        let rules = self.rules;
        let regex = self.regex(&rules[number].1);
        self.regular.insert(number, regex.clone());
        regex
    }

    /// Writes a node as a part of a rule.
    fn written(&mut self, node: &Node) -> String {
        if let Some(regex) = self.regex(node) {
            return terminal(&regex);
        }
        match node {
            Node::Characters(regex) => terminal(regex),
            Node::Rule(number) => self.rule_name(*number),
            Node::Sequence(items) => {
                let (mut parts, mut run) = (Vec::new(), String::new());
                for item in items {
                    match self.regex(item).filter(|regex| run.len() + regex.len() <= LONGEST) {
                        Some(regex) => run.push_str(&regex),
                        None => {
                            parts.extend((!run.is_empty()).then(|| terminal(&std::mem::take(&mut run))));
                            parts.push(self.written(item));
                        }
                    }
                }
                parts.extend((!run.is_empty()).then(|| terminal(&run)));
                parts.join(" ")
            }
            Node::Choice(items) => {
                let items: Vec<String> = items.iter().map(|item| self.written(item)).collect();
                format!("({})", items.join(" | "))
            }
            Node::Repeated(_, _, Some(0)) => terminal(""),
            Node::Repeated(item, least, most) => {
                let most = most.map(|most| most.to_string()).unwrap_or_default();
                format!("({}){{{least},{most}}}", self.written(item))
            }
        }
    }
}

/// Regular expression as an item of Lark, where an empty one is an empty text.
fn terminal(regex: &str) -> String {
    if regex.is_empty() { "\"\"".to_owned() } else { format!("/{regex}/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grammar_without_recursion_is_one_regular_expression() {
        let source = "# A date.\nroot ::= year \"-\" digit{2} (\"-\" digit{1,2})?\nyear ::= digit{4,} | \n  [^0-9\\\"]+\ndigit ::= [0-9]";
        let lark = lark(source).unwrap();
        let root = lark.lines().nth(1).unwrap();
        let year = "((([0-9]){4,}|([^0-9\\x{22}]){1,})";
        assert!(root.starts_with("root: /") && !root.contains("rule_"), "{root}");
        assert!(root.contains(&year[1..]), "{root}");
    }

    #[test]
    fn what_is_no_gbnf_or_unknown_is_refused_with_its_line() {
        let deep = format!("root ::= {}", "(".repeat(70));
        for (source, reason) in [
            ("", "it has no rule root"),
            ("a ::= \"b\"", "it has no rule root"),
            ("root ::= a", "the rule a is missing"),
            ("root ::= \"a\"\nroot ::= \"b\"", "line 2: root is defined twice"),
            ("root = \"a\"", "line 1: expected ::= after root"),
            ("root ::= \"a", "line 1: a text or class has no end"),
            ("root ::= [a\n]", "a text or class has no end"),
            ("root ::= []", "line 1: a class has no characters"),
            ("root ::= [z-a]", "line 1: a range ends before it begins"),
            ("root ::= \"\\q\"", "line 1: an escape sequence is unknown"),
            ("root ::= \"\\uD800\"", "line 1: an escape sequence is no character"),
            ("root ::= \"a\"{3,2}", "line 1: expected up to 2000 repetitions"),
            ("root ::= \"a\"{9999}", "line 1: expected up to 2000 repetitions"),
            ("root ::= (\"a\"", "line 1: expected a closing bracket"),
            ("root ::= <think>", "line 1: '<' is not supported here"),
            ("root ::= \"a\" ) \"b\"", "line 1: expected the end of the rule"),
            (&deep, "its groups are nested too deeply"),
        ] {
            let error = lark(source).unwrap_err();
            assert!(error.contains(reason), "{source}: {error}");
        }
    }

    #[test]
    fn rules_that_double_stay_short() {
        let rules = (0..100).map(|number| format!("a{number} ::= a{0} a{0}", number + 1));
        let source = format!("root ::= a0\n{}\na100 ::= \"x\"", rules.collect::<Vec<_>>().join("\n"));
        assert!(lark(&source).unwrap().len() < 600_000);
    }
}
