//! The engine on a simulated network and clock, and its packets on the wire.

mod extensions;
mod faults;
mod handshake;
mod multihome;
mod operations;
mod partial;
mod shutdown;
mod sim;
mod transfer;
mod wire;
mod wrap;
