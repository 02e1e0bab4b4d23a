//! The GPU kernels under a compiler of real GPUs: Mesa's for AMD, which needs no GPU. No kernel may
//! keep numbers in memory for lack of registers, nor take so many registers or so much workgroup
//! memory that few workgroups run at once. `make kernel-statistics` prints the figures.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

use std::path::Path;

use foretoken_forward::gpu::shaders;
use foretoken_tests::kernel_compiler::{KernelCompiler, Statistics};

/// Most vector registers of a thread.
const REGISTERS: u64 = 128;

/// Most bytes of workgroup memory, which every device has.
const WORKGROUP_BYTES: u64 = 16 << 10;

/// Versions of Mesa from which RDNA 3 and RDNA 4 have these names; it aborts on others.
const NAVI31: (u32, u32) = (23, 1);
const GFX1201: (u32, u32) = (25, 0);

/// Families of AMD's GPUs that a version of Mesa knows beside RDNA 2, the first of which is RDNA 3.
fn families(version: (u32, u32)) -> Vec<&'static str> {
    let rdna3 = if version < NAVI31 { "gfx1100" } else { "navi31" };
    [rdna3].into_iter().chain((version >= GFX1201).then_some("gfx1201")).collect()
}

/// File that describes Mesa's driver for AMD, unless `VK_DRIVER_FILES` names one.
fn find_driver() -> Option<String> {
    if let Ok(named) = std::env::var("VK_DRIVER_FILES") {
        return Some(named).filter(|named| named.contains("radeon"));
    }
    let folders = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];
    let names = ["radeon_icd.json", "radeon_icd.x86_64.json"];
    let files = folders.iter().flat_map(|folder| names.map(|name| Path::new(folder).join(name)));
    files.filter(|file| file.exists()).map(|file| file.display().to_string()).next()
}

fn check(name: &str, found: &Statistics) {
    let number = |statistic: &str| {
        *found.get(statistic).unwrap_or_else(|| panic!("{name}: the driver does not report {statistic}"))
    };
    let spilled = [number("Spilled VGPRs"), number("Spilled SGPRs"), number("Scratch size")];
    assert_eq!(spilled, [0; 3], "{name} does without registers");
    assert!(number("VGPRs") <= REGISTERS, "{name} takes {} registers", number("VGPRs"));
    let shared = number("LDS size");
    assert!(shared <= WORKGROUP_BYTES, "{name} takes {shared} bytes of workgroup memory");
}

/// Compiles all kernels for a device.
fn check_all(compiler: &KernelCompiler) {
    for (name, source) in shaders().filter(|(name, _)| name.ends_with("Own")) {
        let name = format!("{name}, {}", compiler.name);
        check(&name, &compiler.compile(&name, &source));
    }
}

/// This is the only test of its program, since it sets environment variables.
#[test]
fn every_kernel_fits_the_registers_and_workgroup_memory_of_amds_gpus() {
    let Some(driver) = find_driver() else {
        eprintln!("not tested: Mesa's driver for AMD is missing (mesa-vulkan-drivers)");
        return;
    };
    // SAFETY: the thread that started this one only waits.
    let open = |family: &str| unsafe {
        std::env::set_var("VK_DRIVER_FILES", &driver);
        KernelCompiler::open(family)
    };
    let oldest = open("navi21").expect("Mesa's driver for AMD does not open");
    check_all(&oldest);
    for family in families(oldest.version) {
        check_all(&open(family).unwrap());
    }
}
