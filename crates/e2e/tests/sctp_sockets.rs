//! RFC 6458 and sctp(7) as cases in C, which know of sockets and libsctp alone: `c/sctp_sockets/AREA.c`, over each link.
//!
//! A case named `connect_refused@6` is the case `connect_refused` over IPv6. Each runs in a process, a folder and a runtime
//! folder of its own, and names the section that it holds the library to.

use headwater_e2e::cases::{self, Library};

macro_rules! over {
    ($module:ident, $link:literal) => {
        mod $module {
            headwater_e2e::areas!(
                "sctp_sockets",
                headwater_e2e::cases::Library::Preloaded(&[("HEADWATER_SCTP_LINK", $link)]);
                opening,
                many,
                messages,
                delivery,
                bytes,
                notices,
                options,
                parameters,
                ending,
                readiness,
                processes,
                forking,
                successors,
                addresses,
                limits,
                handlers,
                held,
            );
        }
    };
}

over!(shared_memory, "auto");
over!(packets, "udp");

#[test]
fn there_are_at_least_400_cases() {
    headwater_testkit::needs!("libsctp-dev");
    let count = cases::count("sctp_sockets", Library::Preloaded(&[]), packets::AREAS);
    assert!(count >= 400, "{count} cases");
}
