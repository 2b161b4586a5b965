//! Objects whose members may come in several spellings: the first filled one in the order of the table counts.

use super::walk::{MOST_REPORTED, ONCE, Walk};
use crate::contract::{Field, Record, Shape, Sink, Text};
use crate::json::NotJson;

/// One spelling of a member, as it was found.
struct Spelled<'a> {
    field: usize,
    /// The position of the spelling in the table.
    rank: usize,
    at: usize,
    json: &'a str,
}

impl<'a> Walk<'a> {
    /// Reads an object twice: first where its members are, then those that count, in the order of the table.
    pub(super) fn aliased<S: Sink>(&mut self, record: &'static Record, sink: &mut S, outermost: bool) -> Result<S::Value, NotJson> {
        let from = self.scan.at();
        let mut nest = sink.object(record);
        let spelled = self.spellings(record, outermost, |name, json| sink.unknown(&mut nest, name, json))?;
        let end = self.scan.at();
        let mut seen = 0_u64;
        for (index, field) in record.fields.iter().enumerate() {
            let all = || spelled.iter().filter(|one| one.field == index);
            let with = |says: fn(&str) -> bool| all().filter(|one| says(one.json)).min_by_key(|one| one.rank);
            let Some(first) = with(is_filled).or_else(|| with(|json| json != "null")).or_else(|| with(|_| true)) else { continue };
            seen |= 1 << index;
            self.rewritten |= all().any(|one| one.rank > 0);
            let differs = all()
                .any(|one| one.json != "null" && one.json != first.json && view(&field.shape, one.json) != view(&field.shape, first.json));
            if differs && self.differing.len() < MOST_REPORTED {
                self.differing.push(first.at);
            }
            self.scan.seek(first.at);
            self.field(field, index, &mut nest, sink)?;
        }
        self.scan.seek(end);
        if record.required & !seen != 0 {
            self.miss(record, seen, from);
        }
        Ok(sink.end(nest))
    }

    /// Where the members of an object are, in whatever spelling.
    fn spellings(
        &mut self,
        record: &'static Record,
        outermost: bool,
        mut unknown: impl FnMut(&str, &str),
    ) -> Result<Vec<Spelled<'a>>, NotJson> {
        let mut spelled: Vec<Spelled<'a>> = Vec::new();
        let mut more = self.scan.open(b'}')?;
        while more {
            let name = self.scan.name()?;
            self.scan.peek();
            let at = self.scan.at();
            let json = self.scan.skip()?;
            let plain = name.plain().unwrap_or_default();
            if outermost {
                self.found.note(&plain, json);
            }
            match record.fields.iter().enumerate().find_map(|(field, known)| Some((field, rank(known, &plain)?))) {
                Some((field, rank)) if spelled.iter().any(|one| (one.field, one.rank) == (field, rank)) => self.note(at, None, ONCE),
                Some((field, rank)) => spelled.push(Spelled { field, rank, at, json }),
                None => unknown(name.text, json),
            }
            more = self.scan.more(b'}')?;
        }
        Ok(spelled)
    }
}

/// The position of a name among the spellings of a member.
pub(super) fn rank(field: &Field, name: &str) -> Option<usize> {
    std::iter::once(&field.name).chain(field.aliases).position(|known| *known == name)
}

/// Returns true if a spelling has a value, so that it does not give way to another.
fn is_filled(json: &str) -> bool {
    let is_empty_list = json.strip_prefix('[').is_some_and(|items| items.trim_start() == "]");
    json != "null" && json != "\"\"" && !is_empty_list
}

/// A value as the table writes it, to compare it with another.
fn view(shape: &'static Shape, json: &str) -> String {
    let (mut walk, mut text) = (Walk::new(json), Text::default());
    // The JSON was scanned before, so it is valid.
    match walk.value(shape, &mut text) {
        Ok(()) => text.into_text(),
        Err(NotJson) => String::new(),
    }
}
