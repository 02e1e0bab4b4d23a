import { coloured, type Uncoloured } from "./colour";

addEventListener("message", ({ data }: MessageEvent<Uncoloured>) => postMessage(coloured(data)));
