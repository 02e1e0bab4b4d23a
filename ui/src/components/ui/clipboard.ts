/** Copies text to the clipboard, even in webviews without the clipboard API. */

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const holder = document.createElement("textarea");
  holder.value = text;
  holder.className = "visually-hidden";
  document.body.append(holder);
  const focused = document.activeElement;
  holder.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- all that older WebKitGTK has
  const copied = document.execCommand("copy");
  holder.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return copied;
}
