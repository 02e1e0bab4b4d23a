//! The bytes of a GGUF header, one after the other. Knows how values are written and not what they mean;
//! allocates nothing, so that a hostile header cannot make it.

use std::ops::Range;

/// Lists within lists.
const DEEPEST_LIST: usize = 64;

/// What is wrong with a header, to stand after "found".
pub(super) type Damage = String;

pub(super) type Read<T> = std::result::Result<T, Damage>;

fn ends() -> Damage {
    "one that is cut short".into()
}

/// The type of a value.
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
    /// In the order of GGUF's numbers.
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

    /// Bytes of a value; `None` where they differ from value to value.
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

/// Where a value lies.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Of the value, or of each element of a list.
    pub kind: Kind,
    /// Elements of a list; `None` for a value that is none.
    pub elements: Option<usize>,
    pub bytes: Range<usize>,
}

/// A header, read up to `at`.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    missed: Option<usize>,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, missed: None }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// How many bytes there would have to be, where there were too few.
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

    /// The bytes of a text. Some writers end it with zeros, which are no part of it.
    pub fn text(&mut self) -> Read<&'a [u8]> {
        let length = self.u64()?;
        let mut text = self.take(length)?;
        while let [start @ .., 0] = text {
            text = start;
        }
        Ok(text)
    }

    /// Passes over a value and says where it lies.
    pub fn value(&mut self) -> Read<Place> {
        let kind = self.kind()?;
        let (kind, elements) = match kind {
            Kind::List => (self.kind()?, Some(self.u64()?)),
            kind => (kind, None),
        };
        let start = self.at;
        self.pass(kind, elements.unwrap_or(1), 0)?;
        // Every element took a byte at least, so their number is one of bytes in memory.
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
