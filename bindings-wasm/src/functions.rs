//! What needs no client: functions of texts.

use hopline::client::{RESPONSE_HEADERS, host_text as answer, page_params_text, page_turn_text, quote_text};
use hopline::contract::json_of;
use hopline::policy::{is_shared_text, parse_ip_range};
use wasm_bindgen::prelude::*;

use crate::Refused;

/// The response headers to pass to `respond`; leave out all others.
#[wasm_bindgen(js_name = responseHeaders)]
pub fn response_headers() -> Vec<String> {
    RESPONSE_HEADERS.map(str::to_owned).to_vec()
}

/// Answers a question that needs no client, both as JSON: `proxy`, `use_with`, `refusal`, `walk` or `session_event`.
#[wasm_bindgen(js_name = hostText)]
pub fn host_text(question: &str, given: &str) -> Result<String, Refused> {
    answer(question, given).map_err(Refused)
}

/// Prices a quantity of a product of a list, both as JSON, exactly.
#[wasm_bindgen]
pub fn quote(product: &str, quantity: &str) -> Result<String, Refused> {
    quote_text(product, quantity).map_err(Refused)
}

/// The parameters, as JSON, of the page that comes next: those of the caller with the cursor of the position.
/// `{"operation":"list_products"}` is the first position of that list.
#[wasm_bindgen(js_name = pageParams)]
pub fn page_params(position: &str, params: &str) -> Result<String, Refused> {
    page_params_text(position, params).map_err(Refused)
}

/// What comes after a page, from its facts: `{"position":"…"}`, `{"end":"last_page"}`, or both at the cap.
#[wasm_bindgen(js_name = pageTurn)]
pub fn page_turn(position: &str, facts: &str) -> Result<String, Refused> {
    page_turn_text(position, facts).map_err(Refused)
}

/// Whether a product of the reseller API, as JSON, is shared static, so that an order of it must name a project.
#[wasm_bindgen(js_name = isSharedText)]
pub fn is_shared(product: &str) -> bool {
    is_shared_text(product)
}

/// Reads a range of addresses: JSON, `{"text","first","last"}`. What can't be read is only its text.
#[wasm_bindgen(js_name = ipRangeText)]
pub fn ip_range(text: &str) -> String {
    json_of(&parse_ip_range(text))
}
