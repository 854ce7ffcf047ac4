//! The options of an endpoint, read and set: of its settings, and of the association that it has.

use headwater_providers::options::{self, Kind, Known, Value};
use headwater_providers::provider::Event;
use headwater_tpi::option::XTI_GENERIC;

use super::Sctp;
use crate::Order;
use crate::connection::Connection;
use crate::option::message::rcvinfo;
use crate::option::orders;
use crate::option::*;

impl options::Settings for Sctp {
    fn value(&self, option: &Known) -> Value {
        if option.level == XTI_GENERIC {
            return self.settings.generic.value(option);
        }
        let connection = self.connection.as_ref();
        let status = || connection.map(Connection::status).unwrap_or_default();
        let last = || connection.map(Connection::last).unwrap_or_default();
        match option.name {
            T_SCTP_STATUS => Value::Bytes(status().to_bytes()),
            T_SCTP_DISPOSITION => Value::Bytes(status().disposition()),
            T_SCTP_RCVINFO => Value::Bytes(rcvinfo(&last())),
            T_SCTP_SSN => Value::Number(last().ssn.0.into()),
            T_SCTP_TSN => Value::Number(last().tsn.0.into()),
            T_SCTP_AUTH_CHUNKS => {
                let chosen = &self.settings.chosen.association;
                Value::Bytes(chosen.authenticated_chunks.clone())
            }
            T_SCTP_OSTREAMS if connection.is_some() => Value::Number(status().ostreams.into()),
            T_SCTP_ISTREAMS if connection.is_some() => Value::Number(status().istreams.into()),
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
    /// Of the association, if it is not over: what is set then is for the next one.
    fn streams(&mut self) -> Option<i64> {
        let connection = self.connection.as_mut()?;
        let is_over = connection.event() == Some(Event::Disconnect);
        (!is_over).then(|| connection.streams().into())
    }

    fn set_number(&mut self, option: &Known, n: i64) -> Result<(), i32> {
        match option.name {
            T_SCTP_SID if self.streams().is_some_and(|most| n >= most) => return Err(libc::EINVAL),
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
