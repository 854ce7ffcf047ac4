//! HEADWATER_UDP2_LINK: which ways the endpoints of this process use.

use std::sync::OnceLock;

use headwater_host::log::said;

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Link {
    /// Rings where they are to be had, else the kernel's UDP.
    #[default]
    Auto,
    /// The kernel's UDP alone.
    Udp,
    /// UDP made here, on raw sockets, alone; the kernel's without CAP_NET_RAW.
    Raw,
}

impl Link {
    /// What the environment said when it was first asked.
    pub fn chosen() -> Link {
        static CHOSEN: OnceLock<Link> = OnceLock::new();
        *CHOSEN.get_or_init(|| said("HEADWATER_UDP2_LINK", Link::parse, Link::Auto))
    }

    /// A value of the variable, or what is wanted.
    pub fn parse(text: &str) -> Result<Link, String> {
        match text {
            "" | "auto" | "shm" => Ok(Link::Auto),
            "udp" => Ok(Link::Udp),
            "raw" => Ok(Link::Raw),
            _ => Err("want auto, shm, udp or raw".to_string()),
        }
    }

    #[inline]
    pub fn has_rings(self) -> bool {
        self == Link::Auto
    }

    pub fn is_raw(self) -> bool {
        self == Link::Raw
    }
}
