//! Parameters of functions have names: what belongs together is a struct, not a tuple that the
//! signature takes apart. Looks only at the sources' text; closures may take pairs.

use std::fs;
use std::path::Path;

use foretoken_tests::repository;

/// Folders with sources.
const FOLDERS: [&str; 5] = ["crates", "src-tauri", "tests", "fuzz", "training"];

/// Names of the functions of a source that take a tuple apart in their parameters.
fn with_tuples(text: &str) -> Vec<&str> {
    let names = text.match_indices("fn ").filter_map(|(start, word)| {
        let line = text[..start].rsplit('\n').next().unwrap_or_default();
        let inside = text[..start].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        let rest = &text[start + word.len()..];
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
        let (name, rest) = rest.split_at(end);
        (!inside && !line.contains("//") && !name.is_empty()).then_some((name, rest))
    });
    names.filter(|(_, rest)| parameters(rest).any(|first| first == '(')).map(|(name, _)| name).collect()
}

/// First character of each parameter; `rest` follows a function's name.
fn parameters(rest: &str) -> impl Iterator<Item = char> {
    let (mut open, mut begins, mut before) = (Vec::new(), false, ' ');
    let mut firsts = Vec::new();
    for letter in rest.chars() {
        if begins && !letter.is_whitespace() {
            firsts.push(letter);
            begins = false;
        }
        match letter {
            '(' if open.is_empty() => {
                begins = true;
                open.push(letter);
            }
            '(' | '[' | '{' | '<' => open.push(letter),
            '>' if before == '-' => {}
            ')' | ']' | '}' | '>' => {
                let closed = open.pop();
                // Generics precede the parameters.
                if closed == Some('(') && open.is_empty() {
                    break;
                }
            }
            ',' if open == ['('] => begins = true,
            _ => {}
        }
        before = letter;
    }
    firsts.into_iter()
}

fn search(folder: &Path, sources: &mut usize, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("gen") {
            search(&path, sources, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            *sources += 1;
            let text = fs::read_to_string(&path).unwrap();
            let file = path.strip_prefix(repository()).unwrap().display();
            found.extend(with_tuples(&text).into_iter().map(|name| format!("{file}: {name}")));
        }
    }
}

#[test]
fn no_function_takes_a_tuple_apart_in_its_parameters() {
    let (mut sources, mut found) = (0, Vec::new());
    for folder in FOLDERS {
        search(&repository().join(folder), &mut sources, &mut found);
    }
    assert!(sources > 500, "{sources} sources");
    assert!(found.is_empty(), "name these parameters, or make a struct of them:\n{}", found.join("\n"));
}

#[test]
fn tuples_are_found_behind_generics_and_only_in_the_parameters_of_functions() {
    let found = "pub F both<T: Fn(u8) -> u8>(\n    &self,\n    (a, b): (u8, T),\n) {}
        F first((a, b): &(u8, u8)) {}";
    assert_eq!(with_tuples(&found.replace('F', "fn").replace("fnn", "Fn")), ["both", "first"]);
    let others = "F plain(pair: (u8, u8), [a, b]: [u8; 2], of: F(u8, (u8, u8))) -> (u8, u8) { (1, 2) }
        // F commented((a, b): (u8, u8)) {}
        F closures() { map(|(a, b): (u8, u8)| a + b) }";
    assert!(with_tuples(&others.replace('F', "fn")).is_empty());
}
