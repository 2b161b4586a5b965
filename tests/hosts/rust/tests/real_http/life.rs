//! A session's whole life, and a purchase whose program is gone before its answer is.

use hopline::client::{Host, OpenSession, Phase, RecordKind, Seen, Step, Ticket, Verdict, Whose};
use hopline::contract::Secret;
use hopline::contract::agent::{GetSession, Proxy, RenewSession, RotateReason, RotateSession, TerminateSession};
use hopline::{CallOptions, Client, ClientOptions, Kind, Outcome, drive};

use crate::probe::{BOTH, Live, Probe, purchase};
use crate::ureq_example::{Ureq, entropy};

/// The status and the body of the target site, through a session's proxy. Always with ureq: reqwest without TLS takes a
/// SOCKS proxy's own address for a URL that is not http, and refuses it.
fn visit(live: &Live, proxy: &Proxy) -> Result<(u16, String), ureq::Error> {
    let text = |secret: &Option<Secret>| secret.as_ref().expect("credentials").reveal().to_owned();
    let proxy = ureq::Proxy::builder(ureq::ProxyProtocol::Socks5h)
        .host(proxy.host.as_deref().expect("a host"))
        .port(proxy.port.and_then(|port| u16::try_from(port).ok()).expect("a port"))
        .username(&text(&proxy.username))
        .password(&text(&proxy.password));
    let config = ureq::config::Config::builder().proxy(Some(proxy.build()?)).http_status_as_error(false).build();
    // Only the proxy is to look this name up.
    let mut answer = config.new_agent().get(live.running.ready().target_url.replace("127.0.0.1", "localhost")).call()?;
    Ok((answer.status().as_u16(), answer.body_mut().read_to_string()?))
}

#[test]
fn a_session_is_bought_used_blocked_rotated_read_and_ended() {
    for http in BOTH {
        let live = Live::new();
        let mut probe = Probe::new(http, live.options());
        let ticket = probe.client.open_session(purchase(), CallOptions::intent("job"));
        let open = probe.drive(ticket).unwrap_or_else(|error| panic!("{http:?}: {error}"));
        let (id, proxy) = (open.session_id, open.session.proxy.expect("a proxy"));
        assert_eq!(open.phase, Phase::Ready);

        let exit = live.sessions()[0].exit;
        let (status, body) = visit(&live, &proxy).expect("the site");
        assert!(status == 200 && body.contains(&exit.to_string()), "{http:?}: {status} {body}");
        let now = probe.now();
        assert_eq!(probe.client.observe(&id, Seen::Status(200), now), Some(Verdict::Keep));
        let verdict = probe.client.observe(&id, Seen::Status(403), now);
        assert_eq!(verdict, Some(Verdict::Rotate(RotateReason::Http403)));

        let renew = probe.client.start(RenewSession { session_id: id.clone(), duration: 1 }, CallOptions::default());
        let sends = probe.host.answers.len();
        let refused = probe.drive(renew).expect_err("a dynamic session is not renewed");
        assert_eq!((refused.kind, probe.host.answers.len()), (Kind::Invalid, sends), "{http:?}: {refused}");

        let rotate = RotateSession { session_id: id.clone(), include_credentials: Some(true), reason: Some(RotateReason::Http403) };
        let ticket = probe.client.start(rotate, CallOptions::default());
        let rotated = probe.drive(ticket).unwrap_or_else(|error| panic!("{http:?}: {error}"));
        let fresh = rotated.data.proxy.expect("a proxy");
        let (status, body) = visit(&live, &fresh).expect("the site");
        assert!(status == 200 && !body.contains(&format!("\"{exit}\"")), "{http:?}: {status} {body}");

        let ticket = probe.client.start(GetSession { session_id: id.clone(), include_credentials: None }, CallOptions::default());
        assert_eq!(probe.drive(ticket).expect("a read").status.as_str(), "active", "{http:?}");
        let ticket = probe.client.start(TerminateSession { session_id: id.clone() }, CallOptions::default());
        probe.drive(ticket).unwrap_or_else(|error| panic!("{http:?}: {error}"));
        assert!(visit(&live, &fresh).is_err(), "{http:?}");
        assert_eq!((live.charges(), live.sessions()[0].status), (1, "terminated"), "{http:?}");
    }
}

#[test]
fn a_block_gives_a_session_that_rotates_by_itself_a_new_exit() {
    for http in BOTH {
        let live = Live::new();
        let mut probe = Probe::new(http, live.options());
        let ticket = probe.client.open_session(purchase(), CallOptions { auto_rotate: true, ..CallOptions::intent("job") });
        let open = probe.drive(ticket).unwrap_or_else(|error| panic!("{http:?}: {error}"));
        let (exit, now) = (live.sessions()[0].exit, probe.now());
        let Some(Verdict::Rotating(RotateReason::Http403, command)) = probe.client.observe(&open.session_id, Seen::Status(403), now) else {
            panic!("{http:?}: a 403 rotates")
        };
        let rotated = probe.drive(Ticket::<RotateSession>::of(command)).unwrap_or_else(|error| panic!("{http:?}: {error}"));
        let (status, body) = visit(&live, &rotated.data.proxy.expect("a proxy")).expect("the site");
        assert!(status == 200 && !body.contains(&format!("\"{exit}\"")), "{http:?}: {status} {body}");
        assert!(matches!(probe.client.observe(&open.session_id, Seen::Block, now), Some(Verdict::Unsure(_))), "{http:?}");
    }
}

#[test]
fn a_program_that_is_gone_before_the_answer_buys_once_when_it_comes_back() {
    let live = Live::new();
    let folder = tempfile::tempdir().expect("a folder");
    let intent = || CallOptions::intent("job-17");
    let program = || {
        let options = ClientOptions { store: true, ..live.options() };
        (Client::new(options, entropy().expect("entropy")).expect("a client"), Ureq::new(folder.path()).expect("a store"))
    };
    {
        let (mut client, mut host) = program();
        client.open_session(purchase(), intent());
        loop {
            let now = host.now();
            match client.poll(now) {
                Step::Store { id, call, .. } => {
                    let answer = host.store(&call);
                    client.resolve(id, Outcome::Store(answer), now).expect("the step waits");
                }
                // The request is answered, and nobody is there to hear it.
                Step::Send { request, .. } => break drop(host.send(&request)),
                Step::Wait { .. } => panic!("a purchase was to be sent"),
                Step::Completed { .. } | Step::Notify(_) => {}
            }
        }
    }
    assert_eq!(live.charges(), 1);

    let (mut client, mut host) = program();
    let asked = client.saved(None);
    let saved = drive(&mut client, asked, &mut host).expect("a list").entries;
    assert_eq!(saved.iter().map(|saved| (saved.holds, saved.whose)).collect::<Vec<_>>(), [(RecordKind::InDoubt, Whose::Free)]);
    let ticket = client.open_session(purchase(), intent());
    let open = drive(&mut client, ticket, &mut host).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((live.charges(), live.sessions().len()), (1, 1));
    assert_eq!((open.session_id.as_str(), open.phase), (live.sessions()[0].session_id.as_str(), Phase::Ready));
    assert!(open.session.proxy.and_then(|proxy| proxy.password).is_some());
}

#[test]
fn a_session_is_one_clients_until_it_lets_go_and_what_an_intent_stands_for_is_found_or_is_nothing() {
    let live = Live::new();
    let folder = tempfile::tempdir().expect("a folder");
    let program = || {
        let options = ClientOptions { store: true, ..live.options() };
        (Client::new(options, entropy().expect("entropy")).expect("a client"), Ureq::new(folder.path()).expect("a store"))
    };
    let ((mut first, mut one), (mut second, mut other)) = (program(), program());
    let mut resume = || {
        let resumed = Ticket::<Option<OpenSession>>::of(second.resume_intent("job-17", CallOptions::default()));
        drive(&mut second, resumed, &mut other)
    };
    assert_eq!(resume().expect("an answer"), None);
    let ticket = first.open_session(purchase(), CallOptions::intent("job-17"));
    let bought = drive(&mut first, ticket, &mut one).unwrap_or_else(|error| panic!("{error}"));
    let busy = resume().expect_err("another client has it");
    assert_eq!((busy.kind, busy.session_id.as_ref()), (Kind::Busy, Some(&bought.session_id)), "{busy}");
    drop((first, one));
    assert_eq!(resume().expect("an answer").map(|open| open.session_id), Some(bought.session_id));
    assert_eq!(live.charges(), 1);
}
