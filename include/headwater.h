/* Headwater: fast sockets, and STREAMS (<stropts.h>). See headwater(7), streams(7). */
#ifndef HEADWATER_H
#define HEADWATER_H

#define HEADWATER_VERSION "0.1.0"
#define HEADWATER_VERSION_MAJOR 0
#define HEADWATER_VERSION_MINOR 1
#define HEADWATER_VERSION_PATCH 0

#endif
