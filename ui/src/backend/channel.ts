/** Where a command sends its events. Structural, so that the generated command types need no Tauri. */
export interface Channel<T> {
  onmessage: (event: T) => void;
}
