/** Receiver of a command's events. A structural type: generated command types do not need Tauri. */
export interface Channel<T> {
  onmessage: (event: T) => void;
}
