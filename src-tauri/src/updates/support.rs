//! Abilities of this copy of the program, which depend on its package: AppImages and Mac apps
//! replace themselves. Debian's packages, Flatpaks, installations on Windows and builds from source
//! do not: their own tools or our own installer replace them.

use std::path::Path;

use foretoken_app::ipc::UpdateSupport;
use tauri::AppHandle;
use tauri::utils::config::BundleType;
use tauri::utils::platform::{bundle_type, current_exe};

/// Returns what this copy is able to do.
pub fn find(has_channel: bool, handle: &AppHandle) -> UpdateSupport {
    if !has_channel {
        return UpdateSupport::None;
    }
    let program = current_exe().unwrap_or_default();
    let installs = installs(bundle_type(), is_appimage(handle), &program, cfg!(debug_assertions));
    if installs { UpdateSupport::Install } else { UpdateSupport::Find }
}

/// Returns whether the program at `program` replaces itself. Tests run without a package, so
/// debug builds count as an AppImage where its variable is set.
fn installs(package: Option<BundleType>, is_appimage: bool, program: &Path, is_debug: bool) -> bool {
    match package {
        // A variable of another AppImage, which started this program, names that one.
        Some(BundleType::AppImage) => is_appimage,
        // Every program on a Mac has this type.
        Some(BundleType::App) => program.to_string_lossy().contains(".app/Contents/MacOS/"),
        None => is_debug && is_appimage,
        Some(_) => false,
    }
}

#[cfg(target_os = "linux")]
fn is_appimage(handle: &AppHandle) -> bool {
    tauri::Manager::env(handle).appimage.is_some()
}

#[cfg(not(target_os = "linux"))]
fn is_appimage(_: &AppHandle) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_that_replace_themselves_install_updates() {
        let built = Path::new("/home/a/foretoken/target/release/foretoken");
        let of = |package, is_appimage| installs(package, is_appimage, built, false);
        assert!(of(Some(BundleType::AppImage), true));
        assert!(!of(Some(BundleType::AppImage), false), "it was unpacked");
        for package in [BundleType::Deb, BundleType::Rpm, BundleType::Nsis] {
            assert!(!of(Some(package), true), "the system installs it");
        }
        assert!(!of(None, false) && !of(None, true), "it was built from source");
        assert!(!of(Some(BundleType::App), false), "it is in no app");
        let app = Path::new("/Applications/Foretoken.app/Contents/MacOS/foretoken");
        assert!(installs(Some(BundleType::App), false, app, false));
        assert!(installs(None, true, built, true), "a test replaces the file that it names");
    }
}
