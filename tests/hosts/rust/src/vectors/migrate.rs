//! Rewrites scripts that were written for saves and restores as scripts for the store's six calls. Only steps of the store are changed,
//! and the words of what people do about records: all else that a script expects must come as before, or the case is named.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::format::{Case, File};
use super::run;
use super::world::Came;

/// What became of the cases of a file.
#[derive(Debug, Default)]
pub struct Migrated {
    /// The file's new text.
    pub text: String,
    /// How many cases pass as they are written now.
    pub passed: usize,
    /// The names of those that do not, and why.
    pub failed: Vec<String>,
}

/// An object with its members as they are written, in their order.
struct Written {
    members: Vec<(String, Box<RawValue>)>,
    is_changed: bool,
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Written;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Written, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Written { members, is_changed: false })
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl Written {
    fn read(text: &str) -> Result<Written, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, value)| value.get())
    }

    fn set(&mut self, name: &str, value: Value) {
        let Ok(value) = serde_json::value::to_raw_value(&value) else { return };
        self.is_changed = true;
        match self.members.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.members.push((name.to_owned(), value)),
        }
    }

    fn value(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.get(name)?).ok()
    }

    /// The same record in the words of the format's second version.
    fn set_changed(&mut self, name: &str, mut value: Value) {
        let before = value.clone();
        let version = value.get("hopline").and_then(Value::as_u64);
        if let (Some(version), Some(members)) = (version, value.as_object_mut()) {
            members.insert("hopline".to_owned(), json!(version + 1));
        }
        if let Some(call) = value.get_mut("call").and_then(Value::as_object_mut)
            && let Some(ms) = call.remove("age_ms")
        {
            call.insert("age".to_owned(), json!({ "ms": ms }));
        }
        if value != before {
            self.set(name, value);
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        self.is_changed = true;
        self.members.iter_mut().filter(|(name, _)| name == from).for_each(|(name, _)| to.clone_into(name));
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.members.iter().position(|(known, _)| known == name)?;
        serde_json::from_str(self.members.remove(at).1.get()).ok()
    }

    fn line(&self) -> String {
        let members: Vec<String> = self.members.iter().map(|(name, value)| format!("\"{name}\": {}", value.get())).collect();
        format!("{{{}}}", members.join(", "))
    }
}

/// Rewrites the cases of one file.
pub fn migrate(text: &str) -> Result<Migrated, String> {
    let file = Written::read(text)?;
    let cases: Vec<Box<RawValue>> = serde_json::from_str(file.get("cases").unwrap_or("[]")).map_err(|error| error.to_string())?;
    let mut migrated = Migrated::default();
    let mut written = Vec::new();
    for case in cases {
        let case = Written::read(case.get())?;
        let steps: Vec<Box<RawValue>> = serde_json::from_str(case.get("script").unwrap_or("[]")).map_err(|error| error.to_string())?;
        let steps: Vec<String> = steps.iter().map(|step| step.get().to_owned()).collect();
        let mut steps = words(&steps)?;
        match fit(&case, &mut steps) {
            Ok(()) => migrated.passed += 1,
            Err(error) => migrated.failed.push(format!("{}: {error}", case.get("name").unwrap_or_default())),
        }
        written.push(layout(&case, &steps));
    }
    let head = |name: &str| format!("  \"{name}\": {},\n", file.get(name).unwrap_or("\"\""));
    migrated.text = format!("{{\n{}{}  \"cases\": [\n{}\n  ]\n}}\n", head("about"), head("source"), written.join(",\n"));
    File::read(&migrated.text)?;
    Ok(migrated)
}

/// What was resumed together: its command, the commands that it begins, and the results that are taken so far.
struct Together {
    name: String,
    parts: Vec<String>,
    takes: Vec<(String, String)>,
}

/// The words of a script, without a look at what the client does.
fn words(script: &[String]) -> Result<Vec<String>, String> {
    let (mut steps, mut made): (Vec<String>, usize) = (Vec::new(), 0);
    let mut resumed: Option<Together> = None;
    for text in script {
        let mut step = Written::read(text)?;
        let mut command = || {
            made += 1;
            format!("command {made}")
        };
        let has = |step: &Written, name: &str| step.get(name).is_some();
        let is_planted = has(&step, "put") && (has(&step, "text") || has(&step, "change"));
        let is_answered = step.get("answer") == Some("\"saved\"");
        let done = step.get("done").is_none_or(|done| done == "true");
        if is_planted {
            step.rename("put", "plant");
        } else if has(&step, "save") {
            step.rename("save", "put");
        }
        if is_answered {
            step.set("answer", json!("done"));
        }
        if let Some(value) = step.value("has") {
            // The day's total has no record any more.
            if value.get("spent").is_some() && is_answered {
                continue;
            }
            step.set_changed("has", value);
        }
        if let Some(value) = step.value("change") {
            step.set_changed("change", value);
        }
        if has(&step, "restore") {
            let is_same = step.get("same_account") == Some("true");
            if let Some(crash) = steps.iter_mut().rev().find(|step| step.starts_with("{\"crash\"")).filter(|_| is_same) {
                let mut value: Value = serde_json::from_str(crash).map_err(|error| error.to_string())?;
                value["crash"]["client"]["same_account"] = json!(true);
                *crash = format!("{{\"crash\": {}}}", value["crash"]);
            }
            continue;
        }
        if has(&step, "settle") && !has(&step, "happened") {
            let (name, happened) = (command(), step.get("as") == Some("\"happened\""));
            step.take("done");
            step.set("as", json!(name));
            step.set("happened", json!(happened));
            if !happened {
                step.set("early", json!(true));
            }
            steps.extend([step.line(), format!("{{\"complete\": \"{name}\", \"ok\": {{\"raw\": {done}}}}}")]);
        } else if has(&step, "forget") && !has(&step, "as") {
            let name = command();
            step.take("done");
            step.set("as", json!(name));
            steps.extend([step.line(), format!("{{\"complete\": \"{name}\", \"ok\": {{\"raw\": {done}}}}}")]);
        } else if has(&step, "resume_intent") && has(&step, "nothing") {
            let name = command();
            step.take("nothing");
            step.set("as", json!(name));
            steps.extend([step.line(), format!("{{\"complete\": \"{name}\", \"ok\": {{\"raw_text\": \"null\"}}}}")]);
        } else if let (Some(parts), true) = (step.take("resume_all"), text.contains("\"resume_all\": [")) {
            let name = command();
            steps.push(format!("{{\"resume_all\": \"{name}\"}}"));
            let parts = serde_json::from_value::<Vec<String>>(parts).map_err(|error| error.to_string())?;
            resumed = Some(Together { name, parts, takes: Vec::new() });
        } else if let Some(Together { name, parts, takes }) = resumed
            .as_mut()
            .filter(|all| step.get("complete").is_some_and(|name| all.parts.iter().any(|part| format!("\"{part}\"") == name)))
        {
            // Those that were resumed together are taken once all have ended.
            let part: String = step.get("complete").and_then(|name| serde_json::from_str(name).ok()).unwrap_or_default();
            step.rename("complete", "take");
            takes.push((part, step.line()));
            if takes.len() == parts.len() {
                let ended: Vec<&String> = takes.iter().map(|(part, _)| part).collect();
                steps.push(format!("{{\"complete\": \"{name}\", \"parts\": {}, \"ok\": {{}}}}", json!(ended)));
                steps.extend(takes.iter().map(|(_, take)| take.clone()));
                resumed = None;
            }
        } else if step.is_changed {
            steps.push(step.line());
        } else {
            steps.push(text.clone());
        }
    }
    Ok(steps)
}

/// Puts in, and takes out, steps of the store until the script is what the client does.
fn fit(case: &Written, steps: &mut Vec<String>) -> Result<(), String> {
    const CHANGES: usize = 80;
    let mut last = String::new();
    for _ in 0..CHANGES {
        let read: Case = serde_json::from_str(&layout(case, steps)).map_err(|error| error.to_string())?;
        let Err(failure) = run::run_to(&read, true) else { return Ok(()) };
        last = failure.to_string();
        let expected: Option<Value> = steps.get(failure.step).and_then(|step| serde_json::from_str(step).ok());
        let expected = expected.filter(|step| ["put", "delete", "spend"].iter().any(|verb| step.get(verb).is_some()));
        let is_plain = expected.as_ref().is_some_and(|step| step.get("as").is_none() && step.get("answer") == Some(&json!("done")));
        match (failure.came, expected) {
            (Some(Came { verb, name, .. }), Some(step)) if step.get(verb) == Some(&json!(name)) => return Err(last),
            // Something is put or deleted that the script does not know of.
            (Some(Came { verb, name, more }), _) => {
                steps.insert(failure.step.min(steps.len()), format!("{{\"{verb}\": \"{name}\"{more}}}"));
            }
            (None, Some(_)) if is_plain => drop(steps.remove(failure.step)),
            (None, _) => return Err(last),
        }
    }
    Err(format!("it is not done after {CHANGES} changes: {last}"))
}

/// A case with one step a line.
fn layout(case: &Written, steps: &[String]) -> String {
    let member = |(name, value): &(String, Box<RawValue>)| match name.as_str() {
        "script" => {
            let steps: Vec<String> = steps.iter().map(|step| format!("        {step}")).collect();
            format!("      \"script\": [\n{}\n      ]", steps.join(",\n"))
        }
        _ => format!("      \"{name}\": {}", value.get()),
    };
    format!("    {{\n{}\n    }}", case.members.iter().map(member).collect::<Vec<_>>().join(",\n"))
}
