//! Devices in the settings. They are looked for only when the list is opened, because that wakes
//! GPUs: first their names, then the probe result of each GPU, which has to be opened.

use foretoken_engine::session::Hardware;
use foretoken_forward::device::{DeviceChoice, DeviceLabel, DeviceRemark, GpuName, Opened, Problem};

use crate::ipc::{DeviceOption, Settings};
use crate::observable::Observable;

/// Returns the devices known without looking: the chosen ones, and those that need no look.
pub fn unlooked(settings: &Settings) -> Vec<DeviceOption> {
    let automatic = option(DeviceChoice::Auto, Ok(label(&DeviceChoice::Auto)));
    let mut options = vec![automatic, option(DeviceChoice::Cpu, Ok(Opened::cpu().label))];
    for choice in chosen(settings) {
        if options.iter().all(|option| option.choice != *choice) {
            options.push(option(choice.clone(), Ok(label(choice))));
        }
    }
    options
}

/// Looks for devices and lists them in `status`.
pub fn look(hardware: &dyn Hardware, settings: &Settings, status: &Observable) {
    let mut options: Vec<_> =
        hardware.survey().into_iter().map(|(choice, found)| option(choice, found)).collect();
    for choice in chosen(settings) {
        if options.iter().all(|option| option.choice != *choice) {
            options.push(option(choice.clone(), absent(choice)));
        }
    }
    // Results of an earlier look are shown until there are new ones.
    let known = status.get().devices;
    let shown = |option: &DeviceOption| {
        let known = known.iter().find(|known| known.choice == option.choice && option.problem.is_none());
        known.unwrap_or(option).clone()
    };
    let mut shown: Vec<_> = options.iter().map(shown).collect();
    status.update(|status| status.devices.clone_from(&shown));
    for (place, mut option) in options.into_iter().enumerate() {
        if matches!(option.choice, DeviceChoice::Gpu(_)) && option.problem.is_none() {
            open(hardware, &mut option);
        }
        shown[place] = option;
        status.update(|status| status.devices.clone_from(&shown));
    }
}

/// Returns the choices for target and draft.
fn chosen(settings: &Settings) -> [&DeviceChoice; 2] {
    [&settings.device, &settings.draft_device]
}

/// Returns the entry of a chosen device that was not found; a GPU by number may be one of the
/// others.
fn absent(choice: &DeviceChoice) -> Result<DeviceLabel, Problem> {
    match choice {
        DeviceChoice::Gpu(GpuName::Called(name)) => Err(Problem::Gone(name.clone())),
        other => Ok(label(other)),
    }
}

/// Returns the label of a device that was not looked for.
fn label(choice: &DeviceChoice) -> DeviceLabel {
    match choice {
        DeviceChoice::Auto => DeviceLabel::named("Automatic"),
        DeviceChoice::Metal => DeviceLabel::named("Metal"),
        DeviceChoice::Gpu(GpuName::Called(name)) => DeviceLabel::of_gpu(name),
        DeviceChoice::Gpu(GpuName::Number(number)) => DeviceLabel::named(format!("GPU {number}")),
        other => DeviceLabel::named(other.to_string().to_uppercase()),
    }
}

fn option(choice: DeviceChoice, found: Result<DeviceLabel, Problem>) -> DeviceOption {
    let problem = found.as_ref().err().cloned();
    let label = found.unwrap_or_else(|_| label(&choice));
    DeviceOption { choice, label, problem }
}

/// Opens a GPU to get its probe result, or the reason why it cannot be used.
fn open(hardware: &dyn Hardware, option: &mut DeviceOption) {
    let Opened { gpu, label, remark, .. } = hardware.open(&option.choice);
    match gpu {
        Some(_) => option.label = label,
        None => option.problem = remark.and_then(DeviceRemark::problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_gpu_is_listed_before_devices_were_looked_for() {
        let device = DeviceChoice::Gpu(GpuName::Called("Vulkan, AMD Radeon 780M".to_owned()));
        let settings = Settings { device, ..Settings::default() };
        let names: Vec<_> = unlooked(&settings).into_iter().map(|option| option.label.name).collect();
        assert_eq!(names, ["Automatic", "CPU", "AMD Radeon 780M"]);
    }
}
