//! Tokens by their numbers.

use std::str::FromStr;

use foretoken_engine::token::TokenId;

/// Numbers of tokens, "1,2,3".
#[derive(Debug, Clone)]
pub struct TokenIds(pub Vec<TokenId>);

impl FromStr for TokenIds {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number = |part: &str| {
            part.trim().parse().map_err(|_| format!("expected numbers of tokens like 1,2,3, found '{part}'"))
        };
        text.split(',').map(number).collect::<std::result::Result<_, _>>().map(Self)
    }
}
