//! When something is on the screen.

/// JavaScript: `painted(begin)` resolves after the frame that is being made is on the screen, to the milliseconds since
/// `begin`.
pub fn until_painted() -> &'static str {
    "const painted = (begin) => new Promise((resolve) => {
        const after = new MessageChannel();
        after.port1.onmessage = () => resolve(performance.now() - begin);
        requestAnimationFrame(() => after.port2.postMessage(null));
    });"
}
