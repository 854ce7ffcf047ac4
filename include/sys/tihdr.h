/* The Transport Provider Interface, version 2: the primitives between a transport user and its provider, as the control
 * parts of putmsg(2) and getmsg(2). Lengths are bytes, offsets count from the start of the primitive. */
#ifndef _SYS_TIHDR_H
#define _SYS_TIHDR_H

#include <sys/tpicommon.h>

#ifdef __cplusplus
extern "C" {
#endif

/* PRIM_type. Those that end in _REQ and T_CONN_RES go to the provider. */
#define T_CONN_REQ 0          /* connect to an address */
#define T_CONN_RES 1          /* accept a connection */
#define T_DISCON_REQ 2        /* disconnect, or reject */
#define T_DATA_REQ 3          /* normal data */
#define T_EXDATA_REQ 4        /* expedited data */
#define T_INFO_REQ 5          /* ask for T_INFO_ACK */
#define T_BIND_REQ 6          /* bind */
#define T_UNBIND_REQ 7        /* unbind */
#define T_UNITDATA_REQ 8      /* datagram */
#define T_OPTMGMT_REQ 9       /* negotiate options */
#define T_ORDREL_REQ 10       /* orderly release */
#define T_CONN_IND 11         /* somebody connects */
#define T_CONN_CON 12         /* connected */
#define T_DISCON_IND 13       /* disconnected */
#define T_DATA_IND 14         /* normal data */
#define T_EXDATA_IND 15       /* expedited data */
#define T_INFO_ACK 16         /* sizes, service and state */
#define T_BIND_ACK 17         /* bound */
#define T_ERROR_ACK 18        /* refused */
#define T_OK_ACK 19           /* done */
#define T_UNITDATA_IND 20     /* datagram */
#define T_UDERROR_IND 21      /* datagram not delivered */
#define T_OPTMGMT_ACK 22      /* outcome of a negotiation */
#define T_ORDREL_IND 23       /* orderly release */
#define T_OPTDATA_REQ 24      /* data with options */
#define T_ADDR_REQ 25         /* ask for T_ADDR_ACK */
#define T_OPTDATA_IND 26      /* data with options */
#define T_ADDR_ACK 27         /* both ends' addresses */
#define T_CAPABILITY_REQ 28   /* ask for T_CAPABILITY_ACK */
#define T_CAPABILITY_ACK 29   /* T_INFO_ACK and ACCEPTOR_id */

/* CURRENT_state */
#define TS_UNBND 0
#define TS_WACK_BREQ 1
#define TS_WACK_UREQ 2
#define TS_IDLE 3
#define TS_WACK_OPTREQ 4
#define TS_WACK_CREQ 5
#define TS_WCON_CREQ 6
#define TS_WRES_CIND 7
#define TS_WACK_CRES 8
#define TS_DATA_XFER 9
#define TS_WIND_ORDREL 10
#define TS_WREQ_ORDREL 11
#define TS_WACK_DREQ6 12
#define TS_WACK_DREQ7 13
#define TS_WACK_DREQ9 14
#define TS_WACK_DREQ10 15
#define TS_WACK_DREQ11 16
#define TS_NOSTATES 17

/* PROVIDER_flag */
#define SENDZERO 0x0001  /* TSDUs of no bytes can be sent */
#define EXPINLINE 0x0002 /* expedited data comes in line */
#define XPG4_1 0x0004    /* options and addresses as XTI has them */

/* DATA_flag */
#define T_ODF_MORE 0x0001
#define T_ODF_EX 0x0002

/* CAP_bits1 */
#define TC1_INFO 0x0001
#define TC1_ACCEPTOR_ID 0x0002

struct T_conn_req {
    t_scalar_t PRIM_type;
    t_scalar_t DEST_length;
    t_scalar_t DEST_offset;
    t_scalar_t OPT_length;
    t_scalar_t OPT_offset;
};

struct T_conn_res {
    t_scalar_t PRIM_type;
    t_uscalar_t ACCEPTOR_id;
    t_scalar_t OPT_length;
    t_scalar_t OPT_offset;
    t_scalar_t SEQ_number;
};

struct T_discon_req {
    t_scalar_t PRIM_type;
    t_scalar_t SEQ_number;
};

struct T_data_req {
    t_scalar_t PRIM_type;
    t_scalar_t MORE_flag;
};

struct T_exdata_req {
    t_scalar_t PRIM_type;
    t_scalar_t MORE_flag;
};

struct T_info_req {
    t_scalar_t PRIM_type;
};

struct T_bind_req {
    t_scalar_t PRIM_type;
    t_scalar_t ADDR_length;
    t_scalar_t ADDR_offset;
    t_uscalar_t CONIND_number; /* qlen */
};

struct T_unbind_req {
    t_scalar_t PRIM_type;
};

struct T_unitdata_req {
    t_scalar_t PRIM_type;
    t_scalar_t DEST_length;
    t_scalar_t DEST_offset;
    t_scalar_t OPT_length;
    t_scalar_t OPT_offset;
};

struct T_optmgmt_req {
    t_scalar_t PRIM_type;
    t_scalar_t OPT_length;
    t_scalar_t OPT_offset;
    t_scalar_t MGMT_flags; /* T_NEGOTIATE, T_CHECK, T_DEFAULT, T_CURRENT */
};

struct T_ordrel_req {
    t_scalar_t PRIM_type;
};

struct T_conn_ind {
    t_scalar_t PRIM_type;
    t_scalar_t SRC_length;
    t_scalar_t SRC_offset;
    t_scalar_t OPT_length;
    t_scalar_t OPT_offset;
    t_scalar_t SEQ_number;
};

struct T_conn_con {
    t_scalar_t PRIM_type;
    t_scalar_t RES_length;
    t_scalar_t RES_offset;
    t_scalar_t OPT_length;
    t_scalar_t OPT_offset;
};

struct T_discon_ind {
    t_scalar_t PRIM_type;
    t_scalar_t DISCON_reason; /* errno */
    t_scalar_t SEQ_number;
};

struct T_data_ind {
    t_scalar_t PRIM_type;
    t_scalar_t MORE_flag;
};

struct T_exdata_ind {
    t_scalar_t PRIM_type;
    t_scalar_t MORE_flag;
};

struct T_info_ack {
    t_scalar_t PRIM_type;
    t_scalar_t TSDU_size;
    t_scalar_t ETSDU_size;
    t_scalar_t CDATA_size;
    t_scalar_t DDATA_size;
    t_scalar_t ADDR_size;
    t_scalar_t OPT_size;
    t_scalar_t TIDU_size;
    t_scalar_t SERV_type; /* T_COTS, T_COTS_ORD, T_CLTS */
    t_scalar_t CURRENT_state; /* TS_ */
    t_scalar_t PROVIDER_flag; /* SENDZERO ... */
};

struct T_bind_ack {
    t_scalar_t PRIM_type;
    t_scalar_t ADDR_length;
    t_scalar_t ADDR_offset;
    t_uscalar_t CONIND_number; /* qlen */
};

struct T_error_ack {
    t_scalar_t PRIM_type;
    t_scalar_t ERROR_prim;
    t_scalar_t TLI_error;
    t_scalar_t UNIX_error;
};

struct T_ok_ack {
    t_scalar_t PRIM_type;
    t_scalar_t CORRECT_prim;
};

struct T_unitdata_ind {
    t_scalar_t PRIM_type;
    t_scalar_t SRC_length;
    t_scalar_t SRC_offset;
    t_scalar_t OPT_length;
    t_scalar_t OPT_offset;
};

struct T_uderror_ind {
    t_scalar_t PRIM_type;
    t_scalar_t DEST_length;
    t_scalar_t DEST_offset;
    t_scalar_t OPT_length;
    t_scalar_t OPT_offset;
    t_scalar_t ERROR_type; /* errno */
};

struct T_optmgmt_ack {
    t_scalar_t PRIM_type;
    t_scalar_t OPT_length;
    t_scalar_t OPT_offset;
    t_scalar_t MGMT_flags; /* T_NEGOTIATE, T_CHECK, T_DEFAULT, T_CURRENT */
};

struct T_ordrel_ind {
    t_scalar_t PRIM_type;
};

struct T_optdata_req {
    t_scalar_t PRIM_type;
    t_scalar_t DATA_flag; /* T_ODF_ */
    t_scalar_t OPT_length;
    t_scalar_t OPT_offset;
};

struct T_addr_req {
    t_scalar_t PRIM_type;
};

struct T_optdata_ind {
    t_scalar_t PRIM_type;
    t_scalar_t DATA_flag; /* T_ODF_ */
    t_scalar_t OPT_length;
    t_scalar_t OPT_offset;
};

struct T_addr_ack {
    t_scalar_t PRIM_type;
    t_scalar_t LOCADDR_length;
    t_scalar_t LOCADDR_offset;
    t_scalar_t REMADDR_length;
    t_scalar_t REMADDR_offset;
};

struct T_capability_req {
    t_scalar_t PRIM_type;
    t_uscalar_t CAP_bits1; /* TC1_ */
};

struct T_capability_ack {
    t_scalar_t PRIM_type;
    t_uscalar_t CAP_bits1; /* TC1_ */
    struct T_info_ack INFO_ack;
    t_uscalar_t ACCEPTOR_id;
};

/* Any of them, by its type. */
union T_primitives {
    t_scalar_t type;
    struct T_conn_req conn_req;
    struct T_conn_res conn_res;
    struct T_discon_req discon_req;
    struct T_data_req data_req;
    struct T_exdata_req exdata_req;
    struct T_info_req info_req;
    struct T_bind_req bind_req;
    struct T_unbind_req unbind_req;
    struct T_unitdata_req unitdata_req;
    struct T_optmgmt_req optmgmt_req;
    struct T_ordrel_req ordrel_req;
    struct T_conn_ind conn_ind;
    struct T_conn_con conn_con;
    struct T_discon_ind discon_ind;
    struct T_data_ind data_ind;
    struct T_exdata_ind exdata_ind;
    struct T_info_ack info_ack;
    struct T_bind_ack bind_ack;
    struct T_error_ack error_ack;
    struct T_ok_ack ok_ack;
    struct T_unitdata_ind unitdata_ind;
    struct T_uderror_ind uderror_ind;
    struct T_optmgmt_ack optmgmt_ack;
    struct T_ordrel_ind ordrel_ind;
    struct T_optdata_req optdata_req;
    struct T_addr_req addr_req;
    struct T_optdata_ind optdata_ind;
    struct T_addr_ack addr_ack;
    struct T_capability_req capability_req;
    struct T_capability_ack capability_ack;
};

#ifdef __cplusplus
}
#endif

#endif
