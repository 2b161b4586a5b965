//! The API over TLS, with a certificate that is right and some that are not, and the target site. The authority that has signed them is made anew each time.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::accept;
use super::proxy::is_localhost;
use crate::service::BASE_PATH;

/// The year until which certificates are good that have not expired.
const VALID_UNTIL: i32 = 2100;

/// Where the API is over TLS, and whom to trust.
#[derive(Clone, Debug, Serialize)]
pub struct Tls {
    /// The file with the certificate of the authority, as PEM.
    pub tls_ca: String,
    /// The base URL of the agent API with a certificate that is right.
    pub tls_right: String,
    /// With one for another name.
    pub tls_wrong_name: String,
    /// With one that has expired.
    pub tls_expired: String,
    /// With one that an authority has signed whom nobody knows.
    pub tls_unknown_ca: String,
    /// The target site, with a certificate for each name below `localhost` that a client asks for.
    pub tls_target: String,
}

/// A server with one of the certificates.
pub(super) struct Served {
    address: SocketAddr,
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

/// An authority that signs certificates. Each run makes a new one.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// Makes the key and the certificate of an authority.
    pub fn new(name: &str) -> io::Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(io::Error::other)?;
        CertifiedIssuer::self_signed(params, key).map(Self).map_err(io::Error::other)
    }

    /// Writes the certificate into a folder as PEM, and names the file by its whole path, since its readers may be in other folders.
    pub fn write(&self, folder: &Path) -> io::Result<String> {
        std::fs::create_dir_all(folder)?;
        let file = std::path::absolute(folder)?.join("ca.pem");
        std::fs::write(&file, self.0.pem())?;
        Ok(file.to_string_lossy().into_owned())
    }

    /// Shows clients a certificate for some names, each a host name or an address, that is good until a year.
    pub fn acceptor(&self, names: &[&str], until: i32) -> io::Result<TlsAcceptor> {
        let certified = self.sign(names, until).map_err(io::Error::other)?;
        acceptor(Arc::new(SingleCertAndKey::from(certified)))
    }

    fn sign(&self, names: &[&str], until: i32) -> Result<CertifiedKey, Box<dyn std::error::Error + Send + Sync>> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
        (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(until, 1, 1));
        params.distinguished_name.push(rcgen::DnType::CommonName, names[0]);
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.0)?;
        let key = ring::sign::any_supported_type(&PrivatePkcs8KeyDer::from(key.serialize_der()).into())?;
        Ok(CertifiedKey::new(vec![certificate.der().clone()], key))
    }
}

/// Makes a server of certificates.
fn acceptor(certificates: Arc<dyn ResolvesServerCert>) -> io::Result<TlsAcceptor> {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The certificates of the target site. Each client gets a new one, for the name that it asks for.
struct SiteCertificates {
    authority: Authority,
    /// The address of the site, for clients that name no host.
    address: String,
}

impl fmt::Debug for SiteCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteCertificates").field("address", &self.address).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for SiteCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().unwrap_or(&self.address);
        let is_own = name == self.address || is_localhost(name);
        is_own.then(|| self.authority.sign(&[name], VALID_UNTIL).ok()).flatten().map(Arc::new)
    }
}

impl Tls {
    /// Makes the certificates, and writes the authority's own into a folder. The servers are those of the API and that of the target site.
    pub(super) async fn make(listen: SocketAddr, folder: &Path) -> io::Result<(Self, Vec<Served>, Served)> {
        let (known, unknown) = (Authority::new("the sandbox")?, Authority::new("somebody else")?);
        let tls_ca = known.write(folder)?;
        let address = listen.ip().to_string();
        let mut apis = Vec::new();
        for (authority, name, until) in [
            (&known, &*address, VALID_UNTIL),
            (&known, "elsewhere.invalid", VALID_UNTIL),
            (&known, &*address, 2001),
            (&unknown, &*address, VALID_UNTIL),
        ] {
            apis.push(Served::new(listen, authority.acceptor(&[name], until)?).await?);
        }
        let site = Served::new(listen, acceptor(Arc::new(SiteCertificates { authority: known, address }))?).await?;
        let mut urls = apis.iter().map(|api| api.url(BASE_PATH));
        let mut next = || urls.next().unwrap_or_default();
        let tls = Self {
            tls_ca,
            tls_right: next(),
            tls_wrong_name: next(),
            tls_expired: next(),
            tls_unknown_ca: next(),
            tls_target: site.url("/"),
        };
        Ok((tls, apis, site))
    }
}

impl Served {
    async fn new(listen: SocketAddr, acceptor: TlsAcceptor) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        Ok(Self { address: listener.local_addr()?, listener, acceptor })
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Serves a router on each connection whose client likes the certificate.
    pub(super) async fn serve(self, router: Router) {
        let Self { listener, acceptor, .. } = self;
        accept::each(listener, move |stream, peer| {
            let (shaken, router) = (acceptor.accept(stream), router.clone());
            async move {
                if let Ok(stream) = shaken.await {
                    accept::http(stream, peer, router).await;
                }
            }
        })
        .await;
    }
}
