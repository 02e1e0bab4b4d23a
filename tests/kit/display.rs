//! Requests that other programs send to the display: a window manager's, which the display of a
//! test does not have, and a grab of keys.

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ClientMessageEvent, ConnectionExt, EventMask, GrabMode, ModMask};
use x11rb::rust_connection::RustConnection;

/// Asks the program that owns `window` on the display `name` to close it.
pub fn request_close(name: &str, window: u32) {
    let (display, _) = x11rb::connect(Some(name)).unwrap();
    let atom = |name: &str| display.intern_atom(false, name.as_bytes()).unwrap().reply().unwrap().atom;
    let content = [atom("WM_DELETE_WINDOW"), x11rb::CURRENT_TIME, 0, 0, 0];
    let message = ClientMessageEvent::new(32, window, atom("WM_PROTOCOLS"), content);
    display.send_event(false, window, EventMask::NO_EVENT, message).unwrap().check().unwrap();
}

/// A key with Ctrl and Alt that no other program gets, until this is dropped.
pub struct GrabbedKey(#[expect(dead_code, reason = "the display frees the key at its end")] RustConnection);

impl GrabbedKey {
    /// Takes the key of a letter on the display `name`.
    pub fn take(name: &str, letter: char) -> Self {
        let (display, screen) = x11rb::connect(Some(name)).unwrap();
        let setup = display.setup();
        let (root, first) = (setup.roots[screen].root, setup.min_keycode);
        let keys =
            display.get_keyboard_mapping(first, setup.max_keycode - first + 1).unwrap().reply().unwrap();
        let mut codes = keys.keysyms.chunks(keys.keysyms_per_keycode.into());
        let place = codes.position(|signs| signs.contains(&u32::from(letter))).unwrap();
        let key = first + u8::try_from(place).unwrap();
        let held = ModMask::CONTROL | ModMask::M1;
        let grabbed = display.grab_key(false, root, held, key, GrabMode::ASYNC, GrabMode::ASYNC);
        grabbed.unwrap().check().unwrap();
        Self(display)
    }
}
