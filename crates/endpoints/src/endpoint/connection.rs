//! Addresses and connections: the requests of an endpoint's user, and the events that the provider has for it.

use headwater_host::sys::Errno;
use headwater_providers::provider::{Arrived, Event, Outcome};
use headwater_tpi::prim::T_CLTS;
use headwater_tpi::state::{self, Event as Move, State};
use headwater_tpi::{Refusal, error, refuse};

use super::Endpoint;
use super::data::gone;

impl Endpoint {
    pub fn bind(&self, addr: Option<&[u8]>, qlen: u32) -> Outcome<(Vec<u8>, u32)> {
        self.changing(|c| {
            let qlen = match c.provider.info().serv {
                T_CLTS => 0,
                _ => qlen,
            };
            let bound = c.request(Move::BindReq, Move::BindAck, |p| p.bind(addr, qlen))?;
            c.set_qlen(bound.1);
            Ok(bound)
        })
    }

    pub fn unbind(&self) -> Outcome<()> {
        self.changing(|c| {
            c.request(Move::UnbindReq, Move::OkAck1, |p| p.unbind())?;
            c.set_qlen(0);
            Ok(())
        })
    }

    pub fn connect(&self, to: &[u8], opts: &[u8], data: &[u8]) -> Outcome<()> {
        self.changing(|c| c.request(Move::ConnReq, Move::OkAck1, |p| p.connect(to, opts, data)))
    }

    /// Accepts request `seq` on `on`, which may be this endpoint. TBADSEQ, TOUTSTATE, TPROVMISMATCH, TRESQLEN, TINDOUT.
    pub fn accept(&self, seq: i32, on: &Endpoint, opts: &[u8], data: &[u8]) -> Outcome<()> {
        if core::ptr::eq(self, on) {
            return self.accept_here(seq, opts, data);
        }
        let request = self.with(|c| {
            c.next(Move::ConnRes)?;
            c.provider.take_request(seq)
        })?;
        let mut request = Some(request);
        let adopted = on.changing(|c| {
            let give_back = |e, request| Ok(Err((e, request)));
            let Some(request) = request.take() else {
                return refuse(error::TBADSEQ);
            };
            if c.qlen > 0 {
                return give_back(Refusal::new(error::TRESQLEN), request);
            }
            let next = match c.next(Move::PassConn) {
                Ok(next) => next,
                Err(e) => return give_back(e, request),
            };
            let adopted = c.provider.adopt(request, opts, data);
            if adopted.is_ok() {
                c.state = next;
                c.publish(&[Move::PassConn]);
            }
            Ok(adopted)
        });
        let adopted = match (adopted, request) {
            (Ok(adopted), _) => adopted,
            // Closed by another thread.
            (Err(e), Some(request)) => Err((e, request)),
            (Err(e), None) => return Err(e),
        };
        self.changing(|c| {
            c.adopted_or_back(seq, adopted)?;
            c.answered(seq);
            let moves = [Move::ConnRes, Move::ok_ack(c.outstanding.len() + 1, false)];
            let next = |s, &m| state::next(s, m).unwrap_or(s);
            c.state = moves.iter().fold(c.state, next);
            c.publish(&moves);
            Ok(())
        })
    }

    fn accept_here(&self, seq: i32, opts: &[u8], data: &[u8]) -> Outcome<()> {
        self.changing(|c| {
            let waiting = c.next(Move::ConnRes)?;
            if c.outstanding.len() > 1 {
                return refuse(error::TINDOUT);
            }
            let next = state::next(waiting, Move::OkAck2).ok_or(Refusal::new(error::TOUTSTATE))?;
            let request = c.provider.take_request(seq)?;
            let adopted = c.provider.adopt(request, opts, data);
            c.adopted_or_back(seq, adopted)?;
            c.state = next;
            c.publish(&[Move::ConnRes, Move::OkAck2]);
            c.answered(seq);
            Ok(())
        })
    }

    /// Ends the connection or, with `seq`, refuses a request. TBADSEQ.
    pub fn disconnect(&self, seq: Option<i32>, data: &[u8]) -> Outcome<()> {
        self.changing(|c| {
            let outstanding = c.outstanding.len();
            let Some(seq) = seq else {
                if outstanding > 0 {
                    return refuse(error::TBADSEQ);
                }
                return c.request(Move::DisconReq, Move::OkAck1, |p| p.disconnect(data));
            };
            if outstanding == 0 || !c.outstanding.contains(&seq) {
                c.next(Move::DisconReq)?;
                return refuse(error::TBADSEQ);
            }
            c.request(Move::DisconReq, Move::ok_ack(outstanding, false), |p| {
                p.reject(seq, data)
            })?;
            c.answered(seq);
            Ok(())
        })
    }

    pub fn release(&self) -> Outcome<()> {
        self.changing(|c| {
            let next = c.next(Move::OrdrelReq)?;
            self.note_fed();
            c.provider.release().map_err(gone)?;
            c.state = next;
            c.publish(&[Move::OrdrelReq]);
            if next == State::Idle {
                c.provider.connection_over();
            }
            Ok(())
        })
    }

    /// Requests taken and not answered, and how many may be.
    pub fn requests(&self) -> (usize, u32) {
        self.look(|c| (c.outstanding.len(), c.qlen))
            .unwrap_or_default()
    }

    pub fn peek(&self) -> Option<Event> {
        // A connection that was made meanwhile has another descriptor than the attempt had.
        self.changing(|c| Ok(c.peek())).ok().flatten()
    }

    /// Why nobody is told of a peer that has come: EMFILE, ENFILE, ENOMEM.
    pub fn lacks(&self) -> Option<Errno> {
        self.enter().as_ref()?.provider.lacks()
    }

    pub fn take(&self) -> Option<Arrived> {
        self.changing(|c| Ok(c.take())).ok().flatten()
    }
}
