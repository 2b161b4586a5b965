//! Questions that need no client and are answered at once.

use hopline::client::{RESPONSE_HEADERS, host_text as answer, page_params_text, page_turn_text, quote_text};
use hopline::contract::json_of;
use hopline::policy::{is_shared_text, parse_ip_range};
use wasm_bindgen::prelude::*;

use crate::Refused;

/// Answers a question, in one function for all of them, since each costs a page some hundred bytes:
///
/// - `response_headers`: the response headers to pass to `respond`, in a line each; leave out all others.
/// - `quote`: prices a quantity (`more`) of a product of a list (`given`), both as JSON, exactly.
/// - `page_params`: the parameters, as JSON, of the next page: those of the caller (`more`) with the cursor of the position (`given`).
///   `{"operation":"list_products"}` is the first position of that list.
/// - `page_turn`: the continuation after a page of a position (`given`), from its facts (`more`): `{"position":"…"}`,
///   `{"end":"last_page"}`, or both at the cap.
/// - `is_shared`: `true` if a product of the reseller API, as JSON, is shared static, so that an order of it must name a project.
/// - `ip_range`: reads a range of addresses: JSON, `{"text","first","last"}`. A text that can't be read is returned alone.
/// - `proxy`, `use_with`, `refusal`, `walk` and `session_event`: the question and the answer are JSON.
#[wasm_bindgen(js_name = hostText)]
pub fn host_text(question: &str, given: &str, more: &str) -> Result<String, Refused> {
    match question {
        "response_headers" => Ok(RESPONSE_HEADERS.join("\n")),
        "quote" => quote_text(given, more),
        "page_params" => page_params_text(given, more),
        "page_turn" => page_turn_text(given, more),
        "is_shared" => Ok(is_shared_text(given).to_string()),
        "ip_range" => Ok(json_of(&parse_ip_range(given))),
        _ => answer(question, given),
    }
    .map_err(Refused)
}
