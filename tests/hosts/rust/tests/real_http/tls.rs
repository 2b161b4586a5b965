//! TLS with an authority of one's own: what it has signed is trusted, and a certificate that is refused is told as such.

use std::sync::Arc;

use hopline::client::{FailureKind, Sent};
use hopline::{CallOptions, ClientOptions, Effect, Kind};
use ureq::config::Config;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::probe::{BOTH, Http, Live, Probe, once, purchase};
use crate::reqwest_example;

/// A client of a base URL that trusts the sandbox's authority.
fn probe(http: Http, live: &Live, base_url: &str) -> Probe {
    let tls = live.running.ready().tls.as_ref().expect("it is over TLS");
    let pem = std::fs::read(&tls.tls_ca).expect("the authority's certificate");
    let mut probe = Probe::new(http, ClientOptions { base_url: base_url.to_owned(), retry: once(), ..live.options() });
    // The clients of the examples, with this authority.
    let trusted = Certificate::from_pem(&pem).expect("a certificate").to_owned();
    let tls = TlsConfig::builder().root_certs(RootCerts::Specific(Arc::new(vec![trusted]))).build();
    probe.host.ureq = Config::builder().max_redirects(0).http_status_as_error(false).proxy(None).tls_config(tls).build().into();
    let trusted = reqwest::Certificate::from_pem(&pem).expect("a certificate");
    probe.host.reqwest = reqwest_example::builder().tls_certs_only([trusted]).build().expect("a client");
    probe
}

#[test]
fn a_purchase_goes_to_a_service_whose_certificate_the_authority_has_signed() {
    for http in BOTH {
        let folder = tempfile::tempdir().expect("a folder");
        let live = Live::over_tls(folder.path());
        let tls = live.running.ready().tls.clone().expect("it is over TLS");
        let mut probe = probe(http, &live, &tls.tls_right);
        let ticket = probe.client.start(purchase(), CallOptions::intent("job-17"));
        assert!(probe.drive(ticket).is_ok(), "{http:?}");
        assert_eq!(live.charges(), 1, "{http:?}");
    }
}

#[test]
fn a_certificate_that_is_refused_is_told_as_such_and_nothing_is_bought() {
    for (http, sent, ends) in [
        // An error of ureq does not tell whether the request was under way.
        (Http::Ureq, Sent::Maybe, (Kind::InDoubt, Effect::Unknown)),
        // One of reqwest says that it came of connecting.
        (Http::Reqwest, Sent::Never, (Kind::Unavailable, Effect::None)),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let live = Live::over_tls(folder.path());
        let tls = live.running.ready().tls.clone().expect("it is over TLS");
        for url in [&tls.tls_wrong_name, &tls.tls_expired, &tls.tls_unknown_ca] {
            let mut probe = probe(http, &live, url);
            let ticket = probe.client.start(purchase(), CallOptions::intent("job-17"));
            let error = probe.drive(ticket).expect_err("a certificate that is refused");
            assert_eq!(probe.host.last_failure(), Some((FailureKind::Tls, sent)), "{http:?} {url}: {error}");
            assert_eq!((error.kind, error.effect), ends, "{http:?} {url}: {error}");
            assert_eq!(live.charges(), 0, "{http:?} {url}");
        }
    }
}
