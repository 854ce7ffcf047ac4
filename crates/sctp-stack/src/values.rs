//! The options of an endpoint: read and set, before there is an association and while there is one.

use headwater_providers::options::{self, Kind, Known, Remembered, Value};
use headwater_tpi::option::{XTI_GENERIC, XTI_RCVBUF, XTI_SNDBUF};

use super::option::chosen::Chosen;
use super::option::message::{Outgoing, Policy};
use super::option::orders::{self, Order};
use super::option::status::Status;
use super::option::*;
use super::provider::Sctp;

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
    touched: bool,
    generic: Remembered,
}

impl Settings {
    /// What can be done to an association that is not there yet. ENOTCONN.
    pub fn keep(&mut self, order: Order) -> Result<(), i32> {
        let chosen = &mut self.chosen.association;
        match order {
            Order::SetKey { number, secret } => {
                chosen.shared_keys.retain(|(known, _)| *known != number);
                chosen.shared_keys.push((number, secret));
            }
            Order::ActivateKey(number) => chosen.active_key = number,
            Order::RemoveKey(number) => chosen.shared_keys.retain(|(known, _)| *known != number),
            Order::StreamValue { .. } => self.kept.push(order),
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

    fn set_generic(&mut self, option: &Known, value: Value) -> Result<Value, i32> {
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
    fn set_outgoing(&mut self, name: u32, n: i64) -> bool {
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

    fn number(&self, name: u32) -> Option<i64> {
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

impl options::Settings for Sctp {
    fn value(&self, option: &Known) -> Value {
        if option.level == XTI_GENERIC {
            return self.settings.generic.value(option);
        }
        let status = || self.body.as_ref().map(|body| body.status());
        let last = || self.body.as_ref().map(|body| body.last());
        match option.name {
            T_SCTP_STATUS => Value::Bytes(status().unwrap_or_default().to_bytes()),
            T_SCTP_DISPOSITION => Value::Bytes(status().unwrap_or_default().disposition()),
            T_SCTP_RCVINFO => Value::Bytes(last().unwrap_or_default().to_bytes()),
            T_SCTP_SSN => Value::Number(last().unwrap_or_default().ssn.into()),
            T_SCTP_TSN => Value::Number(last().unwrap_or_default().tsn.into()),
            T_SCTP_AUTH_CHUNKS => Value::Bytes(
                self.settings
                    .chosen
                    .association
                    .authenticated_chunks
                    .clone(),
            ),
            T_SCTP_OSTREAMS | T_SCTP_ISTREAMS if self.body.is_some() => {
                let Status {
                    ostreams, istreams, ..
                } = status().unwrap_or_default();
                let streams = if option.name == T_SCTP_OSTREAMS {
                    ostreams
                } else {
                    istreams
                };
                Value::Number(streams.into())
            }
            name => match self.settings.number(name) {
                Some(number) => Value::Number(number),
                None => option.default_value(),
            },
        }
    }

    fn set(&mut self, option: &Known, value: Value) -> Result<Value, i32> {
        if option.level == XTI_GENERIC {
            return self.settings.set_generic(option, value);
        }
        match &value {
            Value::Number(n) => self.set_number(option, *n)?,
            Value::Bytes(bytes) if option.name == T_SCTP_AUTH_CHUNKS => {
                self.settings.chosen.association.authenticated_chunks = bytes.clone();
                self.settings.touched = true;
                self.tell_parameters();
            }
            Value::Bytes(bytes) => {
                if let Some(order) = orders::read(option.name, bytes)? {
                    self.obey(order)?;
                }
            }
            Value::Pair(..) => return Err(libc::EINVAL),
        }
        Ok(match option.kind {
            Kind::Number(..) | Kind::Flag => Value::Number(match option.name {
                T_SCTP_OSTREAMS | T_SCTP_ISTREAMS | T_SCTP_RESET_ASSOC => return Ok(value),
                name => self.settings.number(name).unwrap_or(0),
            }),
            _ => value,
        })
    }
}

impl Sctp {
    fn set_number(&mut self, option: &Known, n: i64) -> Result<(), i32> {
        let streams = self.body.as_ref().map(|body| i64::from(body.streams()));
        match option.name {
            T_SCTP_SID if streams.is_some_and(|most| n >= most) => return Err(libc::EINVAL),
            T_SCTP_RESET_ASSOC if n != 0 => return self.obey(Order::ResetAssociation),
            T_SCTP_AUTH_ACTIVE => {
                if n != i64::from(self.settings.chosen.association.active_key) {
                    self.obey(Order::ActivateKey(n as u16))?;
                }
                self.settings.chosen.association.active_key = n as u16;
            }
            name => {
                if !self.settings.set_outgoing(name, n) && self.settings.chosen.set_number(name, n)
                {
                    self.settings.touched = true;
                    self.tell_parameters();
                }
            }
        }
        Ok(())
    }
}
