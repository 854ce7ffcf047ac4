//! What the two sides offer each other in INIT and INIT ACK.

use core::net::IpAddr;

use crate::auth::Vectors;
use crate::path::{PATHS, is_host};
use crate::wire::{Cause, CauseOwned, Init, Param, ParamBuilder, kind, param};
use crate::{AssocConfig, Features};

/// What one side says of itself.
#[derive(Debug, Default)]
pub(crate) struct Offer<'a> {
    pub addresses: Vec<IpAddr>,
    pub cookie: Option<&'a [u8]>,
    /// What it asks a cookie's life to be longer by, in milliseconds.
    pub preservative: u32,
    pub forward: bool,
    pub extensions: &'a [u8],
    pub zero_checksum: Option<u32>,
    pub adaptation: Option<u32>,
    pub vectors: Option<Vectors>,
    /// Parameters to be reported, each as it came, without its padding.
    pub unrecognized: Vec<&'a [u8]>,
}

/// Bytes of unknown parameters that are reported.
const MOST_REPORT: usize = 256;

impl<'a> Offer<'a> {
    /// What an INIT or INIT ACK that can't be accepted is refused with; `malformed` says that a parameter of it is.
    pub fn read(init: &Init<'a>, malformed: &'static str) -> Result<Offer<'a>, CauseOwned> {
        let malformed = || CauseOwned::from(Cause::ProtocolViolation(malformed.as_bytes()));
        let mut offer = Offer::default();
        let (mut random, mut chunks, mut hmacs) = (None, None, None);
        for param in init.params {
            let param = param.map_err(|_| malformed())?;
            match param {
                Param::Ipv4(addr) => offer.add(IpAddr::V4(addr)),
                Param::Ipv6(addr) => offer.add(IpAddr::V6(addr)),
                Param::Cookie(cookie) => offer.cookie = Some(cookie),
                Param::CookiePreservative(more) => offer.preservative = more,
                Param::ForwardTsnSupported => offer.forward = true,
                Param::SupportedExtensions(kinds) => offer.extensions = kinds,
                Param::ZeroChecksum(method) => offer.zero_checksum = Some(method),
                Param::AdaptationLayer(code) => offer.adaptation = Some(code),
                Param::Random(bytes) => random = Some(bytes),
                Param::ChunkList(bytes) => chunks = Some(bytes),
                Param::HmacAlgorithms(list) => hmacs = Some(list.as_bytes()),
                // To be resolved by nobody (RFC 9260 5.1.2).
                Param::HostName(_) => {
                    let mut address = Vec::new();
                    ParamBuilder::new(&mut address).put(&param);
                    return Err(Cause::UnresolvableAddress(&address).into());
                }
                Param::Unknown { kind, whole } => {
                    // A report that fills packets would serve nobody but those who flood others with our answers.
                    if param::report(kind) && offer.report_size() + in_report(whole) <= MOST_REPORT
                    {
                        offer.unrecognized.push(whole);
                    }
                    if param::stop(kind) {
                        break;
                    }
                }
                _ => {}
            }
        }
        // RFC 4895 6.1: RANDOM and HMAC-ALGO go together, or there is no AUTH.
        if random.is_some_and(|random| random.len() != crate::auth::RANDOM) {
            return Err(malformed());
        }
        if let (Some(random), Some(hmacs)) = (random, hmacs) {
            offer.vectors = Vectors::of_peer(random, chunks, hmacs);
        }
        Ok(offer)
    }

    /// Bytes that the parameters to be reported take, each with a head of its own.
    fn report_size(&self) -> usize {
        self.unrecognized.iter().map(|whole| in_report(whole)).sum()
    }

    fn add(&mut self, addr: IpAddr) {
        if is_host(addr) && self.addresses.len() < PATHS && !self.addresses.contains(&addr) {
            self.addresses.push(addr);
        }
    }

    fn supports(&self, kind: u8) -> bool {
        self.extensions.contains(&kind)
    }

    /// What the association can do, with this peer.
    pub fn agree(&self, config: &AssocConfig) -> Features {
        let auth = uses_auth(config) && self.vectors.is_some();
        let interleave = config.interleave && self.supports(kind::I_DATA);
        Features {
            // RFC 8260 2.3: with I-DATA it is I-FORWARD-TSN that both need.
            forward: config.partial_reliability
                && self.forward
                && (!interleave || self.supports(kind::I_FORWARD_TSN)),
            interleave,
            reconfiguration: config.reconfiguration && self.supports(kind::RE_CONFIG),
            // RFC 5061 4.2.7: ASCONF without AUTH is not to be used.
            addresses: config.address_reconfiguration
                && auth
                && self.supports(kind::ASCONF)
                && self.supports(kind::ASCONF_ACK),
            auth,
            pad: self.supports(kind::PAD),
            zero_checksum_out: config.zero_checksum.is_some()
                && self.zero_checksum == config.zero_checksum,
            zero_checksum_in: config.zero_checksum.is_some(),
        }
    }
}

fn in_report(whole: &[u8]) -> usize {
    4 + whole.len().next_multiple_of(4)
}

/// AUTH is offered where the user, or address reconfiguration, needs it.
pub(crate) fn uses_auth(config: &AssocConfig) -> bool {
    config.authentication || config.address_reconfiguration
}

/// Writes what we offer. `local`: our addresses, where they were named.
pub(crate) fn describe(
    params: &mut ParamBuilder<'_>,
    config: &AssocConfig,
    local: &[IpAddr],
    to: IpAddr,
    vectors: Option<&Vectors>,
) {
    let told: Vec<IpAddr> = local.iter().copied().filter(|a| is_told(*a, to)).collect();
    if told.len() > 1 {
        for addr in &told {
            params.put(&Param::from(*addr));
        }
    }
    if config.partial_reliability {
        params.put(&Param::ForwardTsnSupported);
    }
    let mut extensions = vec![kind::PAD];
    if config.partial_reliability {
        extensions.push(kind::FORWARD_TSN);
    }
    if config.reconfiguration {
        extensions.push(kind::RE_CONFIG);
    }
    if config.interleave {
        extensions.push(kind::I_DATA);
        if config.partial_reliability {
            extensions.push(kind::I_FORWARD_TSN);
        }
    }
    if config.address_reconfiguration {
        extensions.extend([kind::ASCONF, kind::ASCONF_ACK]);
    }
    if uses_auth(config) {
        extensions.push(kind::AUTH);
    }
    params.put(&Param::SupportedExtensions(&extensions));
    if let Some(method) = config.zero_checksum {
        params.put(&Param::ZeroChecksum(method));
    }
    if let Some(code) = config.adaptation {
        params.put(&Param::AdaptationLayer(code));
    }
    if let Some(vectors) = vectors {
        vectors.write(params);
    }
}

/// Addresses of narrower scope than the peer's mean nothing to it.
fn is_told(addr: IpAddr, to: IpAddr) -> bool {
    let link_local = |a: IpAddr| match a {
        IpAddr::V4(a) => a.is_link_local(),
        IpAddr::V6(a) => a.is_unicast_link_local(),
    };
    to.is_loopback() || (!addr.is_loopback() && (link_local(to) || !link_local(addr)))
}

/// The chunks that a peer of ours has to authenticate.
pub(crate) fn chunks_to_authenticate(config: &AssocConfig) -> Vec<u8> {
    let mut kinds = config.authenticated_chunks.clone();
    if config.address_reconfiguration {
        kinds.extend([kind::ASCONF, kind::ASCONF_ACK]);
    }
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}
