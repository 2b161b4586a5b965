//! The place of a value in an answer, in the names of the table. The place is computed only for an error or a warning.

use super::aliases::rank;
use super::response::DecodeError;
use super::walk::FirstMisfit;
use crate::contract::Shape;
use crate::json::{NotJson, Scanner};

/// The error for a value that does not fit, in the names of the table; the scanner is where `data` begins.
#[cold]
pub(super) fn error_at(misfit: FirstMisfit, data: Scanner<'_>, shape: &'static Shape) -> DecodeError {
    let missing = misfit.missing.map(|name| format!(".{name}")).unwrap_or_default();
    let place = format!("data{}{missing}", way(data, shape, misfit.at));
    DecodeError { place, expected: misfit.expected, missing: misfit.missing.is_some() }
}

/// The way from a value to the one within it that begins at `at`, such as `.items[3].price`.
pub(crate) fn way(mut scan: Scanner<'_>, shape: &'static Shape, at: usize) -> String {
    let mut way = String::new();
    let mut shape = Some(shape);
    loop {
        let first = scan.peek();
        if scan.at() >= at {
            return way;
        }
        let found = match first {
            b'{' => member(&mut scan, &mut shape, at).map(|name| way.extend([".", &name])),
            b'[' => item(&mut scan, &mut shape, at).map(|index| way.push_str(&format!("[{index}]"))),
            _ => Err(NotJson),
        };
        if found.is_err() {
            return way;
        }
    }
}

/// Moves the scanner to the member in which a place lies, and returns its name.
fn member(scan: &mut Scanner<'_>, shape: &mut Option<&'static Shape>, at: usize) -> Result<String, NotJson> {
    let mut more = scan.open(b'}')?;
    while more {
        let name = scan.name()?.plain().unwrap_or_default();
        scan.peek();
        let from = scan.at();
        scan.skip()?;
        if at < scan.at() {
            scan.seek(from);
            let fields = match shape.take() {
                Some(Shape::Record(record) | Shape::OneOrMany(Shape::Record(record))) => record.fields,
                _ => &[],
            };
            let known = fields.iter().find(|field| rank(field, &name).is_some());
            *shape = known.map(|field| &field.shape);
            return Ok(known.map_or_else(|| name.into_owned(), |field| field.name.to_owned()));
        }
        more = scan.more(b'}')?;
    }
    Err(NotJson)
}

/// Moves the scanner to the item in which a place lies, and returns its number.
fn item(scan: &mut Scanner<'_>, shape: &mut Option<&'static Shape>, at: usize) -> Result<usize, NotJson> {
    let (mut more, mut index) = (scan.open(b']')?, 0);
    while more {
        scan.peek();
        let from = scan.at();
        scan.skip()?;
        if at < scan.at() {
            scan.seek(from);
            *shape = match shape.take() {
                Some(Shape::List(item) | Shape::OneOrMany(item)) => Some(item),
                _ => None,
            };
            return Ok(index);
        }
        index += 1;
        more = scan.more(b']')?;
    }
    Err(NotJson)
}
