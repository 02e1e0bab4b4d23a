//! Rules for the documents: links lead somewhere, and pages that are read first stay short.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use foretoken_tests::repository;

/// Folders with build outputs, downloads or other projects.
const SKIPPED: &[&str] = &[".git", ".tools", "dist", "gen", "node_modules", "target"];

/// Endings of files that may name a page.
const NAMING: &[&str] = &["html", "md", "mjs", "py", "rs", "sh", "svelte", "toml", "ts", "wgsl", "yml"];

/// Files at or under `path` whose name ends with one of `endings`.
fn files(path: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        // Links are left out: a linked folder may lead anywhere.
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            found.extend(files(&path, endings));
        } else if kind.is_file() && endings.iter().any(|ending| name.ends_with(&format!(".{ending}"))) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Lines of a page outside of fenced code blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    page.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Targets of a page's links and pictures, in order.
fn links(page: &str) -> Vec<String> {
    let without_code = |line: &str| line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let lines: Vec<_> = prose(page).map(without_code).collect();
    let text = lines.join("\n");
    let inline = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let in_html = ["href=\"", "src=\""].into_iter().flat_map(|start| {
        text.split(start).skip(1).filter_map(|rest| rest.split_once('"')).map(|(target, _)| target)
    });
    inline.chain(in_html).map(|target| target.split(' ').next().unwrap_or("").to_owned()).collect()
}

/// Anchors of a page's headings as GitHub makes them: lower case, punctuation dropped, spaces as
/// hyphens, and a number behind those that were there before.
fn anchors(page: &str) -> Vec<String> {
    let mut seen = HashMap::<String, usize>::new();
    let headings = prose(page).filter_map(|line| {
        let text = line.trim_start_matches('#');
        (line.starts_with('#') && text.starts_with(' ')).then_some(text.trim())
    });
    let anchor = |heading: &str| {
        // A link in a heading counts by its words.
        let words = heading.split("](").enumerate().map(|(index, part)| {
            if index == 0 { part } else { part.split_once(')').map_or(part, |(_, after)| after) }
        });
        let lower = words.collect::<String>().to_lowercase();
        let kept = lower.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect::<String>()
    };
    headings
        .map(|heading| {
            let anchor = anchor(heading);
            let before = seen.entry(anchor.clone()).or_default();
            *before += 1;
            if *before == 1 { anchor } else { format!("{anchor}-{}", *before - 1) }
        })
        .collect()
}

/// The path without `.` and `..`.
fn normalised(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts
}

/// The reason why a link in `page` leads nowhere; `None` for links to other hosts.
fn problem(page: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() { page.to_owned() } else { normalised(&page.parent()?.join(file)) };
    if !path.starts_with(repository()) || !path.exists() {
        return Some(format!("{target}: there is no such file"));
    }
    let anchor = anchor?;
    let found = fs::read_to_string(&path).is_ok_and(|text| anchors(&text).iter().any(|a| a == anchor));
    (!found).then(|| format!("{target}: there is no such heading"))
}

/// Words of a page: runs between white space with a letter or digit.
fn words(page: &str) -> usize {
    page.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

#[test]
fn every_relative_link_and_anchor_has_a_target() {
    let mut broken = Vec::new();
    let pages = files(&repository(), &["md"]);
    assert!(pages.len() > 40, "{} pages", pages.len());
    for page in pages {
        for target in links(&fs::read_to_string(&page).unwrap()) {
            if let Some(problem) = problem(&page, &target) {
                broken.push(format!("{}: {problem}", page.strip_prefix(repository()).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "{} broken links:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn pages_named_in_sources_and_documents_exist() {
    let mut missing = Vec::new();
    for path in files(&repository(), NAMING) {
        // This file has made-up names.
        if path.ends_with("tests/repository/docs.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (start, _) in text.match_indices("docs/") {
            // A longer path: `crates/docs/`, or an address.
            if text[..start].ends_with(|before: char| before.is_alphanumeric() || "/.-_".contains(before)) {
                continue;
            }
            let name =
                text[start..].split(|c: char| !(c.is_ascii_alphanumeric() || "/.-_".contains(c))).next();
            let name = name.unwrap_or_default().trim_end_matches('.');
            if name.ends_with(".md") && !repository().join(name).exists() {
                missing.push(format!("{}: {name}", path.strip_prefix(repository()).unwrap().display()));
            }
        }
    }
    assert!(missing.is_empty(), "{} missing pages:\n{}", missing.len(), missing.join("\n"));
}

/// Files that a page names in backticks: by their whole path, or by its end.
fn named_files(page: &str) -> Vec<String> {
    let in_code = prose(page).flat_map(|line| line.split('`').skip(1).step_by(2).collect::<Vec<_>>());
    let is_path = |name: &&str| {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        let ending = name.rsplit_once('.').is_some_and(|(stem, ending)| {
            !stem.is_empty() && ["py", "rs", "sh", "svelte", "ts", "wgsl"].contains(&ending)
        });
        plain && ending && !name.starts_with('/') && !name.starts_with('.')
    };
    in_code.filter(is_path).map(str::to_owned).collect()
}

#[test]
fn sources_named_in_documents_exist() {
    let endings = ["py", "rs", "sh", "svelte", "ts", "wgsl"];
    let sources = files(&repository(), &endings);
    let mut missing = Vec::new();
    for page in files(&repository(), &["md"]) {
        let name = page.strip_prefix(repository()).unwrap().to_string_lossy().replace('\\', "/");
        // History names what there was.
        if name.starts_with("docs/benchmarks/") || name == "CHANGELOG.md" {
            continue;
        }
        for file in named_files(&fs::read_to_string(&page).unwrap()) {
            if !sources.iter().any(|source| source.ends_with(&file)) {
                missing.push(format!("{name}: {file}"));
            }
        }
    }
    assert!(missing.is_empty(), "{} missing files:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn introductory_pages_stay_short() {
    let lines = read("docs/architecture.md").lines().count();
    assert!(lines <= 90, "docs/architecture.md has {lines} lines, more than 90");
    let count = words(&read("README.md"));
    assert!(count <= 1200, "README.md has {count} words, more than 1,200");
}

#[test]
fn every_decision_is_short_and_in_the_index() {
    let index = read("docs/decisions/README.md");
    let mut decisions = 0;
    for path in files(&repository().join("docs/decisions"), &["md"]) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "README.md" {
            continue;
        }
        let page = fs::read_to_string(&path).unwrap();
        let count = words(&page);
        assert!(count <= 150, "{name} has {count} words, more than 150");
        for part in ["**Context.**", "**Choice.**", "**Rejected.**", "**Cost.**"] {
            assert!(page.contains(part), "{name} has no {part}");
        }
        let title = page.lines().next().unwrap().trim_start_matches("# ");
        assert!(index.contains(&format!("[{title}]({name})")), "the index lacks {name} as \"{title}\"");
        decisions += 1;
    }
    assert!(decisions >= 40, "{decisions} decisions");
}

#[test]
fn links_and_anchors_are_read_as_github_reads_them() {
    let page = "# A *b*: `c_d`, e-f\n[a](b.md) ![c](d.png \"e\")\n```\n[x](y)\n# z\n```\n`[p](q)` <a href=\"g#h\">\n## Twice\n## Twice\n## [In](k.md) it";
    assert_eq!(links(page), ["b.md", "d.png", "k.md", "g#h"]);
    assert_eq!(anchors(page), ["a-b-c_d-e-f", "twice", "twice-1", "in-it"]);
    assert_eq!(named_files("`a/b.rs` `c.ts` `d::e.f()` `.rs` g.rs\n```\n`h.rs`\n```"), ["a/b.rs", "c.ts"]);
    assert_eq!(words("| a | b-c |\n| --- |"), 2);
    let here = repository().join("docs/gone.md");
    assert_eq!(problem(&here, "https://example.org/x.md"), None);
    assert_eq!(problem(&here, "../README.md#licence"), None);
    assert!(problem(&here, "../README.md#no-such-heading").unwrap().contains("heading"));
    assert!(problem(&here, "no-such-page.md").unwrap().contains("file"));
    assert!(problem(&here, "../../elsewhere.md").unwrap().contains("file"));
}
