//! Icons of the application: files with a picture for each size that a system may request.

use foretoken_tests::repository;

fn icon(name: &str) -> Vec<u8> {
    std::fs::read(repository().join("icons").join(name)).unwrap()
}

fn big_endian(bytes: &[u8]) -> usize {
    u32::from_be_bytes(bytes.try_into().unwrap()) as usize
}

/// Width and height of a PNG in pixels.
fn size(png: &[u8]) -> (usize, usize) {
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "it is no PNG");
    (big_endian(&png[16..20]), big_endian(&png[20..24]))
}

#[test]
fn the_macos_icon_has_every_size_of_the_finder() {
    let file = icon("icon.icns");
    assert_eq!((&file[..4], big_endian(&file[4..8])), (&b"icns"[..], file.len()));
    let mut rest = &file[8..];
    let mut pictures = Vec::new();
    while !rest.is_empty() {
        let (picture, after) = rest.split_at(big_endian(&rest[4..8]));
        pictures.push((&picture[..4], &picture[8..]));
        rest = after;
    }
    let find =
        |kind: &str| pictures.iter().find(|(found, _)| *found == kind.as_bytes()).map(|(_, data)| *data);
    // Points, and pixels on a display with two to a point.
    for (kind, pixels) in [
        ("ic11", 32),
        ("ic12", 64),
        ("ic07", 128),
        ("ic13", 256),
        ("ic08", 256),
        ("ic14", 512),
        ("ic09", 512),
        ("ic10", 1024),
    ] {
        assert_eq!(find(kind).map(size), Some((pixels, pixels)), "{kind}");
    }
    // The smallest sizes store colours and opacity separately.
    for kind in ["is32", "s8mk", "il32", "l8mk"] {
        assert!(find(kind).is_some(), "{kind}");
    }
}

#[test]
fn the_icon_for_windows_has_every_size_from_lists_to_tiles() {
    let file = icon("icon.ico");
    let count = usize::from(u16::from_le_bytes([file[4], file[5]]));
    let mut sizes: Vec<_> = (0..count)
        .map(|at| {
            let entry = &file[6 + 16 * at..];
            let begin = u32::from_le_bytes(entry[12..16].try_into().unwrap()) as usize;
            size(&file[begin..])
        })
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [16, 24, 32, 48, 64, 256].map(|pixels| (pixels, pixels)));
}

#[test]
fn the_icons_for_linux_have_the_sizes_they_are_named_after() {
    for (name, pixels) in
        [("32x32.png", 32), ("128x128.png", 128), ("128x128@2x.png", 256), ("icon.png", 512)]
    {
        assert_eq!(size(&icon(name)), (pixels, pixels), "{name}");
    }
}
