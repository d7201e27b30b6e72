// SPDX-License-Identifier: MIT
//! Conversations to tokens, and tokens to messages.
use crate::support::*;
use tnk::chat::*;
use tnk::{Code, Datum, Stop};

const SOURCE: &str = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}\
                      {% if add_generation_prompt %}<assistant>{% endif %}{{ note }}";
const CONFIG: &str = "{\"eos_token\": \"<end>\"}";

fn template() -> Template {
    Template::open(Some(SOURCE), Some(CONFIG)).unwrap()
}

fn talk() -> Chat {
    let mut chat = Chat::new();
    for (role, text) in [("user", "one"), ("assistant", "two"), ("user", "three")] {
        chat.add(role, text).unwrap();
    }
    chat
}

fn text_of(ids: &[i32]) -> String {
    Tokenizer::bytes().decode(ids).unwrap()
}

#[test]
fn conversations_are_rendered() {
    let (template, mut chat) = (template(), talk());
    let prompt = "<user>one<end><assistant>two<end><user>three<end><assistant>";
    let plain = EncodeOptions::new();
    assert_eq!(template.render(&chat, &plain).unwrap(), prompt);
    let bare = EncodeOptions::new().generation_prompt(false);
    assert_eq!(template.clone().render(&chat, &bare).unwrap() + "<assistant>", prompt);
    chat.set("note", "\"!\"").unwrap();
    assert_eq!(template.render(&chat, &plain).unwrap(), format!("{}!", prompt));
    assert_eq!((template.stops(), chat.len(), chat.is_empty()), (vec!["<end>".into()], 3, false));
    assert_eq!(chat.answers(), vec![1]);
    assert_eq!(format!("{:?} {:?}", chat, Tokenizer::bytes()), "Chat { len: 3 } Tokenizer");
    let text = Template::plain().unwrap().render(&talk(), &plain).unwrap();
    assert!(text.contains("User: one") && text.ends_with("Assistant:"), "{:?}", text);
}

#[test]
fn conversations_are_encoded() {
    let (template, tokenizer) = (template(), Tokenizer::bytes());
    let prompt = template.encode(&tokenizer, &talk(), &EncodeOptions::new()).unwrap();
    assert!(text_of(&prompt.ids).ends_with("three<end><assistant>"));
    assert!(prompt.weights.iter().all(|weight| *weight == 0.0));
    let trained = |train| {
        let options = EncodeOptions::new().train_on(train);
        let found = template.encode(&tokenizer, &talk(), &options)?;
        let pairs = found.ids.iter().zip(&found.weights);
        let ids: Vec<i32> = pairs.filter(|pair| *pair.1 > 0.0).map(|pair| *pair.0).collect();
        Ok::<String, tnk::Error>(text_of(&ids))
    };
    assert_eq!(trained(Train::AllAnswers).unwrap(), "two<end>");
    assert_eq!(trained(Train::Roles(vec!["assistant".into()])).unwrap(), "two<end>");
    assert_eq!(trained(Train::ByMessage(vec![0.0, 0.5, 0.0])).unwrap(), "two<end>");
    assert!(trained(Train::Everything).unwrap().starts_with("<user>one"));
    assert_eq!(trained(Train::Nothing).unwrap(), "");
    assert_eq!(trained(Train::LastAnswer).unwrap_err().code(), Code::EINVAL);
    let answer = template.encode_answer(&tokenizer, &talk(), 1, &EncodeOptions::new()).unwrap();
    assert_eq!(text_of(&answer.ids), "<user>one<end><assistant>two<end>");
    assert_eq!(answer.ids.len(), answer.messages.len());
    let ids = tokens("<user>one<end><assistant>sampled");
    let next = template.encode_next(&tokenizer, &ids, &talk(), 2, &EncodeOptions::new()).unwrap();
    assert_eq!(text_of(&next.ids), "<end><user>three<end><assistant>");
}

/// A model is trained with an answer, and samples until the template's end.
#[test]
fn conversations_are_trained_and_sampled() {
    let server = Server::new(&[]);
    let training = train(&server.service());
    let (template, tokenizer) = (template(), Tokenizer::bytes());
    let answer = template.encode_answer(&tokenizer, &talk(), 1, &EncodeOptions::new()).unwrap();
    let weighted = training.forward(vec![answer.datum()], "cross_entropy").wait().unwrap();
    let whole = training.forward(vec![Datum::next_token(&answer.ids)], "cross_entropy");
    assert!(weighted.loss().unwrap() < whole.wait().unwrap().loss().unwrap());
    let sampler = training.save_weights_and_get_sampling().wait().unwrap();
    let prompt = template.encode(&tokenizer, &talk(), &EncodeOptions::new()).unwrap();
    let samples = sampler.sample(&prompt.ids, params().stop(Stop::Texts(template.stops())));
    let samples = samples.wait().unwrap();
    let mut parser = Parser::new(Family::Plain, &tokenizer, None).unwrap();
    parser.prompt(&prompt.ids, Some(&template.stops())).unwrap();
    parser.feed(samples.first().tokens()).unwrap();
    assert!(parser.finish().unwrap().1.contains("assistant"));
}

#[test]
fn answers_are_parsed() {
    let tokenizer = Tokenizer::bytes();
    let mut chat = Chat::new();
    let tools =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"go\"}], \"tools\": [{\"type\": \
                 \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": \
                 \"object\", \"properties\": {\"x\": {\"type\": \"integer\"}}}}}]}";
    chat.read(Shape::OpenAi, tools).unwrap();
    assert!(chat.write(Shape::OpenAi).unwrap().contains("\"integer\""));
    let mut parser = Parser::new(Family::Hermes, &tokenizer, Some(&chat)).unwrap();
    drop((tokenizer, chat));
    let text = "<think>hm</think>well<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1}}\
                </tool_call>";
    // Byte by byte, in a thread.
    let deltas = std::thread::spawn(move || {
        let mut all = Vec::new();
        for id in tokens(text) {
            all.extend(parser.feed(&[id]).unwrap());
        }
        let (rest, message) = parser.finish().unwrap();
        all.extend(rest);
        (all, message)
    });
    let (deltas, message) = deltas.join().unwrap();
    let (mut thoughts, mut content, mut arguments) = (String::new(), String::new(), String::new());
    let mut calls = Vec::new();
    for delta in deltas {
        match delta {
            Delta::Thinking(text) => thoughts += &text,
            Delta::Content(text) => content += &text,
            Delta::CallBegin { call, name, id } => calls.push((call, name, !id.is_empty())),
            Delta::Arguments { call: 0, text } => arguments += &text,
            Delta::CallEnd { call } => assert_eq!(call, 0),
            other => panic!("{:?}", other),
        }
    }
    assert_eq!((thoughts.as_str(), content.as_str()), ("hm", "well"));
    assert_eq!(calls, vec![(0, "f".to_string(), true)]);
    assert!(arguments.contains("\"x\"") && message.contains("\"tool_calls\""), "{}", message);
}

#[test]
fn conversations_refuse_by_name() {
    let (tokenizer, plain) = (Tokenizer::bytes(), EncodeOptions::new());
    let mut chat = Chat::new();
    let raising = Template::open(Some("{{ raise_exception('only pairs') }}"), None).unwrap();
    let mut fed = Parser::new(Family::Plain, &tokenizer, None).unwrap();
    fed.feed(&[97]).unwrap();
    let table: Vec<(&str, Code, tnk::Result<()>)> = vec![
        ("NUL", Code::EINVAL, chat.add("us\0er", "x")),
        ("NUL", Code::EINVAL, chat.add("user", "a\0b")),
        ("", Code::EINVAL, chat.read(Shape::Template, "[{")),
        ("", Code::EINVAL, chat.read(Shape::Anthropic, "{\"messages\": [1]}")),
        ("messages", Code::EINVAL, chat.set("messages", "[]")),
        ("", Code::EINVAL, chat.set("x", "{")),
        ("", Code::EINVAL, Template::open(Some("{% if"), None).map(drop)),
        ("", Code::EPROTO, Template::open(Some("x"), Some("{")).map(drop)),
        ("/nowhere", Code::ENOTFOUND, Template::load("/nowhere").map(drop)),
        ("only pairs", Code::EINVAL, raising.render(&talk(), &plain).map(drop)),
        ("only pairs", Code::EINVAL, raising.encode(&tokenizer, &talk(), &plain).map(drop)),
        ("", Code::EINVAL, template().encode_answer(&tokenizer, &talk(), 0, &plain).map(drop)),
        ("", Code::EINVAL, fed.prompt(&[1], None)),
        ("/nowhere", Code::ENOTFOUND, Tokenizer::load("/nowhere").map(drop)),
        ("", Code::EPROTO, Tokenizer::from_bytes(b"{").map(drop)),
    ];
    for (i, (words, code, result)) in table.into_iter().enumerate() {
        let error = result.unwrap_err();
        assert_eq!(error.code(), code, "{}: {:?}", i, error);
        assert!(error.message().contains(words) && !error.message().is_empty(), "{:?}", error);
    }
    assert!(chat.is_empty());
    assert!(renderer("none").is_none());
    let known = renderer("qwen3").unwrap();
    assert!(!known.stops.is_empty(), "{:?}", known);
}

#[test]
fn tokenizers_are_loaded() {
    // A byte that is no visible character of Latin-1 is written as a character after it.
    let shown = |byte: &u32| matches!(*byte, 33..=126 | 161..=172 | 174..=255);
    let mut hidden = 256..;
    let mut letter = |byte| if shown(&byte) { byte } else { hidden.next().unwrap() };
    let vocabulary: Vec<String> =
        (0..256).map(|byte| format!("\"\\u{:04x}\": {}", letter(byte), byte)).collect();
    let level = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \
                 \"use_regex\": true}";
    let file = format!(
        "{{\"version\": \"1.0\", \"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": {}, \
         \"post_processor\": null, \"decoder\": {}, \"model\": {{\"type\": \"BPE\", \
         \"merges\": [\"a b\"], \"vocab\": {{{}, \"ab\": 256}}}}}}",
        level,
        level,
        vocabulary.join(", ")
    );
    let tokenizer = Tokenizer::from_bytes(file.as_bytes()).unwrap();
    let other = tokenizer.clone();
    drop(tokenizer);
    assert_eq!(other.encode("abc").unwrap(), vec![256, 99]);
    assert_eq!(other.decode(&[256, 99]).unwrap(), "abc");
    assert_eq!(Tokenizer::bytes().encode("ab").unwrap(), vec![97, 98]);
    assert_eq!(Tokenizer::bytes().clone().decode(&[]).unwrap(), "");
}
