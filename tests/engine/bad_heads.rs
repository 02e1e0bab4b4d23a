//! Draft heads that are damaged or made for another target: each is rejected with a message and
//! none crashes.

use std::path::Path;

use candle_core::quantized::GgmlDType;
use candle_core::{DType, Device, Tensor};
use foretoken_engine::draft::HeadDrafter;
use foretoken_forward::load;
use foretoken_model::error::{Error, Result};
use foretoken_model::{ModelConfig, ModelSource};
use foretoken_tests::{Flags, RandomHead, family};

fn opened(head: Result<ModelSource>, target: &ModelSource) -> Result<HeadDrafter> {
    let head = head?.for_target(target)?;
    HeadDrafter::new(&head, load(&head, &foretoken_forward::device::Device::Cpu)?, &[])
}

/// Errors for a head for a target with `config` after `change`, in all published formats.
fn refused(config: &ModelConfig, change: impl Fn(&mut RandomHead)) -> Vec<Error> {
    let folder = tempfile::tempdir().unwrap();
    let target = family("llama").folder(folder.path(), DType::F32);
    let mut head = RandomHead::new(config, Flags::default());
    change(&mut head);
    let forms: [fn(&RandomHead, &Path) -> Result<ModelSource>; 2] =
        [RandomHead::eagle, |head, folder| head.gguf(folder, GgmlDType::F32)];
    forms
        .iter()
        .map(|form| {
            opened(form(&head, folder.path()), &target)
                .err()
                .unwrap_or_else(|| panic!("taken: {:?}", head.tensors.keys()))
        })
        .collect()
}

fn config() -> ModelConfig {
    let folder = tempfile::tempdir().unwrap();
    family("llama").folder(folder.path(), DType::F32).config().unwrap().clone()
}

#[track_caller]
fn assert_said(errors: &[Error], said: &str) {
    for error in errors {
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_head_for_another_target_is_rejected() {
    let fitting = config();
    let wider = ModelConfig { hidden: fitting.hidden + 64, ..fitting.clone() };
    let more_tokens = ModelConfig { vocabulary: fitting.vocabulary + 1, ..fitting.clone() };
    for (config, said) in [(wider, "it reads states of 320 numbers"), (more_tokens, "it knows 321 tokens")] {
        let errors = refused(&config, |_| ());
        assert_said(&errors, said);
        assert!(errors.iter().all(|error| matches!(error, Error::OtherTarget(_))), "{errors:?}");
    }
    let deeper = |head: &mut RandomHead| head.entering = vec![1, 2, 40];
    assert_said(&refused(&fitting, deeper), "it reads the states that enter layers [1, 2, 40]");
}

#[test]
fn unknown_or_repeated_tokens_of_a_head_are_rejected() {
    let fitting = config();
    for (row, token, said) in
        [(105, 320, "320"), (105, u32::MAX, "4294967295"), (7, 20, "20 before 20"), (7, 2, "20 before 2")]
    {
        let change = |head: &mut RandomHead| head.guessed[row] = token;
        assert_said(&refused(&fitting, change), said);
    }
}

#[test]
fn a_head_without_a_tensor_is_rejected() {
    let fitting = config();
    let names: Vec<String> = RandomHead::new(&fitting, Flags::default()).tensors.into_keys().collect();
    for name in names.iter().filter(|name| *name != "embed_tokens.weight") {
        let errors = refused(&fitting, |head| drop(head.tensors.remove(name)));
        // The output matrix would be the target's, which has a row for every token.
        let is_output = |error: &Error| matches!(error, Error::OtherTarget(_)) && name == "lm_head.weight";
        assert!(
            errors.iter().all(|error| is_output(error) || matches!(error, Error::BadModel { .. })),
            "{name}: {errors:?}"
        );
    }
}

/// Changes the values and the shape of a tensor.
fn change(head: &mut RandomHead, name: &str, change: impl Fn(&mut Vec<f32>, &mut Vec<usize>)) {
    let tensor = head.tensors.get_mut(name).unwrap();
    let mut shape = tensor.dims().to_vec();
    let mut numbers: Vec<f32> = tensor.flatten_all().unwrap().to_vec1().unwrap();
    change(&mut numbers, &mut shape);
    *tensor = Tensor::from_vec(numbers, shape, &Device::Cpu).unwrap();
}

#[test]
fn tensors_with_wrong_shapes_or_nan_are_rejected() {
    let fitting = config();
    let names: Vec<String> = RandomHead::new(&fitting, Flags::default()).tensors.into_keys().collect();
    for name in &names {
        // A transposed matrix, or a vector that is too short.
        let other = |numbers: &mut Vec<f32>, shape: &mut Vec<usize>| match &mut shape[..] {
            [length] => {
                *length -= 1;
                numbers.truncate(*length);
            }
            shape => shape.reverse(),
        };
        let is_square = name.ends_with("o_proj.weight");
        for error in if is_square { Vec::new() } else { refused(&fitting, |head| change(head, name, other)) }
        {
            assert!(matches!(error, Error::BadModel { .. } | Error::OtherTarget(_)), "{name}: {error}");
        }
        for number in [f32::NAN, f32::INFINITY] {
            let errors = refused(&fitting, |head| change(head, name, |numbers, _| numbers[5] = number));
            assert_said(&errors, "infinity or NaN");
        }
    }
}

#[test]
fn no_too_many_or_unordered_target_layers_are_rejected() {
    for entering in [vec![], (0..9).collect(), vec![2, 1, 0], vec![1, 1, 2], vec![0, 1, 1 << 30]] {
        let errors = refused(&config(), |head| head.entering.clone_from(&entering));
        assert_said(&errors, "1 to 8 layers");
    }
}

#[test]
fn a_head_that_reads_another_number_of_layers_than_it_fuses_is_rejected() {
    for entering in [vec![1], vec![0, 1], (0..8).collect()] {
        let errors = refused(&config(), |head| head.entering.clone_from(&entering));
        assert!(
            errors.iter().all(|error| matches!(error, Error::BadModel { .. } | Error::OtherTarget(_))),
            "{entering:?}: {errors:?}"
        );
    }
}

#[test]
fn norms_of_fused_states_exclude_each_other_and_are_complete() {
    let both = |head: &mut RandomHead| {
        head.flags = Flags { fc_norm: true, norm_before_fc: true, ..head.flags };
    };
    assert_said(&refused(&config(), both), "found both");
    let without_tensors = |head: &mut RandomHead| head.flags.fc_norm = true;
    assert_said(&refused(&config(), without_tensors), "the tensor fc_norm.0.weight");
    let each = Flags { fc_norm: true, ..Flags::default() };
    let one_more = |head: &mut RandomHead| {
        let norm = Tensor::ones(256, DType::F32, &Device::Cpu).unwrap();
        head.flags = each;
        for state in 0..4 {
            head.tensors.insert(format!("fc_norm.{state}.weight"), norm.clone());
        }
    };
    assert_said(&refused(&config(), one_more), "fc_norm.3.weight as well");
    let without_flag = |head: &mut RandomHead| {
        one_more(head);
        head.flags = Flags::default();
    };
    assert_said(&refused(&config(), without_flag), "fc_norm.0.weight as well");
}
