//! Shaders translated for each kind of driver: SPIR-V for Vulkan, MSL for Metal, HLSL for DX12.
//! Needs no GPU; a device's arithmetic is probed when it is opened.

use foretoken_forward::gpu::shaders;
use naga::back::{hlsl, msl, spv};
use naga::valid::{
    Capabilities, FunctionInfo, ModuleInfo, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator,
};
use naga::{
    BinaryOperator, Expression, Function, Handle, MathFunction, Module, ScalarKind, ShaderStage, TypeInner,
    UnaryOperator,
};

/// Parses and validates a shader. It may use only what every device has plus immediates, subgroups
/// where threads share inputs, and 64-bit numbers where its arithmetic emulates them.
fn read(name: &str, source: &str) -> (Module, ModuleInfo) {
    let module = naga::front::wgsl::parse_str(source);
    let module = module.unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(source)));
    let mut able = Capabilities::IMMEDIATES;
    if name.ends_with("Emulated") {
        able |= Capabilities::FLOAT64 | Capabilities::SHADER_INT64;
    }
    if name.contains("ThirtyTwo") || name.contains("SixtyFour") {
        able |= Capabilities::SUBGROUP;
    }
    let mut validator = Validator::new(ValidationFlags::all(), able);
    validator.subgroup_stages(ShaderStages::COMPUTE).subgroup_operations(SubgroupOperationSet::all());
    let info = validator.validate(&module);
    let info = info.unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(source)));
    (module, info)
}

fn entry(module: &Module) -> String {
    module.entry_points[0].name.clone()
}

fn to_spirv(module: &Module, info: &ModuleInfo) -> Result<usize, String> {
    let options = spv::Options { lang_version: (1, 3), ..spv::Options::default() };
    let of = spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: entry(module) };
    spv::write_vec(module, info, &options, Some(&of))
        .map(|words| words.len())
        .map_err(|error| error.to_string())
}

fn to_metal(module: &Module, info: &ModuleInfo) -> Result<usize, String> {
    let options = msl::Options { lang_version: (2, 4), ..msl::Options::default() };
    let of = msl::PipelineOptions {
        entry_point: Some((ShaderStage::Compute, entry(module))),
        ..msl::PipelineOptions::default()
    };
    let (text, translated) =
        msl::write_string(module, info, &options, &of).map_err(|error| error.to_string())?;
    for name in translated.entry_point_names {
        name.map_err(|error| error.to_string())?;
    }
    Ok(text.len())
}

fn to_dx12(module: &Module, info: &ModuleInfo, model: hlsl::ShaderModel) -> Result<usize, String> {
    let immediates = hlsl::BindTarget { space: 1, ..hlsl::BindTarget::default() };
    let options = hlsl::Options {
        shader_model: model,
        immediates_target: Some(immediates),
        ..hlsl::Options::default()
    };
    let of = hlsl::PipelineOptions { entry_point: Some((ShaderStage::Compute, entry(module))) };
    let mut text = String::new();
    let written = hlsl::Writer::new(&mut text, &options, &of).write(module, info, None);
    for name in written.map_err(|error| error.to_string())?.entry_point_names {
        name.map_err(|error| error.to_string())?;
    }
    Ok(text.len())
}

#[test]
fn every_shader_translates_to_spir_v_msl_and_hlsl() {
    for (name, source) in shaders() {
        let (module, info) = read(&name, &source);
        let mut written = vec![("SPIR-V", to_spirv(&module, &info))];
        // Metal has no 64-bit numbers, and HLSL 5.1 devices need not have them: those devices round
        // once without emulation.
        if !name.ends_with("Emulated") {
            written.extend([
                ("MSL", to_metal(&module, &info)),
                ("HLSL 5.1", to_dx12(&module, &info, hlsl::ShaderModel::V5_1)),
                ("HLSL 6.4", to_dx12(&module, &info, hlsl::ShaderModel::V6_4)),
            ]);
        }
        for (to, written) in written {
            match written {
                Ok(size) => assert!(size > 100, "{name} is empty in {to}"),
                Err(error) => panic!("{name} in {to}: {error}"),
            }
        }
    }
}

/// Number of sums of a function with an unrounded product as a term: a driver may fuse the two.
fn bare_sums(module: &Module, function: &Function, info: &FunctionInfo) -> usize {
    let is_float = |handle: Handle<Expression>| {
        let kind = info[handle].ty.inner_with(&module.types).scalar_kind();
        kind == Some(ScalarKind::Float)
    };
    let product = |handle: Handle<Expression>| match function.expressions[handle] {
        Expression::Binary { op: BinaryOperator::Multiply, .. } => is_float(handle),
        Expression::Unary { op: UnaryOperator::Negate, expr } => {
            matches!(function.expressions[expr], Expression::Binary { op: BinaryOperator::Multiply, .. })
        }
        _ => false,
    };
    let bare = |expression: &Expression| match *expression {
        Expression::Binary { op: BinaryOperator::Add | BinaryOperator::Subtract, left, right } => {
            product(left) || product(right)
        }
        _ => false,
    };
    function.expressions.iter().filter(|(_, expression)| bare(expression)).count()
}

#[test]
fn no_shader_adds_an_unrounded_product() {
    for (name, source) in shaders().filter(|(name, _)| !name.ends_with("Emulated")) {
        let (module, info) = read(&name, &source);
        for (handle, function) in module.functions.iter() {
            let bare = bare_sums(&module, function, &info[handle]);
            assert_eq!(bare, 0, "{name}, {}", function.name.as_deref().unwrap_or_default());
        }
        for (index, point) in module.entry_points.iter().enumerate() {
            let bare = bare_sums(&module, &point.function, info.get_entry_point(index));
            assert_eq!(bare, 0, "{name}, {}", point.name);
        }
    }
}

/// Returns whether an expression adds floats in an order that the driver chooses: a dot product, or
/// a product with a matrix. Sums of subgroups and atomic ones are not valid in [`read`].
fn leaves_order_open(module: &Module, info: &FunctionInfo, expression: &Expression) -> bool {
    let inner = |handle: Handle<Expression>| info[handle].ty.inner_with(&module.types);
    let is_matrix = |handle| matches!(inner(handle), TypeInner::Matrix { .. });
    match *expression {
        Expression::Math { fun: MathFunction::Dot, arg, .. } => {
            inner(arg).scalar_kind() == Some(ScalarKind::Float)
        }
        Expression::Binary { op: BinaryOperator::Multiply, left, right } => {
            is_matrix(left) || is_matrix(right)
        }
        _ => false,
    }
}

#[test]
fn no_shader_leaves_the_order_of_a_sum_to_the_driver() {
    for (name, source) in shaders().filter(|(name, _)| !name.ends_with("Emulated")) {
        let (module, info) = read(&name, &source);
        let own = module.functions.iter().map(|(handle, function)| (function, &info[handle]));
        let points = module.entry_points.iter().enumerate();
        let points = points.map(|(index, point)| (&point.function, info.get_entry_point(index)));
        for (function, info) in own.chain(points) {
            let open = function
                .expressions
                .iter()
                .filter(|(_, expression)| leaves_order_open(&module, info, expression));
            assert_eq!(open.count(), 0, "{name}, {}", function.name.as_deref().unwrap_or_default());
        }
    }
}

#[test]
fn sums_in_an_order_of_the_drivers_are_found() {
    let found = |body: &str| {
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>;
            @compute @workgroup_size(1) fn test() {{ {body} }}"
        );
        let (module, info) = read("a test", &source);
        let (function, info) = (&module.entry_points[0].function, info.get_entry_point(0));
        let open = |(_, expression): (_, &Expression)| leaves_order_open(&module, info, expression);
        function.expressions.iter().any(open)
    };
    assert!(found("x[0].x = dot(x[0], x[1]);"));
    assert!(found("x[0] = mat4x4<f32>(x[0], x[1], x[2], x[3]) * x[4];"));
    assert!(!found("x[0].x = x[0].x * x[1].x;"));
    assert!(!found("x[0].x = f32(dot(vec4<i32>(x[0]), vec4<i32>(x[1])));"));
}
