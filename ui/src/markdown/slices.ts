/**
 * Time slices for work on the page's thread, with input and drawing in between. All work of one
 * task shares a slice.
 */

/** Length of a slice, which a single piece of work may exceed. */
const SLICE_MS = 15;

let spent = 0;
let scheduled = false;
const waiting: (() => void)[] = [];

/** Runs `work` in this slice if there is time left, else in a later one; returns whether it ran. */
export function inSlices(work: () => void): boolean {
  schedule();
  if (waiting.length > 0 || spent >= SLICE_MS) {
    waiting.push(work);
    return false;
  }
  run(work);
  return true;
}

function run(work: () => void) {
  const begin = performance.now();
  try {
    work();
  } finally {
    spent += performance.now() - begin;
  }
}

/** Schedules the next slice after this task. */
function schedule() {
  if (scheduled) return;
  scheduled = true;
  setTimeout(() => {
    scheduled = false;
    spent = 0;
    let done = 0;
    for (; done < waiting.length && spent < SLICE_MS; done += 1) {
      const work = waiting[done];
      if (work) run(work);
    }
    waiting.splice(0, done);
    if (waiting.length > 0) schedule();
  });
}

/** Runs steps in slices and then calls `whenDone`; returns a function that stops them. */
export function inSteps(work: Iterator<unknown>, whenDone: () => void): () => void {
  let stopped = false;
  const proceed = () => {
    const end = performance.now() + SLICE_MS - spent;
    while (!stopped) {
      if (work.next().done) {
        stopped = true;
        whenDone();
      } else if (performance.now() >= end) {
        waiting.push(proceed);
        return;
      }
    }
  };
  inSlices(proceed);
  return () => {
    stopped = true;
  };
}

/** Runs all steps at once. */
export function atOnce<T>(work: Generator<unknown, T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}
