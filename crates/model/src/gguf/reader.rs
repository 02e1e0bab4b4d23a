//! Cursor over the bytes of a GGUF header. Knows how values are encoded, not what they mean; does
//! not allocate, so that an untrusted header cannot exhaust memory.

use std::ops::Range;

/// Deepest nesting of lists.
const DEEPEST_LIST: usize = 64;

/// Description of a defect in a header, to follow "found".
pub(super) type Damage = String;

pub(super) type Read<T> = std::result::Result<T, Damage>;

fn ends() -> Damage {
    "one that is cut short".into()
}

/// Type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    List,
    U64,
    I64,
    F64,
}

impl Kind {
    /// Types by GGUF's numbers.
    const ALL: [Self; 13] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::Bool,
        Self::Text,
        Self::List,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    /// Bytes of a value; `None` for types of variable length.
    pub fn size(self) -> Option<u64> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::Text | Self::List => None,
        }
    }
}

/// Location of a value.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Type of the value, or of a list's elements.
    pub kind: Kind,
    /// Number of elements of a list; `None` for a scalar.
    pub elements: Option<usize>,
    pub bytes: Range<usize>,
}

/// Cursor over a header; bytes before `at` have been read.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    missed: Option<usize>,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, missed: None }
    }

    /// Number of bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Number of bytes that the last failed read would have needed, if there were too few.
    pub fn missed(&self) -> Option<usize> {
        self.missed
    }

    pub fn take(&mut self, count: u64) -> Read<&'a [u8]> {
        let end =
            usize::try_from(count).ok().and_then(|count| self.at.checked_add(count)).ok_or_else(ends)?;
        let Some(taken) = self.bytes.get(self.at..end) else {
            self.missed = Some(end);
            return Err(ends());
        };
        self.at = end;
        Ok(taken)
    }

    pub fn u32(&mut self) -> Read<u32> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(bytes))
    }

    pub fn u64(&mut self) -> Read<u64> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads the bytes of a text. Strips trailing zeros, which some writers add.
    pub fn text(&mut self) -> Read<&'a [u8]> {
        let length = self.u64()?;
        let mut text = self.take(length)?;
        while let [start @ .., 0] = text {
            text = start;
        }
        Ok(text)
    }

    /// Skips a value and returns its location.
    pub fn value(&mut self) -> Read<Place> {
        let kind = self.kind()?;
        let (kind, elements) = match kind {
            Kind::List => (self.kind()?, Some(self.u64()?)),
            kind => (kind, None),
        };
        let start = self.at;
        self.pass(kind, elements.unwrap_or(1), 0)?;
        // Every element takes at least a byte, so the number of elements fits a usize.
        Ok(Place { kind, elements: elements.map(|n| n as usize), bytes: start..self.at })
    }

    fn kind(&mut self) -> Read<Kind> {
        let number = self.u32()?;
        Kind::ALL.get(number as usize).copied().ok_or_else(|| format!("a value of unknown type {number}"))
    }

    fn pass(&mut self, kind: Kind, count: u64, depth: usize) -> Read<()> {
        if let Some(size) = kind.size() {
            return self.take(count.checked_mul(size).ok_or_else(ends)?).map(|_| ());
        }
        if depth == DEEPEST_LIST {
            return Err(format!("lists nested more than {DEEPEST_LIST} deep"));
        }
        for _ in 0..count {
            if kind == Kind::Text {
                self.text()?;
            } else {
                let (kind, count) = (self.kind()?, self.u64()?);
                self.pass(kind, count, depth + 1)?;
            }
        }
        Ok(())
    }
}
