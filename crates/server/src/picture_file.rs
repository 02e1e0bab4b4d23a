//! Picture files of requests. Only data is accepted: a server that fetches addresses would open the
//! network behind it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use foretoken_model::Detail;
use serde::Deserialize;

use crate::refusal::Refusal;

/// Most pictures of a request.
pub const MAX_PICTURES: usize = 16;

/// A picture file at its place in a conversation, before it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureFile {
    /// Index of its message.
    pub message: usize,
    /// Place in the message's text, in bytes.
    pub at: usize,
    pub bytes: Vec<u8>,
    pub detail: Detail,
}

/// How closely a picture is looked at, by OpenAI's names.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DetailBody {
    #[default]
    Auto,
    Low,
    High,
    /// As the model was trained.
    Original,
}

impl From<DetailBody> for Detail {
    fn from(detail: DetailBody) -> Self {
        match detail {
            DetailBody::Auto => Self::Normal,
            DetailBody::Low => Self::Low,
            DetailBody::High | DetailBody::Original => Self::High,
        }
    }
}

/// Bytes of the file in a data URL; `field` is the request's.
///
/// # Errors
/// Refuses other addresses.
pub fn in_data_url(url: &str, field: &str) -> Result<Vec<u8>, Refusal> {
    let data = url.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"));
    match data {
        Some((_, data)) => in_base64(data, field),
        None => {
            Err(Refusal::bad_field(field, "a picture as data:image/...;base64,...; no address is fetched"))
        }
    }
}

/// Bytes of a file in Base64.
///
/// # Errors
/// Refuses other text.
pub fn in_base64(data: &str, field: &str) -> Result<Vec<u8>, Refusal> {
    STANDARD.decode(data).map_err(|_| Refusal::bad_field(field, "a picture in Base64"))
}
