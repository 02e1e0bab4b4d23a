//! Lists of a server: its tools, prompts and resources, page by page and with limits.

use std::time::Duration;

use rmcp::model::{ClientRequest, PaginatedRequestParams, RequestOptionalParam, ServerResult};
use rmcp::service::{Peer, RoleClient};
use tokio::time::timeout;

use crate::error::{Error, Result, failure};
use crate::log::Log;
use crate::offer::{ListedTool, MOST_TOOLS};
use crate::prompt::{MOST_PROMPTS, ServerPrompt};
use crate::resource::{MOST_RESOURCES, ServerResource};

/// Time for a list of tools, and for lists that replies do not need.
const TOOLS: Duration = Duration::from_secs(15);
const OTHERS: Duration = Duration::from_secs(5);

/// Most pages of a list, and longest cursor in bytes.
const MOST_PAGES: usize = 32;
const LONGEST_CURSOR: usize = 4 << 10;

/// Everything that a server lists.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) tools: Vec<ListedTool>,
    pub(crate) prompts: Vec<ServerPrompt>,
    /// Resources, and then templates of further ones.
    pub(crate) resources: Vec<ServerResource>,
}

/// A page of a list, with the cursor of the next one.
struct Page<T> {
    entries: Vec<T>,
    next: Option<String>,
}

/// Limit of a list.
struct Limit<'a> {
    /// Name of the entries in remarks.
    what: &'static str,
    most: usize,
    log: &'a Log,
}

/// Fetches a list: its request, the answer to it, the answer's field, and a reader of an entry.
macro_rules! list {
    ($peer:ident, $limit:expr, $Request:ident, $Answer:ident, $field:ident, $read:expr) => {
        pages(
            $peer,
            $limit,
            |params| ClientRequest::$Request(RequestOptionalParam::with_param(params)),
            |answer| match answer {
                ServerResult::$Answer(list) => Some(Page {
                    entries: list.$field.into_iter().filter_map($read).collect(),
                    next: list.next_cursor,
                }),
                _ => None,
            },
        )
    };
}

impl Lists {
    /// Fetches the lists that a server says it has. Without its tools a server is of no use; of
    /// the others, one that fails is empty, with a remark in `log`.
    ///
    /// # Errors
    /// Errors of the list of tools.
    pub(crate) async fn of(server: &str, peer: &Peer<RoleClient>, log: &Log) -> Result<Self> {
        let limit = |what, most| Limit { what, most, log };
        let offered = peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
        let (has_prompts, has_resources) = (offered.prompts.is_some(), offered.resources.is_some());
        // Some servers have tools without saying so.
        let has_tools = offered.tools.is_some() || !(has_prompts || has_resources);
        let tools = async {
            if !has_tools {
                return Ok(Vec::new());
            }
            let read = |tool| ListedTool::of(tool, log);
            let listed =
                list!(peer, limit("tools", MOST_TOOLS), ListToolsRequest, ListToolsResult, tools, read);
            timeout(TOOLS, listed).await.unwrap_or(Err(Error::TimedOut(TOOLS)))
        };
        let prompts = list!(
            peer,
            limit("prompts", MOST_PROMPTS),
            ListPromptsRequest,
            ListPromptsResult,
            prompts,
            |prompt| ServerPrompt::of(server, prompt)
        );
        let resources = list!(
            peer,
            limit("resources", MOST_RESOURCES),
            ListResourcesRequest,
            ListResourcesResult,
            resources,
            |resource| ServerResource::of(server, resource)
        );
        let templates = list!(
            peer,
            limit("resource templates", MOST_RESOURCES),
            ListResourceTemplatesRequest,
            ListResourceTemplatesResult,
            resource_templates,
            |template| ServerResource::of_template(server, template)
        );
        let (tools, prompts, mut resources, templates) = tokio::join!(
            tools,
            optional(has_prompts, "prompts", log, prompts),
            optional(has_resources, "resources", log, resources),
            optional(has_resources, "resource templates", log, known(templates)),
        );
        resources.extend(templates);
        Ok(Self { tools: tools?, prompts, resources })
    }
}

/// Waits for a list that replies do not need.
async fn optional<T>(
    is_offered: bool,
    what: &str,
    log: &Log,
    list: impl Future<Output = Result<Vec<T>>>,
) -> Vec<T> {
    if !is_offered {
        return Vec::new();
    }
    let listed = timeout(OTHERS, list).await.unwrap_or(Err(Error::TimedOut(OTHERS)));
    listed.unwrap_or_else(|error| {
        log.add(&format!("The server's {what} could not be listed. {error}"));
        Vec::new()
    })
}

/// Turns a refusal into an empty list: many servers with resources have no templates.
async fn known<T>(list: impl Future<Output = Result<Vec<T>>>) -> Result<Vec<T>> {
    match list.await {
        Err(Error::Refused(_)) => Ok(Vec::new()),
        listed => listed,
    }
}

/// Fetches the pages of a list until there are no more, or as many entries as the limit allows.
async fn pages<T>(
    peer: &Peer<RoleClient>,
    Limit { what, most, log }: Limit<'_>,
    request: impl Fn(PaginatedRequestParams) -> ClientRequest,
    page: impl Fn(ServerResult) -> Option<Page<T>>,
) -> Result<Vec<T>> {
    let (mut all, mut cursor) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let answer = peer.send_request(request(params)).await.map_err(failure)?;
        let unexpected = || Error::Protocol(format!("its answer is no list of {what}"));
        let Page { entries, next } = page(answer).ok_or_else(unexpected)?;
        all.extend(entries);
        match next {
            None if all.len() <= most => return Ok(all),
            Some(next) if all.len() <= most && next.len() <= LONGEST_CURSOR => cursor = Some(next),
            _ => break,
        }
    }
    all.truncate(most);
    log.add(&format!("The server lists many {what}; the first {} are used.", all.len()));
    Ok(all)
}
