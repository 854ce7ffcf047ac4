//! XNS 5.2 as cases in C, linked against the library as a user's programs are: `c/xti/AREA.c`, one suite for all providers.
//!
//! A case named `connect_refused@ticotsord` is the case `connect_refused` over that provider. Each runs in a process, a
//! folder and a runtime folder of its own, and names the page that it holds the library to.

headwater_e2e::areas!(
    "xti":
    local,
    binding,
    connect,
    accept,
    transfer,
    expedited,
    release,
    r#async,
    fork,
    states,
    datagrams,
    datagram_flow,
    udp2,
    options,
    option_levels,
    tpi,
    tpi_transfer,
    tli,
    modules,
    timod,
    interop,
    interop_python,
    threads,
    held,
    signals,
    limits,
    sctp,
    rawip,
    netdir,
    headers,
    headers_tli
);
