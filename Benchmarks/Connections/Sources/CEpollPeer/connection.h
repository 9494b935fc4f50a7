// One connection of either side: its socket, the bytes of incomplete frames, and the unwritten bytes.
#ifndef CONNECTION_H
#define CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// The number of bytes collected before a write, and the size of a read; half of it is free at each read.
enum { transfer_size = 256 << 10 };

// The bytes are from `start` to `end`; after them is room up to `capacity`.
struct byte_buffer {
    uint8_t *bytes;
    size_t capacity, start, end;
};

struct connection {
    int descriptor;
    // The kernel accepts no more for now.
    bool is_blocked;
    struct byte_buffer received, unsent;
    // The number of frames that a client has still to append: the waiting bytes are bounded.
    size_t owed;
};

// Ends the process if there is no memory left.
static inline void *checked(void *memory) {
    if (memory) return memory;
    perror("No memory");
    abort();
}

enum frame_state { FRAME_WHOLE, FRAME_INCOMPLETE, FRAME_MALFORMED };

void connection_append_frame(struct connection *connection, const uint8_t *payload, size_t size);

// The next frame among the bytes received, which is valid until the next `connection_receive`.
enum frame_state connection_next_frame(struct connection *connection, const uint8_t **payload, size_t *size);

// Reads once. False with errno when the connection is over: 0 when the peer has ended it.
bool connection_receive(struct connection *connection);

// Writes as much as the kernel accepts. False with errno when the connection is over.
bool connection_flush(struct connection *connection);

// Gives buffers back that are empty. An idle connection has none.
void connection_release_buffers(struct connection *connection);

void connection_free(struct connection *connection);

#endif
