//! Devices in the settings. They are looked for only when the list is opened, because that wakes
//! GPUs: first their names, then the probe result of each GPU, which has to be opened.

use foretoken_engine::session::Hardware;
use foretoken_forward::device::{CPU_INSTEAD, DeviceChoice, GpuName, Opened, Problem};

use crate::ipc::{DeviceOption, Settings};
use crate::observable::Observable;

/// Returns the devices known without looking: the chosen ones, and those that need no look.
pub fn unlooked(settings: &Settings) -> Vec<DeviceOption> {
    let automatic = (DeviceChoice::Auto, Ok(words(&DeviceChoice::Auto)));
    let cpu = (DeviceChoice::Cpu, Ok(Opened::cpu().label));
    let mut options: Vec<_> = [automatic, cpu].into_iter().map(option).collect();
    for choice in chosen(settings) {
        if options.iter().all(|option| option.choice != *choice) {
            options.push(option((choice.clone(), Ok(words(choice)))));
        }
    }
    options
}

/// Looks for devices and lists them in `status`.
pub fn look(hardware: &dyn Hardware, settings: &Settings, status: &Observable) {
    let mut options: Vec<_> = hardware.survey().into_iter().map(option).collect();
    for choice in chosen(settings) {
        if options.iter().all(|option| option.choice != *choice) {
            options.push(option((choice.clone(), absent(choice))));
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
fn absent(choice: &DeviceChoice) -> Result<String, Problem> {
    match choice {
        DeviceChoice::Gpu(GpuName::Called(name)) => Err(Problem::Gone(name.clone())),
        other => Ok(words(other)),
    }
}

fn words(choice: &DeviceChoice) -> String {
    match choice {
        DeviceChoice::Auto => "Automatic".to_owned(),
        DeviceChoice::Metal => "Metal".to_owned(),
        DeviceChoice::Gpu(GpuName::Called(name)) => name.clone(),
        DeviceChoice::Gpu(GpuName::Number(number)) => format!("GPU {number}"),
        other => other.to_string().to_uppercase(),
    }
}

fn option((choice, found): (DeviceChoice, Result<String, Problem>)) -> DeviceOption {
    let problem = found.as_ref().err().map(ToString::to_string);
    let label = found.unwrap_or_else(|_| words(&choice));
    let mut parts = label.split(", ").map(str::to_owned);
    let first = parts.next().unwrap_or_default();
    let (name, details) = match (&choice, label.split_once(", ")) {
        // The backend comes before the name, which may contain commas.
        (DeviceChoice::Gpu(_), Some((_, name))) => {
            let plays = name.strip_suffix(", software");
            let software = plays.map(|_| "software".to_owned());
            (plays.unwrap_or(name).to_owned(), [Some(first), software].into_iter().flatten().collect())
        }
        _ => (first, parts.collect()),
    };
    DeviceOption { choice, name, details, problem }
}

/// Opens a GPU to get its probe result, or the reason why it cannot be used.
fn open(hardware: &dyn Hardware, option: &mut DeviceOption) {
    let Opened { gpu, label, remark, .. } = hardware.open(&option.choice);
    let listed = words(&option.choice);
    match gpu {
        Some(_) => {
            let guarantees = label.strip_prefix(&listed).unwrap_or_default();
            let guarantees = guarantees.split(", ").filter(|part| !part.is_empty()).map(str::to_owned);
            option.details.extend(guarantees);
        }
        None => option.problem = remark.map(|remark| remark.trim_end_matches(CPU_INSTEAD).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(name: &str) -> DeviceChoice {
        DeviceChoice::Gpu(GpuName::Called(name.to_owned()))
    }

    fn listed(choice: DeviceChoice, label: &str) -> (String, Vec<String>) {
        let option = option((choice, Ok(label.to_owned())));
        (option.name, option.details)
    }

    #[test]
    fn a_gpu_is_listed_by_its_name_and_other_devices_by_their_kind() {
        let parts = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let name = "Vulkan, llvmpipe (LLVM 15.0.6, 256 bits), software";
        assert_eq!(
            listed(gpu(name), name),
            ("llvmpipe (LLVM 15.0.6, 256 bits)".to_owned(), parts(&["Vulkan", "software"]))
        );
        assert_eq!(
            listed(DeviceChoice::Cpu, "CPU, 2 threads, AVX-512"),
            ("CPU".to_owned(), parts(&["2 threads", "AVX-512"]))
        );
    }

    #[test]
    fn a_chosen_gpu_is_listed_before_devices_were_looked_for() {
        let settings = Settings { device: gpu("Vulkan, AMD Radeon 780M"), ..Settings::default() };
        let names: Vec<_> = unlooked(&settings).into_iter().map(|option| option.name).collect();
        assert_eq!(names, ["Automatic", "CPU", "AMD Radeon 780M"]);
    }
}
