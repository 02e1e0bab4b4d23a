//! Compilers of real GPUs, without the GPUs: Mesa's driver for AMD compiles for an invented device
//! (`RADV_FORCE_FAMILY`) and reports what became of a kernel.

use std::collections::BTreeMap;
use std::ffi::CStr;

use ash::{khr, vk};
use naga::back::spv;
use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{GlobalVariable, ShaderStage};

/// Bytes of immediates that kernels may use.
const IMMEDIATE_BYTES: u32 = 64;

/// Statistics of a compiled kernel by the driver's names, such as `VGPRs`.
pub type Statistics = BTreeMap<String, u64>;

/// A driver that was opened for one kind of GPU.
pub struct KernelCompiler {
    /// Name that the driver gives to the device.
    pub name: String,
    /// Major and minor version of the driver.
    pub version: (u32, u32),
    // Keeps the Vulkan loader in memory.
    _entry: ash::Entry,
    instance: ash::Instance,
    device: ash::Device,
    statistics: khr::pipeline_executable_properties::Device,
}

impl KernelCompiler {
    /// Opens AMD's driver of Mesa for a family of GPUs, such as `navi21`. `VK_DRIVER_FILES` must
    /// name this driver. Returns `None` if there is no Vulkan loader or no such driver.
    ///
    /// # Safety
    /// No other thread may use environment variables meanwhile.
    pub unsafe fn open(family: &str) -> Option<Self> {
        // SAFETY: the caller's promise.
        unsafe { std::env::set_var("RADV_FORCE_FAMILY", family) };
        // SAFETY: all calls below follow the Vulkan specification: handles are used while their
        // parents exist, structures live as long as the calls that read them, and the driver is
        // trusted.
        unsafe { Self::create() }
    }

    unsafe fn create() -> Option<Self> {
        // SAFETY: see `open`.
        unsafe {
            let entry = ash::Entry::load().ok()?;
            let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
            let instance = vk::InstanceCreateInfo::default().application_info(&application);
            let instance = entry.create_instance(&instance, None).ok()?;
            let physical = *instance.enumerate_physical_devices().ok()?.first()?;
            let properties = instance.get_physical_device_properties(physical);
            let name = properties.device_name_as_c_str().unwrap_or_default().to_string_lossy().into_owned();
            let version = properties.driver_version;
            let version = (vk::api_version_major(version), vk::api_version_minor(version));
            let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
            let extensions = [
                khr::pipeline_executable_properties::NAME,
                khr::shader_integer_dot_product::NAME,
                khr::zero_initialize_workgroup_memory::NAME,
            ];
            let extensions = extensions.map(CStr::as_ptr);
            let mut statistics = vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default()
                .pipeline_executable_info(true);
            let mut dots =
                vk::PhysicalDeviceShaderIntegerDotProductFeatures::default().shader_integer_dot_product(true);
            let mut zeros = vk::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures::default()
                .shader_zero_initialize_workgroup_memory(true);
            let mut sizes =
                vk::PhysicalDeviceVulkan12Features::default().shader_int8(true).vulkan_memory_model(true);
            let create = vk::DeviceCreateInfo::default()
                .queue_create_infos(&queues)
                .enabled_extension_names(&extensions)
                .push_next(&mut statistics)
                .push_next(&mut dots)
                .push_next(&mut zeros)
                .push_next(&mut sizes);
            let device = instance.create_device(physical, &create, None).ok()?;
            let statistics = khr::pipeline_executable_properties::Device::new(&instance, &device);
            Some(Self { name, version, _entry: entry, instance, device, statistics })
        }
    }

    /// Compiles a kernel in WGSL and returns its statistics.
    ///
    /// # Panics
    /// If the source is wrong or the driver rejects it.
    pub fn compile(&self, name: &str, source: &str) -> Statistics {
        let (words, bindings, entry) = to_spirv(name, source);
        let entry = std::ffi::CString::new(entry).unwrap();
        // SAFETY: see `open`; naga wrote the SPIR-V from a validated module, and the layout has a
        // buffer for each of its bindings.
        unsafe {
            let module = vk::ShaderModuleCreateInfo::default().code(&words);
            let module = self.device.create_shader_module(&module, None).unwrap();
            let bindings: Vec<_> = (0..bindings).map(binding).collect();
            let set = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
            let sets = [self.device.create_descriptor_set_layout(&set, None).unwrap()];
            let immediates = [vk::PushConstantRange {
                stage_flags: vk::ShaderStageFlags::COMPUTE,
                offset: 0,
                size: IMMEDIATE_BYTES,
            }];
            let layout =
                vk::PipelineLayoutCreateInfo::default().set_layouts(&sets).push_constant_ranges(&immediates);
            let layout = self.device.create_pipeline_layout(&layout, None).unwrap();
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(&entry);
            let create = vk::ComputePipelineCreateInfo::default()
                .flags(vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR)
                .stage(stage)
                .layout(layout);
            let made = self.device.create_compute_pipelines(vk::PipelineCache::null(), &[create], None);
            let pipeline = made.unwrap_or_else(|error| panic!("{name} on {}: {error:?}", self.name))[0];
            let found = self.statistics_of(pipeline);
            self.device.destroy_pipeline(pipeline, None);
            self.device.destroy_pipeline_layout(layout, None);
            self.device.destroy_descriptor_set_layout(sets[0], None);
            self.device.destroy_shader_module(module, None);
            found
        }
    }

    unsafe fn statistics_of(&self, pipeline: vk::Pipeline) -> Statistics {
        let executable = vk::PipelineExecutableInfoKHR::default().pipeline(pipeline);
        // SAFETY: see `open`; the format says which member of the value is there.
        unsafe {
            let found = self.statistics.get_pipeline_executable_statistics(&executable).unwrap();
            found.iter().map(|statistic| (text(&statistic.name), number(statistic))).collect()
        }
    }
}

impl Drop for KernelCompiler {
    fn drop(&mut self) {
        // SAFETY: nothing made from them is left.
        unsafe {
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}

fn binding(number: u32) -> vk::DescriptorSetLayoutBinding<'static> {
    vk::DescriptorSetLayoutBinding::default()
        .binding(number)
        .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
        .descriptor_count(1)
        .stage_flags(vk::ShaderStageFlags::COMPUTE)
}

unsafe fn number(statistic: &vk::PipelineExecutableStatisticKHR<'_>) -> u64 {
    // SAFETY: the format says which member is there.
    unsafe {
        match statistic.format {
            vk::PipelineExecutableStatisticFormatKHR::FLOAT64 => statistic.value.f64 as u64,
            vk::PipelineExecutableStatisticFormatKHR::BOOL32 => u64::from(statistic.value.b32),
            _ => statistic.value.u64,
        }
    }
}

fn text(name: &[std::ffi::c_char]) -> String {
    // SAFETY: Vulkan ends its names with a zero.
    unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned()
}

/// SPIR-V as wgpu hands it to a driver, number of buffers, and name of the entry point.
fn to_spirv(name: &str, source: &str) -> (Vec<u32>, u32, String) {
    let module = naga::front::wgsl::parse_str(source);
    let module = module.unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(source)));
    let info = Validator::new(ValidationFlags::all(), Capabilities::all()).validate(&module);
    let info = info.unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(source)));
    let entry = module.entry_points[0].name.clone();
    // A kernel may leave out a buffer of its layout.
    let binding = |(_, variable): (_, &GlobalVariable)| variable.binding.as_ref().map(|at| at.binding + 1);
    let bindings = module.global_variables.iter().filter_map(binding).max().unwrap_or(0);
    let capabilities = [
        spv::Capability::Shader,
        spv::Capability::Int8,
        spv::Capability::DotProductInputAllKHR,
        spv::Capability::DotProductInput4x8BitKHR,
        spv::Capability::DotProductInput4x8BitPackedKHR,
        spv::Capability::DotProductKHR,
        spv::Capability::GroupNonUniform,
        spv::Capability::GroupNonUniformBallot,
        spv::Capability::GroupNonUniformShuffle,
    ];
    let options = spv::Options {
        lang_version: (1, 5),
        capabilities: Some(capabilities.into_iter().collect()),
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::Native,
        force_loop_bounding: false,
        ..spv::Options::default()
    };
    let pipeline = spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: entry.clone() };
    let words = spv::write_vec(&module, &info, &options, Some(&pipeline));
    (words.unwrap_or_else(|error| panic!("{name}: {error}")), bindings, entry)
}
