//! Prints what Mesa's compiler for AMD makes of the GPU kernels, one line each:
//! `make kernel-statistics FAMILY=navi31 KERNELS="Product(Q4K"`. Arguments: the family of GPUs,
//! then parts of the names of kernels, or files with WGSL; all kernels without any.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[cfg(target_os = "linux")]
fn main() {
    use std::time::Instant;

    use foretoken_forward::gpu::shaders;
    use foretoken_tests::kernel_compiler::KernelCompiler;

    let mut arguments = std::env::args().skip(1);
    let family = arguments.next().unwrap_or_else(|| "navi21".to_owned());
    // SAFETY: no other thread was started.
    let Some(compiler) = (unsafe { KernelCompiler::open(&family) }) else {
        println!("no driver for {family}: VK_DRIVER_FILES must name Mesa's radeon_icd");
        return;
    };
    println!("{}", compiler.name);
    let (files, parts): (Vec<String>, Vec<String>) = arguments.partition(|name| name.ends_with(".wgsl"));
    let print = |name: &str, source: &str| {
        let start = Instant::now();
        let found = compiler.compile(name, source);
        let found: Vec<String> = found.iter().map(|(name, number)| format!("{name} {number}")).collect();
        println!("{name}: {:.2} s, {}", start.elapsed().as_secs_f64(), found.join(", "));
    };
    for file in &files {
        print(file, &std::fs::read_to_string(file).unwrap());
    }
    let is_wanted = |name: &str| match parts.as_slice() {
        [] => files.is_empty(),
        parts => parts.iter().any(|part| name.contains(part.as_str())),
    };
    for (name, source) in shaders().filter(|(name, _)| name.ends_with("Own") && is_wanted(name)) {
        print(&name, &source);
        if let Some(folder) = std::env::var_os("FORETOKEN_WGSL") {
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}.wgsl")), &source).unwrap();
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("Mesa's compilers are on Linux");
}
