//! Features of Python's Jinja2 that MiniJinja lacks: methods of strings and lists, and `%` with a
//! format string.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat;

/// Longest text that is padded, in characters.
const LONGEST: usize = 1 << 20;

/// Calls a method of Python's `str` or `list`.
pub(super) fn unknown_method(
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    match pycompat::unknown_method_callback(state, value, method, args) {
        Err(error) if error.kind() == ErrorKind::UnknownMethod => match value.as_str() {
            Some(text) => of_string(text, method, args),
            None if value.kind() == ValueKind::Seq && method == "index" => index_in(value, args),
            None => Err(error),
        },
        done => done,
    }
}

fn of_string(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let argument = |index: usize| {
        let found = args.get(index).and_then(Value::as_str);
        found.ok_or_else(|| invalid(format!("{method}() expects a string")))
    };
    let separator = || match argument(0)? {
        "" => Err(invalid("empty separator".to_owned())),
        separator => Ok(separator),
    };
    Ok(match method {
        "removeprefix" => text.strip_prefix(argument(0)?).unwrap_or(text).into(),
        "removesuffix" => text.strip_suffix(argument(0)?).unwrap_or(text).into(),
        "partition" => {
            let separator = separator()?;
            let parts = text.split_once(separator).map(|(before, after)| [before, separator, after]);
            Value::from_iter(parts.unwrap_or([text, "", ""]))
        }
        "rpartition" => {
            let separator = separator()?;
            let parts = text.rsplit_once(separator).map(|(before, after)| [before, separator, after]);
            Value::from_iter(parts.unwrap_or(["", "", text]))
        }
        "rsplit" => {
            let limit = args.get(1).and_then(Value::as_i64).and_then(|limit| usize::try_from(limit).ok());
            match args.first().filter(|separator| !separator.is_none()) {
                Some(_) => split_from_end(text, separator()?, limit),
                None => words_from_end(text, limit),
            }
        }
        "zfill" => {
            let (sign, digits) = match text.as_bytes().first() {
                Some(b'+' | b'-') => text.split_at(1),
                _ => ("", text),
            };
            format!("{sign}{}{digits}", "0".repeat(missing(text, args)?)).into()
        }
        "ljust" => format!("{text}{}", fill(args)?.repeat(missing(text, args)?)).into(),
        "rjust" => format!("{}{text}", fill(args)?.repeat(missing(text, args)?)).into(),
        "center" => {
            let (missing, fill) = (missing(text, args)?, fill(args)?);
            // As CPython: an odd character goes to the left of a text in an odd width.
            let left = missing / 2 + (missing & (missing + text.chars().count()) & 1);
            format!("{}{text}{}", fill.repeat(left), fill.repeat(missing - left)).into()
        }
        "swapcase" => {
            let swapped = text.chars().flat_map(|c| -> Vec<char> {
                if c.is_uppercase() { c.to_lowercase().collect() } else { c.to_uppercase().collect() }
            });
            swapped.collect::<String>().into()
        }
        "casefold" => text.to_lowercase().into(),
        "index" => position(text, text.find(argument(0)?))?,
        "rindex" => position(text, text.rfind(argument(0)?))?,
        "expandtabs" => {
            let width = args.first().and_then(Value::as_i64).unwrap_or(8);
            let width = usize::try_from(width).unwrap_or(0);
            if width > 1024 {
                return Err(invalid("the tabs are too long".to_owned()));
            }
            with_spaces(text, width).into()
        }
        _ => return Err(Error::from(ErrorKind::UnknownMethod)),
    })
}

fn invalid(reason: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason)
}

fn index_in(list: &Value, args: &[Value]) -> Result<Value, Error> {
    let wanted = args.first().ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
    let found = list.try_iter()?.position(|item| item == *wanted);
    found.map(Value::from).ok_or_else(|| invalid(format!("{wanted} is not in the list")))
}

/// Position in characters of a byte offset.
fn position(text: &str, found: Option<usize>) -> Result<Value, Error> {
    let found = found.ok_or_else(|| invalid("substring not found".to_owned()))?;
    Ok(text[..found].chars().count().into())
}

/// Number of characters that `text` lacks to be as wide as the first argument.
fn missing(text: &str, args: &[Value]) -> Result<usize, Error> {
    let width = args.first().and_then(Value::as_i64).ok_or_else(|| invalid("expected a width".to_owned()))?;
    let missing = usize::try_from(width).unwrap_or(0).saturating_sub(text.chars().count());
    if missing > LONGEST {
        return Err(invalid("the padded text is too long".to_owned()));
    }
    Ok(missing)
}

/// Character to pad with, the second argument.
fn fill(args: &[Value]) -> Result<&str, Error> {
    match args.get(1).map(|fill| fill.as_str().unwrap_or_default()) {
        None => Ok(" "),
        Some(fill) if fill.chars().count() == 1 => Ok(fill),
        Some(_) => Err(invalid("the fill character must be exactly one character long".to_owned())),
    }
}

fn split_from_end(text: &str, separator: &str, limit: Option<usize>) -> Value {
    let parts = match limit {
        Some(limit) => text.rsplitn(limit.saturating_add(1), separator).collect::<Vec<_>>(),
        None => text.rsplit(separator).collect(),
    };
    Value::from_iter(parts.into_iter().rev())
}

fn words_from_end(text: &str, limit: Option<usize>) -> Value {
    let mut rest = text.trim();
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let start = rest.rfind(char::is_whitespace).filter(|_| limit.is_none_or(|limit| parts.len() < limit));
        let word = start.map_or(rest, |at| rest[at..].trim_start());
        parts.push(word);
        rest = rest[..rest.len() - word.len()].trim_end();
    }
    Value::from_iter(parts.into_iter().rev())
}

fn with_spaces(text: &str, width: usize) -> String {
    let mut spaced = String::with_capacity(text.len());
    let mut column = 0;
    for character in text.chars() {
        match character {
            '\t' if width > 0 => {
                let spaces = width - column % width;
                spaced.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            '\t' => {}
            _ => {
                column = if matches!(character, '\n' | '\r') { 0 } else { column + 1 };
                spaced.push(character);
            }
        }
    }
    spaced
}

/// Replaces `'...' % arguments` by the filter `format`. MiniJinja's `%` only divides.
pub(super) fn rewritten(source: &str) -> String {
    let mut whole = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find('{') {
        let (before, from) = rest.split_at(start);
        whole.push_str(before);
        let end = match from.as_bytes().get(1) {
            Some(b'#') => from.find("#}").map_or(from.len(), |end| end + 2),
            Some(b'{' | b'%') => {
                let mut code = Code { rest: &from[2..], written: String::new() };
                code.rewrite(if from.as_bytes()[1] == b'{' { End::Expression } else { End::Statement });
                whole.push_str(&from[..2]);
                whole.push_str(&code.written);
                rest = code.rest;
                if code.written.trim_matches(['-', '+', ' ', '\n']) == "raw" {
                    let end = rest.find("endraw").unwrap_or(rest.len());
                    whole.push_str(&rest[..end]);
                    rest = &rest[end..];
                }
                continue;
            }
            _ => 1,
        };
        whole.push_str(&from[..end]);
        rest = &from[end..];
    }
    whole.push_str(rest);
    whole
}

/// End of a piece of code.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// `}}`
    Expression,
    /// `%}`
    Statement,
    /// The end of the text.
    Text,
}

/// Code within a template.
struct Code<'a> {
    rest: &'a str,
    written: String,
}

impl Code<'_> {
    /// Copies the code up to its end, which is left in `rest`, with `%` rewritten.
    fn rewrite(&mut self, end: End) {
        let mut depth = 0_usize;
        // True directly after a string.
        let mut after_string = false;
        while let Some(character) = self.rest.chars().next() {
            match character {
                '}' if depth == 0 && end == End::Expression && self.rest.starts_with("}}") => return,
                '%' if end == End::Statement && self.rest.starts_with("%}") => return,
                '%' if after_string => {
                    let arguments = arguments(&self.rest[1..]);
                    self.rest = &self.rest[1 + arguments.length..];
                    self.written.push_str("|format(");
                    self.written.push_str(&arguments.text);
                    self.written.push(')');
                    after_string = false;
                    continue;
                }
                '\'' | '"' => {
                    self.copy(string(self.rest));
                    after_string = true;
                    continue;
                }
                '{' | '[' | '(' => depth += 1,
                '}' | ']' | ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            after_string &= character.is_whitespace();
            self.copy(character.len_utf8());
        }
    }

    fn copy(&mut self, length: usize) {
        let (copied, rest) = self.rest.split_at(length);
        self.written.push_str(copied);
        self.rest = rest;
    }
}

/// Arguments of a format string.
struct Arguments {
    /// Bytes of the operand.
    length: usize,
    /// The operand as arguments of a call.
    text: String,
}

/// Reads the operand at the beginning of `code`: a tuple or one value, with what is bound to it.
fn arguments(code: &str) -> Arguments {
    let start = code.len() - code.trim_start().len();
    let operand = &code[start..];
    let first = first_length(operand);
    let mut length = first;
    while let Some(more) = postfix_length(&operand[length..]) {
        length += more;
    }
    let whole = &operand[..length];
    let inner = whole.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
    let tuple = inner.filter(|inner| length == first && (inner.trim().is_empty() || has_comma(inner)));
    let mut code = Code {
        rest: tuple.map_or(whole, |inner| inner.trim_end().trim_end_matches(',')),
        written: String::new(),
    };
    code.rewrite(End::Text);
    Arguments { length: start + length, text: code.written }
}

/// Length of a value without what is bound to it.
fn first_length(code: &str) -> usize {
    let sign = usize::from(code.starts_with(['-', '+']));
    let rest = &code[sign..];
    sign + match rest.chars().next() {
        Some('\'' | '"') => string(rest),
        Some('(' | '[' | '{') => group(rest),
        _ => rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()),
    }
}

/// Length of an attribute, an index, a call or a filter at the beginning of `code`, if there is
/// one.
fn postfix_length(code: &str) -> Option<usize> {
    let space = code.len() - code.trim_start().len();
    let rest = &code[space..];
    let name = |rest: &str| {
        let start = rest.len() - rest.trim_start().len();
        let name = &rest[start..];
        start + name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len())
    };
    match rest.chars().next()? {
        '[' | '(' => Some(space + group(rest)),
        '.' | '|' => Some(space + 1 + name(&rest[1..])),
        _ => None,
    }
}

/// Length of the brackets at the beginning of `code`, with what is in them.
fn group(code: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(character) = code[at..].chars().next() {
        match character {
            '\'' | '"' => {
                at += string(&code[at..]);
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        at += character.len_utf8();
        if depth == 0 {
            break;
        }
    }
    at
}

/// Length of the string at the beginning of `code`, with its quotes.
fn string(code: &str) -> usize {
    let quote = code.as_bytes()[0];
    let mut escaped = false;
    let end = code.bytes().skip(1).position(|byte| {
        let ends = byte == quote && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(code.len(), |end| end + 2)
}

/// Returns true for the inside of brackets with a comma that is not within others.
fn has_comma(code: &str) -> bool {
    let mut at = 0;
    while let Some(character) = code[at..].chars().next() {
        at += match character {
            ',' => return true,
            '\'' | '"' => string(&code[at..]),
            '(' | '[' | '{' => group(&code[at..]),
            _ => character.len_utf8(),
        };
    }
    false
}
