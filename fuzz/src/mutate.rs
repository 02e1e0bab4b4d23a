//! Mutations of a file, as by a broken disk, a faulty program or an attacker. Works on bytes and
//! words of any format.

use crate::random::Random;

/// Boundary values.
const NUMBERS: [u64; 12] =
    [0, 1, 2, 7, 255, 1 << 16, 1 << 31, u32::MAX as u64, 1 << 40, 1 << 62, 1 << 63, u64::MAX];

/// Boundary values as text, and other replacements for a value.
const WORDS: [&str; 24] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "4294967295",
    "9223372036854775807",
    "18446744073709551615",
    "1e999",
    "-0.5",
    "1e-400",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "[[[[[[[[",
    "\"\\ud800\"",
    "\\",
    "\u{202e}",
    "\u{0}",
    "é",
    "😀",
    "../",
];

/// Inputs to mutations.
pub struct Material<'a> {
    /// Seeds, and mutated files with new coverage.
    pub parents: &'a [Vec<u8>],
    /// Words of the format.
    pub words: &'a [&'a str],
    /// Number of leading bytes that are mutated: the rest are weights.
    pub head: usize,
    /// Longest result in bytes.
    pub longest: usize,
}

impl Material<'_> {
    /// Returns a parent with one to four mutations.
    pub fn draw(&self, random: &mut Random) -> Vec<u8> {
        let mut file = self.parent(random).to_vec();
        for _ in 0..=random.below(4) {
            if file.is_empty() {
                break;
            }
            self.damage(&mut file, random);
        }
        file.truncate(self.longest);
        file
    }

    /// Returns a parent in which one element is repeated, with ascending numbers, until the file
    /// has about `size` bytes: a list as long as a hostile file may have.
    pub fn grow(&self, size: usize, random: &mut Random) -> Vec<u8> {
        let mut file = self.parent(random).to_vec();
        let head = self.head.min(file.len());
        let element = element_after(&file[..head], random.below(head));
        let (end, element) = (element.end, file[element].to_vec());
        let mut list = Vec::new();
        for number in 0.. {
            if element.is_empty() || file.len() + list.len() >= size {
                break;
            }
            list.extend(numbered(&element, number));
        }
        file.splice(end..end, list);
        file
    }

    fn parent(&self, random: &mut Random) -> &[u8] {
        &self.parents[random.below(self.parents.len())]
    }

    fn damage(&self, file: &mut Vec<u8>, random: &mut Random) {
        let at = random.below(self.head.min(file.len()));
        let length = random.below(64).min(file.len() - at);
        match random.below(14) {
            0 | 1 => file[at] ^= 1 << random.below(8),
            2 => file[at] = random.draw() as u8,
            3 | 4 => {
                let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4)].min(file.len() - at);
                file[at..at + width].copy_from_slice(&number[..width]);
            }
            5 => drop(file.drain(at..at + length)),
            6 => {
                let piece = file[at..at + length].to_vec();
                let to = random.below(self.head.min(file.len()));
                file.splice(to..to, piece);
            }
            7 => file.truncate(at.max(random.below(file.len()))),
            8 | 9 => drop(file.splice(word_at(file, at), self.word(random).bytes())),
            10 => drop(file.splice(at..at, self.word(random).bytes())),
            11 => {
                let other = self.parent(random);
                let from = random.below(other.len());
                let piece = other[from..(from + length).min(other.len())].to_vec();
                file.splice(at..at, piece);
            }
            12 => {
                let other = self.parent(random);
                let from = random.below(other.len());
                let word = other.get(word_at(other, from)).unwrap_or_default().to_vec();
                file.splice(word_at(file, at), word);
            }
            _ => {
                let times = 1 + random.below(200);
                let piece = file[at..at + length.min(8)].repeat(times);
                file.splice(at..at, piece);
            }
        }
    }

    fn word(&self, random: &mut Random) -> String {
        let choice = if random.below(3) == 0 { &WORDS[..] } else { self.words };
        random.of(if choice.is_empty() { &WORDS } else { choice }).to_owned()
    }
}

/// Returns the letters and digits around an offset; empty if there are none.
fn word_at(file: &[u8], at: usize) -> std::ops::Range<usize> {
    let within = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let start = at - file[..at.min(file.len())].iter().rev().take_while(|byte| within(byte)).count();
    let end = at + file.get(at..).unwrap_or_default().iter().take_while(|byte| within(byte)).count();
    start..end
}

/// Returns the next part of a file that lies between two equal separators, with the first of them.
/// Without one, the next few bytes.
fn element_after(file: &[u8], at: usize) -> std::ops::Range<usize> {
    let is_separator = |byte: &u8| matches!(byte, b',' | b'\n' | b'{' | b' ');
    let separator =
        |from: usize, is: &dyn Fn(&u8) -> bool| file[from..].iter().position(is).map(|found| from + found);
    let between = separator(at, &is_separator).and_then(|start| {
        let end = separator(start + 1, &|byte| *byte == file[start])?;
        Some(start..end)
    });
    between.unwrap_or(at..file.len().min(at + 8))
}

/// Returns `element` with its last number replaced, or with a number after its first word.
fn numbered(element: &[u8], number: usize) -> Vec<u8> {
    let digits = |byte: &u8| byte.is_ascii_digit();
    let range = match element.iter().rposition(digits) {
        Some(last) => {
            let count = element[..last].iter().rev().take_while(|byte| digits(byte)).count();
            last - count..last + 1
        }
        None => {
            let start = element.iter().position(u8::is_ascii_alphanumeric).unwrap_or(element.len());
            let end = word_at(element, start).end;
            end..end
        }
    };
    let mut numbered = element.to_vec();
    numbered.splice(range, number.to_string().into_bytes());
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grown_list_has_different_elements() {
        let file = br#"{"ids":[7,8,9],"name":"<|end|>"}"#.to_vec();
        let material = Material { parents: &[file], words: &[], head: usize::MAX, longest: 100 };
        let grown = (0..50).map(|seed| material.grow(1000, &mut Random(seed)));
        let grown: Vec<String> = grown.map(|file| String::from_utf8(file).unwrap()).collect();
        assert!(grown.iter().any(|file| file.starts_with(r#"{"ids":[7,8,0,1,2,3,"#)), "{grown:?}");
        assert!(grown.iter().all(|file| (1000..1020).contains(&file.len())), "{grown:?}");
        assert_eq!(numbered(br#","<|end|>""#, 5), br#","<|end5|>""#);
    }
}
