//! Tools of a chat: servers of a file, and the calls that a person allows.

use std::collections::HashMap;
use std::io::stdin;
use std::path::Path;

use foretoken_engine::session::{ToolChoice, ToolUse};
use foretoken_model::{Tool, ToolCall};
use foretoken_tools::{McpFile, Offer, Progress, REFUSED, ServerState, Toolbox};
use serde_json::Value;

use crate::args::McpArgs;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::output;

/// See the module.
pub struct ChatTools {
    toolbox: Toolbox,
    args: McpArgs,
    offers: Vec<Offer>,
    asked: Option<ToolUse>,
    /// Decisions for the rest of this chat, by the hash of a tool.
    decided: HashMap<(Option<String>, String), bool>,
}

impl ChatTools {
    /// Starts the servers in the file that `args` name; `None` without one. Does not wait for them.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn start(args: &McpArgs) -> Result<Option<Self>> {
        let Some(path) = &args.mcp else { return Ok(None) };
        let read = |source| Error::Read { path: path.to_owned(), source };
        // A missing file is a mistake here.
        std::fs::metadata(path).map_err(read)?;
        let toolbox = Toolbox::new().map_err(read)?;
        for (name, config) in servers(path)? {
            match config {
                Ok(config) => toolbox.switch_on(&name, &config),
                Err(error) => output::note(format_args!("{}: {error}", output::harmless(&name))),
            }
        }
        let (offers, asked, decided) = (Vec::new(), None, HashMap::new());
        Ok(Some(Self { toolbox, args: args.clone(), offers, asked, decided }))
    }

    /// Waits until the servers are ready, and lists their tools.
    ///
    /// # Errors
    /// `Error::Usage` if the chosen tool does not exist.
    pub fn wait(&mut self, interrupt: &Interrupt) -> Result<()> {
        interrupt.begin();
        self.toolbox.wait(&|| interrupt.stopped());
        interrupt.end();
        self.list();
        for server in self.toolbox.servers() {
            let name = output::harmless(&server.name).into_owned();
            let of_server = self.offers.iter().filter(|offer| offer.server() == Some(&server.name));
            match server.state {
                ServerState::Failed(error) => {
                    output::note(format_args!("{name}: {}", output::harmless(&error.to_string())));
                }
                ServerState::Starting => output::note(format_args!("{name} is not ready yet")),
                ServerState::Ready => {
                    let names: Vec<_> = of_server.map(|offer| offer.name.as_str()).collect();
                    output::note(format_args!("{name}: {}", names.join(", ")));
                }
            }
        }
        self.args.choice.of(self.offered().iter()).map(drop)
    }

    /// Begins a reply; only the first one after a question has to call a tool.
    pub fn begin(&mut self, is_first: bool) {
        self.list();
        let Some(ToolUse { tools, .. }) = self.asked.take() else { return };
        let choice = self.args.choice.of(tools.iter()).ok().filter(|_| is_first);
        self.asked = ToolUse::of(tools, choice.unwrap_or(ToolChoice::Auto));
    }

    /// Lists the tools, which a server may have changed.
    fn list(&mut self) {
        self.offers = self.toolbox.offers(&[]);
        self.offers.retain(|offer| self.decided.get(&key(offer)) != Some(&false));
        let tool = |offer: &Offer| Tool {
            name: offer.name.clone(),
            description: Some(offer.description.clone()),
            parameters: offer.parameters.clone(),
        };
        self.asked = ToolUse::of(self.offers.iter().map(tool).collect(), ToolChoice::Auto);
    }

    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    pub fn asked(&self) -> Option<&ToolUse> {
        self.asked.as_ref()
    }

    pub fn offered(&self) -> &[Tool] {
        self.asked.as_ref().map_or(&[][..], |asked| &asked.tools)
    }

    /// Asks the person, runs the call if allowed, and returns its result for the model. Ctrl-C
    /// stops the call.
    ///
    /// # Errors
    /// Errors of standard input.
    pub fn run(&mut self, call: &ToolCall, context: usize, interrupt: &Interrupt) -> Result<String> {
        let Some(offer) = self.offers.iter().find(|offer| offer.name == call.name).cloned() else {
            return Ok(foretoken_tools::Error::NoTool(call.name.clone()).to_string());
        };
        if !self.allows(&offer, call)? {
            output::note(REFUSED);
            return Ok(REFUSED.to_owned());
        }
        interrupt.begin();
        let on_progress = |Progress { done, total, message }: Progress| {
            let total = total.map_or(String::new(), |total| format!(" of {total}"));
            output::note(format_args!("{done}{total} {}", output::harmless(&message)));
        };
        let outcome = self.toolbox.call(
            &offer.source,
            call.arguments.clone(),
            &(),
            &|| interrupt.stopped(),
            &on_progress,
        );
        interrupt.end();
        let text = match outcome {
            // A quarter of the context, at four bytes a token.
            Ok(outcome) => outcome.cut(context),
            Err(error) => error.to_string(),
        };
        output::note(output::harmless(&text));
        Ok(text)
    }

    /// Returns whether the person allows a call; shows it first unless that was decided before.
    fn allows(&mut self, offer: &Offer, call: &ToolCall) -> Result<bool> {
        let (server, arguments) = (offer.server().unwrap_or_default(), Value::from(call.arguments.clone()));
        let shown = format!("{server}: {} {arguments}", offer.tool());
        output::note(output::harmless(&shown));
        if let Some(&decided) = self.decided.get(&key(offer)) {
            return Ok(decided);
        }
        loop {
            output::note("Run it? once, always (in this chat), no, never");
            let mut line = String::new();
            let read = stdin().read_line(&mut line);
            if read.map_err(|source| Error::Read { path: "standard input".into(), source })? == 0 {
                return Ok(false);
            }
            let (allowed, lasts) = match line.trim().to_ascii_lowercase().as_str() {
                "once" | "o" | "yes" | "y" => (true, false),
                "always" | "a" => (true, true),
                "no" | "n" => (false, false),
                "never" => (false, true),
                _ => continue,
            };
            if lasts {
                self.decided.insert(key(offer), allowed);
            }
            return Ok(allowed);
        }
    }
}

/// Key of a decision: a tool that changes is asked for again.
fn key(offer: &Offer) -> (Option<String>, String) {
    (offer.server().map(str::to_owned), offer.digest.clone())
}

fn servers(path: &Path) -> Result<Vec<foretoken_tools::Listed>> {
    Ok(McpFile::read(path)?.servers())
}
