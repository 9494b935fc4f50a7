#define _GNU_SOURCE
#include "connection.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Also Lifeline's default limit.
static const size_t maximum_frame_size = 4 << 20;

// Buffers that a connection gave back and the next one takes: two are enough for a thread that serves one at a time.
static __thread struct byte_buffer spares[2];

static struct byte_buffer take_spare(void) {
    for (size_t i = 0; i < 2; i++) {
        if (spares[i].bytes) {
            struct byte_buffer spare = spares[i];
            spares[i] = (struct byte_buffer){0};
            return spare;
        }
    }
    return (struct byte_buffer){.bytes = checked(malloc(transfer_size)), .capacity = transfer_size};
}

static void give_back(struct byte_buffer *buffer) {
    if (!buffer->bytes) return;
    for (size_t i = 0; i < 2; i++) {
        if (!spares[i].bytes) {
            spares[i] = (struct byte_buffer){.bytes = buffer->bytes, .capacity = buffer->capacity};
            *buffer = (struct byte_buffer){0};
            return;
        }
    }
    free(buffer->bytes);
    *buffer = (struct byte_buffer){0};
}

static void reserve(struct byte_buffer *buffer, size_t count) {
    if (!buffer->bytes) *buffer = take_spare();
    if (buffer->start == buffer->end) buffer->start = buffer->end = 0;
    if (buffer->capacity - buffer->end >= count) return;
    size_t kept = buffer->end - buffer->start;
    if (buffer->capacity - kept < count) {
        size_t capacity = buffer->capacity;
        while (capacity - kept < count) capacity *= 2;
        uint8_t *bytes = checked(malloc(capacity));
        memcpy(bytes, buffer->bytes + buffer->start, kept);
        free(buffer->bytes);
        buffer->bytes = bytes;
        buffer->capacity = capacity;
    } else {
        memmove(buffer->bytes, buffer->bytes + buffer->start, kept);
    }
    buffer->start = 0;
    buffer->end = kept;
}

void connection_append_frame(struct connection *connection, const uint8_t *payload, size_t size) {
    struct byte_buffer *unsent = &connection->unsent;
    reserve(unsent, size + 5);
    uint8_t *end = unsent->bytes + unsent->end;
    size_t length = size;
    while (length >= 0x80) {
        *end++ = (uint8_t)(length | 0x80);
        length >>= 7;
    }
    *end++ = (uint8_t)length;
    memcpy(end, payload, size);
    unsent->end = (size_t)(end + size - unsent->bytes);
}

enum frame_state connection_next_frame(struct connection *connection, const uint8_t **payload, size_t *size) {
    struct byte_buffer *received = &connection->received;
    const uint8_t *next = received->bytes + received->start, *end = received->bytes + received->end;
    size_t length = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (next == end) return FRAME_INCOMPLETE;
        if (shift > 28) return FRAME_MALFORMED;
        uint8_t byte = *next++;
        length |= (size_t)(byte & 0x7F) << shift;
        if (byte < 0x80) break;
    }
    if (length > maximum_frame_size) return FRAME_MALFORMED;
    if ((size_t)(end - next) < length) {
        // Then the rest arrives in a few reads.
        size_t read = (size_t)(next - received->bytes) - received->start;
        reserve(received, length + read - (received->end - received->start));
        return FRAME_INCOMPLETE;
    }
    *payload = next;
    *size = length;
    received->start = (size_t)(next - received->bytes) + length;
    return FRAME_WHOLE;
}

bool connection_receive(struct connection *connection) {
    struct byte_buffer *received = &connection->received;
    reserve(received, transfer_size / 2);
    ssize_t count =
        recv(connection->descriptor, received->bytes + received->end, received->capacity - received->end, 0);
    if (count > 0) {
        received->end += (size_t)count;
        return true;
    }
    if (count == 0) errno = 0;
    return count < 0 && (errno == EAGAIN || errno == EINTR);
}

bool connection_flush(struct connection *connection) {
    struct byte_buffer *unsent = &connection->unsent;
    connection->is_blocked = false;
    while (unsent->start < unsent->end) {
        ssize_t count = send(connection->descriptor, unsent->bytes + unsent->start, unsent->end - unsent->start,
                             MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            connection->is_blocked = errno == EAGAIN;
            return connection->is_blocked;
        }
        unsent->start += (size_t)count;
    }
    return true;
}

void connection_release_buffers(struct connection *connection) {
    if (connection->received.start == connection->received.end) give_back(&connection->received);
    if (connection->unsent.start == connection->unsent.end) give_back(&connection->unsent);
}

void connection_free(struct connection *connection) {
    if (connection->descriptor >= 0) close(connection->descriptor);
    free(connection->received.bytes);
    free(connection->unsent.bytes);
}
