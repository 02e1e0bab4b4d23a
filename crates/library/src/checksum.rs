//! Checksums that name the hub's files: git's SHA-1 for small files, SHA-256 for large ones.

use std::fs::File;
use std::io::{Read, Result};
use std::path::Path;

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::cache::FileMetadata;

/// Hexadecimal digits of a SHA-1 and of a SHA-256.
pub(crate) const GIT_DIGITS: usize = 40;
pub(crate) const SHA256_DIGITS: usize = 64;

/// Returns whether `etag` is one of these checksums.
pub(crate) fn is_one(etag: &str) -> bool {
    [GIT_DIGITS, SHA256_DIGITS].contains(&etag.len()) && etag.bytes().all(|c| c.is_ascii_hexdigit())
}

/// Returns the common name of the checksum `etag`.
pub(crate) fn name(etag: &str) -> &'static str {
    if etag.len() == GIT_DIGITS { "git's SHA-1" } else { "SHA-256" }
}

/// Computes the checksum of the file at `path`, of the kind in `metadata`, in lower-case hex;
/// `None` if `keep_going` returns false on the way.
pub(crate) fn of(
    path: &Path,
    metadata: &FileMetadata,
    keep_going: impl Fn() -> bool,
) -> Result<Option<String>> {
    if metadata.etag.len() == GIT_DIGITS {
        let header = format!("blob {}\0", metadata.bytes);
        digest(path, Sha1::new_with_prefix(header), keep_going)
    } else {
        digest(path, Sha256::new(), keep_going)
    }
}

/// Bytes in lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(path: &Path, mut hash: impl Digest, keep_going: impl Fn() -> bool) -> Result<Option<String>> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    while keep_going() {
        match file.read(&mut buffer)? {
            0 => return Ok(Some(hex(&hash.finalize()))),
            read => hash.update(&buffer[..read]),
        }
    }
    Ok(None)
}
