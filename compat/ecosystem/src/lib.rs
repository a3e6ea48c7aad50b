//! Libraries of tokio's ecosystem on gmp, by way of the crate named `tokio`. Each file in `tests` is about one
//! library and does with it what it is for. `run` starts the servers that some of them need, and runs all.

use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

/// The port of a server that `run` has started, from the environment.
///
/// # Panics
///
/// If the variable is not set, or is no port.
pub fn port(variable: &str) -> u16 {
    let port = std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: compat/ecosystem/run starts the servers")
    });
    port.parse().expect("a port")
}

/// A certificate for "localhost", and its key.
pub struct Identity {
    /// The certificate, which is its own authority.
    pub certificate: CertificateDer<'static>,
    /// Its private key.
    pub key: PrivateKeyDer<'static>,
}

impl Identity {
    /// A new one.
    pub fn generate() -> Self {
        let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()])
            .expect("a certificate for localhost can be made");
        Self {
            certificate: issued.cert.der().clone(),
            key: PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der()).into(),
        }
    }

    /// How a server that has it is set up.
    pub fn server(&self) -> ServerConfig {
        ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            .expect("the key belongs to the certificate")
    }

    /// How a client that trusts it, and nobody else, is set up.
    pub fn client(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots
            .add(self.certificate.clone())
            .expect("it is a certificate");
        ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }
}
