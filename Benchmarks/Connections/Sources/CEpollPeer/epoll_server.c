#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "epoll_peer.h"

int epoll_server_listen(uint16_t *port) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024) ||
        getsockname(listener, (struct sockaddr *)&address, &length))
        return -1;
    *port = ntohs(address.sin_port);
    return listener;
}

// Accepts all waiting connections. False with errno when accepting fails.
static bool accept_connections(int listener, int epoll) {
    for (;;) {
        int descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (descriptor < 0 && (errno == ECONNABORTED || errno == EINTR)) continue;
        if (descriptor < 0) return errno == EAGAIN;
        int enabled = 1;
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &enabled, sizeof enabled);
        struct connection *connection = checked(calloc(1, sizeof *connection));
        connection->descriptor = descriptor;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event)) return false;
    }
}

// Takes all received frames. False when the connection is over.
static bool serve(struct connection *connection, bool echoes) {
    // Frames that arrived while the kernel accepted nothing have already been answered: only a part can be left.
    if (!connection_receive(connection)) return false;
    const uint8_t *payload;
    size_t size;
    enum frame_state state;
    while ((state = connection_next_frame(connection, &payload, &size)) == FRAME_WHOLE) {
        if (echoes || size == 0) connection_append_frame(connection, payload, size);
    }
    return state != FRAME_MALFORMED && connection_flush(connection);
}

// Stops reading while the peer does not read, so that the waiting bytes are bounded.
static void watch(int epoll, struct connection *connection) {
    struct epoll_event event = {.events = connection->is_blocked ? EPOLLOUT : EPOLLIN, .data.ptr = connection};
    epoll_ctl(epoll, EPOLL_CTL_MOD, connection->descriptor, &event);
}

int epoll_server_run(int listener, bool echoes) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event listening = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &listening)) return errno;
    struct epoll_event events[256];
    for (;;) {
        int count = epoll_wait(epoll, events, 256, -1);
        if (count < 0 && errno != EINTR) return errno;
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!connection) {
                if (!accept_connections(listener, epoll)) return errno;
                continue;
            }
            bool was_blocked = connection->is_blocked;
            bool lives = was_blocked ? connection_flush(connection) : serve(connection, echoes);
            if (!lives) {
                connection_free(connection);
                free(connection);
                continue;
            }
            if (connection->is_blocked != was_blocked) watch(epoll, connection);
            connection_release_buffers(connection);
        }
    }
}
