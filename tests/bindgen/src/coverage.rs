//! Which case or test shows each row of a contract: the rows of the table are matched with the vectors, those in prose with
//! the lists in `tests/coverage`. A row without a witness is a gap, and so is a line of a contract that no row claims.

mod contract;
mod names;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use hopline::contract::{Endpoint, Record, Shape, Words, endpoints};
use hopline::policy::CODES;
use serde_json::Value;

use crate::model::{APIS, client};

pub use contract::Contract;
use names::test_names;

/// Where the contracts lie, from the root of the repository.
pub const CONTRACTS: &str = "../shared/seeds";

/// A row of the contract, and what shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The part of the contract.
    pub part: String,
    /// What it says.
    pub row: String,
    /// The name of a case or a test; none is a gap.
    pub shown_by: Option<String>,
}

/// All that is needed to look for witnesses.
#[derive(Debug, Default)]
pub struct Witnesses {
    /// The cases of the vectors.
    pub cases: Vec<Value>,
    /// The names of tests of clients, in all languages.
    pub tests: BTreeSet<String>,
    /// The names of the sandbox's own tests, which show the service and nothing of a client.
    pub services: BTreeSet<String>,
    /// What is said of the contract of each API.
    pub contracts: Vec<Contract>,
}

impl Witnesses {
    /// Reads `vectors`, `coverage` and the tests below the folder `tests` of the repository, and those of core.
    pub fn read(root: &Path) -> Result<Witnesses, String> {
        let mut found = Witnesses::default();
        for path in files(&root.join("tests/vectors"), &["json"])? {
            let Value::Array(cases) = json(&path)?["cases"].take() else { return Err(format!("{} has no cases", path.display())) };
            found.cases.extend(cases);
        }
        for api in APIS {
            found.contracts.push(Contract::read(&root.join(format!("tests/coverage/{}.json", client(api).to_lowercase())))?);
        }
        for folder in ["core/src", "tests/hosts", "tests/simulation", "tests/sandbox"] {
            let names = if folder == "tests/sandbox" { &mut found.services } else { &mut found.tests };
            for path in files(&root.join(folder), &["rs", "py", "mjs", "kt", "swift"])? {
                names.extend(test_names(&fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?));
            }
        }
        Ok(found)
    }

    /// Every row, in the order of the contract.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for endpoint in endpoints() {
            self.endpoint(endpoint, &mut rows);
        }
        for code in CODES {
            let shown = self.case(|case| says(case, "code", code.code) && says(case, "status", code.status));
            rows.push(Row { part: "Errors".into(), row: format!("{} {}", code.code, code.status), shown_by: shown });
        }
        for told in self.contracts.iter().flat_map(|contract| &contract.rows) {
            let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
            rows.push(Row { part: text("part"), row: text("row"), shown_by: self.shown(told) });
        }
        rows
    }

    /// What shows a row in prose: cases and tests of clients, all of which must be there, or for a row that is the service's own rule,
    /// which no client keeps, a test of the sandbox.
    fn shown(&self, row: &Value) -> Option<String> {
        let is_shown = |name: &str| self.tests.contains(name) || self.cases.iter().any(|case| case["name"] == name);
        match (&row["shown_by"], row["service_rule"].as_str()) {
            (Value::Null, Some(name)) => self.services.contains(name).then(|| format!("{name} (the service's own rule)")),
            (Value::String(name), None) => is_shown(name).then(|| name.clone()),
            (Value::Array(names), None) => {
                let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
                names.filter(|names| !names.is_empty() && names.iter().all(|name| is_shown(name))).map(|names| names.join("; "))
            }
            _ => None,
        }
    }

    /// Compares each contract in a folder with its claims. Says what came of it, and what is wrong.
    pub fn compare(&self, folder: &Path, rows: &[Row]) -> (String, Vec<String>) {
        let (mut told, mut faults) = (String::new(), Vec::new());
        for contract in &self.contracts {
            match contract.text(folder) {
                Some(text) => {
                    let found = contract.faults(&text, rows);
                    told.push_str(&format!("{}: {} lines, {} faults\n", contract.title, contract.claims.len(), found.len()));
                    faults.extend(found);
                }
                None => told.push_str(&format!("{}: not compared, as it is not in {}\n", contract.title, folder.display())),
            }
        }
        (told, faults)
    }

    fn endpoint(&self, endpoint: &Endpoint, rows: &mut Vec<Row>) {
        let mut push = |row: String, shown_by| rows.push(Row { part: endpoint.name.to_owned(), row, shown_by });
        let sent = self.case(|case| steps(case).any(|step| is_sent(step, endpoint)));
        push(format!("{} {}", endpoint.method.as_str(), endpoint.path), sent);
        for field in endpoint.request.fields {
            let given = self.case(|case| params(case, endpoint).any(|params| params.get(field.name).is_some()));
            push(format!("request.{}", field.name), given);
            if field.required || !field.rules.is_empty() {
                let refused =
                    self.case(|case| steps(case).any(|step| refuses(step, field.name)) && params(case, endpoint).next().is_some());
                push(format!("request.{} is checked", field.name), refused);
            }
            if let Shape::Word(words) = field.shape {
                for word in words.words {
                    let given = self.case(|case| params(case, endpoint).any(|params| params.get(field.name) == Some(&word.word.into())));
                    push(format!("request.{} = {}", field.name, word.word), given);
                }
            }
        }
        members(endpoint.response, "", &mut |path, name, words| {
            let answered = |case: &Value, wanted: &dyn Fn(&Value) -> bool| {
                params(case, endpoint).next().is_some()
                    && steps(case).any(|step| [&step["answer"]["ok"], &step["answer"]["text"]].iter().any(|ok| holds(ok, name, wanted)))
            };
            push(format!("response{path}"), self.case(|case| answered(case, &|_| true)));
            for word in words.map(|words| words.words).unwrap_or_default() {
                let says = |value: &Value| *value == word.word || word.number.is_some_and(|number| *value == number);
                push(format!("response{path} = {}", word.word), self.case(|case| answered(case, &says)));
            }
        });
    }

    fn case(&self, shows: impl Fn(&Value) -> bool) -> Option<String> {
        self.cases.iter().find(|case| shows(case)).and_then(|case| case["name"].as_str()).map(str::to_owned)
    }
}

/// The rows as lines, and the gaps among them.
pub fn report(rows: &[Row]) -> (String, usize) {
    let mut out = String::new();
    let mut part = "";
    for row in rows {
        if row.part != part {
            part = &row.part;
            out.push_str(&format!("\n{part}\n"));
        }
        out.push_str(&format!("  {:<44} {}\n", row.row, row.shown_by.as_deref().unwrap_or("NOTHING SHOWS IT")));
    }
    (out, rows.iter().filter(|row| row.shown_by.is_none()).count())
}

fn steps(case: &Value) -> impl Iterator<Item = &Value> {
    case["script"].as_array().into_iter().flatten()
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

/// Whether some object in a value, or in a text that is JSON, has a member that is as wanted.
fn holds(value: &Value, name: &str, wanted: &dyn Fn(&Value) -> bool) -> bool {
    match value {
        Value::Object(members) => {
            members.get(name).is_some_and(wanted) || members.values().any(|member| !member.is_string() && holds(member, name, wanted))
        }
        Value::Array(items) => items.iter().any(|item| holds(item, name, wanted)),
        Value::String(text) => serde_json::from_str::<Value>(text).is_ok_and(|value| !value.is_string() && holds(&value, name, wanted)),
        _ => false,
    }
}

fn says(value: &Value, name: &str, wanted: impl Into<Value>) -> bool {
    let wanted = wanted.into();
    match value {
        Value::Object(members) => members.get(name) == Some(&wanted) || members.values().any(|member| says(member, name, wanted.clone())),
        Value::Array(items) => items.iter().any(|item| says(item, name, wanted.clone())),
        _ => false,
    }
}

fn json(path: &Path) -> Result<Value, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The files of a folder with one of these extensions, without what was built or installed there.
fn files(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut rest = vec![folder.to_owned()];
    while let Some(folder) = rest.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && !matches!(name, "node_modules" | "target" | "build") && !name.starts_with('.') {
                rest.push(path);
            } else if path.extension().and_then(|extension| extension.to_str()).is_some_and(|extension| extensions.contains(&extension)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn witnesses() -> Witnesses {
        Witnesses::read(&root()).expect("the tests can be read")
    }

    #[test]
    fn every_row_of_the_contract_is_shown_by_a_case_or_a_test() {
        let rows = witnesses().rows();
        let (_, gaps) = report(&rows);
        let missing: Vec<String> =
            rows.iter().filter(|row| row.shown_by.is_none()).map(|row| format!("{}: {}", row.part, row.row)).collect();
        assert_eq!(gaps, 0, "nothing shows\n{}", missing.join("\n"));
        assert!(rows.len() > 200, "{}", rows.len());
    }

    #[test]
    fn a_witness_that_is_taken_away_leaves_a_gap() {
        let mut fewer = witnesses();
        fewer.cases.retain(|case| !says(case, "code", "TRIAL_NOT_ELIGIBLE"));
        assert!(fewer.rows().iter().any(|row| row.row == "TRIAL_NOT_ELIGIBLE 429" && row.shown_by.is_none()));
        let mut fewer = witnesses();
        fewer.cases.retain(|case| !steps(case).any(|step| step["operation"] == "create_recharge"));
        assert!(fewer.rows().iter().filter(|row| row.part == "create_recharge" && row.shown_by.is_none()).count() > 5);
        let mut renamed = witnesses();
        let before = report(&renamed.rows()).1;
        if let Some(row) = renamed.contracts.iter_mut().flat_map(|contract| &mut contract.rows).next() {
            row["shown_by"] = "a test that is not there".into();
        }
        assert_eq!(report(&renamed.rows()).1, before + 1);
    }

    #[test]
    fn a_test_of_the_sandbox_shows_a_rule_of_the_service_and_no_row_of_a_client() {
        let found = witnesses();
        let (own, service) = ("a_login_needs_both_fields_as_texts", "service_rule");
        assert!(found.services.contains(own) && !found.tests.contains(own));
        assert_eq!(found.shown(&serde_json::json!({ "shown_by": own })), None);
        assert!(found.shown(&serde_json::json!({ service: own })).is_some());
        let case = found.cases[0]["name"].as_str().expect("a case has a name");
        assert_eq!(found.shown(&serde_json::json!({ service: case })), None);
        assert_eq!(found.shown(&serde_json::json!({ "shown_by": case })), Some(case.to_owned()));
        for wrong in [serde_json::json!([]), serde_json::json!([case, "no such case"]), serde_json::json!(null)] {
            assert_eq!(found.shown(&serde_json::json!({ "shown_by": wrong })), None);
        }
        assert_eq!(found.shown(&serde_json::json!({ "shown_by": "new" })), None, "a function that is no test");
    }

    #[test]
    fn every_line_of_a_contract_is_claimed_where_the_contracts_are_at_hand() {
        let (told, faults) = witnesses().compare(&root().join(CONTRACTS), &witnesses().rows());
        println!("{told}");
        for line in told.lines().filter(|line| line.contains("not compared")) {
            // Past the harness, which keeps what a test prints when it passes.
            _ = writeln!(std::io::stdout(), "\nskipped: {line}");
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        let (told, faults) = witnesses().compare(Path::new("no such folder"), &[]);
        assert!(told.contains("not compared") && faults.is_empty(), "{told}");
    }
}
