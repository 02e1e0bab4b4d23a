//! The known forms of calls.

use super::arguments::{ArgumentForm, Tags};
use super::form::{CallForm, Place};

impl CallForm {
    /// Hermes, Qwen 2.5 and 3, Granite 4, and models whose template knows no tools.
    pub const HERMES: Self = Self {
        begin: "",
        open: "<tool_call>",
        before_name: "\n{\"name\": \"",
        before_arguments: "\", \"arguments\": ",
        arguments: ArgumentForm::Json,
        close: "}\n</tool_call>",
        between: Some("\n"),
        end: "",
        place: Place::Anywhere,
    };

    /// Llama 3.1 and later.
    pub const LLAMA: Self = Self {
        open: "{\"name\": \"",
        before_name: "",
        before_arguments: "\", \"parameters\": ",
        close: "}",
        between: None,
        place: Place::First,
        ..Self::HERMES
    };

    /// Qwen3-Coder and Qwen 3.5.
    pub const QWEN_CODER: Self = Self {
        before_name: "\n<function=",
        before_arguments: ">\n",
        arguments: ArgumentForm::Tags(Tags { open: "<parameter=", named: ">\n", close: "\n</parameter>\n" }),
        close: "</function>\n</tool_call>",
        ..Self::HERMES
    };

    /// GLM-4.5 and 4.6.
    pub const GLM: Self = Self {
        before_name: "",
        before_arguments: "\n",
        arguments: ArgumentForm::Tags(Tags {
            open: "<arg_key>",
            named: "</arg_key>\n<arg_value>",
            close: "</arg_value>\n",
        }),
        close: "</tool_call>",
        ..Self::HERMES
    };

    /// GLM-4.7.
    pub const GLM_4_7: Self = Self {
        before_arguments: "",
        arguments: ArgumentForm::Tags(Tags {
            open: "<arg_key>",
            named: "</arg_key><arg_value>",
            close: "</arg_value>",
        }),
        between: Some(""),
        ..Self::GLM
    };

    /// Gemma 4.
    pub const GEMMA: Self = Self {
        open: "<|tool_call>",
        before_name: "call:",
        before_arguments: "",
        arguments: ArgumentForm::Notation { quote: "<|\"|>" },
        close: "<tool_call|>",
        between: Some(""),
        ..Self::HERMES
    };

    /// gpt-oss. The text is what [`crate::channels`] makes of the header; a call ends its reply.
    pub const HARMONY: Self = Self {
        open: "<|channel|>commentary to=functions.",
        before_name: "",
        before_arguments: "<|message|>",
        close: "",
        between: None,
        place: Place::Channel,
        ..Self::HERMES
    };

    /// Mistral Nemo.
    pub const NEMO: Self = Self {
        begin: "[TOOL_CALLS][",
        open: "",
        before_name: "{\"name\": \"",
        close: ", \"id\": \"#########\"}",
        between: Some(", "),
        end: "]",
        ..Self::HERMES
    };

    /// Mistral Small 3.2.
    pub const MISTRAL_IDS: Self = Self { before_arguments: "[CALL_ID]#########[ARGS]", ..Self::MISTRAL };

    /// Ministral 3, Magistral and Devstral.
    pub const MISTRAL: Self = Self {
        open: "[TOOL_CALLS]",
        before_name: "",
        before_arguments: "[ARGS]",
        close: "",
        between: Some(""),
        ..Self::HERMES
    };

    /// DeepSeek V3.1.
    pub const DEEPSEEK: Self = Self {
        begin: "<｜tool▁calls▁begin｜>",
        open: "<｜tool▁call▁begin｜>",
        before_name: "",
        before_arguments: "<｜tool▁sep｜>",
        close: "<｜tool▁call▁end｜>",
        between: Some(""),
        end: "<｜tool▁calls▁end｜>",
        ..Self::HERMES
    };

    /// LFM2 and LFM2.5.
    pub const LFM: Self = Self {
        begin: "<|tool_call_start|>[",
        open: "",
        before_name: "",
        before_arguments: "(",
        arguments: ArgumentForm::Python,
        close: ")",
        between: Some(", "),
        end: "]<|tool_call_end|>",
        place: Place::Anywhere,
    };

    /// Phi-4-mini.
    pub const PHI: Self = Self {
        begin: "<|tool_call|>[",
        open: "",
        before_name: "{\"name\": \"",
        close: "}",
        between: Some(", "),
        end: "]<|/tool_call|>",
        ..Self::HERMES
    };

    /// Functionary 3.1.
    pub const FUNCTIONARY: Self = Self {
        open: "<function=",
        before_name: "",
        before_arguments: ">",
        close: "</function>",
        between: Some(""),
        ..Self::HERMES
    };

    /// Known forms.
    pub const ALL: [Self; 14] = [
        Self::HERMES,
        Self::LLAMA,
        Self::QWEN_CODER,
        Self::GLM,
        Self::GLM_4_7,
        Self::GEMMA,
        Self::HARMONY,
        Self::NEMO,
        Self::MISTRAL_IDS,
        Self::MISTRAL,
        Self::DEEPSEEK,
        Self::LFM,
        Self::PHI,
        Self::FUNCTIONARY,
    ];

    /// Returns the form of a model whose template lists tools and writes no calls, by a text of the
    /// template. Functionary's writes them only if arguments are texts.
    pub(crate) fn hinted(template: &str) -> Option<Self> {
        let hints = [
            ("List of tools: ", Self::LFM),
            ("+ '<|tool|>' + ", Self::PHI),
            ("<function=example_function_name>", Self::FUNCTIONARY),
        ];
        hints.into_iter().find(|(text, _)| template.contains(text)).map(|(_, form)| form)
    }
}
