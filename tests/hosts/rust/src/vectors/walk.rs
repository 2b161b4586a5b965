//! A walk through a list, its pages as the script has them.

use hopline::Error;
use hopline::client::{Step, host_text, page_params_text, page_turn_text};
use hopline::contract::json_of;
use serde_json::{Value, json};

use super::matching::matches;
use super::run::expect;
use super::steps::Walk;
use super::world::{World, heard, show, told};

impl World {
    pub(super) fn walk(&mut self, mut walk: Walk) -> Result<(), String> {
        let begun = self.begin_walk(&walk)?;
        let (mut items, mut end) = (Vec::new(), None);
        let params = Value::from(std::mem::take(&mut walk.params)).to_string();
        let (mut position, mut failure) = match begun {
            Ok(position) => (Some(position), None),
            Err(error) => (None, Some(error)),
        };
        for page in std::mem::take(&mut walk.pages) {
            let (None, None, Some(from)) = (&failure, &end, &position) else {
                return Err(format!("expected a read of {}, and the walk is over: {end:?} {failure:?}", page.send));
            };
            let command = self.client.start_json(
                &walk.operation,
                &page_params_text(from, &params).map_err(|error| json_of(&error))?,
                Default::default(),
            );
            self.send(page)?;
            match self.next()? {
                Step::Completed { command: ended } if ended == command => {}
                step => return Err(format!("expected the end of a page, came {}", show(&step))),
            }
            match self.taken(command).ok_or("a page that has ended has a result")? {
                Ok(answered) => {
                    let data: Value = serde_json::from_str(answered.view().as_deref().unwrap_or(answered.raw.text()))
                        .map_err(|error| error.to_string())?;
                    let turn = page_turn_text(from, &json_of(&answered.facts)).map_err(|error| json_of(&error))?;
                    let turn: Value = serde_json::from_str(&turn).map_err(|error| error.to_string())?;
                    position = turn["position"].as_str().map(str::to_owned);
                    end = turn["end"].as_str().map(str::to_owned);
                    if end.as_deref() != Some("repeated_page") {
                        items.extend(data["items"].as_array().cloned().unwrap_or_default());
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        match (failure, &walk.error) {
            (None, None) => {}
            (Some(failure), Some(expected)) => {
                let failure = told(&failure);
                heard(&failure)?;
                matches(expected, &self.named(failure), "error")?;
            }
            (failure, expected) => return Err(format!("expected the error {expected:?}, came {failure:?}")),
        }
        if walk.end != end {
            return Err(format!("expected the end {:?}, came {end:?}", walk.end));
        }
        if let Some(expected) = walk.items {
            matches(&Value::from(expected), &Value::from(items), "items")?;
        }
        expect("a new name", Some(None), self.walks.insert(walk.walk, position))
    }

    /// Where it begins, or why it can't.
    fn begin_walk(&self, walk: &Walk) -> Result<Result<String, Error>, String> {
        let known = |from: &String| self.walks.get(from).cloned().flatten().ok_or_else(|| format!("`{from}` is no walk to go on from"));
        let position = match (&walk.from, &walk.position_text) {
            (Some(from), None) => Some(known(from)?),
            (None, text) => text.clone(),
            _ => return Err("`from` and `position_text` are one too many".to_owned()),
        };
        let given = json!({ "operation": walk.operation, "position": position, "max_pages": walk.max_pages });
        Ok(match host_text("walk", &given.to_string()) {
            Ok(begun) => {
                let begun: Value = serde_json::from_str(&begun).map_err(|error| error.to_string())?;
                Ok(begun["position"].as_str().ok_or("a walk begins at a position")?.to_owned())
            }
            Err(error) => Err(error),
        })
    }
}
