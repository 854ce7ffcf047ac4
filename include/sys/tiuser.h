/* <tiuser.h> under its System V name. */
#ifndef _SYS_TIUSER_H
#define _SYS_TIUSER_H
#include <tiuser.h>
#endif
