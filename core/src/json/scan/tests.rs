use super::*;

#[test]
fn what_is_json_is_what_serde_json_takes() {
    let texts = [
        "1",
        "-0",
        "-",
        "01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "1E-05",
        "+1",
        "true",
        "tru",
        "truex",
        "nul",
        "\"",
        "\"a",
        "\"\\u12",
        "\"\\ud800\"",
        "\"\\x\"",
        "\"\t\"",
        "\"\u{7f}\u{20ac}12345678\"",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        " [ 1 , { \"a\" : [ ] } ] ",
        "1 2",
        "",
        " ",
        "\u{feff}1",
        "[]]",
        "\0",
        "[\"12345678\\\"90123456\\\\\"]",
    ];
    for text in texts {
        let reference = serde_json::from_str::<&serde_json::value::RawValue>(text);
        assert_eq!(whole(text).ok(), reference.as_ref().ok().map(|raw| raw.get()), "{text}");
        // serde_json calls a number that is cut off invalid.
        let cut_off = ["-", "1.", "1e", "1e+"].contains(&text);
        assert_eq!(ends_early(text.as_bytes()), cut_off || reference.is_err_and(|error| error.is_eof()), "{text}");
    }
}

#[test]
fn what_is_nested_too_deeply_is_not_read() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(whole(&nested(100)).is_ok() && whole(&nested(101)).is_err());
    assert!(is_too_deep(&nested(101)) && is_too_deep(&"[".repeat(1_000_000)) && is_too_deep(&r#"{"a":"#.repeat(101)));
    assert!(!is_too_deep(&nested(100)) && !is_too_deep(&"[".repeat(100)) && !is_too_deep("{"));
    assert!(whole(&format!("[{}]", ["[[[]]]"; 200].join(","))).is_ok(), "what is side by side is not deep");
    assert!(!ends_early("[".repeat(100_000).as_bytes()));
}

#[test]
fn a_string_ends_where_it_ends_at_any_offset() {
    for length in 0..40 {
        for end in ["\"", "\\\"\"", "\u{1}", "\u{1f}\"", "\\u0041\"", ""] {
            let text = format!("\"{}{end}", "x\u{e9}".repeat(length).chars().take(length).collect::<String>());
            let reference = serde_json::from_str::<String>(&text).ok();
            let found = Scanner::new(&text).string().ok().and_then(|text| text.plain().map(Cow::into_owned));
            assert_eq!(found, reference, "{text:?}");
        }
    }
}
