//! Chooses whether WebKit composites the page with GL, on Linux. Other systems' webviews decide by
//! themselves.
//!
//! Where the CPU renders GL, compositing costs more than painting: each frame is painted, uploaded
//! and blended on cores that the engine needs. There WebKit paints directly into the window, and
//! the page's other costs are reduced: no optimising JavaScript compiler and no blinking caret. The
//! choice is made once, at the start.
//!
//! GL itself is not queried: opening it takes a tenth of a second and may hang in a broken driver.
//! The choice depends on the kernel's list of devices and on the variables that Mesa reads. A
//! display server that renders in software beside a graphics card cannot be recognised this way;
//! there WebKit keeps its own choice.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;

use gtk::prelude::GtkSettingsExt;

/// Variables by which a person chooses.
const OWN: [&str; 2] = ["WEBKIT_DISABLE_COMPOSITING_MODE", "WEBKIT_FORCE_COMPOSITING_MODE"];

/// Turns compositing off in all of WebKit's processes. A policy set on a webview comes too late: a
/// page that began to load with compositing keeps a scrolling thread, which the mouse wheel no
/// longer reaches afterwards.
const NO_COMPOSITING: &str = "WEBKIT_DISABLE_COMPOSITING_MODE";

/// Turns JavaScriptCore's optimising compiler on or off. A page that paints a few times a second
/// never earns back the time of its threads: a fifth of the page's total.
const COMPILER: &str = "JSC_useDFGJIT";

/// Period of the caret's blinking in milliseconds, so long that it never blinks: one blink costs
/// more than everything else in an idle window.
const NO_BLINK: i32 = i32::MAX / 2;

/// Kernel drivers of displays without rendering.
const WITHOUT_GL: [&str; 3] = ["vgem", "vkms", "simpledrm"];

/// Mesa's software renderers.
const ON_PROCESSOR: [&str; 5] = ["llvmpipe", "softpipe", "swr", "swrast", "kms_swrast"];

/// The way of rendering, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendering {
    /// WebKit's own choice.
    Usual(String),
    /// Without compositing.
    Direct(String),
}

/// Facts about this computer that decide the way of rendering.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct System {
    /// Variable by which a person has already chosen.
    own: Option<&'static str>,
    /// Kernel drivers of the accessible render devices; empty where a name is unknown.
    drivers: Vec<String>,
    /// Mesa's variable for software rendering is set.
    always_software: bool,
    /// Mesa driver set in the environment.
    mesa_driver: Option<String>,
    /// Host of a remote display.
    remote_display: Option<String>,
}

impl Rendering {
    /// Decides, and sets the environment variables that WebKit's processes read.
    ///
    /// # Safety
    /// No other thread may run yet: it might read the environment.
    pub unsafe fn choose() -> Self {
        let rendering = System::of(Path::new("/"), |name| std::env::var_os(name)).rendering();
        if let Self::Direct(_) = rendering {
            // SAFETY: guaranteed by the caller.
            unsafe { std::env::set_var(NO_COMPOSITING, "1") };
            if std::env::var_os(COMPILER).is_none() {
                // SAFETY: guaranteed by the caller.
                unsafe { std::env::set_var(COMPILER, "0") };
            }
        }
        rendering
    }

    /// Logs the choice and its reason, and stops the caret's blinking without compositing. Must be
    /// called on the main thread.
    pub fn apply(&self) {
        tracing::info!("{}", self.sentence());
        if let (Self::Direct(_), Some(settings)) = (self, gtk::Settings::default()) {
            settings.set_gtk_cursor_blink_time(NO_BLINK);
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Usual(why) => format!("WebKit renders the page as it usually does: {why}"),
            Self::Direct(why) => format!("WebKit renders the page without compositing: {why}"),
        }
    }
}

impl System {
    /// Reads the device folders below `root` and the environment through `variable`.
    fn of(root: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| {
            let value = variable(name)?.to_string_lossy().trim().to_lowercase();
            (!value.is_empty()).then_some(value)
        };
        let mut drivers = render_drivers(root);
        // WSL passes Windows' driver through, and NVIDIA's own needs no render node.
        for (device, driver) in [("dev/dxg", "dxgkrnl"), ("dev/nvidiactl", "nvidia")] {
            if root.join(device).exists() {
                drivers.push(driver.to_owned());
            }
        }
        Self {
            own: OWN.into_iter().find(|name| variable(name).is_some()),
            drivers,
            always_software: text("LIBGL_ALWAYS_SOFTWARE").is_some_and(|value| is_yes(&value)),
            mesa_driver: text("GALLIUM_DRIVER").or_else(|| text("MESA_LOADER_DRIVER_OVERRIDE")),
            remote_display: match text("WAYLAND_DISPLAY") {
                Some(_) => None,
                None => text("DISPLAY").as_deref().and_then(host_of),
            },
        }
    }

    fn rendering(&self) -> Rendering {
        let direct = |why: String| Rendering::Direct(format!("{why}, so GL is computed by the processor"));
        if let Some(name) = self.own {
            return Rendering::Usual(format!("{name} is set"));
        }
        if self.always_software {
            return direct("LIBGL_ALWAYS_SOFTWARE is set".to_owned());
        }
        if let Some(driver) = self.mesa_driver.as_deref().filter(|driver| ON_PROCESSOR.contains(driver)) {
            return direct(format!("Mesa is set to use {driver}"));
        }
        if let Some(host) = &self.remote_display {
            return direct(format!("the display is that of {host}"));
        }
        let card = self.drivers.iter().find(|driver| !WITHOUT_GL.contains(&driver.as_str()));
        match (card, self.drivers.first()) {
            (Some(driver), _) if driver.is_empty() => Rendering::Usual("there is a render device".to_owned()),
            (Some(driver), _) => Rendering::Usual(format!("there is a graphics card, driven by {driver}")),
            (None, Some(driver)) => direct(format!("the only render device is {driver}")),
            (None, None) => direct("there is no render device".to_owned()),
        }
    }
}

/// Drivers of the render nodes that this user may open; the others render nothing here.
fn render_drivers(root: &Path) -> Vec<String> {
    let Ok(nodes) = fs::read_dir(root.join("dev/dri")) else { return Vec::new() };
    let mut names: Vec<_> = nodes.filter_map(|node| node.ok()?.file_name().into_string().ok()).collect();
    names.retain(|name| name.starts_with("renderD"));
    names.sort();
    names.retain(|name| File::options().read(true).write(true).open(root.join("dev/dri").join(name)).is_ok());
    names.iter().filter_map(|name| driver_of(&root.join("sys/class/drm").join(name).join("device"))).collect()
}

/// The driver of a device; `None` for a virtual GPU without 3D.
fn driver_of(device: &Path) -> Option<String> {
    let driver = fs::read_link(device.join("driver")).ok();
    let name = driver.and_then(|path| Some(path.file_name()?.to_str()?.to_owned())).unwrap_or_default();
    // The first of QEMU's feature bits is 3D.
    let flat = name == "virtio_gpu"
        && fs::read_to_string(device.join("features")).is_ok_and(|features| features.starts_with('0'));
    (!flat).then_some(name)
}

/// Parses a boolean as Mesa does.
fn is_yes(value: &str) -> bool {
    ["1", "true", "t", "yes", "y"].contains(&value)
}

/// The host in an X display's name, `host:0.0`; `None` for a local display.
fn host_of(display: &str) -> Option<String> {
    let (host, _) = display.rsplit_once(':')?;
    let here = host.is_empty() || host == "unix" || host.starts_with('/');
    (!here).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A root folder with render nodes of these drivers.
    fn computer(drivers: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for folder in ["dev/dri", "sys/class/drm"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join("dev/dri/card0"), "").unwrap();
        for (number, driver) in drivers.iter().enumerate() {
            let name = format!("renderD{}", 128 + number);
            let device = root.path().join("sys/class/drm").join(&name).join("device");
            fs::create_dir_all(&device).unwrap();
            symlink(format!("../../bus/pci/drivers/{driver}"), device.join("driver")).unwrap();
            fs::write(root.path().join("dev/dri").join(name), "").unwrap();
        }
        root
    }

    fn rendering(root: &Path, variables: &[(&str, &str)]) -> Rendering {
        let variable = |name: &str| {
            variables.iter().find(|(set, _)| *set == name).map(|(_, value)| OsString::from(value))
        };
        System::of(root, variable).rendering()
    }

    fn is_direct(root: &Path, variables: &[(&str, &str)]) -> bool {
        matches!(rendering(root, variables), Rendering::Direct(_))
    }

    #[test]
    fn a_graphics_card_composites() {
        for driver in ["i915", "amdgpu", "nouveau", "xe", "panfrost", "vmwgfx"] {
            let root = computer(&[driver]);
            let Rendering::Usual(why) = rendering(root.path(), &[("DISPLAY", ":0")]) else {
                panic!("{driver}")
            };
            assert!(why.contains(driver), "{why}");
        }
        assert!(!is_direct(computer(&["vgem", "amdgpu"]).path(), &[]));
    }

    #[test]
    fn without_a_graphics_card_the_page_is_painted_directly() {
        assert!(is_direct(tempfile::tempdir().unwrap().path(), &[("DISPLAY", ":99")]));
        for drivers in [&["vgem"][..], &["vkms", "simpledrm"], &[]] {
            assert!(is_direct(computer(drivers).path(), &[]), "{drivers:?}");
        }
    }

    #[test]
    fn a_virtual_gpu_composites_if_it_has_3d() {
        let root = computer(&["virtio_gpu"]);
        let features = root.path().join("sys/class/drm/renderD128/device/features");
        for (bits, direct) in [("0100", true), ("1100", false)] {
            fs::write(&features, bits).unwrap();
            assert_eq!(is_direct(root.path(), &[]), direct, "{bits}");
        }
    }

    #[test]
    fn gpus_without_a_render_node_composite_too() {
        for device in ["dev/dxg", "dev/nvidiactl"] {
            let root = computer(&["vgem"]);
            fs::write(root.path().join(device), "").unwrap();
            assert!(!is_direct(root.path(), &[]), "{device}");
        }
    }

    #[test]
    fn an_unknown_driver_counts_as_a_graphics_card() {
        let root = computer(&["i915"]);
        fs::remove_file(root.path().join("sys/class/drm/renderD128/device/driver")).unwrap();
        assert!(!is_direct(root.path(), &[]));
    }

    #[test]
    fn mesas_variables_for_software_rendering_are_respected() {
        let root = computer(&["i915"]);
        for (name, value, direct) in [
            ("LIBGL_ALWAYS_SOFTWARE", "1", true),
            ("LIBGL_ALWAYS_SOFTWARE", "True", true),
            ("LIBGL_ALWAYS_SOFTWARE", "0", false),
            ("LIBGL_ALWAYS_SOFTWARE", "", false),
            ("GALLIUM_DRIVER", "llvmpipe", true),
            ("GALLIUM_DRIVER", "softpipe", true),
            ("GALLIUM_DRIVER", "radeonsi", false),
            ("MESA_LOADER_DRIVER_OVERRIDE", "swrast", true),
            ("MESA_LOADER_DRIVER_OVERRIDE", "zink", false),
        ] {
            assert_eq!(is_direct(root.path(), &[(name, value)]), direct, "{name}={value}");
        }
    }

    #[test]
    fn a_remote_display_is_painted_directly() {
        let root = computer(&["i915"]);
        for (display, direct) in [
            (":0", false),
            ("unix:0", false),
            ("localhost:10.0", true),
            ("fe80::1:0", true),
            ("desk:0", true),
        ] {
            assert_eq!(is_direct(root.path(), &[("DISPLAY", display)]), direct, "{display}");
        }
        assert!(!is_direct(root.path(), &[("DISPLAY", "desk:0"), ("WAYLAND_DISPLAY", "wayland-0")]));
    }

    #[test]
    fn webkits_own_variables_win() {
        let root = tempfile::tempdir().unwrap();
        for name in OWN {
            for value in ["0", "1", ""] {
                let Rendering::Usual(why) = rendering(root.path(), &[(name, value)]) else {
                    panic!("{name}={value}")
                };
                assert!(why.contains(name), "{why}");
            }
        }
    }
}
