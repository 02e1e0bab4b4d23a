//! Time at which something is displayed.

/// JavaScript: `painted(begin)` resolves once the current frame is displayed, to the milliseconds
/// since `begin`.
pub fn until_painted() -> &'static str {
    "const painted = (begin) => new Promise((resolve) => {
        const after = new MessageChannel();
        after.port1.onmessage = () => resolve(performance.now() - begin);
        requestAnimationFrame(() => after.port2.postMessage(null));
    });"
}
