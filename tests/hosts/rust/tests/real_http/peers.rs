//! The odd server before ureq and reqwest: one charge behind each oddness, and each request gets its own answer.

use std::net::SocketAddr;

use hopline::client::RecordKind;
use hopline::contract::agent::{GetBalance, GetSession, TerminateSession};
use hopline::{CallOptions, ClientOptions, Effect, Kind};
use hopline_peers::{BEHAVIOURS, Behaviour, Options, Reading, serve};
use ureq::config::Config;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use crate::probe::{BOTH, Http, Live, Probe, eager, once, purchase};
use crate::{reqwest_example, ureq_example};

/// The encoding that a client could read and does not: ureq decodes gzip only.
const REFUSED: [(Http, &str); 1] = [(Http::Ureq, "deflate")];

struct Odd {
    live: Live,
    peers: hopline_peers::Running,
}

impl Odd {
    fn new() -> Self {
        let live = Live::new();
        let service = live.running.ready().agent_url.replace("/v1", "");
        let peers = live.runtime.block_on(serve(Options { service: Some(service), tls: None })).expect("the peers");
        Odd { live, peers }
    }

    fn url(&self) -> &str {
        self.peers.ready().odd_url.as_deref().expect("an odd server")
    }

    fn options(&self, folder: &str) -> ClientOptions {
        ClientOptions { base_url: format!("{}/{folder}/v1", self.url()), retry: eager(), ..self.live.options() }
    }

    /// Buys the first session, which is charged once; its id.
    fn buy(&self, what: &str, probe: &mut Probe) -> String {
        let ticket = probe.client.start(purchase(), CallOptions::intent("job"));
        let bought = probe.drive(ticket).unwrap_or_else(|error| panic!("{what}: {error}")).data.session_id;
        let sold: Vec<_> = self.live.sessions().into_iter().map(|session| session.session_id).collect();
        assert_eq!((self.live.charges(), sold.as_slice()), (1, [bought.clone()].as_slice()), "{what}");
        bought
    }

    /// Reads two sessions and the balance, one after the other: an answer that came late or twice would be the next one's.
    fn read_each_its_own(&self, what: &str, probe: &mut Probe, first: &str) {
        let mut other = Probe::new(Http::Ureq, self.live.options());
        let ticket = other.client.start(purchase(), CallOptions::default());
        let second = other.drive(ticket).unwrap_or_else(|error| panic!("{what}: {error}")).data.session_id;
        for id in [first, &second, first, &second] {
            let ticket = probe.client.start(GetSession { session_id: id.to_owned(), include_credentials: None }, CallOptions::default());
            let read = probe.drive(ticket).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(read.session_id, id, "{what}");
            let ticket = probe.client.start(GetBalance {}, CallOptions::default());
            let balance = probe.drive(ticket).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(balance.raw.text().contains("trial_balance"), "{what}: {}", balance.raw.text());
        }
    }
}

/// Checks each client behind each behaviour of some kinds, all at once: most of their time is waiting.
fn behind(kinds: &[Reading], check: impl Fn(Http, &Behaviour, String) + Copy + Send) {
    std::thread::scope(|scope| {
        for behaviour in BEHAVIOURS.iter().filter(|behaviour| kinds.contains(&behaviour.answer)) {
            for http in BOTH {
                scope.spawn(move || check(http, behaviour, format!("{http:?}, {}", behaviour.name)));
            }
        }
    });
}

#[test]
fn behind_one_odd_answer_a_purchase_charges_once_and_is_its_own_session() {
    behind(&[Reading::Given, Reading::Lost, Reading::Either], |http, behaviour, what| {
        let odd = Odd::new();
        let mut probe = Probe::new(http, odd.options(&format!("{}.once.writes", behaviour.name)));
        let bought = odd.buy(&what, &mut probe);
        let sends = odd.peers.relayed().iter().filter(|one| one.method == "POST" && one.relayed).count();
        if behaviour.answer == Reading::Given && !REFUSED.contains(&(http, behaviour.name)) {
            assert_eq!(sends, 1, "{what}");
        }
        odd.read_each_its_own(&what, &mut probe, &bought);
        let ticket = probe.client.start(TerminateSession { session_id: bought }, CallOptions::default());
        probe.drive(ticket).unwrap_or_else(|error| panic!("{what}: {error}"));
        let doubts =
            probe.saved().into_iter().filter(|saved| matches!(saved.holds, RecordKind::InDoubt | RecordKind::InDoubtForGood)).count();
        assert_eq!(doubts, 0, "{what}");
    });
}

#[test]
fn behind_answers_that_are_always_odd_everything_that_can_be_read_is() {
    behind(&[Reading::Given], |http, behaviour, what| {
        if !REFUSED.contains(&(http, behaviour.name)) {
            let odd = Odd::new();
            let mut probe = Probe::new(http, odd.options(behaviour.name));
            let bought = odd.buy(&what, &mut probe);
            odd.read_each_its_own(&what, &mut probe, &bought);
        }
    });
}

#[test]
fn an_answer_that_no_client_can_read_leaves_a_purchase_in_doubt_that_is_sent_once() {
    behind(&[Reading::Lost], |http, behaviour, what| {
        let odd = Odd::new();
        let mut probe = Probe::new(http, ClientOptions { retry: once(), ..odd.options(behaviour.name) });
        let ticket = probe.client.start(purchase(), CallOptions::intent("job"));
        let error = probe.drive(ticket).expect_err("nothing can be read");
        assert_eq!((error.kind, error.effect), (Kind::InDoubt, Effect::Unknown), "{what}: {error}");
        assert_eq!(probe.saved().len(), 1, "{what}");
    });
}

#[test]
fn a_name_whose_first_address_never_answers_is_reached_by_its_second() {
    let odd = Odd::new();
    let address: SocketAddr = odd.url().trim_start_matches("http://").parse().expect("an address");
    for hole in odd.peers.ready().black_holes.iter().copied() {
        for http in BOTH {
            let what = format!("{http:?}, {hole}");
            let base_url = format!("http://two.test:{}/plain/v1", address.port());
            let mut probe = Probe::new(http, ClientOptions { base_url, allow_http: true, ..odd.options("plain") });
            let addresses = [hole, address];
            probe.host.reqwest = reqwest_example::builder().resolve_to_addrs("two.test", &addresses).build().expect("a client");
            let config = ureq_example::agent().config().clone();
            probe.host.ureq = ureq::Agent::with_parts(config, DefaultConnector::default(), Two(addresses));
            let ticket = probe.client.start(GetBalance {}, CallOptions { timeout_ms: Some(8_000), ..CallOptions::default() });
            probe.drive(ticket).unwrap_or_else(|error| panic!("{what}: {error}"));
            // Nothing is in doubt where no address answers; ureq does not tell a connection that was never made from an answer that is late.
            if http == Http::Reqwest && hole.is_ipv4() {
                probe.host.reqwest = reqwest_example::builder().resolve_to_addrs("two.test", &[hole]).build().expect("a client");
                let ticket = probe.client.start(purchase(), CallOptions { attempts: Some(1), ..CallOptions::default() });
                assert_eq!(probe.drive(ticket).expect_err("nobody answers").effect, Effect::None, "{what}");
            }
        }
    }
}

/// Every name has these addresses.
#[derive(Debug)]
struct Two([SocketAddr; 2]);

impl Resolver for Two {
    fn resolve(&self, _: &ureq::http::Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        self.0.iter().for_each(|address| addresses.push(*address));
        Ok(addresses)
    }
}
