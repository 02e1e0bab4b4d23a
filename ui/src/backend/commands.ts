/** The backend's methods as commands of the shell. */
import type { Commands } from "../bindings/commands";
import type { EngineStatus } from "../bindings/EngineStatus";
import { completed, type StoredRound } from "../trace/stored";
import type { Backend } from "./backend";
import type { Channel } from "./channel";

/** Calls a command; an unknown name or argument is a type error. */
export type Call = <Name extends keyof Commands>(
  name: Name,
  args: Commands[Name]["args"],
) => Promise<Commands[Name]["returns"]>;

type Receive = <Event>(onEvent: (event: Event) => void) => Channel<Event>;

/** The backend over a shell's commands; `channel` makes the receiver of a command's events. */
export function backendOver(call: Call, channel: Receive): Backend {
  /** A channel that delivers several events at a time. */
  const batches = <Event>(onEvent: (event: Event) => void) =>
    channel<Event[]>((events) => events.forEach((event) => onEvent(event)));
  return {
    appInfo: () => call("app_info", {}),
    openFolder: async (folder) => {
      await call("open_folder", { folder });
    },
    takeNotices: () => call("take_notices", {}),
    settings: () => call("settings", {}),
    saveSettings: (settings) => call("save_settings", { settings }),
    viewState: () => call("view_state", {}),
    saveViewState: async (state) => {
      await call("save_view_state", { state });
    },
    unsent: () => call("unsent", {}),
    saveUnsent: async (unsent) => {
      await call("save_unsent", { unsent });
    },
    unsentFiles: (conversation) => call("unsent_files", { conversation }),
    addUnsentFile: (conversation, file) => call("add_unsent_file", { conversation, file }),
    removeUnsentFiles: async (ids) => {
      await call("remove_unsent_files", { ids });
    },
    unsentEdits: () => call("unsent_edits", {}),
    saveUnsentEdit: async (edit) => {
      await call("save_unsent_edit", { edit });
    },
    removeUnsentEdit: async (message) => {
      await call("remove_unsent_edit", { message });
    },
    keepImportedTrace: (name, text) => call("keep_imported_trace", { name, text }),
    importedTraces: () => call("imported_traces", {}),
    importedTrace: (id) => call("imported_trace", { id }),
    forgetImportedTrace: async (id) => {
      await call("forget_imported_trace", { id });
    },
    quit: async () => {
      await call("quit", {});
    },
    toggleFullscreen: async () => {
      await call("toggle_fullscreen", {});
    },
    notify: async (title, body) => {
      await call("notify", { title, body });
    },
    showPreview: (document) => call("show_preview", { document }),
    print: async () => {
      await call("print", {});
    },
    builtInPresets: () => call("built_in_presets", {}),
    openSetup: (conversation) => call("open_setup", { conversation }),
    setup: (conversation) => call("setup", { conversation }),
    saveSetup: (conversation, preset, values) =>
      call("save_setup", { conversation, preset, values }),
    serverStatus: () => call("server_status", {}),
    serverRequests: () => call("server_requests", {}),
    addServer: (name, address, key) => call("add_server", { name, address, key }),
    testServer: (name) => call("test_server", { name }),
    removeServer: (name) => call("remove_server", { name }),
    wordTokens: (word) => call("word_tokens", { word }),
    toolsStatus: () => call("tools_status", {}),
    switchToolServer: (name, on) => call("switch_tool_server", { name, on }),
    addToolServers: (text) => call("add_tool_servers", { text }),
    removeToolServer: (name) => call("remove_tool_server", { name }),
    importableToolServers: () => call("importable_tool_servers", {}),
    setSearchKey: (service, key) => call("set_search_key", { service, key }),
    importToolServers: (program) => call("import_tool_servers", { program }),
    setToolRule: async (server, digest, rule) => {
      await call("set_tool_rule", { server, digest, rule });
    },
    serverContents: (start) => call("server_contents", { start }),
    fetchPrompt: (server, name, filled) =>
      call("fetch_prompt", { server, name, arguments: filled }),
    fetchResource: (server, uri, filled) =>
      call("fetch_resource", { server, uri, arguments: filled }),
    stopFetching: async () => {
      await call("stop_fetching", {});
    },
    decideCall: async (id, decision) => {
      await call("decide_call", { call: id, decision });
    },
    watchEngine: async (onStatus) => {
      // The first change holds the whole status.
      let status = {} as EngineStatus;
      const onChange = channel((change: Partial<EngineStatus>) => {
        onStatus((status = { ...status, ...change }));
      });
      await call("watch_engine", { onChange });
    },
    lookForDevices: async () => {
      await call("look_for_devices", {});
    },
    addModel: (path) => call("add_model", { path }),
    removeModel: async (id) => {
      await call("remove_model", { id });
    },
    deleteModel: async (id) => {
      await call("delete_model", { id });
    },
    chooseModelFile: (title, filter) => call("choose_model_file", { title, filter }),
    chooseModelFolder: (title) => call("choose_model_folder", { title }),
    nameAttachDialog: async (title, readable, all) => {
      await call("name_attach_dialog", { title, readable, all });
    },
    desktop: () => call("desktop", {}),
    nameTray: async (words) => {
      await call("name_tray", { words });
    },
    hideQuick: async () => {
      await call("hide_quick", {});
    },
    continueInMain: async (conversation) => {
      await call("continue_in_main", { conversation });
    },
    watchUpdates: async (onStatus) => {
      await call("watch_updates", { onChange: channel(onStatus) });
    },
    checkForUpdates: async () => {
      await call("check_for_updates", {});
    },
    downloadUpdate: async () => {
      await call("download_update", {});
    },
    cancelUpdate: async () => {
      await call("cancel_update", {});
    },
    installUpdate: async () => {
      await call("install_update", {});
    },
    watchFileDrags: async (onDrag) => {
      await call("watch_file_drags", { onDrag: channel(onDrag) });
    },
    clipboardPicture: () => call("clipboard_picture", {}),
    takeScreenshot: () => call("take_screenshot", {}),
    droppedFile: async (path) => {
      const name = path.split(/[/\\]/).at(-1) ?? path;
      return new File([await call("dropped_file", { path })], name);
    },
    catalogue: () => call("catalogue", {}),
    recommendations: () => call("recommendations", {}),
    searchHub: (words) => call("search_hub", { words }),
    findRepository: (name) => call("find_repository", { name }),
    cancelHubRequests: async () => {
      await call("cancel_hub_requests", {});
    },
    watchDownloads: async (onChange) => {
      await call("watch_downloads", { onChange: channel(onChange) });
    },
    startDownload: (repository, file) => call("start_download", { repository, file }),
    pauseDownload: async (id) => {
      await call("pause_download", { id });
    },
    resumeDownload: async (id) => {
      await call("resume_download", { id });
    },
    cancelDownload: async (id) => {
      await call("cancel_download", { id });
    },
    dismissDownload: async (id) => {
      await call("dismiss_download", { id });
    },
    hubToken: () => call("hub_token", {}),
    setHubToken: (token) => call("set_hub_token", { token }),
    conversations: () => call("list_conversations", {}),
    messages: (conversation) => call("messages", { conversation }),
    trace: async (message) => {
      const rounds: StoredRound[] = await call("trace", { message });
      return rounds.map(completed);
    },
    speedups: (message) => call("speedups", { message }),
    traceSpeedups: (rounds) => call("trace_speedups", { rounds }),
    pairSpeedups: () => call("pair_speedups", {}),
    rename: (conversation, title) => call("rename_conversation", { conversation, title }),
    pin: (conversation, pinned) => call("pin_conversation", { conversation, pinned }),
    delete: async (conversation) => {
      await call("delete_conversation", { conversation });
    },
    restore: (conversation) => call("restore_conversation", { conversation }),
    folders: () => call("list_folders", {}),
    createFolder: (name) => call("create_folder", { name }),
    renameFolder: (folder, name) => call("rename_folder", { folder, name }),
    deleteFolder: async (folder) => {
      await call("delete_folder", { folder });
    },
    restoreFolder: (folder) => call("restore_folder", { folder }),
    moveTo: (conversation, folder) => call("move_conversation", { conversation, folder }),
    writeTitle: (conversation) => call("write_title", { conversation }),
    duplicate: (conversation, upTo, title) =>
      call("duplicate_conversation", { conversation, upTo, title }),
    exportConversations: (wanted) => call("export_conversations", { export: wanted }),
    chooseConversationFiles: (title, filter) =>
      call("choose_conversation_files", { title, filter }),
    importConversations: (path, onProgress) =>
      call("import_conversations", { path, onProgress: batches(onProgress) }),
    stopImport: async () => {
      await call("stop_import", {});
    },
    search: (query) => call("search_messages", { query }),
    attachment: (id) => call("attachment", { id }),
    readDocument: (file) => call("read_document", { file }),
    countAttachment: (file) => call("count_attachment", { file }),
    documentSearchStatus: () => call("document_search_status", {}),
    contextUse: (conversation) => call("context_use", { conversation }),
    send: (conversation, sent, onEvent) =>
      call("send", { conversation, sent, onEvents: batches(onEvent) }),
    sendInstead: (message, sent, onEvent) =>
      call("send_instead", { message, sent, onEvents: batches(onEvent) }),
    regenerate: (message, onEvent) => call("regenerate", { message, onEvents: batches(onEvent) }),
    continueReply: (message, onEvent) =>
      call("continue_reply", { message, onEvents: batches(onEvent) }),
    followReply: (onEvent) => call("follow_reply", { onEvents: batches(onEvent) }),
    chooseBranch: (message) => call("choose_branch", { message }),
    deleteMessage: (message) => call("delete_message", { message }),
    restoreMessage: (message) => call("restore_message", { message }),
    leaveOutOldest: (conversation, next) => call("leave_out_oldest", { conversation, next }),
    setContextStart: (conversation, question) => call("see_from", { conversation, question }),
    clearContextStart: (conversation) => call("see_all", { conversation }),
    stop: async () => {
      await call("stop", {});
    },
    pace: async (intervalMs) => {
      await call("pace", { intervalMs });
    },
    cancelLoading: async () => {
      await call("cancel_loading", {});
    },
    advise: async (conversation, onAdvice) => {
      await call("advise", { conversation, onAdvice: channel(onAdvice) });
    },
    stopAdvice: async () => {
      await call("stop_advice", {});
    },
    saveFile: (name, text) => call("save_file", { name, text }),
    traceToOpen: () => Promise.resolve(null),
    checkReply: (message, onProgress) =>
      call("check_reply", { message, onProgress: batches(onProgress) }),
    runArena: (request, onEvent) => call("run_arena", { request, onEvents: batches(onEvent) }),
    arenas: () => call("arenas", {}),
    deleteArena: async (id) => {
      await call("delete_arena", { id });
    },
    traceStorage: () => call("trace_storage", {}),
    deleteTraces: (olderThanDays) => call("delete_traces", { olderThanDays }),
  };
}
