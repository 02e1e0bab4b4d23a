//! How much room a disk has.

use std::path::Path;

/// Bytes that are free where `place` is, or will be; `None` on a disk that does not say.
pub(crate) fn free_at(place: &Path) -> Option<u64> {
    let existing = place.ancestors().find(|folder| folder.is_dir());
    existing.and_then(|folder| fs4::available_space(folder).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_yet_has_the_room_of_the_one_it_will_be_in() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_at(&folder.path().join("not/there/yet")).is_some_and(|bytes| bytes > 0));
    }
}
