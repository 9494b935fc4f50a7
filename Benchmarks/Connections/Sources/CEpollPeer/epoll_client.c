#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"
#include "epoll_peer.h"

// The largest number of round trips that are kept.
static const size_t maximum_trip_count = 1 << 20;

struct epoll_client {
    int epoll;
    size_t count;
    struct connection *connections;
    // The number of received frames.
    uint64_t received;
};

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static bool connect_one(struct epoll_client *client, struct connection *connection, uint16_t port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int enabled = 1;
    connection->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->descriptor < 0 ||
        connect(connection->descriptor, (struct sockaddr *)&address, sizeof address) ||
        setsockopt(connection->descriptor, IPPROTO_TCP, TCP_NODELAY, &enabled, sizeof enabled) ||
        fcntl(connection->descriptor, F_SETFL, O_NONBLOCK))
        return false;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    return epoll_ctl(client->epoll, EPOLL_CTL_ADD, connection->descriptor, &event) == 0;
}

struct epoll_client *epoll_client_open(uint16_t port, size_t connection_count) {
    struct epoll_client *client = checked(calloc(1, sizeof *client));
    client->epoll = epoll_create1(EPOLL_CLOEXEC);
    client->connections = checked(calloc(connection_count, sizeof *client->connections));
    while (client->count < connection_count) {
        if (!connect_one(client, &client->connections[client->count++], port)) {
            int error = errno;
            epoll_client_close(client);
            errno = error;
            return NULL;
        }
    }
    return client;
}

void epoll_client_close(struct epoll_client *client) {
    for (size_t i = 0; i < client->count; i++) connection_free(&client->connections[i]);
    close(client->epoll);
    free(client->connections);
    free(client);
}

// MARK: Events

// Writes as much as possible, and sets whether to be woken when there is room for the rest.
static bool flush(struct epoll_client *client, struct connection *connection) {
    bool was_blocked = connection->is_blocked;
    if (!connection_flush(connection)) return false;
    if (connection->is_blocked == was_blocked) return true;
    struct epoll_event event = {.events = EPOLLIN | (connection->is_blocked ? EPOLLOUT : 0), .data.ptr = connection};
    return epoll_ctl(client->epoll, EPOLL_CTL_MOD, connection->descriptor, &event) == 0;
}

// Counts the received frames. All must have the size of the sent ones, and one in 64 is compared, too few to affect the
// times.
static bool receive(struct epoll_client *client, struct connection *connection, const uint8_t *sent, size_t sent_size,
                    size_t *frames) {
    if (!connection_receive(connection)) {
        if (errno == 0) errno = ECONNRESET;
        return false;
    }
    const uint8_t *payload;
    size_t size;
    enum frame_state state;
    *frames = 0;
    while ((state = connection_next_frame(connection, &payload, &size)) == FRAME_WHOLE) {
        bool is_compared = client->received++ % 64 == 0;
        if (size != sent_size || (is_compared && memcmp(payload, sent, size))) {
            errno = EBADMSG;
            return false;
        }
        (*frames)++;
    }
    if (state == FRAME_MALFORMED) errno = EPROTO;
    return state != FRAME_MALFORMED;
}

// Waits until the only connection in use has room, or something to read.
static bool wait(struct epoll_client *client) {
    struct epoll_event event;
    return epoll_wait(client->epoll, &event, 1, -1) >= 0 || errno == EINTR;
}

static bool is_over(struct epoll_limit limit, uint64_t begin, uint64_t sent) {
    // At least one is sent, because the count is a divisor.
    if (sent == 0) return false;
    if (limit.messages && sent >= limit.messages) return true;
    // The clock is not read for every message.
    return limit.nanoseconds && sent % 64 == 0 && now() - begin >= limit.nanoseconds;
}

// MARK: Runs

bool epoll_client_one_way(struct epoll_client *client, const uint8_t *payload, size_t size, struct epoll_limit limit,
                          struct epoll_outcome *outcome) {
    struct connection *connection = &client->connections[0];
    uint64_t begin = now(), sent = 0;
    for (bool stops = false; !stops;) {
        size_t pending = 0;
        while (pending < transfer_size && !(stops = is_over(limit, begin, sent))) {
            connection_append_frame(connection, payload, size);
            pending += size + 1;
            sent++;
        }
        if (stops) connection_append_frame(connection, payload, 0);
        do {
            if (!flush(client, connection) || (connection->is_blocked && !wait(client))) return false;
        } while (connection->is_blocked);
    }
    for (size_t answers = 0; answers == 0;) {
        if (!wait(client) || !receive(client, connection, payload, 0, &answers)) return false;
    }
    connection_release_buffers(connection);
    *outcome = (struct epoll_outcome){.messages = sent, .nanoseconds = now() - begin};
    return true;
}

static int compare(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

// Appends the due frames, and writes them in portions.
static bool send_owed(struct epoll_client *client, struct connection *connection, const uint8_t *payload, size_t size) {
    struct byte_buffer *unsent = &connection->unsent;
    do {
        // Nothing is appended behind waiting bytes, because they would be moved.
        if (unsent->start == unsent->end) {
            for (size_t pending = 0; connection->owed && pending < transfer_size; connection->owed--) {
                connection_append_frame(connection, payload, size);
                pending += size + 1;
            }
        }
        if (!flush(client, connection)) return false;
    } while (connection->owed && !connection->is_blocked);
    return true;
}

bool epoll_client_echo(struct epoll_client *client, const uint8_t *payload, size_t size, size_t in_flight,
                       struct epoll_limit limit, struct epoll_outcome *outcome) {
    // With only one message on its way, round trips follow each other.
    bool is_timed = client->count == 1 && in_flight == 1;
    uint64_t *trips = is_timed ? checked(malloc(maximum_trip_count * sizeof *trips)) : NULL;
    size_t trip_count = 0, outstanding = 0;
    uint64_t begin = now(), sent = 0, received = 0, last = begin;
    bool stops = false, succeeds = true;
    for (size_t i = 0; i < client->count && succeeds; i++) {
        struct connection *connection = &client->connections[i];
        connection->owed = in_flight;
        outstanding += in_flight;
        sent += in_flight;
        succeeds = send_owed(client, connection, payload, size);
    }
    struct epoll_event events[256];
    while (outstanding && succeeds) {
        int count = epoll_wait(client->epoll, events, 256, -1);
        for (int i = 0; i < count && succeeds; i++) {
            struct connection *connection = events[i].data.ptr;
            size_t frames = 0;
            if (events[i].events & ~(uint32_t)EPOLLOUT)
                succeeds = receive(client, connection, payload, size, &frames);
            if (frames > outstanding) {
                errno = EPROTO;
                succeeds = false;
                break;
            }
            received += frames;
            outstanding -= frames;
            if (is_timed && frames) {
                uint64_t time = now();
                if (trip_count < maximum_trip_count) trips[trip_count++] = time - last;
                last = time;
                stops = limit.nanoseconds && time - begin >= limit.nanoseconds;
            }
            for (; frames && !stops; frames--) {
                if ((stops = is_over(limit, begin, sent))) break;
                connection->owed++;
                outstanding++;
                sent++;
            }
            succeeds = succeeds && send_owed(client, connection, payload, size);
            if (client->count > 1) connection_release_buffers(connection);
        }
    }
    *outcome = (struct epoll_outcome){.messages = received, .nanoseconds = now() - begin};
    if (trip_count) {
        qsort(trips, trip_count, sizeof *trips, compare);
        outcome->median = trips[trip_count / 2];
        outcome->percentile_99 = trips[trip_count * 99 / 100];
    }
    free(trips);
    return succeeds;
}

bool epoll_client_each(struct epoll_client *client, const uint8_t *payload, size_t size, struct epoll_outcome *outcome) {
    uint64_t begin = now();
    for (size_t i = 0; i < client->count; i++) {
        struct connection *connection = &client->connections[i];
        connection_append_frame(connection, payload, size);
        if (!flush(client, connection)) return false;
        for (size_t frames = 0; frames == 0;) {
            if (!wait(client)) return false;
            if (connection->is_blocked && !flush(client, connection)) return false;
            if (!receive(client, connection, payload, size, &frames)) return false;
        }
        connection_release_buffers(connection);
    }
    *outcome = (struct epoll_outcome){.messages = client->count, .nanoseconds = now() - begin};
    return true;
}

bool epoll_client_paced(struct epoll_client *client, const uint8_t *payload, size_t size, unsigned per_second,
                        uint64_t nanoseconds, struct epoll_outcome *outcome) {
    uint64_t begin = now(), sent = 0, received = 0, total_per_second = (uint64_t)per_second * client->count;
    uint64_t total = nanoseconds / 1000000 * total_per_second / 1000;
    struct epoll_event events[256];
    while (received < total) {
        uint64_t due = (now() - begin) / 1000 * total_per_second / 1000000;
        for (; sent < due && sent < total; sent++) {
            struct connection *connection = &client->connections[sent % client->count];
            connection_append_frame(connection, payload, size);
            if (!flush(client, connection)) return false;
        }
        int count = epoll_wait(client->epoll, events, 256, 1);
        for (int i = 0; i < count; i++) {
            size_t frames = 0;
            struct connection *connection = events[i].data.ptr;
            if (!receive(client, connection, payload, size, &frames) || !flush(client, connection))
                return false;
            received += frames;
            connection_release_buffers(connection);
        }
    }
    *outcome = (struct epoll_outcome){.messages = received, .nanoseconds = now() - begin};
    return true;
}
