#include "oracle.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

extern char **environ;

namespace differential {

namespace {

void append_number(std::string &bytes, size_t number) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift);
}

void append_text(std::string &bytes, const std::string &text) {
    append_number(bytes, text.size());
    bytes += text;
}

}  // namespace

Oracle::Oracle(const std::string &script, const std::string &descriptor_set_path) {
    // A write to an ended process has to fail with an error, not end this process.
    std::signal(SIGPIPE, SIG_IGN);
    int to_child[2];
    int from_child[2];
    if (pipe(to_child) != 0 || pipe(from_child) != 0) throw std::runtime_error("there are no pipes");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
    for (int end : {to_child[0], to_child[1], from_child[0], from_child[1]}) {
        posix_spawn_file_actions_addclose(&actions, end);
    }
    std::string arguments[] = {"python3", script, descriptor_set_path};
    char *pointers[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), nullptr};
    int error = posix_spawnp(&process_, "python3", &actions, nullptr, pointers, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(to_child[0]);
    close(from_child[1]);
    input_ = to_child[1];
    output_ = from_child[0];
    if (error != 0) throw std::runtime_error("python3 cannot be started");
}

Oracle::~Oracle() {
    close(input_);
    close(output_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
}

void Oracle::write(const std::string &bytes) {
    for (size_t written = 0; written < bytes.size();) {
        ssize_t count = ::write(input_, bytes.data() + written, bytes.size() - written);
        if (count <= 0) throw std::runtime_error("Python's protobuf has ended");
        written += static_cast<size_t>(count);
    }
}

std::string Oracle::read(size_t count) {
    std::string bytes(count, '\0');
    for (size_t done = 0; done < count;) {
        ssize_t more = ::read(output_, bytes.data() + done, count - done);
        if (more <= 0) throw std::runtime_error("Python's protobuf has ended");
        done += static_cast<size_t>(more);
    }
    return bytes;
}

size_t Oracle::read_number() {
    std::string bytes = read(4);
    size_t number = 0;
    for (int index = 3; index >= 0; index -= 1) number = number << 8 | static_cast<uint8_t>(bytes[index]);
    return number;
}

std::vector<OracleAnswer> Oracle::ask(const std::vector<OracleRequest> &requests) {
    std::string batch;
    append_number(batch, requests.size());
    for (const OracleRequest &request : requests) {
        batch += request.kind;
        append_text(batch, request.type);
        append_text(batch, request.text);
        append_text(batch, request.encoded);
    }
    write(batch);
    std::vector<OracleAnswer> answers;
    for (size_t index = 0; index < requests.size(); index += 1) {
        bool accepted = read(1)[0] != 0;
        answers.push_back({accepted, read(read_number())});
    }
    return answers;
}

}  // namespace differential
