//! What crosses between Rust and JavaScript, seen from JavaScript: `cargo xtask test browser` runs these in Node.

#![cfg(target_arch = "wasm32")]

use hopline_wasm::Client;
use js_sys::{Array, Function, JSON};
use wasm_bindgen::prelude::*;
use wasm_bindgen_test::wasm_bindgen_test;

const OPTIONS: &str = r#"{"base_url":"https://api.example/v1","api_key":"canary"}"#;
const BUY: &str = r#"{"session_type":"dynamic","product_no":"p-1"}"#;

/// What the rest is written with.
const TOOLS: &str = r#"
const now = [1700000000000, 0.5];
const until = (kind) => { for (let step; (step = client.poll(...now)) !== kind;) if (step === 0) throw new Error(`waits, and no ${kind} comes`); };
const thrown = (work) => { try { work(); return "nothing"; } catch (error) { return error; } };
const [WAIT, SAVE, SEND, COMPLETED, NOTIFY] = [0, 1, 2, 3, 4];
const sent = (operation, params, options = "{}") => {
  const command = client.start(operation, params, options);
  if (params !== "{}") { until(SAVE); client.saved(client.id, ...now); }
  until(SEND);
  return command;
};
const answer = (status, body, headers = []) => client.respond(client.id, status, headers, body, false, ...now);
"#;

/// Runs JavaScript with a client, and gives what it returns as JSON.
fn run(body: &str) -> String {
    let client = JsValue::from(Client::new(OPTIONS, &[7; 16]).unwrap_throw());
    let given = Array::of2(&client, &BUY.into());
    let told = Function::new_with_args("client, BUY", &format!("{TOOLS}\n{body}")).apply(&JsValue::NULL, &given);
    let told = told.unwrap_or_else(|error| wasm_bindgen::throw_str(&String::from(js_sys::Error::from(error).message())));
    String::from(JSON::stringify(&told).unwrap_throw())
}

#[wasm_bindgen_test]
fn the_getters_of_other_steps_are_undefined_and_never_null() {
    let told = run(r#"
        const names = ["until", "id", "command", "record", "data", "method", "url", "headers", "body", "timeoutMs", "sendBefore", "maxBody", "event"];
        const there = () => names.filter((name) => { if (client[name] === null) throw new Error(name); return client[name] !== undefined; });
        const all = [client.poll(...now), there()];
        client.start("create_session", BUY, "{}");
        until(SAVE);
        all.push(there());
        client.saved(client.id, ...now);
        until(SEND);
        all.push(there());
        return all;
    "#);
    assert_eq!(
        told,
        r#"[0,[],["id","record","data"],["id","command","method","url","headers","body","timeoutMs","sendBefore","maxBody"]]"#
    );
}

#[wasm_bindgen_test]
fn bodies_are_bytes_of_their_own_and_none_is_undefined() {
    let told = run(r#"
        sent("create_session", BUY);
        const body = client.body;
        const text = new TextDecoder().decode(body);
        body.fill(0);
        const again = new TextDecoder().decode(client.body);
        answer(202, new TextEncoder().encode('{"success":true,"data":{"session_id":"s-1","status":"creating"}}'));
        until(COMPLETED);
        sent("get_balance", "{}");
        return [body instanceof Uint8Array, JSON.parse(text).product_no, again === text, client.body === undefined, client.method];
    "#);
    assert_eq!(told, r#"[true,"p-1",true,true,"GET"]"#);
}

#[wasm_bindgen_test]
fn headers_are_a_flat_list_of_strings_both_ways() {
    let told = run(r#"
        sent("get_balance", "{}");
        const { headers } = client;
        const key = headers[headers.indexOf("x-api-key") + 1];
        answer(429, new TextEncoder().encode('{"success":false,"error":{"code":"RATE_LIMIT_EXCEEDED","message":"slow"}}'), ["retry-after", "7", "left over"]);
        until(NOTIFY);
        const { event } = client;
        client.poll(...now);
        return [headers.length % 2, headers.every((each) => typeof each === "string"), key, event.because.code, client.until >= 7000];
    "#);
    assert_eq!(told, r#"[0,true,"canary","RATE_LIMIT_EXCEEDED",true]"#);
}

#[wasm_bindgen_test]
fn errors_are_plain_objects_with_what_the_service_wrote_as_json_parse_reads_it() {
    let told = run(r#"
        const options = thrown(() => new client.constructor("{}", new Uint8Array(16)));
        const entropy = thrown(() => new client.constructor('{"base_url":"https://x/v1"}', new Uint8Array(3)));
        const step = thrown(() => client.saved(77, ...now));
        const seen = thrown(() => client.observe("s-1", "nothing", ...now));
        const plain = [options, entropy, step, seen].map((error) => [Object.getPrototypeOf(error) === Object.prototype, error.kind]);
        const command = sent("get_balance", "{}", '{"attempts":1}');
        const details = '{"price":0.1000000000000000055,"big":12345678901234567890123,"list":[null,true,4.10]}';
        answer(400, new TextEncoder().encode(`{"success":false,"error":{"code":"INVALID_REQUEST","message":"no","details":${details}}}`));
        until(COMPLETED);
        const [how, error] = client.take(command);
        const same = JSON.stringify(error.details) === JSON.stringify(JSON.parse(details));
        return [plain, how, error.kind, error.status, error.attempts, same, "cause" in error, typeof error.message];
    "#);
    assert_eq!(
        told,
        r#"[[[true,"invalid"],[true,"invalid"],[true,"misuse"],[true,"invalid"]],"failed","refused",400,1,true,false,"string"]"#
    );
}

#[wasm_bindgen_test]
fn saved_entries_events_and_verdicts_are_plain_objects() {
    let told = run(r#"
        const command = sent("open_session", BUY, '{"intent":"job-17"}');
        answer(202, new TextEncoder().encode('{"success":true,"data":{"session_id":"s-1","status":"active"}}'));
        const events = [];
        for (let step; (step = client.poll(...now)) !== WAIT; ) {
          if (step === NOTIFY) events.push(client.event);
          if (step === SAVE) client.saved(client.id, ...now);
        }
        const saved = client.savedList().map(({ record, ...rest }) => [typeof record, rest]);
        return [events, saved, client.observe("s-1", '{"status":403}', ...now), client.observe("s-2", '"captcha"', ...now) === undefined];
    "#);
    let accepted = r#"{"command":1,"operation":"create_session","intent":"job-17","event":"accepted","session_id":"s-1"}"#;
    let saved = r#"["string",{"operation":"create_session","intent":"job-17","session_id":"s-1","status":"active","holds":"session"}]"#;
    assert_eq!(told, format!(r#"[[{accepted}],[{saved}],{{"verdict":"rotate","reason":"http_403"}},true]"#));
}

#[wasm_bindgen_test]
fn a_result_is_taken_once_and_text_of_any_letters_comes_back_as_it_went() {
    let told = run(r#"
        const odd = "\u{1F980} \ud800 \u0000 é";
        const command = sent("get_balance", "{}");
        answer(200, new TextEncoder().encode(JSON.stringify({ success: true, data: { odd: "\u{1F980} \u0000 é" } })));
        until(COMPLETED);
        const taken = client.take(command);
        return [client.command === command, taken[0], JSON.parse(taken[2]).odd === "\u{1F980} \u0000 é", client.take(command) === undefined,
            client.take(4e9) === undefined, JSON.parse(client.restore([odd, odd], false)).refused[0].reason];
    "#);
    assert_eq!(told, r#"[true,"answered",true,true,true,"damaged"]"#);
}

#[wasm_bindgen_test]
fn numbers_that_are_no_times_stop_nothing() {
    let told = run(r#"
        client.start("get_balance", "{}", "{}");
        return [[NaN, NaN], [Infinity, -Infinity], [-1, 1e300], [undefined, undefined]].map(([unix, monotonic]) => typeof client.poll(unix, monotonic));
    "#);
    assert_eq!(told, r#"["number","number","number","number"]"#);
}
