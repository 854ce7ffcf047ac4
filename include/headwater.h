/* Headwater: fast sockets, and STREAMS (<stropts.h>). See headwater(7), streams(7). */
#ifndef HEADWATER_H
#define HEADWATER_H

#define HEADWATER_VERSION "0.1.0"
#define HEADWATER_VERSION_MAJOR 0
#define HEADWATER_VERSION_MINOR 1
#define HEADWATER_VERSION_PATCH 0

/* Option of a one-to-one SCTP socket at level IPPROTO_SCTP, an int: it carries bytes, not messages. See sctp_sockets(7). */
#define HW_SCTP_BYTE_STREAM 0x4857

#endif
