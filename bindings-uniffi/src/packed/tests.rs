//! The packed format, byte for byte, read again as a host does.

use hopline::client::{Client, CommandId, Now, Outcome};
use hopline::contract::{REPLIES, endpoints, json_of};
use hopline::{Error, Step};
use serde_json::json;

use super::*;

const NOW: Now = Now { unix: 1_700_000_000_000, monotonic: 0 };

/// Packs the answer to an operation of the agent API without parameters, from its data.
fn packed(operation: &str, params: &str, data: &str) -> Result<Vec<u8>, Error> {
    let mut client = Client::from_text(r#"{"base_url":"https://api.example/v1","api_key":"canary"}"#, &[7; 16]).expect("is sound");
    let command = client.start_text(operation, params, r#"{"attempts":1}"#);
    let body = format!(r#"{{"success":true,"data":{data}}}"#);
    loop {
        match client.poll(NOW) {
            Step::Send { id, .. } => {
                let answer = Outcome::Response { status: 200, headers: &[], body: body.as_bytes(), truncated: false };
                client.resolve(id, answer, NOW).expect("is answered once");
            }
            Step::Completed { command: CommandId(ended) } if ended == command.0 => break,
            Step::Wait { .. } => panic!("it does not end"),
            _ => {}
        }
    }
    client.take_to_read(command).expect("has ended").and_then(|taken| pack(taken, None)).map(|(packed, _)| packed)
}

fn session(data: &str) -> Vec<u8> {
    packed("get_session", r#"{"session_id":"s-1"}"#, data).expect("fits")
}

/// Unpacks a record for hosts, as JSON.
pub(crate) fn unpacked(record: &'static Record, packed: &[u8]) -> serde_json::Value {
    let mut reader = Reader(packed);
    let value = reader.json(Shape::Record(record));
    assert!(reader.0.is_empty(), "bytes are left");
    value
}

/// The record for hosts of that name.
pub(crate) fn record(name: &str) -> &'static Record {
    hopline::client::host_types().into_iter().find(|record| record.name == name).expect("is told")
}

/// Reads packed values.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, length: usize) -> Vec<u8> {
        let (head, tail) = self.0.split_at(length);
        self.0 = tail;
        head.to_vec()
    }

    fn number(&mut self) -> usize {
        let byte = usize::from(self.take(1)[0]);
        if byte < 0x80 { byte } else { (byte & 0x7f) | self.number() << 7 }
    }

    fn text(&mut self) -> String {
        let length = self.number();
        String::from_utf8(self.take(length)).expect("is text")
    }

    fn json(&mut self, shape: Shape) -> serde_json::Value {
        match shape {
            Shape::Bool => (self.take(1) == [1]).into(),
            Shape::Integer | Shape::Time | Shape::Span => i64::from_le_bytes(self.take(8).try_into().expect("are 8")).into(),
            Shape::Word(words) => match self.number() {
                0 => format!("other {}", self.text()).into(),
                place => words.words[place - 1].word.into(),
            },
            Shape::List(item) | Shape::OneOrMany(item) => {
                let count = u32::from_le_bytes(self.take(4).try_into().expect("are 4"));
                (0..count).map(|_| self.json(*item)).collect()
            }
            Shape::Record(record) => {
                let bits = self.take(record.fields.len().div_ceil(8));
                let there = |index: usize| bits[index / 8] >> (index % 8) & 1 == 1;
                let fields = record.fields.iter().enumerate().filter(|(index, _)| there(*index));
                fields.map(|(_, field)| (field.name.to_owned(), self.json(field.shape))).collect::<serde_json::Map<_, _>>().into()
            }
            Shape::Error => self.json(Shape::Record(record("ErrorFields"))),
            _ => self.text().into(),
        }
    }
}

fn shown(packed: &[u8]) -> serde_json::Value {
    let mut reader = Reader(packed);
    let name = reader.text();
    let shapes = endpoints().map(|endpoint| endpoint.response).chain(REPLIES);
    let shape = shapes.into_iter().find(|shape| matches!(shape, Shape::Record(record) if record.name == name)).expect("is an answer");
    let shown = reader.json(shape);
    assert!(reader.0.is_empty(), "bytes are left");
    shown
}

#[test]
fn members_come_in_the_tables_order_and_what_is_null_or_unknown_does_not() {
    let written = session(r#"{"status":"active","proxy":{"port":1080,"host":"h"},"other":[1],"session_id":"s-1","session_type":null}"#);
    assert_eq!(shown(&written), json!({"session_id": "s-1", "status": "active", "proxy": {"host": "h", "port": 1080}}));
    assert_eq!(written, session(r#"{"session_id":"s-1","status":"active","proxy":{"host":"h","port":1080}}"#));
}

#[test]
fn a_record_is_a_bitmap_and_its_members() {
    let head = [&[7_u8][..], b"Session", &[0b101, 3], b"s-1"].concat();
    let written = session(r#"{"session_id":"s-1","status":"active"}"#);
    let words = written.strip_prefix(head.as_slice()).expect("begins so");
    assert!(matches!(words, [place] if *place > 0), "a word that is known is its place: {words:?}");
    let other = session(r#"{"session_id":"s-1","status":"paused"}"#);
    assert_eq!(other.strip_prefix(head.as_slice()), Some(&b"\0\x06paused"[..]));
}

#[test]
fn numbers_are_exact_and_a_long_text_has_a_long_length() {
    let name = "é".repeat(100);
    let product = format!(
        r#"{{"price":4.10,"product_no":"p","name":"{name}","sharing":"dedicated","type":"dynamic","currency":"USD","unit":"GB","available":true}}"#
    );
    let written = packed("list_products", "{}", &format!(r#"{{"items":[{product},{product}],"next_cursor":null}}"#)).expect("fits");
    let shown = shown(&written);
    let items = shown["items"].as_array().expect("is a list");
    assert_eq!(items.iter().filter(|item| item["price"] == "4.10" && item["name"] == name.as_str()).count(), 2, "{shown}");
}

#[test]
fn what_nobody_documents_is_not_packed_and_what_does_not_fit_is_an_error() {
    assert_eq!(packed("get_balance", "{}", r#"{"balance":1}"#).as_deref(), Ok(&[0_u8][..]));
    let error = packed("list_products", "{}", r#"{"items":[7]}"#).expect_err("does not fit");
    assert_eq!(error.field.as_deref(), Some("data.items[0]"));
}

#[test]
fn what_hosts_are_told_is_packed_as_it_is_written() {
    use hopline::client::{Event, EventKind};

    let Err(cause) = Client::from_text("{}", &[]) else { panic!("16 bytes are needed") };
    let Err(because) = Client::from_text(r#"{"base_url":"x"}"#, &[7; 16]) else { panic!("a base URL is needed") };
    let read = |text: String| serde_json::from_str::<serde_json::Value>(&text).expect("is JSON");
    // An error's texts are spelled as the hosts do, which other tests show.
    let spelled = |text: String| {
        text.replace("`base_url`", "`baseUrl`").replace("\"base_url\"", "\"baseUrl\"").replace("get_balance:", "getBalance:")
    };
    assert_eq!(unpacked(record("ErrorFields"), &super::packed(&cause)), read(json_of(&cause)));
    let what = EventKind::Repeating { attempts: 2, delay_ms: 500, because };
    let event = Event { command: None, operation: "get_balance", intent: Some("é".to_owned()), what };
    assert_eq!(unpacked(record("Event"), &super::packed(&event)), read(spelled(json_of(&event))));
}
