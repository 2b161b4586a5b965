//! The rows of the contracts and their witnesses: those that the table holds are looked for in the vectors, those in prose name theirs.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use hopline::contract::{Endpoint, Record, Shape, Words, endpoints};
use hopline::policy::CODES;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::contract::{Contract, Stated};
use crate::mutate::Mutation;
use crate::witness::{Witness, tests};

/// A statement of a contract, and what shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// The part of the contract.
    pub(crate) part: String,
    /// The statement.
    pub(crate) row: String,
    /// Its witnesses, all of which are there.
    pub(crate) shown_by: Vec<Witness>,
    /// The witnesses that it names and that are missing.
    pub(crate) lacks: Vec<String>,
}

impl Row {
    pub(crate) fn is_shown(&self) -> bool {
        !self.shown_by.is_empty() && self.lacks.is_empty()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.row)
    }
}

/// A case of the vectors, and the file that it is in.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) json: Value,
}

impl Case {
    fn witness(&self) -> Option<Witness> {
        Some(Witness::Vector { file: self.file.clone(), case: self.json["name"].as_str()?.to_owned() })
    }
}

/// All that is in the repository about the contracts.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    pub(crate) cases: Vec<Case>,
    /// The tests that can be witnesses.
    pub(crate) tests: BTreeSet<Witness>,
    pub(crate) contracts: Vec<Contract>,
    pub(crate) mutations: Vec<Mutation>,
}

impl Repository {
    pub(crate) fn read(root: &Path) -> Result<Repository, String> {
        let vectors = root.join("tests/vectors");
        let mut cases = Vec::new();
        for path in json_files(&vectors)? {
            let mut file: Value = json(&path)?;
            let Value::Array(read) = file["cases"].take() else { return Err(format!("{} has no cases", path.display())) };
            let name = path.strip_prefix(&vectors).unwrap_or(&path).display().to_string();
            cases.extend(read.into_iter().map(|json| Case { file: name.clone(), json }));
        }
        let own = root.join("tests/coverage");
        Ok(Repository {
            cases,
            tests: tests(root)?,
            contracts: vec![json(&own.join("agent.json"))?, json(&own.join("reseller.json"))?],
            mutations: json(&own.join("mutations.json"))?,
        })
    }

    /// Every row, in the order of the contracts.
    pub(crate) fn rows(&self) -> Vec<Row> {
        [self.tabled(), self.stated()].concat()
    }

    /// Those of the table.
    pub(crate) fn tabled(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for endpoint in endpoints() {
            self.endpoint(endpoint, &mut rows);
        }
        for code in CODES {
            let answered = |step: &Value| step["answer"]["error"]["code"] == code.code && step["answer"]["status"] == code.status;
            let compared = |step: &Value| [&step["error"], &step["notify"]["because"]].iter().any(|said| said["code"] == code.code);
            // Elsewhere a code may be one of several answers, and what is shown may be of another.
            let own = self.cases.iter().filter(|case| case.file.starts_with("codes/"));
            let shown = own.filter(|case| steps(&case.json).any(answered) && steps(&case.json).any(compared));
            rows.push(row("Errors", format!("{} {}", code.code, code.status), shown.filter_map(Case::witness)));
        }
        rows
    }

    /// Those in prose.
    pub(crate) fn stated(&self) -> Vec<Row> {
        let row = |stated: &Stated| {
            let mut row = row(&stated.part, stated.row.clone(), None);
            for text in &stated.shown_by {
                match self.witness(text) {
                    Some(witness) => row.shown_by.push(witness),
                    None => row.lacks.push(text.clone()),
                }
            }
            row
        };
        self.contracts.iter().flat_map(|contract| &contract.rows).map(row).collect()
    }

    /// The witness of that text, if it is there.
    fn witness(&self, text: &str) -> Option<Witness> {
        let witness = Witness::read(text)?;
        let there = match &witness {
            Witness::Vector { file, case } => self.cases.iter().any(|there| there.file == *file && there.json["name"] == **case),
            Witness::Test { .. } => self.tests.contains(&witness),
        };
        there.then_some(witness)
    }

    fn endpoint(&self, endpoint: &Endpoint, rows: &mut Vec<Row>) {
        let mut push = |text: String, shown: Option<&Case>| rows.push(row(endpoint.name, text, shown.and_then(Case::witness)));
        let sent = self.cases.iter().find(|case| steps(&case.json).any(|step| is_sent(step, endpoint)));
        push(format!("{} {}", endpoint.method.as_str(), endpoint.path), sent);
        let calls: Vec<&Case> = self.cases.iter().filter(|case| params(&case.json, endpoint).next().is_some()).collect();
        let first = |shows: &dyn Fn(&Value) -> bool| calls.iter().copied().find(|case| shows(&case.json));
        for field in endpoint.request.fields {
            let given = first(&|case| params(case, endpoint).any(|params| params.get(field.name).is_some()));
            push(format!("request.{}", field.name), given);
            if field.required || !field.rules.is_empty() {
                let refused = first(&|case| steps(case).any(|step| refuses(step, field.name)));
                push(format!("request.{} is checked", field.name), refused);
            }
            if let Shape::Word(words) = field.shape {
                for word in words.words {
                    let given = first(&|case| params(case, endpoint).any(|params| params.get(field.name) == Some(&word.word.into())));
                    push(format!("request.{} = {}", field.name, word.word), given);
                }
            }
        }
        members(endpoint.response, "", &mut |path, name, words| {
            let answered = |case: &Value, wanted: &dyn Fn(&Value) -> bool| {
                let has = |texts: [&Value; 2]| texts.iter().any(|value| holds(value, name, wanted));
                steps(case).any(|step| has([&step["answer"]["ok"], &step["answer"]["text"]]))
                    && steps(case).any(|step| has([&step["ok"], &step["items"]]))
            };
            push(format!("response{path}"), first(&|case| answered(case, &|_| true)));
            for word in words.map(|words| words.words).unwrap_or_default() {
                let says = |value: &Value| *value == word.word || word.number.is_some_and(|number| *value == number);
                push(format!("response{path} = {}", word.word), first(&|case| answered(case, &says)));
            }
        });
    }
}

fn row(part: &str, row: String, shown_by: impl IntoIterator<Item = Witness>) -> Row {
    Row { part: part.to_owned(), row, shown_by: shown_by.into_iter().collect(), lacks: Vec::new() }
}

fn steps(case: &Value) -> impl Iterator<Item = &Value> {
    let script = case["script"].as_array().into_iter().flatten();
    script.flat_map(|step| std::iter::once(step).chain(step["pages"].as_array().into_iter().flatten()))
}

/// The parameters of every call of that operation, or of what begins with it.
fn params<'a>(case: &'a Value, endpoint: &'a Endpoint) -> impl Iterator<Item = Value> + 'a {
    let ours = move |operation: &str| {
        operation == endpoint.name
            || (operation == "open_session" && matches!(endpoint.name, "create_session" | "get_session"))
            || (operation == "wait_session" && endpoint.name == "get_session")
            || (operation == "place_order" && endpoint.name == "create_static_order")
    };
    steps(case).filter(move |step| step["operation"].as_str().is_some_and(ours)).map(|step| match step["params_text"].as_str() {
        Some(text) => serde_json::from_str(text).unwrap_or_default(),
        None => {
            let mut params = step["params"].clone();
            if let (Some(params), true) = (params.as_object_mut(), step["options"]["credentials"] == true) {
                params.insert("include_credentials".to_owned(), true.into());
            }
            params
        }
    })
}

fn is_sent(step: &Value, endpoint: &Endpoint) -> bool {
    let Some((method, target)) = step["send"].as_str().and_then(|send| send.split_once(' ')) else { return false };
    let path = target.split('?').next().unwrap_or_default();
    let fits = |(part, pattern): (&str, &str)| pattern.starts_with('{') || part == pattern;
    method == endpoint.method.as_str()
        && path.split('/').count() == endpoint.path.split('/').count()
        && path.split('/').zip(endpoint.path.split('/')).all(fits)
}

fn refuses(step: &Value, field: &str) -> bool {
    let named = step["error"]["field"].as_str();
    step["error"]["kind"] == "invalid" && named.is_some_and(|named| named == field || named.starts_with(&format!("{field}[")))
}

/// Every member of an answer, with its path, its name and its words.
fn members(shape: Shape, path: &str, found: &mut dyn FnMut(String, &str, Option<&'static Words>)) {
    match shape {
        Shape::List(item) => members(*item, &format!("{path}[]"), found),
        Shape::Record(Record { fields, .. }) => {
            for field in *fields {
                let path = format!("{path}.{}", field.name);
                found(path.clone(), field.name, if let Shape::Word(words) = field.shape { Some(words) } else { None });
                members(field.shape, &path, found);
            }
        }
        _ => {}
    }
}

/// True if an object in a value, or in a text that is JSON, has a member that is as wanted.
fn holds(value: &Value, name: &str, wanted: &dyn Fn(&Value) -> bool) -> bool {
    match value {
        Value::Object(members) => members.get(name).is_some_and(wanted) || members.values().any(|member| holds(member, name, wanted)),
        Value::Array(items) => items.iter().any(|item| holds(item, name, wanted)),
        Value::String(text) => serde_json::from_str::<Value>(text).is_ok_and(|value| !value.is_string() && holds(&value, name, wanted)),
        _ => false,
    }
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn json_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
            found.extend(json_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
