//! What the options of an endpoint have set, before there is an association and while there is one.

use headwater_providers::options::{self, Known, Remembered, Value};
use headwater_tpi::option::{XTI_RCVBUF, XTI_SNDBUF};

use super::Order;
use super::option::chosen::Chosen;
use super::option::message::{Outgoing, Policy};
use super::option::*;

/// The least that a buffer option makes of a buffer.
const LEAST_BUFFER: usize = 16 << 10;

#[derive(Default)]
pub struct Settings {
    pub chosen: Chosen,
    /// How messages without options of their own are sent.
    pub outgoing: Outgoing,
    /// For the association to come.
    pub kept: Vec<Order>,
    /// Something of what an association is made with was set here.
    pub touched: bool,
    pub generic: Remembered,
}

impl Settings {
    /// What can be done to an association that is not there yet. ENOTCONN.
    pub fn keep(&mut self, order: Order) -> Result<(), i32> {
        match order {
            Order::StreamValue { .. } => self.kept.push(order),
            order if order.keep_key(&mut self.chosen.association) => {}
            _ => return Err(libc::ENOTCONN),
        }
        self.touched = true;
        Ok(())
    }

    /// Those of the listener hold where there are none of one's own.
    pub fn inherit(&mut self, listeners: &Chosen) {
        if !self.touched {
            self.chosen = listeners.clone();
        }
    }

    pub fn set_generic(&mut self, option: &Known, value: Value) -> Result<Value, i32> {
        if let Value::Number(n) = value {
            let bytes = (n as usize).max(LEAST_BUFFER);
            match option.name {
                XTI_SNDBUF => self.chosen.association.send_buffer = bytes,
                XTI_RCVBUF => self.chosen.association.receive_window = bytes,
                _ => {}
            }
        }
        options::Settings::set(&mut self.generic, option, value)
    }

    /// What goes with messages; false: it is none of that.
    pub fn set_outgoing(&mut self, name: u32, n: i64) -> bool {
        let message = &mut self.outgoing;
        match name {
            T_SCTP_SID => message.stream = n as u16,
            T_SCTP_PPI => message.ppid = n as u32,
            T_SCTP_LIFETIME => message.set_lifetime(n as u32),
            T_SCTP_PR => message.policy = Policy::of_number(n).unwrap_or_default(),
            T_SCTP_PR_VALUE => message.limit = n as u32,
            _ => return false,
        }
        true
    }

    pub fn number(&self, name: u32) -> Option<i64> {
        let message = &self.outgoing;
        Some(match name {
            T_SCTP_SID => message.stream.into(),
            T_SCTP_PPI => message.ppid.into(),
            T_SCTP_LIFETIME => message.lifetime().into(),
            T_SCTP_PR => message.policy as i64,
            T_SCTP_PR_VALUE => message.limit.into(),
            T_SCTP_AUTH_ACTIVE => self.chosen.association.active_key.into(),
            _ => return self.chosen.number(name),
        })
    }
}
