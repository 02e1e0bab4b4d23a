//! Addresses of the public network: a page that a model asks for must not reach this computer or
//! the network that it is in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Returns why an address may not be read.
pub(super) fn refusal(url: &Url) -> Option<String> {
    let host = url.host_str().unwrap_or_default();
    let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
    if !matches!(url.scheme(), "http" | "https") {
        Some(format!("Expected http:// or https://, found {}:", url.scheme()))
    } else if !matches!(url.port_or_known_default(), Some(80 | 443)) {
        Some("Only the ports 80 and 443 are allowed.".to_owned())
    } else if !url.username().is_empty() || url.password().is_some() {
        Some("An address with a password is not allowed.".to_owned())
    } else if literal.is_ok_and(|address| !is_public(address)) || is_local_name(host) {
        Some(local(host))
    } else {
        None
    }
}

fn local(host: &str) -> String {
    format!("{host} is not a public address. Pages of this computer and its network are not read.")
}

fn is_local_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let local = ["local", "internal", "localhost", "lan", "home.arpa"];
    host.is_empty() || local.iter().any(|end| host == *end || host.ends_with(&format!(".{end}")))
}

/// Resolves names to public addresses alone: the connection goes to an address that was checked.
pub(super) struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            if found.iter().any(|address| !is_public(address.ip())) {
                return Err(local(&host).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Returns whether an address is one of the public network.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let reserved = match (first, second, third) {
        (0 | 10 | 127, _, _) => true,
        // Shared with a provider's customers, link-local, private.
        (100, 64..=127, _) | (169, 254, _) | (172, 16..=31, _) | (192, 168, _) => true,
        // Protocols, documentation, benchmarks.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => true,
        // Multicast, future use, broadcast.
        (224.., _, _) => true,
        _ => false,
    };
    !reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // Mapped, compatible, translated (NAT64) and 6to4 forms of an address of version 4.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] => v4(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        // Translated by the network itself, Teredo, documentation.
        [0x64, 0xff9b, 1, ..] | [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] => false,
        // Global unicast.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_public_network_are_read() {
        let url = |text: &str| Url::parse(text).unwrap();
        for public in
            ["https://example.org/a?b", "http://93.184.215.14", "https://[2606:4700::1111]/", "http://a.b:80"]
        {
            assert_eq!(refusal(&url(public)), None, "{public}");
        }
        for refused in [
            "http://localhost",
            "http://LOCALHOST./",
            "http://a.localhost",
            "http://printer.local",
            "http://db.internal",
            "http://127.0.0.1",
            "http://127.1",
            "http://2130706433",
            "http://0x7f.1",
            "http://0.0.0.0",
            "http://10.1.2.3",
            "http://172.31.0.1",
            "http://192.168.1.1",
            "http://169.254.169.254/latest",
            "http://100.100.0.1",
            "http://224.0.0.1",
            "http://255.255.255.255",
            "http://198.18.0.1",
            "http://[::1]",
            "http://[::]",
            "http://[::ffff:127.0.0.1]",
            "http://[::ffff:a00:1]",
            "http://[64:ff9b::7f00:1]",
            "http://[2002:7f00:1::]",
            "http://[fe80::1]",
            "http://[fc00::1]",
            "http://[ff02::1]",
            "http://[2001:db8::1]",
            "http://[::127.0.0.1]",
            "ftp://example.org",
            "file:///etc/passwd",
            "http://example.org:22",
            "http://a:b@example.org",
        ] {
            assert!(refusal(&url(refused)).is_some(), "{refused}");
        }
    }

    #[test]
    fn a_name_that_leads_to_this_computer_is_refused_when_it_is_resolved() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let resolved = runtime.block_on(PublicResolver.resolve("localhost".parse().unwrap()));
        let error = resolved.err().unwrap().to_string();
        assert!(error.contains("not a public address"), "{error}");
    }
}
