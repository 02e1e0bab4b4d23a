/** A histogram of times in bins of equal ratio; its size does not depend on the number of times. */

/** Ratio of a bin's edges, which bounds the error of percentiles to 1 %. */
const RATIO = 1.01;
const MIN_MS = 1e-3;
const MAX_MS = 1e7;
const BINS = binOf(MAX_MS) + 1;

export class Histogram {
  readonly #weights = new Float64Array(BINS);
  /** Sum of the times in a bin; its mean is exact if all are equal. */
  readonly #sums = new Float64Array(BINS);
  #total = 0;

  add(ms: number, weight: number) {
    const bin = binOf(ms);
    this.#weights[bin] = (this.#weights[bin] ?? 0) + weight;
    this.#sums[bin] = (this.#sums[bin] ?? 0) + ms * weight;
    this.#total += weight;
  }

  /** Median and 95th percentile; null without times. */
  percentiles(): { p50: number; p95: number } | null {
    if (this.#total === 0) return null;
    return { p50: this.#at(0.5), p95: this.#at(0.95) };
  }

  #at(share: number): number {
    let seen = 0;
    for (let bin = 0; bin < BINS; bin += 1) {
      const weight = this.#weights[bin] ?? 0;
      seen += weight;
      if (weight > 0 && seen >= share * this.#total) return (this.#sums[bin] ?? 0) / weight;
    }
    return 0;
  }
}

/** Bin of a time; the first and the last one include everything beyond. */
function binOf(ms: number): number {
  const within = Math.min(MAX_MS, Math.max(MIN_MS, ms));
  return Math.floor(Math.log(within / MIN_MS) / Math.log(RATIO));
}
