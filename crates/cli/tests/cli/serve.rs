//! `serve` on the starter pair, with requests like those of other programs.

#[cfg(unix)]
use std::io::Read;
use std::net::TcpStream;
#[cfg(unix)]
use std::process::Command;
use std::time::{Duration, Instant};

use foretoken_tests::client::{Answer, answer, asked, get, head, post, send};
use foretoken_tests::served::Served;
use foretoken_tests::{RandomEmbedder, endless_model};
use serde_json::{Value, json};

use crate::broken_models::starter_draft;
use crate::program::{PAIR, STORY, json as lines, program, run};

fn start(arguments: &[&str]) -> Served {
    Served::start(program(&[&["serve", "--port", "0"], arguments].concat()))
}

trait Asked {
    fn ask(&self, path: &str, body: &Value) -> Answer;
    fn story(&self, more: Value) -> Value;
    fn streamed(&self, more: Value) -> Vec<String>;
}

impl Asked for Served {
    fn ask(&self, path: &str, body: &Value) -> Answer {
        post(&self.at, &format!("/v1/{path}"), &body.to_string())
    }

    /// The reply to [`STORY`] with the fields of `more`; panics on an error.
    #[track_caller]
    fn story(&self, more: Value) -> Value {
        let answer = self.ask("chat/completions", &story(more));
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }

    /// The deltas of a streamed reply.
    fn streamed(&self, more: Value) -> Vec<String> {
        let mut body = story(more);
        body["stream"] = true.into();
        let answer = self.ask("chat/completions", &body);
        let pieces = answer.events().into_iter().filter(|event| *event != "[DONE]");
        let pieces = pieces.map(|piece| serde_json::from_str::<Value>(piece).unwrap());
        pieces
            .filter_map(|piece| piece["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
            .collect()
    }
}

fn story(more: Value) -> Value {
    let mut body = json!({ "messages": [{ "role": "user", "content": STORY }] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn text(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap()
}

/// The output of `generate`.
fn generated(more: &[&str]) -> Value {
    lines(&[&["generate"][..], &PAIR, &["--prompt", STORY], more].concat()).pop().unwrap()
}

#[test]
fn embeddings_are_computed_by_their_own_model_and_refused_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let model = RandomEmbedder::new("bert").write_folder(folder.path());
    let served = start(&["--embedding-model", model.to_str().unwrap()]);
    let answer = served.ask("embeddings", &json!({ "input": ["the fox", "a hen"], "model": "bert" }));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer = answer.json();
    assert_eq!(answer["data"].as_array().unwrap().len(), 2);
    assert_eq!(answer["data"][1]["embedding"].as_array().unwrap().len(), 32);
    assert_eq!(answer["usage"]["prompt_tokens"], 8);
    let refused = |served: &Served, body: Value| {
        let answer = served.ask("embeddings", &body);
        (answer.status, answer.json()["error"]["message"].as_str().unwrap().to_owned())
    };
    let (status, message) = refused(&served, json!({ "input": "the fox", "model": "starter" }));
    assert_eq!(
        (status, message.as_str()),
        (404, "The model 'starter' is not loaded. Use 'bert', or leave 'model' out.")
    );
    let (status, message) = refused(&served, json!({ "input": "fox ".repeat(200) }));
    assert_eq!(
        (status, message.contains("input[0]: expected texts of at most 130 tokens")),
        (400, true),
        "{message}"
    );
    assert_eq!(get(&served.at, "/v1/embeddings").status, 405);
    drop(served);
    let (status, message) = refused(&start(&[]), json!({ "input": "the fox" }));
    assert_eq!((status, message.contains("There is no embedding model")), (404, true), "{message}");
    let output = run(&["serve", "--port", "0", "--embedding-model", "starter"]);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("is no embedding model that Foretoken runs: found llama"), "{}", output.err);
}

#[test]
fn a_reply_equals_that_of_generate_and_its_usage_counts_drafts() {
    let served = start(&[&PAIR[..], &["--draft-length", "4"]].concat());
    let done = generated(&["--max-tokens", "60"]);
    let whole = served.story(json!({ "temperature": 0, "max_tokens": 60 }));
    assert_eq!(text(&whole), done["text"]);
    assert_eq!(
        served.streamed(json!({ "temperature": 0, "max_tokens": 60 })).concat(),
        done["text"].as_str().unwrap()
    );
    let usage = &whole["usage"];
    assert_eq!(
        (&usage["prompt_tokens"], &whole["choices"][0]["finish_reason"]),
        (&done["prompt_tokens"], &json!("length"))
    );
    assert_eq!(usage["completion_tokens"], 60);
    let number = |name: &str| usage[name].as_u64().unwrap();
    assert!(number("drafted") >= number("judged") && number("judged") >= number("accepted"), "{usage}");
    assert!(number("accepted") > 0, "{usage}");
    assert_eq!(whole["model"], "starter");
}

#[test]
fn a_message_is_the_reply_of_a_chat_completion_and_its_tokens_are_counted() {
    let served = start(&PAIR);
    let asked = json!({ "temperature": 0, "max_tokens": 40, "top_p": 1 });
    let whole = served.story(asked.clone());
    let message = served.ask("messages", &story(asked.clone())).json();
    assert_eq!(message["content"], json!([{ "type": "text", "text": text(&whole) }]));
    assert_eq!(
        (&message["stop_reason"], &message["usage"]["output_tokens"]),
        (&json!("max_tokens"), &json!(40))
    );
    let usage = &message["usage"];
    let read = usage["input_tokens"].as_u64().unwrap() + usage["cache_read_input_tokens"].as_u64().unwrap();
    let counted = served.ask("messages/count_tokens", &story(json!({}))).json();
    assert_eq!((counted["input_tokens"].as_u64(), read), (whole["usage"]["prompt_tokens"].as_u64(), read));
    assert_eq!(counted["input_tokens"], read);
    // A prompt that is too long for a reply has a number of tokens, too.
    let long = json!({ "messages": [{ "role": "user", "content": "a story ".repeat(20_000) }] });
    assert!(served.ask("messages/count_tokens", &long).json()["input_tokens"].as_u64().unwrap() > 10_000);
    let stop = &text(&whole)[20..30];
    let stopped = served
        .ask("messages", &story(json!({ "temperature": 0, "max_tokens": 40, "stop_sequences": [stop] })));
    assert_eq!(
        (&stopped.json()["stop_reason"], &stopped.json()["stop_sequence"]),
        (&json!("stop_sequence"), &json!(stop))
    );
}

/// Texts of an answer's choices.
fn texts(answer: &Value) -> Vec<&str> {
    let choices = answer["choices"].as_array().unwrap();
    choices.iter().map(|choice| choice["message"]["content"].as_str().unwrap()).collect()
}

#[test]
fn several_replies_have_seeds_of_their_own_and_read_the_prompt_once() {
    let asked = |n: u32| json!({ "temperature": 0.9, "seed": 7, "max_tokens": 30, "n": n });
    let [drafted, plain] = [&PAIR[..], &["--target", "starter", "--draft", "none"]].map(|pair| {
        let served = start(pair);
        let several = served.story(asked(3));
        assert_eq!(texts(&several)[0], text(&served.story(asked(1))));
        assert_eq!(texts(&served.story(asked(3))), texts(&several));
        several
    });
    let all = texts(&drafted);
    assert_eq!(all, texts(&plain), "drafts change nothing");
    assert!(all.len() == 3 && all[0] != all[1] && all[1] != all[2] && all[0] != all[2], "{all:?}");
    let usage = &drafted["usage"];
    let timings = &drafted["timings"];
    assert_eq!((&usage["completion_tokens"], &timings["predicted_n"]), (&json!(90), &json!(90)));
    assert!(usage["prompt_tokens"].as_u64().unwrap() < 90 && usage["accepted"].as_u64() > Some(0), "{usage}");
}

#[test]
fn log_probabilities_are_the_same_with_drafts_without_and_at_any_temperature() {
    let asked = |more: Value| {
        let mut asked = json!({ "max_tokens": 20, "logprobs": true, "top_logprobs": 3, "seed": 7 });
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        asked
    };
    let found = |served: &Served, more: Value| served.story(asked(more))["choices"][0].clone();
    let [drafted, plain] = [&PAIR[..], &["--target", "starter", "--draft", "none"]].map(start);
    for more in [json!({ "temperature": 0 }), json!({ "temperature": 1.2, "presence_penalty": 1.5 })] {
        let [one, other] = [&drafted, &plain].map(|served| found(served, more.clone()));
        assert_eq!(one, other);
        let content = one["logprobs"]["content"].as_array().unwrap();
        let joined: String = content.iter().map(|token| token["token"].as_str().unwrap()).collect();
        assert_eq!(joined.trim_start(), one["message"]["content"].as_str().unwrap().trim_start());
        assert_eq!(content.len(), 20);
        for token in content {
            let top = token["top_logprobs"].as_array().unwrap();
            let logprobs: Vec<f64> = top.iter().map(|one| one["logprob"].as_f64().unwrap()).collect();
            assert!(logprobs.len() == 3 && logprobs.is_sorted_by(|left, right| left >= right), "{token}");
            assert!(logprobs.iter().map(|logprob| logprob.exp()).sum::<f64>() <= 1.0 + 1e-6, "{token}");
            assert!(token["logprob"].as_f64().unwrap() <= logprobs[0], "{token}");
        }
    }
    let greedy = found(&drafted, json!({ "temperature": 0 }));
    let first = &greedy["logprobs"]["content"][0];
    assert_eq!(first["token"], first["top_logprobs"][0]["token"]);
}

#[test]
fn penalties_and_biases_change_a_reply_as_those_of_generate_do() {
    let served = start(&PAIR);
    let asked = json!({
        "temperature": 0, "max_tokens": 40, "presence_penalty": 1.5, "frequency_penalty": 0.5,
        "logit_bias": { "300": 4, "301": -100 },
    });
    let flags = ["--presence-penalty", "1.5", "--frequency-penalty", "0.5"];
    let biases = ["--logit-bias", "300=4", "--logit-bias", "301=-100", "--max-tokens", "40"];
    let done = generated(&[&flags[..], &biases].concat());
    assert_eq!(text(&served.story(asked)), done["text"]);
    assert_ne!(done["text"], generated(&["--max-tokens", "40"])["text"]);
    for (more, message) in [
        (json!({ "presence_penalty": 2.5 }), "presence penalty: expected -2 to 2"),
        (json!({ "logit_bias": { "7": 101 } }), "logit bias: expected -100 to 100"),
        (
            json!({ "logit_bias": { "4000000000": 1 } }),
            "logit bias: expected tokens of the model's vocabulary",
        ),
    ] {
        let refused = served.ask("chat/completions", &story(more));
        assert!(refused.status == 400 && refused.message().starts_with(message), "{}", refused.body);
    }
}

#[test]
fn the_reply_depends_on_the_seed() {
    let served = start(&PAIR);
    let seeded = |seed: u32| json!({ "temperature": 0.9, "seed": seed, "max_tokens": 40 });
    let [first, again, other] = [7, 7, 8].map(|seed| text(&served.story(seeded(seed))).to_owned());
    assert_eq!(first, again);
    assert_ne!(first, other);
    let done = generated(&["--temperature", "0.9", "--seed", "7", "--max-tokens", "40"]);
    assert_eq!(first, done["text"]);
}

#[test]
fn a_stop_string_ends_a_reply_and_no_part_of_it_is_sent() {
    let served = start(&PAIR);
    let done = generated(&["--max-tokens", "60"]);
    let all = done["text"].as_str().unwrap();
    // Different lengths, so that stop strings begin and end within tokens and between them.
    for (at, length) in [(30, 3), (41, 7), (52, 12), (60, 25)] {
        let stop = &all[at..at + length];
        let ends = all.find(stop).unwrap();
        let asked = json!({ "temperature": 0, "max_tokens": 60, "stop": ["never written", stop] });
        let whole = served.story(asked.clone());
        assert_eq!(
            (text(&whole), &whole["choices"][0]["finish_reason"]),
            (&all[..ends], &json!("stop")),
            "{stop:?}"
        );
        assert_eq!(served.streamed(asked).concat(), all[..ends], "{stop:?}");
    }
}

#[test]
fn a_completion_equals_that_of_generate_with_raw() {
    let served = start(&PAIR);
    let prompt = "Once upon a time";
    let raw = ["generate", "--target", "starter", "--raw", "--prompt", prompt, "--max-tokens", "20"];
    let done = lines(&raw).pop().unwrap();
    let asked = json!({ "prompt": prompt, "temperature": 0, "max_tokens": 20 });
    assert_eq!(served.ask("completions", &asked).json()["choices"][0]["text"], done["text"]);
    let short = served.ask("completions", &json!({ "prompt": prompt, "ignore_eos": true })).json();
    assert_eq!(short["usage"]["completion_tokens"], 16);
}

#[test]
fn a_reply_has_the_response_format_or_says_why_not() {
    let served = start(&PAIR);
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string", "maxLength": 9 }, "kind": { "enum": ["fox", "cat"] } },
        "required": ["name", "kind"],
        "additionalProperties": false,
    });
    let format = |schema: &Value| {
        let named = json!({ "name": "animal", "strict": true, "schema": schema });
        json!({ "type": "json_schema", "json_schema": named })
    };
    let asked = json!({ "response_format": format(&schema), "max_tokens": 60, "temperature": 0 });
    let whole = served.story(asked.clone());
    let value: Value = serde_json::from_str(text(&whole)).unwrap();
    assert!(value["name"].is_string() && ["fox", "cat"].contains(&value["kind"].as_str().unwrap()));
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    assert_eq!(served.streamed(asked).concat(), text(&whole));
    let object = served.story(json!({ "response_format": { "type": "json_object" }, "max_tokens": 300 }));
    let is_whole = object["choices"][0]["finish_reason"] == "stop";
    assert_eq!(serde_json::from_str::<Value>(text(&object)).is_ok_and(|value| value.is_object()), is_whole);
    for (schema, problem) in [
        (json!({ "type": "nothing" }), "the JSON schema cannot be used: "),
        (json!(false), "the JSON schema cannot be used: it accepts nothing."),
        (json!({ "$ref": "https://example.com/schema" }), "the JSON schema cannot be used: "),
    ] {
        for stream in [false, true] {
            let body = story(json!({ "response_format": format(&schema), "stream": stream }));
            let refused = served.ask("chat/completions", &body);
            assert_eq!(refused.status, 400);
            assert_eq!(refused.json()["error"]["param"], "response_format");
            assert!(refused.message().starts_with(problem), "{}", refused.body);
        }
    }
    let both = story(json!({ "response_format": { "type": "json_object" }, "ignore_eos": true }));
    assert!(served.ask("chat/completions", &both).message().starts_with("ignore_eos: expected false"));
}

#[test]
fn an_engine_error_is_reported_and_the_next_request_is_answered() {
    let served = start(&PAIR);
    let long =
        json!({ "messages": [{ "role": "user", "content": "a story ".repeat(3000) }], "stream": true });
    let mut cases = vec![(long, "the prompt is too long: ", json!("context_length_exceeded"))];
    for (more, message) in [
        (json!({ "temperature": 9 }), "temperature: expected 0 to 5, found 9."),
        (json!({ "top_p": 0 }), "top-p: expected more than 0"),
        (json!({ "min_p": 1 }), "min-p: expected at least 0"),
    ] {
        cases.push((story(more), message, Value::Null));
    }
    for (body, message, code) in cases {
        let refused = served.ask("chat/completions", &body);
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &code));
        assert!(refused.message().starts_with(message), "{}", refused.body);
    }
    assert!(!text(&served.story(json!({ "max_tokens": 4 }))).is_empty());
}

#[test]
fn with_tool_first_the_reply_to_a_question_begins_with_a_call_and_those_after_results_do_not() {
    let served = start(&[&PAIR[..], &["--tool-first"]].concat());
    let parameters = json!({
        "type": "object", "properties": { "at": { "enum": ["sky", "sea"] } }, "required": ["at"],
        "additionalProperties": false,
    });
    let tools = json!([{ "type": "function", "function": { "name": "look", "parameters": parameters } }]);
    let call = json!({ "id": "c", "type": "function", "function": { "name": "look", "arguments": "{\"at\": \"sea\"}" } });
    let question = json!({ "role": "user", "content": "What is there?" });
    let called = json!({ "role": "assistant", "tool_calls": [call] });
    let result = json!({ "role": "tool", "tool_call_id": "c", "content": "A ship." });
    let calls = |messages: &[&Value], choice: &str| {
        let asked = json!({
            "messages": messages, "tools": tools, "tool_choice": choice, "temperature": 0, "max_tokens": 60,
        });
        served.ask("chat/completions", &asked).json()["choices"][0]["finish_reason"] == "tool_calls"
    };
    assert!(calls(&[&question], "auto") && !calls(&[&question], "none"));
    assert!(!calls(&[&question, &called, &result], "auto"));
    assert!(!calls(&[&question, &called, &result, &question], "auto"), "a remark of an agent");
    let answer = json!({ "role": "assistant", "content": "A ship." });
    assert!(calls(&[&question, &called, &result, &answer, &question], "auto"));
}

#[test]
fn a_reply_stops_when_the_client_disconnects() {
    let served = start(&PAIR);
    let endless = story(json!({ "stream": true, "ignore_eos": true, "temperature": 0 })).to_string();
    let whole = Instant::now();
    served.story(json!({ "ignore_eos": true, "temperature": 0 }));
    let whole = whole.elapsed();
    let streams: Vec<TcpStream> =
        (0..20).map(|_| asked(&served.at, "/v1/chat/completions", &endless)).collect();
    drop(streams);
    let next = Instant::now();
    served.story(json!({ "max_tokens": 1 }));
    assert!(next.elapsed() < 5 * whole + Duration::from_secs(1), "{:?} of {whole:?}", next.elapsed());
}

#[test]
fn a_model_is_named_after_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("My Model.gguf");
    std::fs::copy(starter_draft(), &path).unwrap();
    let served = start(&["--target", path.to_str().unwrap()]);
    assert_eq!(served.story(json!({ "max_tokens": 2 }))["model"], "My Model");
}

#[test]
fn a_server_that_cannot_start_prints_the_reason() {
    let taken = start(&PAIR);
    let port = taken.at.rsplit_once(':').unwrap().1;
    for (arguments, message) in [
        (
            &["--host", "0.0.0.0", "--port", "0"][..],
            "Other computers can reach 0.0.0.0, so the server needs a key",
        ),
        (&["--port", port][..], "is in use. Choose another port"),
        (&["--host", "no such host"][..], "'no such host' is not an address of this computer."),
        (&["--key", "with space"][..], "The server's key can contain letters"),
    ] {
        let refused = run(&[&["serve"][..], &PAIR, arguments].concat());
        assert_eq!((refused.code, refused.out.as_str()), (1, ""), "{}", refused.err);
        assert!(refused.err.contains(message), "{}", refused.err);
    }
    assert_eq!(run(&["serve", "--port", "65536"]).code, 2);
}

#[test]
fn the_key_from_the_environment_is_required() {
    let mut command = program(&[&["serve", "--port", "0"][..], &PAIR].concat());
    command.env("FORETOKEN_SERVER_KEY", "secret");
    let served = Served::start(command);
    assert_eq!(served.ask("chat/completions", &story(json!({}))).status, 401);
}

/// A client's conversation, which begins with a long page of its own.
struct Talk {
    key: &'static str,
    messages: Vec<Value>,
}

impl Talk {
    fn new(key: &'static str, subject: &str) -> Self {
        let page: String = (0..250).map(|line| format!("{subject} {line}. ")).collect();
        Self { key, messages: vec![json!({ "role": "user", "content": page })] }
    }

    /// Tokens of the prompt, and how many of them were not run again. Then the talk goes on.
    fn usage(&mut self, served: &Served) -> (u64, u64) {
        let body = json!({ "messages": self.messages, "max_tokens": 1, "temperature": 0 }).to_string();
        let headers = format!("Authorization: Bearer {}\r\n", self.key);
        let request = head("POST", "/v1/chat/completions", &headers, body.len()) + &body;
        let usage = &answer(send(&served.at, &request)).json()["usage"];
        for (role, content) in [("assistant", "Yes."), ("user", "And then?")] {
            self.messages.push(json!({ "role": role, "content": content }));
        }
        let count = |value: &Value| value.as_u64().unwrap();
        (count(&usage["prompt_tokens"]), count(&usage["prompt_tokens_details"]["cached_tokens"]))
    }
}

#[test]
fn two_conversations_in_turns_are_read_once_and_nobody_elses_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let model = endless_model(folder.path());
    let served = start(&["--target", model.path().to_str().unwrap(), "--draft", "ngram"]);
    let mut talks = [Talk::new("agent", "A fox"), Talk::new("agent", "An owl")];
    for turn in 0..4 {
        for talk in &mut talks {
            let (prompt, cached) = talk.usage(&served);
            assert!((2000..4000).contains(&prompt), "{prompt} tokens");
            // Later only "Yes.", "And then?" and what the template puts around them is run.
            assert!(
                if turn == 0 { cached < 10 } else { prompt - cached < 40 },
                "{cached} of {prompt}, turn {turn}"
            );
        }
    }
    let mut same = Talk { key: "another", messages: talks[0].messages.clone() };
    assert_eq!(same.usage(&served).1, 0);
    let (prompt, cached) = talks[0].usage(&served);
    assert!(prompt - cached < 40, "{cached} of {prompt}, after another client");
}

#[test]
fn without_memory_for_contexts_only_the_last_request_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let model = endless_model(folder.path());
    let served =
        start(&["--target", model.path().to_str().unwrap(), "--draft", "none", "--context-memory", "0"]);
    let mut talks = [Talk::new("agent", "A fox"), Talk::new("agent", "An owl")];
    for _ in 0..2 {
        for talk in &mut talks {
            assert!(talk.usage(&served).1 < 10);
        }
    }
    let (prompt, cached) = talks[1].usage(&served);
    assert!(prompt - cached < 40, "{cached} of {prompt}");
}

#[test]
fn a_request_can_name_another_model_on_this_computer() {
    let served = start(&[&PAIR[..], &["--all-models", "--idle-minutes", "600"]].concat());
    let listed = get(&served.at, "/v1/models").json();
    let names: Vec<_> = listed["data"].as_array().unwrap().iter().map(|model| model["id"].clone()).collect();
    assert_eq!(names[0], "starter");
    assert!(names.contains(&json!("starter-draft")) && !names.contains(&json!("smollm2-head")), "{names:?}");
    // Its tokens are counted without loading it.
    let other = json!({ "model": "starter-draft", "temperature": 0, "max_tokens": 20 });
    let counted = served.ask("messages/count_tokens", &story(other.clone())).json();
    let starter = served.story(json!({ "temperature": 0, "max_tokens": 20 }));
    let reply = served.story(other);
    assert_eq!(reply["model"], "starter-draft");
    assert_eq!(reply["usage"]["prompt_tokens"], counted["input_tokens"]);
    let alone = ["--target", "starter-draft", "--draft", "none", "--prompt", STORY, "--max-tokens", "20"];
    let done = lines(&[&["generate"][..], &alone].concat()).pop().unwrap();
    assert_eq!(text(&reply), done["text"]);
    // The target comes back with its own draft.
    let again = served.story(json!({ "model": "starter", "temperature": 0, "max_tokens": 20 }));
    assert_eq!(text(&again), text(&starter));
    let unknown = served.ask("chat/completions", &story(json!({ "model": "no such model" })));
    assert_eq!(unknown.status, 404, "{}", unknown.body);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_program_after_the_running_reply() {
    let mut served = start(&PAIR);
    let body = story(json!({ "max_tokens": 30, "temperature": 0, "stream": true })).to_string();
    let mut stream = asked(&served.at, "/v1/chat/completions", &body);
    let mut first = [0; 16];
    stream.read_exact(&mut first).unwrap();
    Command::new("kill").args(["-INT", &served.child.id().to_string()]).status().unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("data: [DONE]\n\n"), "{answer}");
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}
