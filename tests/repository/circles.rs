//! Import cycles between files. Two files that need each other can still be read; three or more
//! cannot be read on their own. Looks only at names in the sources, and supports only the syntax
//! that they use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use foretoken_tests::repository;

/// Largest number of files in a cycle.
const LARGEST: usize = 2;

/// A file's module path: `["forward", "cpu"]`, or `[]` for the crate's root.
type Module = Vec<String>;

/// Path segments.
type Names = Vec<String>;

/// Declarations, imports and dependencies of a file.
#[derive(Default)]
struct Source {
    /// Declared modules with files of their own.
    children: BTreeSet<String>,
    /// Imported paths by local name.
    imports: BTreeMap<String, Names>,
    /// Paths that the file depends on. A declaration of a module or a re-export (`pub use`) is no
    /// dependency.
    needed: Vec<Names>,
}

impl Source {
    fn of(text: &str) -> Self {
        let mut source = Self::default();
        let code = without_tests(text);
        let words = words(&code);
        let (mut handed_on, mut used) = (Vec::new(), BTreeSet::new());
        let mut read = 0;
        for at in 0..words.len() {
            if at < read {
                continue;
            }
            let before = if at > 0 { words[at - 1] } else { "" };
            match words[at..] {
                ["mod", name, ";", ..] => drop(source.children.insert(name.to_owned())),
                ["use", ..] => {
                    let mut imported = Vec::new();
                    let mut rest = words[at + 1..].iter();
                    import(&mut rest, &[], &mut imported);
                    read = words.len() - rest.len();
                    source.imports.extend(imported.iter().cloned());
                    if ["pub", ")"].contains(&before) {
                        handed_on.extend(imported);
                    } else {
                        source.needed.extend(imported.into_iter().map(|(_, names)| names));
                    }
                }
                // A path from its first segment; after `in` it is a visibility.
                [_, "::", ..] if !["::", "in"].contains(&before) => {
                    let pairs = words[at..].chunks(2);
                    let long = pairs.clone().take_while(|pair| pair.get(1) == Some(&"::")).count();
                    source.needed.push(pairs.take(long + 1).map(|pair| pair[0].to_owned()).collect());
                }
                _ => {}
            }
            if before != "mod" {
                used.insert(words[at]);
            }
        }
        handed_on.retain(|(name, _)| used.contains(name.as_str()));
        source.needed.extend(handed_on.into_iter().map(|(_, names)| names));
        // Glob imports (`*`) are used only within a file, from the surrounding module.
        source.needed.retain(|names| names.last().is_none_or(|name| name != "*"));
        source
    }
}

/// Removes comments and test modules: those in files of their own, and those at the end of a file.
fn without_tests(text: &str) -> String {
    let mut code = String::new();
    let mut of_tests = false;
    for line in text.lines().map(|line| line.split("//").next().unwrap_or_default()) {
        let module = of_tests && line.contains("mod ");
        if module && line.contains('{') {
            break;
        }
        if !module {
            code.extend([line, "\n"]);
        }
        of_tests = line.starts_with("#[cfg(") && line.contains("test");
    }
    code
}

/// Names and `::`; every other character is a token of its own.
fn words(code: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let name = rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_').unwrap_or(rest.len());
        let length = match name {
            0 if rest.starts_with("::") => 2,
            0 => first.len_utf8(),
            name => name,
        };
        words.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    words
}

/// Parses an import after `use`, or after a brace with the prefix `before`, into local names and
/// paths.
fn import(words: &mut std::slice::Iter<'_, &str>, before: &[String], imported: &mut Vec<(String, Names)>) {
    let mut names = before.to_vec();
    while let Some(&word) = words.next() {
        match word {
            "::" => {}
            "as" => {
                let name = words.next().map_or_else(String::new, |name| (*name).to_owned());
                imported.push((name, std::mem::replace(&mut names, before.to_vec())));
            }
            // The module before the brace.
            "self" if !names.is_empty() => imported.push((names[names.len() - 1].clone(), names.clone())),
            "{" => {
                import(words, &names, imported);
                names = before.to_vec();
            }
            "," | "}" | ";" => {
                if names.len() > before.len() {
                    imported.push((names[names.len() - 1].clone(), names));
                }
                names = before.to_vec();
                if word != "," {
                    return;
                }
            }
            name => names.push(name.to_owned()),
        }
    }
}

/// Files of a crate.
struct House(BTreeMap<Module, Source>);

impl House {
    /// Reads the crate whose root is `root`.
    fn read(root: &Path) -> Self {
        let mut house = Self(BTreeMap::new());
        let folder = root.parent().unwrap();
        house.add(Module::new(), root, folder);
        house
    }

    /// Adds a file and the files of its declared modules, which are in `folder`.
    fn add(&mut self, module: Module, file: &Path, folder: &Path) {
        let source = Source::of(&fs::read_to_string(file).unwrap());
        for child in &source.children {
            let below = folder.join(child);
            let files = [below.with_extension("rs"), below.join("mod.rs")];
            let file = files.iter().find(|file| file.is_file()).unwrap();
            self.add([&module[..], std::slice::from_ref(child)].concat(), file, &below);
        }
        self.0.insert(module, source);
    }

    /// The file that defines the path `names` of `module`; `None` for other crates.
    fn home(&self, module: &Module, names: &[String]) -> Option<Module> {
        let (first, mut rest) = names.split_first()?;
        let mut home = module.clone();
        match first.as_str() {
            "crate" => home.clear(),
            "super" => drop(home.pop()),
            "self" => {}
            child if self.0[module].children.contains(child) => rest = names,
            _ => return None,
        }
        while let Some((name, after)) = rest.split_first() {
            let source = &self.0[&home];
            if name == "super" {
                home.pop();
            } else if source.children.contains(name) {
                home.push(name.clone());
            } else if let Some(handed_on) = source.imports.get(name) {
                return self.home(&home, &[&handed_on[..], after].concat());
            } else {
                break;
            }
            rest = after;
        }
        Some(home)
    }

    /// Files that `module` depends on.
    fn needed(&self, module: &Module) -> BTreeSet<Module> {
        let names = self.0[module].needed.iter();
        names.filter_map(|names| self.home(module, names)).filter(|home| home != module).collect()
    }

    /// Maximal sets of files that all depend on each other, directly or not.
    fn circles(&self) -> BTreeSet<BTreeSet<Module>> {
        let reached: BTreeMap<&Module, BTreeSet<Module>> =
            self.0.keys().map(|module| (module, self.reached(module))).collect();
        let circle = |module: &Module| {
            let others = reached[module].iter().filter(|other| reached[other].contains(module));
            others.chain([module]).cloned().collect()
        };
        self.0.keys().map(circle).collect()
    }

    /// Files that `module` depends on, directly or not.
    fn reached(&self, module: &Module) -> BTreeSet<Module> {
        let mut reached = BTreeSet::new();
        let mut open = vec![module.clone()];
        while let Some(next) = open.pop() {
            open.extend(self.needed(&next).into_iter().filter(|needed| reached.insert(needed.clone())));
        }
        reached
    }

    /// Cycles that are too large: each file with its dependencies in the cycle.
    fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        for circle in self.circles().iter().filter(|circle| circle.len() > LARGEST) {
            for module in circle {
                let needed = self.needed(module);
                let needed: Vec<String> = needed.intersection(circle).map(|other| other.join("::")).collect();
                complaints.push(format!("'{}' needs '{}'", module.join("::"), needed.join("', '")));
            }
        }
        complaints
    }
}

#[test]
fn no_import_cycle_has_more_than_two_files() {
    let mut complaints = Vec::new();
    let crates = [
        "model",
        "forward",
        "engine",
        "library",
        "documents",
        "store",
        "server",
        "remote",
        "tools",
        "app",
        "cli",
        "bench",
    ]
    .map(|name| format!("crates/{name}"));
    for name in crates.into_iter().chain(["src-tauri".to_owned()]) {
        let folder = repository().join(&name).join("src");
        let roots = [folder.join("lib.rs"), folder.join("main.rs")];
        let house = House::read(roots.iter().find(|root| root.is_file()).unwrap());
        assert!(house.0.len() > 3, "{name} has more files than these: {:?}", house.0.keys());
        complaints.extend(house.complaints().into_iter().map(|complaint| format!("{name}: {complaint}")));
    }
    assert!(complaints.is_empty(), "more than {LARGEST} files need each other:\n{complaints:#?}");
}

#[test]
fn cycles_are_found_through_re_exports_but_not_through_tests() {
    let files = [
        ("", "mod a;\nmod b;\nmod c;\npub use b::{Thing as Other, self};"),
        ("a", "use crate::Other; // use super::b;"),
        ("b", "use super::c::{self, Deep};\npub struct Thing;\n#[cfg(test)]\nmod tests {\n    use super::*;"),
        ("c", "pub fn deep() { crate::a::call() }\npub(in crate::b) struct Deep;"),
    ];
    let module = |name: &str| name.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let house = |files: &[(&str, &str)]| {
        House(files.iter().map(|(name, text)| (module(name), Source::of(text))).collect())
    };
    assert_eq!(house(&files).complaints(), ["'a' needs 'b'", "'b' needs 'c'", "'c' needs 'a'"]);
    let mut fewer = files;
    fewer[3].1 = "#[cfg(test)]\nmod tests {\n    use crate::a::call;\n}";
    assert!(house(&fewer).complaints().is_empty());
}
