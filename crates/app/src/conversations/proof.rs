//! Commands that verify drafting: checks of replies, the arena and its stored results, and the
//! traces they need.

use std::time::{SystemTime, UNIX_EPOCH};

use foretoken_engine::session::ToolUse;
use foretoken_engine::trace::Summary;
use foretoken_model::Tool;
use foretoken_store as store;
use serde_json::Value;

use super::history::{chat_messages, seen_since};
use super::reply::engine_gone;
use crate::app::App;
use crate::engine::{OnArena, OnCheck, Stored};
use crate::error::Result;
use crate::ipc::{Arena, ArenaRequest, Builtin, CommandError, ErrorCode, ReplyCheck, TraceStorage};

const DAY: i64 = 24 * 60 * 60 * 1000;

impl App {
    /// Decodes a stored reply again without drafts; waits for the end.
    ///
    /// # Errors
    /// Returns `Busy`, `NotFound` for a message that is not a finished reply or has no trace, and
    /// errors of the engine's check.
    pub fn check_reply(&self, reply: i64, on_progress: OnCheck) -> Result<ReplyCheck> {
        let guard = self.take_slot()?;
        let stored = self.stored(reply)?;
        self.engine.check(stored, on_progress, guard.cancel()).recv().unwrap_or_else(|_| Err(engine_gone()))
    }

    fn stored(&self, reply: i64) -> Result<Stored> {
        let store = self.store();
        let message = store.message(reply)?;
        let Some(summary) = message.summary else {
            let message = "Only a reply that has ended can be checked.";
            return Err(CommandError::new(ErrorCode::NotFound, message));
        };
        let tools = store.tools_of(reply)?;
        let tools: Option<ToolUse> = tools.as_deref().map(serde_json::from_str).transpose()?;
        let reads = |tool: &Tool| tool.name == Builtin::ReadAttachment.name();
        let whole = self.whole_files_if(tools.iter().flat_map(|tools| &tools.tools).any(reads));
        let before = message.parent.map(|parent| store.messages_up_to(parent)).transpose()?;
        drop(store);
        let seen = seen_since(self.as_read(before.unwrap_or_default(), whole)?, message.seen_from);
        Ok(Stored {
            // The context that the model had then.
            messages: chat_messages(seen),
            target: message.target,
            summary: serde_json::from_str::<Summary>(&summary)?,
            rounds: self.trace(reply)?,
            tools,
            has_calls: !message.calls.is_empty(),
        })
    }

    /// Lets two set-ups take turns, stores the result and returns it; waits for the end.
    ///
    /// # Errors
    /// Returns `Busy`, and errors of the engine's arena.
    pub fn run_arena(&self, request: ArenaRequest, on_event: OnArena) -> Result<Arena> {
        let guard = self.take_slot()?;
        let arena = self
            .engine
            .arena(request, on_event, guard.cancel())
            .recv()
            .unwrap_or_else(|_| Err(engine_gone()))?;
        arena_of(self.store().add_arena(&serde_json::to_string(&arena)?)?)
    }

    /// Returns the arenas, newest first. Unreadable ones are left out, and stay in the store.
    pub fn arenas(&self) -> Result<Vec<Arena>> {
        let readable = |row: store::Arena| {
            let id = row.id;
            arena_of(row)
                .inspect_err(|error| tracing::warn!(id, error = error.message, "unreadable arena"))
                .ok()
        };
        Ok(self.store().arenas()?.into_iter().filter_map(readable).collect())
    }

    pub fn delete_arena(&self, id: i64) -> Result<()> {
        Ok(self.store().delete_arena(id)?)
    }

    pub fn trace_storage(&self) -> Result<TraceStorage> {
        let store::TraceStorage { bytes, replies } = self.store().trace_storage()?;
        Ok(TraceStorage { bytes, replies })
    }

    /// Deletes the traces of replies older than a number of days, or all.
    pub fn delete_traces(&self, older_than_days: Option<u32>) -> Result<TraceStorage> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        self.store().delete_traces(older_than_days.map(|days| now - i64::from(days) * DAY))?;
        self.trace_storage()
    }
}

fn arena_of(row: store::Arena) -> Result<Arena> {
    let mut json: Value = serde_json::from_str(&row.json)?;
    name_drafts(&mut json);
    let arena: Arena = serde_json::from_value(json)?;
    Ok(Arena { id: row.id, created_at: row.created_at, ..arena })
}

/// Names the drafts of arenas stored by older versions, whose labels begin with the draft: "Starter
/// draft 1.1M, K auto".
fn name_drafts(arena: &mut Value) {
    let setups = arena["setups"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut);
    for setup in setups {
        if let Some(Value::String(label)) = setup.remove("label") {
            let draft = label.split(", K ").next().unwrap_or(&label);
            setup.entry("draft").or_insert_with(|| draft.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::name_drafts;

    #[test]
    fn set_ups_stored_with_a_label_get_the_name_of_their_draft() {
        let setup = |label: &str| json!({ "label": label, "setup": {} });
        let setups = ["Starter draft 1.1M, K = 5, staged", "n-gram, K auto", "no draft"].map(setup);
        let mut arena = json!({ "setups": setups });
        name_drafts(&mut arena);
        let named = |draft: &str| json!({ "draft": draft, "setup": {} });
        let drafts = ["Starter draft 1.1M", "n-gram", "no draft"].map(named);
        assert_eq!(arena, json!({ "setups": drafts }));
        let before = arena.clone();
        name_drafts(&mut arena);
        assert_eq!(arena, before);
    }
}
