//! A client of the reseller API in a world that the bytes make up.

use std::collections::BTreeMap;

use hopline::client::{CallOptions, Client, FailureKind, Holds, Sent, Settlement, StepId};
use hopline::contract::Method;
use hopline::policy::Error;
use hopline::wire::Request;

use crate::Tape;
use crate::reseller::{BASE, fresh};
use crate::world::{Out, Service, World, run};

#[derive(Default)]
struct Reseller {
    /// How often each write was done, by the name that its body has.
    done: BTreeMap<String, u32>,
    /// The tokens that are good end with this number.
    generation: u32,
    /// The login of this client was refused.
    refused: bool,
}

/// Whatever happens: no write is done twice, nothing that was done is called "not done", no secret is saved or told, saves of one
/// record never overlap, there is one login at a time and none after a refusal, and every command ends.
pub fn orders(bytes: &[u8]) {
    run::<Reseller>(bytes);
}

impl Service for Reseller {
    fn client(entropy: u8) -> Client {
        fresh(entropy, None)
    }

    fn act(world: &mut World<Self>, choice: u32, tape: &mut Tape<'_>) {
        let client = &mut world.client;
        match choice {
            0 | 1 => {
                let name = format!("order-{}", tape.number(3));
                let params = format!(
                    r#"{{"poolId":"{name}","userId":7,"unitPrice":0,"totalAmount":0,"ipCount":1,"cycleTimes":1,"duration":1,"unit":"month"}}"#
                );
                world.open.insert(client.start_json("place_order", &params, CallOptions::intent(name)));
            }
            2 => {
                let name = format!("money-{}", tape.number(3));
                let params = format!(r#"{{"user_id":7,"amount":1,"remark":"{name}"}}"#);
                world.open.insert(client.start_json("adjust_sub_user_balance", &params, CallOptions::intent(name)));
            }
            3 => {
                let (operation, params) =
                    [("get_current_balance", "{}"), ("wait_order", r#"{"order_no":"n-order-0"}"#)][tape.number(2) as usize];
                world.open.insert(client.start_json(operation, params, CallOptions::default()));
            }
            7 => {
                let doubt = client.saved().into_iter().find(|saved| saved.holds == Holds::InDoubtForGood);
                if let Some(one) = doubt {
                    let params = serde_json::json!({ "record": one.record.to_string() }).to_string();
                    match tape.number(3) {
                        1 => _ = client.settle_as(&one.record, &format!("n-order-{}", tape.number(2))),
                        0 => _ = world.open.insert(client.start_json("reconcile", &params, CallOptions::default())),
                        _ => _ = client.settle(&one.record, Settlement::Happened),
                    }
                }
            }
            8 => world.service.generation += 1,
            _ => {}
        }
    }

    fn serve(world: &mut World<Self>, id: StepId, request: &Request, tape: &mut Tape<'_>) {
        let fate = tape.number(9);
        let done = (fate < 5).then(|| world.service.serve_well(request, tape.number(4)));
        let page = if tape.number(2) == 0 { 502 } else { 401 };
        match (fate, done) {
            (0 | 1, Some((status, body))) => world.reply(id, status, &body),
            (2, _) => world.reply(id, page, "<html>"),
            (3 | 5, _) => world.lose(id, FailureKind::Closed, Sent::Maybe),
            // It was done, and the service fails all the same. It repeats what it was asked with, however old that is by now.
            (4, _) => {
                let token = request.header("authorization").unwrap_or_default();
                world.reply(id, 500, &format!(r#"{{"code":500,"message":"{token}"}}"#));
            }
            (6, _) => world.lose(id, FailureKind::Connect, Sent::Never),
            _ => {
                let status = [400, 401, 403, 429, 503, 409][tape.number(6) as usize];
                world.service.refused |= is_login(request) && matches!(status, 400..=428);
                world.reply(id, status, &format!(r#"{{"code":{status},"message":"canary-password"}}"#));
            }
        }
    }

    fn serve_well(&mut self, request: &Request, choice: u32) -> (u16, String) {
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if is_login(request) {
            return (200, format!(r#"{{"code":0,"data":{{"token":"canary-token-{}"}}}}"#, self.generation));
        }
        if request.header("authorization") != Some(&format!("Bearer canary-token-{}", self.generation)) {
            return (401, r#"{"code":401,"msg":"expired"}"#.to_owned());
        }
        let name = body["remark"].as_str().or(body["poolId"].as_str());
        if let Some(name) = name {
            let times = self.done.entry(name.to_owned()).or_default();
            *times += 1;
            assert_eq!(*times, 1, "{name} was done again");
            return (200, format!(r#"{{"code":0,"data":{{"orderNo":"n-{name}","status":"processing"}}}}"#));
        }
        let order = request.url.split("search=").nth(1).unwrap_or_default().split('&').next().unwrap_or_default();
        let status = ["active", "processing", "failed", "odd"][choice as usize];
        (200, format!(r#"{{"code":"0","data":{{"list":[{{"order_no":"{order}","status":"{status}","password":"canary-password"}}]}}}}"#))
    }

    fn sees(world: &mut World<Self>, request: &Request) {
        assert!(request.url.starts_with(BASE));
        if is_login(request) {
            let other = world.out.iter().any(|out| matches!(out, Out::Send(_, other) if is_login(other)));
            assert!(!other, "two logins are under way");
            assert!(!world.service.refused, "a login was sent again after it was refused");
        }
        let is_write = request.method != Method::Get && !is_login(request);
        let path = request.url.strip_prefix(BASE).unwrap_or_default();
        let records = world.store.values().filter(|data| String::from_utf8_lossy(data).contains(&format!("\"{path}\""))).count();
        let others = world.out.iter().filter(|out| matches!(out, Out::Send(_, other) if other.url == request.url)).count();
        assert!(!is_write || records > others, "a write was sent before it was saved");
    }

    fn has_done(&self, error: &Error) -> bool {
        error.intent.as_ref().is_some_and(|name| self.done.contains_key(name))
    }

    fn forgets(&mut self) {
        self.refused = false;
    }
}

fn is_login(request: &Request) -> bool {
    request.url.ends_with("/auth/login")
}
