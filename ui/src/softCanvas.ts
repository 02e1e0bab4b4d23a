/**
 * Keeps canvases on the CPU. They are small and change often; with a GPU they would be read back
 * wherever the webview composes without one: 40 ms per frame in WebKitGTK without a GPU, instead of
 * less than one. Patched globally, since uPlot creates its canvas itself.
 */
type GetContext = (this: HTMLCanvasElement, kind: string, options?: object) => unknown;

const prototype = HTMLCanvasElement.prototype as { getContext: unknown };
const getContext = prototype.getContext as GetContext;

prototype.getContext = function (this: HTMLCanvasElement, kind: string, options?: object) {
  return getContext.call(this, kind, { willReadFrequently: true, ...options });
};

export {};
