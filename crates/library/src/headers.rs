//! File metadata in the headers of a response from the hub.

use reqwest::Url;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap};

use crate::cache::FileMetadata;
use crate::checksum;

/// Returns the redirect target within the hub, given by a path. A full address, or a path that
/// leads to another host, is the storage's, which does not know the file's name in the cache.
pub(crate) fn redirect(url: &Url, location: &str) -> Option<Url> {
    let next = url.join(location).ok()?;
    (location.starts_with('/') && next.origin() == url.origin()).then_some(next)
}

/// Reads size and cache name from a response of the hub itself.
pub(crate) fn metadata(headers: &HeaderMap) -> Option<FileMetadata> {
    let etag = text(headers, "x-linked-etag").or_else(|| text(headers, ETAG.as_str()))?;
    let etag = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"');
    let size = text(headers, "x-linked-size").or_else(|| text(headers, CONTENT_LENGTH.as_str()))?;
    // The checksum becomes a file name, and the download is compared with it.
    checksum::is_one(etag).then_some(FileMetadata { etag: etag.to_owned(), bytes: size.parse().ok()? })
}

/// Returns the first byte of `Content-Range: bytes 5-9/10`.
pub(crate) fn range_start(headers: &HeaderMap) -> Option<u64> {
    text(headers, CONTENT_RANGE.as_str())?.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use crate::checksum::{GIT_DIGITS, SHA256_DIGITS};

    #[test]
    fn a_path_to_another_host_is_not_followed_with_the_token() {
        let url = Url::parse("https://hub.example/owner/name/resolve/main/a.gguf").unwrap();
        let next = redirect(&url, "/owner/renamed/resolve/main/a.gguf").unwrap();
        assert_eq!(next.as_str(), "https://hub.example/owner/renamed/resolve/main/a.gguf");
        for location in ["//elsewhere/a", "/\\elsewhere/a", "/\t/elsewhere/a", "https://elsewhere/a", "a"] {
            assert_eq!(redirect(&url, location), None, "{location:?}");
        }
    }

    #[test]
    fn only_a_checksum_becomes_a_file_name() {
        let named_by = |etag: &str| {
            let headers = [(ETAG, etag.parse().unwrap()), (CONTENT_LENGTH, HeaderValue::from_static("3"))];
            metadata(&HeaderMap::from_iter(headers)).map(|file| file.etag)
        };
        for digits in [GIT_DIGITS, SHA256_DIGITS] {
            let checksum = "0aF".repeat(digits)[..digits].to_owned();
            assert_eq!(named_by(&format!("W/\"{checksum}\"")), Some(checksum));
        }
        for other in ["", "\"abc\"", &"g".repeat(GIT_DIGITS), &"../".repeat(SHA256_DIGITS / 3)] {
            assert_eq!(named_by(other), None, "{other:?}");
        }
    }
}
