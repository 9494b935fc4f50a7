// A client and a server of varint-delimited frames in C: a plain loop on epoll with reads and writes of up to 256 KiB,
// and one copy of each message.
#ifndef EPOLL_PEER_H
#define EPOLL_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Listens on 127.0.0.1. Returns the listener, or -1 with errno.
int epoll_server_listen(uint16_t *port);

// Serves connections until something fails, and returns errno. With `echoes`, every frame is sent back; without it,
// only empty ones, which tell a client that all earlier ones have arrived.
int epoll_server_run(int listener, bool echoes);

// When a run stops sending: after a time or a number of messages, whichever comes first. 0: no such limit.
struct epoll_limit {
    uint64_t nanoseconds;
    uint64_t messages;
};

struct epoll_outcome {
    uint64_t messages;
    uint64_t nanoseconds;
    // Percentiles of the round trips in nanoseconds, if one message at a time was on its way; otherwise 0.
    uint64_t median;
    uint64_t percentile_99;
};

struct epoll_client;

// Connects to 127.0.0.1, one connection after the other. NULL with errno when one fails.
struct epoll_client *epoll_client_open(uint16_t port, size_t connection_count);
void epoll_client_close(struct epoll_client *client);

// The runs return false with errno when a connection fails. EBADMSG: an echo differs from the sent message.

// Sends on the first connection, and waits until the server has answered a last, empty frame.
bool epoll_client_one_way(struct epoll_client *client, const uint8_t *payload, size_t size, struct epoll_limit limit,
                          struct epoll_outcome *outcome);

// Keeps `in_flight` messages on their way on every connection; the server is one that echoes.
bool epoll_client_echo(struct epoll_client *client, const uint8_t *payload, size_t size, size_t in_flight,
                       struct epoll_limit limit, struct epoll_outcome *outcome);

// Echoes one message on each connection, one after the other.
bool epoll_client_each(struct epoll_client *client, const uint8_t *payload, size_t size, struct epoll_outcome *outcome);

// Sends `per_second` messages a second on every connection, evenly spread, and awaits their echoes.
bool epoll_client_paced(struct epoll_client *client, const uint8_t *payload, size_t size, unsigned per_second,
                        uint64_t nanoseconds, struct epoll_outcome *outcome);

// Runs the calling thread, and the processes that it starts, on one core. False with errno if that is not allowed.
bool process_pin(int core);
// Allows all cores again that it had at the first `process_pin`.
bool process_unpin(void);
// How many cores the process may run on.
int process_core_count(void);

// Allows as many descriptors as the system lets a process have. Returns how many.
uint64_t process_raise_descriptor_limit(void);

// The time that all threads of a process have had a processor for, in nanoseconds. 0 when there is no such process.
uint64_t process_cpu_time(int process);

#endif
