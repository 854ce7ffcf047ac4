//! Programs written for the kernel's SCTP, unmodified, on a kernel without: lksctp-tools, iperf3, Erlang's gen_sctp, pysctp.
//! Each in shared memory, by packets in UDP, between two networks that lose one packet of a hundred, and against usrsctp.

#[path = "../sctp_peers/mod.rs"]
mod sctp_peers;

/// A test in each place where both ends are the same programs, of these packages.
macro_rules! everywhere {
    ([$($package:literal),+] $($name:ident)*) => { everywhere!(@ { $($package),+ } $($name)*); };
    (@ $packages:tt $($name:ident)*) => { $(
        mod $name {
            use headwater_testkit::needs;

            use crate::ground::Ground;

            #[test]
            fn in_shared_memory() {
                needs! $packages;
                super::$name(&Ground::shared_memory());
            }

            #[test]
            fn by_udp() {
                needs! $packages;
                super::$name(&Ground::udp());
            }

            #[test]
            fn through_loss() {
                needs!("root", "iproute2", "nftables", "ethtool");
                needs! $packages;
                super::$name(&Ground::lossy());
            }
        }
    )* };
}

mod erlang;
mod ground;
mod iperf;
mod kills;
mod lksctp;
mod pysctp;
