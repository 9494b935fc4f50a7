// The kernel's netlink interface, of which Glibc's Swift module has nothing.
#ifndef LIFELINE_NETLINK_H
#define LIFELINE_NETLINK_H

#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

// From <linux/if.h>, which cannot be included together with the C library's <net/if.h>.
static const unsigned int LIFELINE_IFF_UP = 1u << 0;
static const unsigned int LIFELINE_IFF_LOOPBACK = 1u << 3;
static const unsigned int LIFELINE_IFF_LOWER_UP = 1u << 16;
static const unsigned char LIFELINE_IF_OPER_DORMANT = 5;

// Macros that Swift does not import.
static const unsigned short LIFELINE_NLA_TYPE_MASK = NLA_TYPE_MASK;

#endif
