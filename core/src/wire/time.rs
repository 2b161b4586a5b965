//! Times as the service writes them, and how long it asks to wait.

use crate::time::Millis;

const WEEKDAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Milliseconds since 1970 of an HTTP date, in one of its three forms: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`,
/// `Sun Nov  6 08:49:37 1994`. Mail programs call the same zone `+0000`.
pub(crate) fn http_date(text: &str) -> Option<Millis> {
    let text = text.trim();
    let date = ["GMT", "UTC", "+0000", "-0000"].iter().find_map(|zone| text.strip_suffix(zone)?.strip_suffix(' '));
    let words = date.unwrap_or(text).split([' ', '-']).filter(|word| !word.is_empty());
    let (weekday, day, month, year, clock) = match (date, words.collect::<Vec<_>>().as_slice()) {
        (Some(_), [weekday, day, month, year, clock]) => (weekday.strip_suffix(',')?, *day, *month, *year, *clock),
        (None, [weekday, month, day, clock, year]) => (*weekday, *day, *month, *year, *clock),
        _ => return None,
    };
    let month = i64::try_from(MONTHS.iter().position(|known| *known == month)?).ok()? + 1;
    let year = match numbers(year, ' ', [2]) {
        Some([year]) => {
            if year < 70 {
                year + 2000
            } else {
                year + 1900
            }
        }
        None => numbers(year, ' ', [4]).map(|[year]| year)?,
    };
    let [day] = numbers(day, ' ', [day.len()])?;
    let passed = days(year, month, day);
    let is_named = WEEKDAYS.get(usize::try_from(passed).ok()? % 7)?.starts_with(weekday) && weekday.len() >= 3;
    (is_named && (1..=month_days(year, month)).contains(&day)).then_some((passed * 86_400 + seconds_of_day(clock)?) * 1000)
}

/// The seconds of a day at a time, such as `08:49:37`. A minute may have a leap second.
fn seconds_of_day(clock: &str) -> Option<i64> {
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    (hour <= 23 && minute <= 59 && second <= 60).then_some((hour * 60 + minute) * 60 + second)
}

/// Milliseconds since 1970 of an RFC 3339 date-time, such as `2026-01-31T10:00:00.5+01:00`.
pub(crate) fn date_time(text: &str) -> Option<Millis> {
    let (date, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, rest) = rest.split_at_checked(8)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2]).filter(|_| is_day(date))?;
    let clock = seconds_of_day(clock)?;
    let (millis, zone) = match rest.strip_prefix('.') {
        Some(rest) => {
            let end = rest.find(|digit: char| !digit.is_ascii_digit()).filter(|end| *end > 0)?;
            let (digits, zone) = rest.split_at_checked(end)?;
            (format!("{digits:0<3}").get(..3)?.parse::<i64>().ok()?, zone)
        }
        None => (0, rest),
    };
    let offset = match zone {
        "Z" | "z" => 0,
        _ => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let [hours, minutes] = numbers(zone.strip_prefix(['+', '-'])?, ':', [2, 2])?;
            (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes))?
        }
    };
    Some((days(year, month, day) * 86_400 + clock - offset * 60) * 1000 + millis)
}

/// Returns true if a text is a day of the calendar, such as `2026-01-31`.
pub(crate) fn is_day(text: &str) -> bool {
    let day = numbers(text, '-', [4, 2, 2]);
    day.is_some_and(|[year, month, day]| (1..=12).contains(&month) && (1..=month_days(year, month)).contains(&day))
}

/// `text` as exactly N numbers of those widths between separators.
fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(separator);
    let mut found = [0; N];
    for (slot, width) in found.iter_mut().zip(widths) {
        let part = parts.next().filter(|part| part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        *slot = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01, counting years from March so that the leap day comes last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (month * 153 + 2) / 5 + day - 719_469
}

/// The wait that a `Retry-After` asks for, in milliseconds: seconds, a span such as `12s`, or a time, which is compared with the response's
/// own `Date` where it has one. The longest of several counts. A past, negative or unreadable value asks for no wait.
pub(crate) fn retry_after(text: &str, date: Option<Millis>, now: Millis) -> Option<Millis> {
    let until = |text: &str| http_date(text).or_else(|| date_time(text)).or_else(|| date_time(&format!("{text}Z")));
    let wait = |text: &str| {
        let text = text.trim_matches([' ', '\t', '"']);
        seconds(text).or_else(|| span(text)).or_else(|| until(text)?.checked_sub(date.unwrap_or(now)))
    };
    // Many dates have a comma in them.
    let parts: Vec<&str> = text.split(',').take(MOST_WAITS).collect();
    let dates = parts.windows(2).filter_map(|two| wait(&two.join(",")));
    parts.iter().filter_map(|one| wait(one)).chain(dates).max().map(|millis| millis.min(YEAR)).filter(|millis| *millis > 0)
}

/// The most times that are read in one header.
const MOST_WAITS: usize = 16;
/// The longest wait.
const YEAR: Millis = 365 * 24 * 3600 * 1000;

/// Numbers with their units, such as `12s`, `1m30s` or `90 seconds`, as milliseconds.
fn span(text: &str) -> Option<Millis> {
    let (mut rest, mut sum) = (text, 0_i64);
    while !rest.is_empty() {
        let (number, after) = rest.split_at_checked(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?)?;
        let after = after.trim_start();
        let (unit, after) = after.split_at_checked(after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len()))?;
        let millis = match unit.to_ascii_lowercase().as_str() {
            "ms" => 1,
            "s" | "sec" | "secs" | "second" | "seconds" => 1000,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
            "h" | "hour" | "hours" => 3_600_000,
            _ => return None,
        };
        // The number as if it were of seconds, so in thousandths.
        sum = sum.saturating_add(seconds(number)?.saturating_mul(millis).saturating_add(999) / 1000);
        rest = after.trim_start();
    }
    (!text.is_empty()).then_some(sum)
}

/// A number of seconds, written as any JSON number that is not negative, as milliseconds rounded up; at most a year.
pub(crate) fn seconds(text: &str) -> Option<Millis> {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    if ![whole, fraction, exponent.strip_prefix(['+', '-']).unwrap_or(exponent)].into_iter().all(is_digits) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    // An exponent that is too large for a number counts as the largest one.
    let far = if exponent.starts_with('-') { i32::MIN } else { i32::MAX };
    let zeros = digits.len().saturating_sub(significant.len());
    let places = i64::try_from(whole.len()).ok()?.saturating_sub(i64::try_from(zeros).ok()?).saturating_add(3);
    // How many of the significant digits count milliseconds.
    let places = places.saturating_add(exponent.parse().unwrap_or(far).into());
    let Ok(places) = usize::try_from(places) else { return Some(1) };
    if places > 15 {
        return Some(YEAR);
    }
    let (kept, rest) = significant.split_at_checked(places).unwrap_or((significant, ""));
    let millis: Millis = format!("{kept:0<places$}").parse().unwrap_or(0);
    let round_up = rest.bytes().any(|digit| digit != b'0');
    Some(millis.saturating_add(round_up.into()).min(YEAR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_time_is_read_in_any_zone() {
        assert_eq!(date_time("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(date_time("2000-02-29T12:30:15.250Z"), Some(951_827_415_250));
        assert_eq!(date_time("2026-01-31T10:00:00.5+01:00"), date_time("2026-01-31T09:00:00.500Z"));
        assert_eq!(date_time("1969-12-31T23:59:59Z"), Some(-1000));
        assert_eq!(date_time("1969-12-31T23:59:60Z"), Some(0));
        assert_eq!(date_time("1970-01-01T05:30:00+05:30"), Some(0));
        assert_eq!(date_time("1969-12-31T20:29:00-03:31"), Some(0));
        for bad in [
            "",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:61Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00+00:60",
            "2026-01-01T00:00:00",
            "2026-01-01",
            "2026-01-01T00:00:00.Z5",
            "éééééééééééé",
        ] {
            assert_eq!(date_time(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_http_date_is_read_in_its_three_forms() {
        for days in (0..=50_000).step_by(17) {
            let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(days * 86_400 + days % 86_400);
            let text = httpdate::fmt_http_date(at);
            assert_eq!(http_date(&text), Some(i64::try_from(days * 86_400 + days % 86_400).expect("is small") * 1000), "{text}");
        }
        let same =
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 6 Nov 1994 08:49:37 UTC"];
        assert_eq!(same.map(http_date), [Some(784_111_777_000); 4]);
        assert_eq!(http_date("Thursday, 01-Jan-70 00:00:00 GMT"), Some(0));
        assert_eq!(http_date("Sat Feb 29 23:59:60 2020"), date_time("2020-02-29T23:59:60Z"));
        for bad in [
            "",
            "GMT",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Su, 06 Nov 1994 08:49:37 GMT",
            ", 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Non 1994 08:49:37 GMT",
            "Sun, 06 Nov 994 08:49:37 GMT",
            "Sun, -6 Nov 1994 08:49 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Thu, 00 Dec 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 +0100",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Sun Nov 6 08:49:37 1994 GMT",
        ] {
            assert_eq!(http_date(bad), None, "{bad}");
        }
    }

    #[test]
    fn retry_after_is_read_in_every_form_that_was_seen() {
        let now = http_date("Sun, 15 Jun 2025 15:06:40 GMT").expect("is a date");
        for (text, waits) in [
            ("12.493", 12_493),
            ("12s", 12_000),
            ("1.5s", 1500),
            ("90 seconds", 90_000),
            ("1m30s", 90_000),
            ("250ms", 250),
            ("0.5ms", 1),
            ("2 min", 120_000),
            ("1h", 3_600_000),
            ("120, 60", 120_000),
            ("7, 9", 9000),
            ("7,soon,-3", 7000),
            ("\"30\"", 30_000),
            ("2025-06-15T15:06:50Z", 10_000),
            ("2025-06-15T17:06:50.25+02:00", 10_250),
            ("2025-06-15 15:06:50", 10_000),
            ("Sun, 15 Jun 2025 15:06:50 GMT", 10_000),
            ("Sun, 15 Jun 2025 15:06:50 +0000", 10_000),
            ("Sun, 15 Jun 2025 15:06:50 -0000", 10_000),
            ("Sun, 15 Jun 2025 15:06:50 GMT, 9", 10_000),
            ("20, Sun, 15 Jun 2025 15:06:50 GMT", 20_000),
            ("Sunday, 15-Jun-25 15:06:50 GMT", 10_000),
            ("Sun Jun 15 15:06:50 2025", 10_000),
            ("2030.5", 2_030_500),
            ("9999-01-01T00:00:00Z", YEAR),
            ("99999999h", YEAR),
        ] {
            assert_eq!(retry_after(text, Some(now), 0), Some(waits), "{text}");
            assert_eq!(retry_after(text, None, now), Some(waits), "{text}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_and_never_negative() {
        let date = http_date("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date, Some(784_111_777_000));
        assert_eq!(retry_after("5", None, 0), Some(5000));
        assert_eq!(retry_after(" 1.25 ", None, 0), Some(1250));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:47 GMT", date, 0), Some(10_000));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT", date, 0), None);
        assert_eq!(retry_after("99999999999999999999999", None, 0), Some(365 * 24 * 3600 * 1000));
        let numbers = ["1e3", "1.5E+1", "15e-1", "0.0001", "1e-9999999999", "0e5", "00.5", "1e18", "9e999999999999"];
        let year = 365 * 24 * 3600 * 1000;
        let waits = [1_000_000, 15_000, 1500, 1, 1, 0, 500, year, year];
        assert_eq!(numbers.map(|number| seconds(number).unwrap_or(-1)), waits);
        for nothing in
            ["", "0", "-1", "soon", "inf", "nan", "1e", "e1", "1e1.5", "1.e1", "0x10", ".", ",", "-5s", "5x", "s", "1.2.3s", "0s"]
        {
            assert_eq!(retry_after(nothing, None, 0), None, "{nothing}");
        }
    }
}
