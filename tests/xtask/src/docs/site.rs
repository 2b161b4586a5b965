//! The judgement of a site: its links lead to what is there, it asks nothing of other hosts, and it works from a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::Fail;

/// Expects a site without a broken link, and without a request to another host.
pub(super) fn judge(site: &Path) -> Result<(), Fail> {
    let mut files = BTreeMap::new();
    read(site, "", &mut files)?;
    let mut wrong = Vec::new();
    let pages = files.iter().filter(|(name, _)| name.ends_with(".html") && *name != "404.html");
    for (name, text) in pages {
        wrong.extend(attributes(text).into_iter().filter_map(|link| fault(name, &link, &files)));
    }
    for (name, text) in files.iter().filter(|(name, _)| name.ends_with(".css")) {
        wrong.extend(
            text.split("url(")
                .skip(1)
                .filter(|rest| is_elsewhere(rest.trim_start_matches(['"', '\''])))
                .map(|_| format!("{name} asks another host")),
        );
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Expects that the links of READMEs lead to files of the repository, and those to a place of a page to one of the site.
pub(super) fn judge_readmes(site: &Path, root: &Path, readmes: &[&str]) -> Result<(), Fail> {
    let mut wrong = Vec::new();
    for readme in readmes {
        let text = std::fs::read_to_string(root.join(readme))?;
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).filter(|link| !is_elsewhere(link)) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if path.is_empty() { (*readme).to_owned() } else { resolved(readme, path) };
            let page = path.strip_prefix("core/docs/").and_then(|page| page.strip_suffix(".md")).filter(|_| !anchor.is_empty());
            let has_place = page.is_none_or(|page| {
                std::fs::read_to_string(site.join(page).with_extension("html")).is_ok_and(|page| page.contains(&format!("id=\"{anchor}\"")))
            });
            if !root.join(&path).exists() || !has_place {
                wrong.push(format!("{readme} links to {link}, which is not there"));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn read(folder: &Path, under: &str, files: &mut BTreeMap<String, String>) -> Result<(), Fail> {
    for entry in std::fs::read_dir(folder)? {
        let (path, name) = entry.map(|entry| (entry.path(), format!("{under}{}", entry.file_name().to_string_lossy())))?;
        if path.is_dir() {
            read(&path, &format!("{name}/"), files)?;
        } else {
            files.insert(name, String::from_utf8_lossy(&std::fs::read(path)?).into_owned());
        }
    }
    Ok(())
}

/// An attribute that names a place.
#[derive(Debug, PartialEq)]
struct Link<'a> {
    tag: &'a str,
    to: &'a str,
}

/// The places that a page's tags name.
fn attributes(page: &str) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    for tag in page.split('<').skip(1) {
        let Some((tag, _)) = tag.split_once('>') else { continue };
        let Some((name, rest)) = tag.split_once(char::is_whitespace) else { continue };
        for attribute in ["href", "src"] {
            let after = rest.split_once(&format!("{attribute}=")).map(|(_, after)| after);
            let to = after.map(|after| match after.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next().unwrap_or_default(),
                None => after.split_whitespace().next().unwrap_or_default(),
            });
            found.extend(to.map(|to| Link { tag: name, to }));
        }
    }
    found
}

fn is_elsewhere(place: &str) -> bool {
    ["http:", "https:", "//"].iter().any(|begin| place.starts_with(begin))
}

/// The fault of a link of a page, if it has one.
fn fault(page: &str, link: &Link<'_>, files: &BTreeMap<String, String>) -> Option<String> {
    if is_elsewhere(link.to) {
        // A reader may follow a link elsewhere; a page must not.
        return (link.tag != "a").then(|| format!("{page} asks another host: {}", link.to));
    }
    if link.to.is_empty() || ["data:", "mailto:", "javascript:"].iter().any(|begin| link.to.starts_with(begin)) {
        return None;
    }
    let (path, anchor) = link.to.split_once('#').unwrap_or((link.to, ""));
    let path = if path.is_empty() { page.to_owned() } else { resolved(page, path) };
    let Some(text) = files.get(&path) else { return Some(format!("{page} links to {}, which is not there", link.to)) };
    let ids: BTreeSet<String> = ["id=", "name="].iter().map(|attribute| format!("{attribute}\"{anchor}\"")).collect();
    let unquoted = format!("id={anchor}");
    let is_there = anchor.is_empty() || anchor == "__skip" || ids.iter().any(|id| text.contains(id)) || text.contains(&unquoted);
    (!is_there).then(|| format!("{page} links to {}, where no place has that name", link.to))
}

/// A relative path as one from the site's root.
fn resolved(page: &str, path: &str) -> String {
    let mut folders: Vec<&str> = page.split('/').collect();
    folders.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => _ = folders.pop(),
            name => folders.push(name),
        }
    }
    folders.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_and_requests_to_other_hosts_are_found() {
        let page = "<a href=\"b.html#x\">x</a><a href=c.html>c</a><img src=\"https://host/i.png\"><a href=\"https://host/\">h</a><a href=\"#y\">y</a>";
        let files = BTreeMap::from([("a.html".to_owned(), page.to_owned()), ("b.html".to_owned(), "<p id=\"z\">".to_owned())]);
        let faults: Vec<String> = attributes(page).iter().filter_map(|link| fault("a.html", link, &files)).collect();
        assert_eq!(faults.len(), 4, "{faults:?}");
        assert!(fault("a.html", &Link { tag: "a", to: "b.html#z" }, &files).is_none());
        assert_eq!(resolved("one/two.html", "../three.png"), "three.png");
    }
}
