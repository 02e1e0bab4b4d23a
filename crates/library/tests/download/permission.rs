//! Gated repositories and tokens.

use foretoken_library::{Error, TokenSource};

use crate::shelf::{FILE, ID, Person, REPOSITORY, Shelf};

#[test]
fn a_gated_repository_names_its_licence_page_and_opens_with_the_right_token() {
    let shelf = Shelf::new();
    shelf.server.gate(REPOSITORY, "hf_right");
    assert!(shelf.hub(None).repository(REPOSITORY).unwrap().gated);
    let nobody = Person::new(&shelf, None);
    let error = nobody.downloads.start(REPOSITORY, Some(FILE)).unwrap_err().to_string();
    let url = format!("{}/{REPOSITORY}", shelf.server.url);
    assert!(error.contains(&format!("accept its licence at {url} and set a token.")), "{error}");
    let stranger = Person::new(&shelf, Some("hf_other"));
    let error = stranger.downloads.start(REPOSITORY, Some(FILE)).unwrap_err().to_string();
    assert!(error.contains(&format!("at {url} with the account that your token belongs to.")), "{error}");
    // The storage refuses requests with the token, so this also shows that it is not sent there.
    let invited = Person::new(&shelf, Some("hf_right"));
    invited.start();
    invited.until_done(ID);
    shelf.assert_arrived(REPOSITORY, FILE);
}

#[test]
fn a_refused_token_is_reported_with_its_origin() {
    let shelf = Shelf::new();
    shelf.server.refuse_token("hf_old");
    let hub = shelf.hub(Some("hf_old"));
    assert_eq!(hub.token_source(), TokenSource::Environment);
    let error = hub.repository(REPOSITORY).unwrap_err();
    assert!(matches!(error, Error::TokenRefused(TokenSource::Environment)), "{error}");
    assert!(error.to_string().contains("refused the token from HF_TOKEN"), "{error}");
}

#[test]
fn a_malformed_token_is_not_stored() {
    let shelf = Shelf::new();
    for token in ["", "  ", "hf_ä", "hf_a b", "Bearer hf_a\nHost: elsewhere"] {
        assert!(matches!(shelf.hub(None).set_token(Some(token)), Err(Error::TokenForm)), "{token:?}");
    }
}
