//! The part of a Linux desktop that shows tray icons, a host of the StatusNotifierItem
//! specification. GNOME has one only with an extension.

use gtk::gio::{self, BusNameWatcherFlags, BusType, DBusCallFlags, DBusConnection, DBusSignalFlags};
use gtk::glib;
use gtk::glib::prelude::ToVariant;

/// Name on the bus of the registry that hosts and icons share.
const WATCHER: &str = "org.kde.StatusNotifierWatcher";

const PATH: &str = "/StatusNotifierWatcher";

/// Longest time for its answer, in milliseconds.
const LONGEST_MS: i32 = 500;

/// Returns whether a host is there.
pub fn exists() -> bool {
    ask().is_ok_and(|answer| answer.child_value(0).as_variant().and_then(|value| value.get()) == Some(true))
}

fn ask() -> Result<glib::Variant, glib::Error> {
    session()?.call_sync(
        Some(WATCHER),
        PATH,
        "org.freedesktop.DBus.Properties",
        "Get",
        Some(&(WATCHER, "IsStatusNotifierHostRegistered").to_variant()),
        None,
        DBusCallFlags::NO_AUTO_START,
        LONGEST_MS,
        gio::Cancellable::NONE,
    )
}

/// Calls `on_arrival` whenever a host may have arrived: at login, panels start later than programs.
/// Must be called on the main thread.
pub fn watch(on_arrival: impl Fn() + Clone + Send + Sync + 'static) {
    let Ok(bus) = session() else { return };
    let arrived = on_arrival.clone();
    bus.signal_subscribe(
        None,
        Some(WATCHER),
        Some("StatusNotifierHostRegistered"),
        Some(PATH),
        None,
        DBusSignalFlags::NONE,
        move |_, _, _, _, _, _| arrived(),
    );
    let appeared = move |_: DBusConnection, _: &str, _: &str| on_arrival();
    gio::bus_watch_name_on_connection(&bus, WATCHER, BusNameWatcherFlags::NONE, appeared, |_, _| ());
}

/// The session bus, whose end does not end this program.
fn session() -> Result<DBusConnection, glib::Error> {
    let bus = gio::bus_get_sync(BusType::Session, gio::Cancellable::NONE)?;
    bus.set_exit_on_close(false);
    Ok(bus)
}
