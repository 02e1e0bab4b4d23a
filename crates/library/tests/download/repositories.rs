//! Listing a repository and downloading from it.

use foretoken_library::{DownloadState, Error, Hub};

use crate::shelf::{FILE, ID, Person, REPOSITORY, SIZE, Shelf};

#[test]
fn a_repository_is_listed_across_pages_with_each_split_model_once() {
    let shelf = Shelf::new();
    for part in 1..=3 {
        shelf.put(REPOSITORY, &format!("big/big-0000{part}-of-00003.gguf"), 100);
        shelf.put(REPOSITORY, &format!("half-0000{part}-of-00004.gguf"), 100);
    }
    shelf.put(REPOSITORY, "mmproj-name.gguf", 10);
    shelf.put(REPOSITORY, "README.md", 10);
    let found = shelf.hub(None).repository(REPOSITORY).unwrap();
    let files: Vec<_> = found.files.iter().map(|file| (file.path.as_str(), file.bytes)).collect();
    assert_eq!(files, [("big/big-00001-of-00003.gguf", 300), (FILE, SIZE)]);
    assert_eq!(found.vision.unwrap().path, "mmproj-name.gguf");
    assert_eq!(found.revision, shelf.server.revision(REPOSITORY));
    assert_eq!((found.licence.as_deref(), found.gated, found.safetensors), (Some("apache-2.0"), false, None));
}

#[test]
fn a_search_finds_repositories_with_gguf_files_by_part_of_their_name() {
    let shelf = Shelf::new();
    for name in ["owner/qwen-large-GGUF", "owner/Qwen-GGUF", "other/llama-GGUF"] {
        shelf.put(name, "m.gguf", 10);
    }
    shelf.server.gate("owner/Qwen-GGUF", "hf_token");
    let found = shelf.hub(None).search("qwen").unwrap();
    let names: Vec<_> = found.iter().map(|found| (found.id.as_str(), found.gated)).collect();
    assert_eq!(names, [("owner/qwen-large-GGUF", false), ("owner/Qwen-GGUF", true)]);
    assert_eq!((found[0].downloads, found[0].licence.as_deref()), (21, Some("apache-2.0")));
    assert!(shelf.hub(None).search("no such model").unwrap().is_empty());
    let asked = shelf.server.requests();
    let asked = asked.iter().find(|request| request.contains("search=qwen")).unwrap();
    for parameter in ["filter=gguf", "sort=downloads", "limit=20"] {
        assert!(asked.contains(parameter), "{asked}");
    }
}

#[test]
fn a_search_without_a_connection_reports_it() {
    let shelf = Shelf::new();
    let nobody = Hub::at("http://127.0.0.1:9", shelf.cache(), None);
    let error = nobody.search("qwen").unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}

#[test]
fn a_downloaded_model_brings_its_vision_file_and_one_that_lacks_it_fetches_only_that() {
    let shelf = Shelf::new();
    let person = shelf.person();
    person.start();
    person.until_done(ID);
    shelf.put(REPOSITORY, "mmproj-F16.gguf", 10);
    assert_eq!(person.start().total_bytes, SIZE + 10);
    person.until_done(ID);
    shelf.assert_arrived(REPOSITORY, "mmproj-F16.gguf");
    let asked = shelf.server.requests();
    let fetched =
        asked.iter().filter(|request| request.contains(FILE) && request.starts_with("GET /storage/"));
    assert_eq!(fetched.count(), 1, "{asked:?}");
}

#[test]
fn a_downloaded_file_is_where_the_ecosystem_expects_it() {
    let shelf = Shelf::new();
    let person = shelf.person();
    assert_eq!(person.start().id, ID);
    person.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
    let repository = shelf.cache().join("models--owner--name-GGUF");
    let sha256 = foretoken_tests::hub::sha256(&shelf.original(REPOSITORY, FILE));
    let main = std::fs::read_to_string(repository.join("refs/main")).unwrap();
    assert_eq!(main, shelf.server.revision(REPOSITORY));
    // Without links the blob became the file.
    assert_eq!(repository.join("blobs").join(&sha256).is_file(), cfg!(unix));
    #[cfg(unix)]
    assert_eq!(
        std::fs::read_link(shelf.cached(REPOSITORY, FILE)).unwrap().to_str().unwrap(),
        format!("../../blobs/{sha256}")
    );
    assert!(shelf.partial().is_empty());
    let expected = [DownloadState::Running, DownloadState::Verifying, DownloadState::Done];
    assert_eq!(person.states(), expected);
}

#[test]
fn all_parts_of_a_split_file_are_downloaded() {
    let shelf = Shelf::new();
    let parts = [1, 2].map(|part| format!("big/big-0000{part}-of-00002.gguf"));
    parts.iter().zip([70_000, 50_000]).for_each(|(part, bytes)| shelf.put(REPOSITORY, part, bytes));
    let person = shelf.person();
    let begun = person.downloads.start(REPOSITORY, Some("big/big-00001-of-00002")).unwrap();
    assert_eq!((begun.id.as_str(), begun.total_bytes), (&*format!("{REPOSITORY}:{}", parts[0]), 120_000));
    person.until_done(&begun.id);
    parts.iter().for_each(|part| shelf.assert_arrived(REPOSITORY, part));
}

#[test]
fn a_safetensors_repository_is_downloaded_as_a_folder() {
    let shelf = Shelf::new();
    let files = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"];
    for (file, bytes) in files.iter().zip([500, 90_000, 4_000, 0]) {
        shelf.put("owner/whole", file, bytes);
    }
    shelf.put("owner/whole", "pytorch_model.bin", 90_000);
    shelf.put("owner/whole", "onnx/model.json", 9);
    assert_eq!(shelf.hub(None).repository("owner/whole").unwrap().safetensors, Some(94_500));
    let person = shelf.person();
    let begun = person.downloads.start("owner/whole", None).unwrap();
    assert_eq!((begun.id.as_str(), begun.file), ("owner/whole", None));
    person.until_done("owner/whole");
    files.iter().for_each(|file| shelf.assert_arrived("owner/whole", file));
    assert!(!shelf.cached("owner/whole", "pytorch_model.bin").exists());
    assert!(!shelf.cached("owner/whole", "onnx/model.json").exists());
}

#[test]
fn without_a_file_name_the_only_file_is_used_and_several_are_ambiguous() {
    let shelf = Shelf::new();
    let person = shelf.person();
    assert_eq!(person.downloads.start(REPOSITORY, None).unwrap().id, ID);
    person.until_done(ID);
    shelf.put(REPOSITORY, "name-Q8_0.gguf", 10);
    let error = person.downloads.start(REPOSITORY, None).unwrap_err().to_string();
    assert!(error.contains("owner/name-GGUF:name-Q4_K_M.gguf, owner/name-GGUF:name-Q8_0.gguf"), "{error}");
}

#[test]
fn a_missing_repository_or_file_is_reported_with_what_exists() {
    let shelf = Shelf::new();
    shelf.put("owner/pictures", "cat.png", 10);
    let person = shelf.person();
    for (repository, file, expected) in [
        ("owner/name-GGUF", Some("name-Q4_K_S.gguf"), "Did you mean 'name-Q4_K_M.gguf'?"),
        ("owner/name-GGUF", Some("other"), "It contains: name-Q4_K_M.gguf."),
        ("owner/pictures", None, "has no model that Foretoken can run"),
        ("Qwen/Qwen3-8B-GUFF", None, "Did you mean 'Qwen/Qwen3-8B-GGUF'?"),
        ("owner/nothing-like-it", None, "Check the name"),
        ("no-owner", None, "'no-owner' is not a repository. Enter it as owner/name"),
        ("owner/../name", None, "Enter it as owner/name"),
        ("", None, "Enter it as owner/name"),
    ] {
        let error = person.downloads.start(repository, file).unwrap_err().to_string();
        assert!(error.contains(expected), "{repository}: {error}");
    }
    assert!(person.downloads.list().is_empty());
}

#[test]
fn a_missing_network_is_reported_in_one_sentence() {
    let shelf = Shelf::new();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hub = foretoken_library::Hub::at(&format!("http://{closed}"), shelf.cache(), None);
    let error = hub.repository(REPOSITORY).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("Check the connection"), "{error}");
}

#[test]
fn existing_files_are_not_downloaded_again() {
    let shelf = Shelf::new();
    let person = shelf.person();
    person.start();
    person.until_done(ID);
    let sent = shelf.server.sent();
    person.downloads.dismiss(ID).unwrap();
    person.start();
    person.until_done(ID);
    // The same file is in another revision: only a link is missing.
    shelf.put(REPOSITORY, "README.md", 10);
    person.downloads.dismiss(ID).unwrap();
    person.start();
    person.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
    assert_eq!(shelf.server.sent(), sent);
}

#[test]
fn a_download_larger_than_the_disk_is_refused_before_it_starts() {
    let shelf = Shelf::new();
    let huge = shelf.original(REPOSITORY, "huge.gguf");
    let bytes = fs4::available_space(shelf.folder.path()).unwrap() + (1 << 30);
    std::fs::File::create(&huge).unwrap().set_len(bytes).unwrap();
    // The file is sparse, and too large to compute its checksum.
    shelf.server.declare(&huge, &"ab".repeat(32));
    let person = Person::new(&shelf, None);
    let error = person.downloads.start(REPOSITORY, Some("huge.gguf")).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert!(person.downloads.list().is_empty());
}
