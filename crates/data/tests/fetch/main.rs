//! Fetching, tested against a real web server on this computer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod download;
mod recipes;
mod server;

use negscale_data::fetch::{Patience, Remote, Sum};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// Quick, so that tests are.
fn hasty() -> Patience {
    Patience {
        attempts: 3,
        connect: Duration::from_secs(10),
        idle: Duration::from_secs(10),
        pause: Duration::from_millis(1),
        program: Duration::from_secs(60),
    }
}

/// Bytes without any pattern that a mistake could hide in.
fn body(length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 41) as u8).collect()
}

fn sha256(bytes: &[u8]) -> &'static str {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>().leak()
}

fn remote(url: &'static str, file: &'static str, body: &[u8]) -> Remote {
    Remote { url, file, at_most: 10_000_000, sum: Some(Sum::Sha256(sha256(body))) }
}
