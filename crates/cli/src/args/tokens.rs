//! Token ids as an option's value.

use std::str::FromStr;

use foretoken_model::token::TokenId;

/// Token ids, "1,2,3".
#[derive(Debug, Clone)]
pub struct TokenIds(pub Vec<TokenId>);

impl FromStr for TokenIds {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number = |part: &str| {
            part.trim().parse().map_err(|_| format!("expected token ids like 1,2,3, found '{part}'"))
        };
        text.split(',').map(number).collect::<std::result::Result<_, _>>().map(Self)
    }
}
