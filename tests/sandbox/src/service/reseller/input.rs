//! The common parts of the backend's requests: two spellings of a name, pages, and days.

use std::time::SystemTime;

use crate::service::envelope::Refusal;
use crate::service::input::Query;

const PAGE_SIZE: i64 = 20;
const LARGEST_PAGE: i64 = 100;
pub(super) const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// One value of a name with several spellings; where more are given they have to agree.
pub(super) fn agreed<T: PartialEq>(field: &str, given: impl IntoIterator<Item = Option<T>>) -> Result<Option<T>, Refusal> {
    let mut values = given.into_iter().flatten();
    let first = values.next();
    match values.all(|value| Some(&value) == first.as_ref()) {
        true => Ok(first),
        false => Err(Refusal::invalid(field, "is given in two spellings that differ")),
    }
}

/// The requested part of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paging {
    page: i64,
    size: i64,
}

impl Paging {
    pub(super) fn read(query: &Query) -> Result<Self, Refusal> {
        let page = query.whole("page", 1, i64::MAX)?.unwrap_or(1);
        let sizes = [query.whole("pageSize", 1, LARGEST_PAGE)?, query.whole("page_size", 1, LARGEST_PAGE)?];
        Ok(Self { page, size: agreed("page_size", sizes)?.unwrap_or(PAGE_SIZE) })
    }

    /// The part of a list, and the counts that stand beside it.
    pub(super) fn cut<T>(self, all: Vec<T>) -> (Vec<T>, [(&'static str, i64); 3]) {
        let counts = [("total", i64::try_from(all.len()).unwrap_or(i64::MAX)), ("page", self.page), ("page_size", self.size)];
        let skipped = (self.page - 1).saturating_mul(self.size);
        let size = usize::try_from(self.size).unwrap_or(0);
        let part = all.into_iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX)).take(size);
        (part.collect(), counts)
    }
}

/// A span of moments in Unix milliseconds, open where nothing was said. Its last moment does not belong to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    start: i64,
    end: i64,
}

impl Span {
    /// From the first moment of one day to the last of another.
    pub(super) fn days(query: &Query, start: &str, end: &str) -> Result<Self, Refusal> {
        let read = |field| query.text(field).map(|text| day(text).ok_or_else(|| Refusal::invalid(field, "must be a date as 2026-01-31")));
        let end = read(end).transpose()?.map_or(i64::MAX, |day| day.saturating_add(DAY_MS));
        Ok(Self { start: read(start).transpose()?.unwrap_or(i64::MIN), end })
    }

    /// Reads a span of which each end is a day or a moment; the last moment belongs to the span.
    pub(super) fn moments(query: &Query, start: &str, end: &str) -> Result<Self, Refusal> {
        let read = |field: &str, length: i64| {
            let moment = |text| day(text).map(|day| day.saturating_add(length)).or_else(|| moment(text).map(|at| at + length.min(1)));
            let rule = "must be a date as 2026-01-31 or a moment as 2026-01-31T08:00:00Z";
            query.text(field).map(|text| moment(text).ok_or_else(|| Refusal::invalid(field, rule))).transpose()
        };
        Ok(Self { start: read(start, 0)?.unwrap_or(i64::MIN), end: read(end, DAY_MS)?.unwrap_or(i64::MAX) })
    }

    pub(super) fn holds(self, at_ms: i64) -> bool {
        (self.start..self.end).contains(&at_ms)
    }

    /// True if the span holds a moment that may never come; a span without limits holds that, too.
    pub(super) fn holds_any(self, at_ms: Option<i64>) -> bool {
        let is_open = self.start == i64::MIN && self.end == i64::MAX;
        at_ms.map_or(is_open, |at_ms| self.holds(at_ms))
    }
}

/// The first moment of a day written as year, month and day.
fn day(text: &str) -> Option<i64> {
    let parts: Vec<&str> = text.split('-').collect();
    let is_shaped = parts.iter().map(|part| part.len()).eq([4, 2, 2]) && parts.concat().bytes().all(|digit| digit.is_ascii_digit());
    let numbers: Vec<i64> = parts.iter().filter_map(|part| part.parse().ok()).collect();
    let &[year, month, day] = &numbers[..] else {
        return None;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = lengths.get(..usize::try_from(month).ok()?.checked_sub(1)?)?;
    let length = lengths.get(before.len())?;
    let leaps = |year: i64| year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = (year - 1970) * 365 + leaps(year - 1) - leaps(1969) + before.iter().sum::<i64>() + day - 1;
    (is_shaped && (1..=*length).contains(&day)).then_some(days * DAY_MS)
}

fn moment(text: &str) -> Option<i64> {
    let at = humantime::parse_rfc3339_weak(text).ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(at.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: &str) -> Result<Span, Refusal> {
        Span::moments(&Query::parse(Some(text))?, "from", "to")
    }

    #[test]
    fn a_day_is_a_real_one() {
        assert_eq!(day("2023-11-14"), Some(1_699_920_000_000));
        assert_eq!(day("1969-12-31"), Some(-DAY_MS));
        assert_eq!(day("2024-02-29"), day("2024-03-01").map(|next| next - DAY_MS));
        assert_eq!((day("0000-01-01"), day("9999-12-31")), (Some(-62_167_219_200_000), Some(253_402_214_400_000)));
        for bad in [
            "",
            "2023-11-31",
            "2023-13-01",
            "23-11-14",
            "2023-11-14T00:00:00Z",
            "2023/11/14",
            "2023-1-14",
            "-023-11-14",
            "2023-02-29",
            "2023-00-01",
            "2023-01-00",
        ] {
            assert_eq!(day(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_span_takes_days_or_moments_and_holds_both_of_its_ends() {
        let day = span("from=2023-11-14&to=2023-11-14").unwrap();
        assert!(day.holds(1_699_920_000_000) && day.holds(1_700_006_399_999) && !day.holds(1_700_006_400_000));
        let moment = span("from=2023-11-14T00:00:00Z&to=2023-11-14+00:00:00").unwrap();
        assert!(moment.holds(1_699_920_000_000) && !moment.holds(1_699_920_000_001));
        assert!(span("").unwrap().holds_any(None) && !day.holds_any(None));
        assert!(span("from=yesterday").is_err());
    }

    #[test]
    fn a_page_beyond_the_end_is_empty() {
        let cut = |text| Paging::read(&Query::parse(Some(text)).unwrap()).unwrap().cut(vec![1, 2, 3]);
        assert_eq!(cut("page=2&page_size=2"), (vec![3], [("total", 3), ("page", 2), ("page_size", 2)]));
        assert_eq!(cut("page=9223372036854775807").0, Vec::<i32>::new());
        for bad in ["page=0", "page_size=101", "pageSize=0", "pageSize=5&page_size=6", "page=x"] {
            assert!(Paging::read(&Query::parse(Some(bad)).unwrap()).is_err(), "{bad}");
        }
    }
}
