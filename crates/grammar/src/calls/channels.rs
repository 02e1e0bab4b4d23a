//! Replies of gpt-oss: messages in channels, up to an answer or a call.

use serde_json::Value;

use super::Calls;
use super::rules::{Rules, quoted};

impl Calls<'_> {
    /// Rule of a reply: any number of thoughts and remarks, then an answer or one of `calls`.
    pub(super) fn in_channels(
        &self,
        calls: &[String],
        otherwise: Option<&Value>,
        rules: &mut Rules<'_>,
    ) -> String {
        let [start, channel, message, end] = marks(rules);
        let remark =
            format!("{channel} (\"analysis\" | \"commentary\") {message} SOME? {end} {start} \"assistant\"");
        let remark = rules.add(remark);
        let said = otherwise.map_or("SOME?".to_owned(), |schema| format!("%json {schema}"));
        let call = rules.add(calls.join(" | "));
        match self.required {
            true => format!("{remark}* {call}"),
            false => format!("{remark}* ({channel} \"final\" {message} {said} | {call})"),
        }
    }
}

/// Rule of the header of a call of this tool, after the role. A model names the recipient with the
/// channel; before it, as in templates, the name would follow the role.
pub(super) fn header(tool: &str, rules: &mut Rules<'_>) -> String {
    let [_, channel, message, _] = marks(rules);
    let named = quoted(&format!("commentary to=functions.{tool}"));
    let json = match rules.token("<|constrain|>") {
        Some(constrain) => format!("(\" \" {constrain} \"json\" | \" json\")?"),
        None => "(\" json\")?".to_owned(),
    };
    rules.add(format!("{channel} {named} {json} {message}"))
}

fn marks(rules: &Rules<'_>) -> [String; 4] {
    ["<|start|>", "<|channel|>", "<|message|>", "<|end|>"].map(|text| rules.token(text).unwrap_or_default())
}
