//! Walking a list page by page: which request comes next, and why there is none.

use std::str::FromStr;

use crate::client::text::host_params::HostParams;
use crate::collections::Map;
use crate::contract::{Endpoint, Shape, closed_enum, endpoint, json_of, written};
use crate::entropy::digest;
use crate::json::{FromJson, FromJsonError, Object, members, quoted, read_json};
use crate::policy::Error;
use crate::wire::{Facts, page_size};

/// No list is walked further than this many pages, unless the caller says otherwise.
const CAP: u32 = 1000;

/// How many items a numbered page has at most.
const FULL_PAGE: &str = "100";

/// Where a walk is: small enough to be saved, and to be gone on from in another process.
#[derive(Debug, Clone, PartialEq)]
pub struct Position {
    /// The operation, one whose answer has a `next_cursor` or that takes the number of a page.
    pub operation: String,
    /// The `cursor` of the page that comes next; none for the first.
    pub cursor: Option<String>,
    /// How many pages were read.
    pub pages: u32,
    /// How many may be read; 1000 where it is left out.
    pub max_pages: u32,
    /// Digests by which the cursors so far, or the numbered pages, are recognized.
    seen: Vec<String>,
}

written!(Position { operation, cursor, pages, max_pages, seen });

impl FromJson for Position {
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        let object = Object::of(json)?;
        object.only(&["operation", "cursor", "pages", "max_pages", "seen"])?;
        let mut position = Position { operation: String::new(), cursor: None, pages: 0, max_pages: CAP, seen: Vec::new() };
        let Position { operation, cursor, pages, max_pages, seen } = &mut position;
        object.need(&mut [("operation", operation)])?;
        object.read(&mut [("cursor", cursor), ("pages", pages), ("max_pages", max_pages), ("seen", seen)])?;
        Ok(position)
    }
}

/// The continuation after a page: the next position, a reason to stop, or both at the cap.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Where to go on.
    pub position: Option<Position>,
    /// Why to stop.
    pub end: Option<PagesEnd>,
}

closed_enum! {
    /// Why a walk is over.
    pub enum PagesEnd {
        /// The page named no next one.
        LastPage = "last_page",
        /// The page held fewer items than it may, so that no other follows.
        ShortPage = "short_page",
        /// The page named one that was read before: the list would never end.
        RepeatedCursor = "repeated_cursor",
        /// The page holds the items of an earlier page, which are not given again: the service has no such page.
        RepeatedPage = "repeated_page",
        /// As many pages were read as may be. The position goes on, once its `max_pages` is higher.
        PageCap = "page_cap",
    }
}

impl Position {
    /// The beginning of a walk.
    pub fn start(operation: &str) -> Result<Position, Error> {
        let position = Position { operation: operation.to_owned(), cursor: None, pages: 0, max_pages: CAP, seen: Vec::new() };
        position.list().map(|_| position)
    }

    /// The parameters of the page that comes next: those of the caller, with the cursor or the number of the page laid over
    /// them. Numbered pages are as long as they may be, unless the caller says how long.
    pub fn params(&self, params: &str) -> Result<String, Error> {
        let list = self.list()?;
        let refuse = |rule| Error::invalid(list.name, "parameters", rule);
        let mut given: Map<_, _> = members(params).map_err(|_| refuse("must be a JSON object"))?.into_iter().collect();
        let (cursor, page) = (self.cursor.as_deref().map(quoted), (u64::from(self.pages) + 1).to_string());
        match (page_size(list), &cursor) {
            (Some(size), _) => {
                given.get_or_insert_with(size.into(), || FULL_PAGE);
                given.insert("page".into(), &page);
            }
            (None, Some(cursor)) => _ = given.insert("cursor".into(), cursor),
            (None, None) => {}
        }
        let written: Vec<String> = given.iter().map(|(name, json)| format!("{}:{json}", quoted(name))).collect();
        Ok(format!("{{{}}}", written.join(",")))
    }

    /// Returns the continuation after a page with these facts. A walk continues after an empty page that names a next one. At
    /// [`PagesEnd::RepeatedPage`] the items of this page repeat earlier ones.
    pub fn turn(mut self, facts: &Facts) -> Turn {
        self.pages = self.pages.saturating_add(1);
        let end = (self.pages >= self.max_pages).then_some(PagesEnd::PageCap);
        if self.list().is_ok_and(|list| page_size(list).is_some()) {
            if facts.page_items.as_ref().is_some_and(|items| self.seen.contains(items)) {
                return Turn { position: None, end: Some(PagesEnd::RepeatedPage) };
            }
            self.seen.extend(facts.page_items.clone());
            // A list that does not say how long it is: there is no more than what was shown.
            return match facts.short_page {
                Some(false) => Turn { position: Some(self), end },
                Some(true) | None => Turn { position: None, end: Some(PagesEnd::ShortPage) },
            };
        }
        let Some(cursor) = facts.next_cursor.clone().filter(|cursor| !cursor.is_empty()) else {
            return Turn { position: None, end: Some(PagesEnd::LastPage) };
        };
        let known = digest("cursor", &[&cursor]).chars().take(16).collect();
        if self.seen.contains(&known) {
            return Turn { position: None, end: Some(PagesEnd::RepeatedCursor) };
        }
        self.seen.push(known);
        self.cursor = Some(cursor);
        Turn { position: Some(self), end }
    }

    /// As a text that a caller can save.
    fn text(&self) -> String {
        json_of(self)
    }

    fn list(&self) -> Result<&'static Endpoint, Error> {
        let pages = |endpoint: &&Endpoint| match endpoint.response {
            Shape::Record(record) if record.field("next_cursor").is_some() => endpoint.request.field("cursor").is_some(),
            _ => page_size(endpoint).is_some(),
        };
        endpoint(&self.operation).filter(pages).ok_or_else(|| Error::invalid("pages", "operation", "is not a list that comes in pages"))
    }
}

/// The parameters of the page that comes next, all as JSON text.
pub fn page_params_text(position: &str, params: &str) -> Result<String, Error> {
    position.parse::<Position>()?.params(params)
}

/// The text of a position.
pub(crate) struct Begin {
    position: String,
}
written!(Begin { position });

/// The position at which the walk of an `operation` begins: the list's beginning, or a saved `position`, and under `max_pages`, where that
/// is given.
pub(crate) fn begin(given: &HostParams<'_>) -> Result<Begin, Error> {
    let start = Position::start(&given.text("operation")?.unwrap_or_default())?;
    let list = start.list()?.name;
    let saved = given.text("position").map_err(|_| not_saved(list))?;
    let mut position = saved.map_or(Ok(start), |text| read_json(&text).map_err(|_| not_saved(list)))?;
    if position.operation != list {
        // The operation in a position may be anything except a list.
        let other = position.list().map_err(|_| not_saved(list))?.name;
        return Err(Error::invalid(list, "position", &format!("belongs to `{other}`; pass it to the walk of that list")));
    }
    if let Some(most) = given.get("max_pages") {
        let most = most.parse().ok().filter(|most| *most > 0);
        position.max_pages = most.ok_or_else(|| Error::invalid(list, "max_pages", "must be a whole number of at least 1"))?;
    }
    Ok(Begin { position: position.text() })
}

fn not_saved(operation: &'static str) -> Error {
    Error::invalid(operation, "position", "is not a valid position; start again without it")
}

struct TurnAsText {
    position: Option<String>,
    end: Option<PagesEnd>,
}
written!(TurnAsText { position, end });

/// Returns the continuation after a page, all as JSON text: `{"position":"…"}`, in the form of the given position, `{"end":"last_page"}`,
/// or both at the cap.
pub fn page_turn_text(position: &str, facts: &str) -> Result<String, Error> {
    let position: Position = position.parse()?;
    let facts: Facts = read_json(facts).map_err(|_| Error::invalid("pages", "facts", "must be those of a page, as they came with it"))?;
    let Turn { position, end } = position.turn(&facts);
    Ok(json_of(&TurnAsText { position: position.map(|position| position.text()), end }))
}

/// Reads one that was saved.
impl FromStr for Position {
    type Err = Error;

    fn from_str(saved: &str) -> Result<Self, Error> {
        let position: Position = read_json(saved).map_err(|_| not_saved("pages"))?;
        position.list().map(|_| position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(cursor: Option<&str>) -> Facts {
        Facts { next_cursor: cursor.map(str::to_owned), ..Facts::default() }
    }

    fn start() -> Position {
        Position::start("list_products").expect("is a list")
    }

    #[test]
    fn a_walk_goes_on_for_as_long_as_a_page_names_a_next_one() {
        let position = start();
        assert_eq!(position.params(r#"{"limit":2}"#).as_deref(), Ok(r#"{"limit":2}"#));
        let position = position.turn(&facts(Some("c1"))).position.expect("goes on");
        assert_eq!(position.params(r#"{"limit":2,"cursor":"mine"}"#).as_deref(), Ok(r#"{"cursor":"c1","limit":2}"#));
        let saved = json_of(&position);
        let resumed: Position = read_json(&saved).expect("is its own");
        assert_eq!(resumed.turn(&facts(None)), Turn { position: None, end: Some(PagesEnd::LastPage) });
    }

    #[test]
    fn a_cursor_that_comes_again_ends_the_walk() {
        let position = start().turn(&facts(Some("a"))).position.and_then(|p| p.turn(&facts(Some("b"))).position).expect("goes on");
        assert_eq!(position.turn(&facts(Some("a"))).end, Some(PagesEnd::RepeatedCursor));
    }

    #[test]
    fn a_walk_has_a_cap_and_can_be_gone_on_from_there() {
        let capped = Position { max_pages: 1, ..start() }.turn(&facts(Some("c1")));
        assert_eq!(capped.end, Some(PagesEnd::PageCap));
        let further = Position { max_pages: 2, ..capped.position.expect("goes on") };
        assert_eq!(further.turn(&facts(None)).end, Some(PagesEnd::LastPage));
    }

    #[test]
    fn numbered_pages_go_on_until_one_is_short() {
        let page = |short_page| Facts { short_page, ..Facts::default() };
        let position = Position::start("list_sub_users").expect("is a list");
        assert_eq!(position.params(r#"{"search":"x"}"#).as_deref(), Ok(r#"{"page":1,"pageSize":100,"search":"x"}"#));
        let position = position.turn(&page(Some(false))).position.expect("goes on");
        assert_eq!(position.params(r#"{"pageSize":5,"page":9}"#).as_deref(), Ok(r#"{"page":2,"pageSize":5}"#));
        assert_eq!(position.turn(&page(Some(true))), Turn { position: None, end: Some(PagesEnd::ShortPage) });
        let page = |items: &str| Facts { page_items: Some(items.to_owned()), ..page(Some(false)) };
        let twice = Position::start("list_sub_users").ok().and_then(|first| first.turn(&page("a")).position).expect("goes on");
        assert_eq!(twice.clone().turn(&page("a")), Turn { position: None, end: Some(PagesEnd::RepeatedPage) });
        let further = twice.turn(&page("b")).position.map(|position| json_of(&position)).expect("goes on");
        // The service may show its last page once more, or begin anew.
        for again in ["b", "a"] {
            assert_eq!(further.parse::<Position>().map(|position| position.turn(&page(again)).end), Ok(Some(PagesEnd::RepeatedPage)));
        }
        let snake = Position { max_pages: 1, ..Position::start("list_dynamic_orders").expect("is a list") };
        assert_eq!(snake.params("{}").as_deref(), Ok(r#"{"page":1,"page_size":100}"#));
        let capped = snake.turn(&page("a"));
        assert!(capped.end == Some(PagesEnd::PageCap) && capped.position.is_some());
    }

    #[test]
    fn what_is_no_list_and_no_position_is_refused() {
        assert!(Position::start("get_balance").is_err() && Position::start("nothing").is_err());
        for odd in ["", "{}", "[]", r#"{"operation":"list_products","cursor":1}"#, r#"{"operation":"get_session"}"#] {
            assert!(page_turn_text(odd, "{}").is_err_and(|error| error.kind == crate::policy::Kind::Invalid), "{odd}");
        }
        assert!(page_params_text(r#"{"operation":"list_products"}"#, "[]").is_err());
        assert!(r#"{"operation":"list_products","pages":-1}"#.parse::<Position>().is_err());
        assert_eq!(page_turn_text(r#"{"operation":"list_products"}"#, "{}").as_deref(), Ok(r#"{"end":"last_page"}"#));
        for odd in ["", "garbage", "[]", r#"{"next_cursor":7}"#] {
            let refused = page_turn_text(r#"{"operation":"list_products"}"#, odd);
            assert!(refused.is_err_and(|error| error.field.as_deref() == Some("facts")), "{odd}");
        }
    }
}
