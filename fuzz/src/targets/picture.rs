//! Picture files, decoded in this process.

use foretoken_senses::picture::PictureReader;

use super::{Memory, Target, corpus};

const WORDS: &[&str] = &[
    "IHDR",
    "IDAT",
    "PLTE",
    "acTL",
    "fdAT",
    "iCCP",
    "eXIf",
    "GIF87a",
    "NETSCAPE2.0",
    "VP8 ",
    "VP8L",
    "VP8X",
    "ANMF",
    "ALPH",
    "ICC_PROFILE",
    "Adobe",
    "\u{0}\u{0}@\u{0}",
];

pub fn target() -> Target {
    let seeds = corpus("picture");
    let reader = PictureReader::new(None);
    Target {
        name: "picture",
        longest: 2 * seeds.iter().map(Vec::len).max().unwrap(),
        seeds,
        words: WORDS,
        head: usize::MAX,
        // A few bytes may describe millions of pixels; the child process has 640 MB for all of it.
        memory: Memory { each: 1024, beside: 640_000_000 },
        run: Box::new(move |input| match reader.read(input) {
            Ok(picture) => {
                assert_eq!(picture.pixels().len(), 3 * picture.width() * picture.height());
                None
            }
            Err(error) => Some(error.to_string()),
        }),
    }
}
