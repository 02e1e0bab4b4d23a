//! A desktop's tray in place of a panel: the registry of StatusNotifierItem and a host, which reads
//! an icon's menu and chooses from it as a panel does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use zbus::Message;
use zbus::blocking::Connection;
use zbus::object_server::SignalEmitter;
use zbus::zvariant::{DynamicType, OwnedValue, Value};

use crate::session_bus::SessionBus;

const WATCHER: &str = "org.kde.StatusNotifierWatcher";
const ITEM: &str = "org.kde.StatusNotifierItem";
const MENU: &str = "com.canonical.dbusmenu";

/// The tray, with the icons that programs have shown.
pub struct DesktopTray {
    connection: Connection,
    items: Arc<Mutex<Vec<String>>>,
}

/// An item of an icon's menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MenuLine {
    id: i32,
    /// Empty for a separator.
    pub label: String,
    pub enabled: bool,
}

/// A menu on the bus: id, properties, and the same of its items.
type Layout = (i32, HashMap<String, OwnedValue>, Vec<OwnedValue>);

struct Watcher(Arc<Mutex<Vec<String>>>);

#[zbus::interface(name = "org.kde.StatusNotifierWatcher")]
impl Watcher {
    fn register_status_notifier_item(&self, service: String) {
        self.0.lock().unwrap().push(service);
    }

    fn register_status_notifier_host(&self, _service: String) {}

    #[zbus(property)]
    fn is_status_notifier_host_registered(&self) -> bool {
        true
    }

    #[zbus(property)]
    fn protocol_version(&self) -> i32 {
        0
    }

    #[zbus(property)]
    fn registered_status_notifier_items(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    #[zbus(signal)]
    async fn status_notifier_host_registered(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;
}

impl DesktopTray {
    /// Opens the tray of a desktop with this bus.
    pub fn open(bus: &SessionBus) -> Self {
        let connection = bus.connect();
        let items = Arc::<Mutex<Vec<String>>>::default();
        connection.object_server().at("/StatusNotifierWatcher", Watcher(Arc::clone(&items))).unwrap();
        connection.request_name(WATCHER).unwrap();
        Self { connection, items }
    }

    /// Closes the tray, as a panel that ends.
    pub fn close(self) {
        self.connection.close().unwrap();
    }

    /// Bus name of the one icon that is shown; `None` without one.
    fn item(&self) -> Option<String> {
        let items = self.items.lock().unwrap().clone();
        let is_there = |name: &String| {
            let answer = self.connection.call_method(
                Some("org.freedesktop.DBus"),
                "/org/freedesktop/DBus",
                Some("org.freedesktop.DBus"),
                "NameHasOwner",
                &name.as_str(),
            );
            answer.unwrap().body().deserialize::<bool>().unwrap()
        };
        items.into_iter().rfind(is_there)
    }

    /// Returns whether an icon is shown.
    pub fn shows_icon(&self) -> bool {
        self.item().is_some()
    }

    /// Text of the icon's tooltip: title and description.
    pub fn tooltip(&self) -> String {
        type Tooltip = (String, Vec<(i32, i32, Vec<u8>)>, String, String);
        let tooltip: Tooltip = Value::from(self.property("ToolTip")).downcast().unwrap();
        format!("{}: {}", tooltip.2, tooltip.3)
    }

    /// Width of the icon's largest picture in pixels; 0 without one.
    pub fn picture_width(&self) -> i32 {
        let pictures: Vec<(i32, i32, Vec<u8>)> = Value::from(self.property("IconPixmap")).downcast().unwrap();
        pictures.iter().map(|(width, ..)| *width).max().unwrap_or(0)
    }

    fn property(&self, name: &str) -> OwnedValue {
        let (path, properties) = ("/StatusNotifierItem", "org.freedesktop.DBus.Properties");
        self.call(path, properties, "Get", &(ITEM, name)).body().deserialize().unwrap()
    }

    /// Clicks the icon with the left button.
    pub fn click(&self) {
        self.call("/StatusNotifierItem", ITEM, "Activate", &(0, 0));
    }

    /// Lines of the icon's menu, from the top.
    pub fn menu(&self) -> Vec<MenuLine> {
        let answer = self.call("/MenuBar", MENU, "GetLayout", &(0, -1, Vec::<String>::new()));
        let (_, (_, _, lines)): (u32, Layout) = answer.body().deserialize().unwrap();
        lines.into_iter().map(MenuLine::read).collect()
    }

    /// Labels of the menu's lines, without separators.
    pub fn labels(&self) -> Vec<String> {
        self.menu().into_iter().map(|line| line.label).filter(|label| !label.is_empty()).collect()
    }

    /// Chooses a line of the menu by its label.
    pub fn choose(&self, label: &str) {
        let menu = self.menu();
        let line = menu.iter().find(|line| line.label == label);
        let line = line.unwrap_or_else(|| panic!("{label} is not in {menu:?}"));
        self.call("/MenuBar", MENU, "Event", &(line.id, "clicked", Value::from(0), 0u32));
    }

    fn call<B: Serialize + DynamicType>(
        &self,
        path: &str,
        interface: &str,
        method: &str,
        body: &B,
    ) -> Message {
        let item = self.item().expect("an icon is shown");
        self.connection.call_method(Some(item), path, Some(interface), method, body).unwrap()
    }
}

impl MenuLine {
    fn read(line: OwnedValue) -> Self {
        let (id, properties, _): Layout = Value::from(line).downcast().unwrap();
        let label = properties.get("label").map(|label| String::try_from(label.clone()).unwrap());
        let enabled = properties.get("enabled").is_none_or(|enabled| bool::try_from(enabled).unwrap());
        Self { id, label: label.unwrap_or_default(), enabled }
    }
}
