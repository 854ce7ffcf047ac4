//! A port that peers can call, of whose associations each is a [`Connection`] once it is accepted.

use headwater_host::sys;
use headwater_providers::provider::Outcome;
use headwater_tpi::Refusal;
use headwater_tpi::error::{TADDRBUSY, TNOADDR};

use super::Port;
use super::addresses::Addresses;
use super::connection::Connection;
use super::option::chosen::Chosen;

/// Associations that wait in the stack, beside those that the user may be told of.
const BACKLOG: usize = 16;

/// A port that peers can call.
pub struct Listener {
    pub port: Port,
    at: Addresses,
    descriptor: i32,
    /// This process is a child of the one that has the port.
    foreign: bool,
}

impl Listener {
    /// TADDRBUSY, TNOADDR; TSYSERR where there is no network for us.
    pub fn open(at: &Addresses, qlen: u32, chosen: &Chosen) -> Outcome<Listener> {
        let mut port = bind(at, chosen)?;
        port.listen(qlen as usize + BACKLOG)
            .map_err(Refusal::system)?;
        let descriptor = port.descriptor().map_err(Refusal::system)?;
        Ok(Listener {
            port,
            at: at.clone(),
            descriptor,
            foreign: false,
        })
    }

    pub fn descriptor(&self) -> i32 {
        self.descriptor
    }

    /// EMFILE, ENFILE, ENOMEM: there is no descriptor for the next.
    pub fn accept(&mut self) -> sys::Result<Option<Connection>> {
        if self.foreign {
            return Ok(None);
        }
        match self.port.accept_with_descriptor() {
            Ok(association) => Ok(Connection::arrived(association, &self.at).ok()),
            Err(libc::EAGAIN | libc::EBADF) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The program is about to wait for the descriptor.
    pub fn hand_over(&self) {
        self.port.hand_over();
    }

    pub fn configure(&self, chosen: &Chosen) {
        let (association, life) = (chosen.association.clone(), chosen.cookie_life);
        let _ = self.port.configure(|config| {
            config.association = association;
            config.cookie_lifetime = life;
        });
    }

    pub fn forked(&mut self) {
        self.foreign = true;
    }
}

pub fn bind(at: &Addresses, chosen: &Chosen) -> Outcome<Port> {
    let port = Port::bind(&at.hosts, at.port, &chosen.association);
    let port = port.map_err(|e| match e {
        libc::EADDRINUSE => Refusal::new(TADDRBUSY),
        libc::EADDRNOTAVAIL => Refusal::new(TNOADDR),
        errno => Refusal::system(errno),
    })?;
    let life = chosen.cookie_life;
    let _ = port.configure(|config| config.cookie_lifetime = life);
    Ok(port)
}
