//! Requests that the client wants sent, and what comes back.

use hopline::client::{Outcome, Step, StepId};
use serde_json::{Value, json};

use super::matching::equals;
use super::run::expect;
use super::steps::{Answer, Send};
use super::world::{World, show};

impl World {
    pub(super) fn send(&mut self, send: Send) -> Result<(), String> {
        let (id, command, request) = match self.next()? {
            Step::Send { id, command, request } => (id, command, request),
            step => return Err(format!("expected a send of {}, came {}", send.send, show(&step))),
        };
        self.out.insert(id);
        let base = self.options["base_url"].as_str().unwrap_or_default().trim_end_matches('/').to_owned();
        let line = format!("{} {}", request.method.as_str(), request.url.strip_prefix(&base).unwrap_or(&request.url));
        let body = String::from_utf8(request.body.clone()).map_err(|error| error.to_string())?;
        if line != send.send {
            return Err(format!("expected a send of {}, came {line} {body}", send.send));
        }
        if let Some(name) = &send.r#for
            && self.command(name)? != command
        {
            return Err(format!("expected a send for `{name}`, came one for command {}", command.0));
        }
        for (name, expected) in &send.headers {
            let found: Vec<&str> = request.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect();
            if found != expected.as_deref().into_iter().collect::<Vec<_>>() {
                return Err(format!("expected the header `{name}` {expected:?}, came {found:?}"));
            }
        }
        match (&send.key, request.header("idempotency-key")) {
            (Some(name), Some(key)) => {
                self.keys.bind(name, key)?;
                self.same_key_same_bytes(key, format!("{line} {body}"))?;
            }
            (Some(name), None) => return Err(format!("expected the key `{name}`, came none")),
            (None, Some(key)) => return Err(format!("expected no idempotency key, came {key}")),
            (None, None) => {}
        }
        if let Some(expected) = &send.body {
            let found = serde_json::from_str(&body).map_err(|_| format!("expected the body {expected}, came `{body}`"))?;
            equals(expected, &found, "body")?;
        }
        expect("body", send.body_text, body)?;
        expect("timeout_ms", send.timeout_ms, request.timeout_ms)?;
        expect("max_body", send.max_body, request.max_body)?;
        let within = request.send_before.saturating_sub(self.now.monotonic);
        if let Some(range) = send.within.filter(|range| !range.holds(within)) {
            return Err(format!("expected to be sent within {range:?}, came {within}"));
        }
        self.name_step(send.r#as, id)?;
        send.answer.map_or(Ok(()), |answer| self.answer(id, &answer))
    }

    pub(super) fn answer(&mut self, id: StepId, answer: &Answer) -> Result<(), String> {
        let body = match (&answer.ok, &answer.error, &answer.text, &answer.hex, answer.failed) {
            (Some(data), None, None, None, None) => envelope(json!({ "success": true, "data": data }), answer),
            (None, Some(error), None, None, None) => envelope(json!({ "success": false, "data": null, "error": error }), answer),
            (None, None, Some(text), None, None) => text.repeat(answer.repeat.unwrap_or(1)).into_bytes(),
            (None, None, None, Some(hex), None) => from_hex(hex)?,
            (None, None, None, None, Some(kind)) => {
                let sent = answer.sent.ok_or("`failed` needs `sent`")?;
                return self.resolve(id, Outcome::Failed { kind, sent });
            }
            _ => return Err("an answer has one of `ok`, `error`, `text`, `hex` and `failed`".to_owned()),
        };
        let mut headers = answer.headers.clone();
        if answer.ok.is_some() || answer.error.is_some() {
            headers.entry("content-type".to_owned()).or_insert_with(|| "application/json".to_owned());
        }
        let status = answer.status.or(answer.ok.as_ref().map(|_| 200)).ok_or("an answer other than `ok` needs a `status`")?;
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.resolve(id, Outcome::Response { status, headers: &headers, body: &body, truncated: answer.truncated })
    }
}

fn envelope(mut envelope: Value, answer: &Answer) -> Vec<u8> {
    if let Some(meta) = &answer.meta {
        envelope["meta"] = meta.clone();
    }
    envelope.to_string().into_bytes()
}

/// Bytes from pairs of hexadecimal digits.
pub(super) fn from_hex(hex: &str) -> Result<Vec<u8>, String> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2);
            pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or_else(|| format!("`{hex}` is not hexadecimal"))
        })
        .collect()
}
