/**
 * Canvases here are small and change many times a second. Drawn by a graphics card they would be fetched
 * back to be shown wherever the webview does not compose with one: 40 ms a frame in WebKitGTK without
 * a card, against less than one. The plots' library asks for its canvas without saying so, hence here
 * and for all of them.
 */
type GetContext = (this: HTMLCanvasElement, kind: string, options?: object) => unknown;

const prototype = HTMLCanvasElement.prototype as { getContext: unknown };
const getContext = prototype.getContext as GetContext;

prototype.getContext = function (this: HTMLCanvasElement, kind: string, options?: object) {
  return getContext.call(this, kind, { willReadFrequently: true, ...options });
};

export {};
