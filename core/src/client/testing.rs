//! What tests of several files begin with.

use super::{Client, ClientOptions};
use crate::contract::{Api, Secret};

/// A client of the reseller API that can log in, and has a token already where it is given one.
pub(super) fn reseller(entropy: u8, token: Option<&str>) -> Client {
    let options = ClientOptions {
        api: Api::Reseller,
        base_url: "https://api.example/api".into(),
        username: Some(Secret::new("reseller")),
        password: Some(Secret::new("word")),
        token: token.map(Secret::new),
        ..ClientOptions::default()
    };
    Client::new(options, [entropy; 16]).expect("the options are sound")
}
