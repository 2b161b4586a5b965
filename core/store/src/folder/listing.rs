//! Pages of the names of a space.

use super::files::Files;
use crate::name::Name;
use crate::{Entry, Error, PAGE, Page, Whose};

/// Returns the names after `after`. Only the files that the page needs, and those that it leaves out, are read.
pub(super) fn page(
    files: &Files,
    whose: &dyn Fn(Name<'_>) -> Result<Whose, Error>,
    space: &str,
    after: Option<&str>,
    open: bool,
    now: u64,
) -> Result<Page, Error> {
    let after = after.unwrap_or_default();
    let mut entries = Vec::new();
    for group in files.groups(space)?.iter().filter(|group| is_reached(&format!("{space}.{group}"), after)) {
        let names = files.names(space, group)?;
        for name in names.iter().filter(|name| name.as_str() > after).filter_map(|name| Name::parse(name).ok()) {
            // Another client may have deleted the name meanwhile.
            let Some(record) = files.read(name)? else { continue };
            let whose = whose(name)?;
            if (open && record.keep_until.is_some()) || (whose == Whose::Free && record.has_ended(now)) {
                continue;
            }
            if entries.len() == PAGE {
                return Ok(Page { entries, more: true });
            }
            entries.push(Entry { name: name.as_str().to_owned(), data: record.data, whose });
        }
    }
    Ok(Page { entries, more: false })
}

/// Returns true if names with that beginning can come after another name.
fn is_reached(beginning: &str, after: &str) -> bool {
    beginning.as_bytes() >= after.as_bytes().get(..beginning.len()).unwrap_or(after.as_bytes())
}
