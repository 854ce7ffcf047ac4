//! The arms that are no pair of ordinary programs: two processes of our own over bare memory or the channel.

pub mod cache_line;
pub mod raw;
mod raw_channel;
pub mod user;
