// The C++ peer, with the library's delimited_message_util: see ../README.md for what its commands do.

#include <arpa/inet.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "sample/chat/v1/chat.pb.h"

namespace {

using google::protobuf::io::FileInputStream;
using google::protobuf::io::FileOutputStream;
using google::protobuf::util::ParseDelimitedFromZeroCopyStream;
using google::protobuf::util::SerializeDelimitedToZeroCopyStream;
using sample::chat::v1::ChatMessage;

[[noreturn]] void Fail(const std::string& problem) {
    std::cerr << problem.substr(0, 4000) << std::endl;
    std::exit(1);
}

std::vector<ChatMessage> ReadAll(int descriptor) {
    FileInputStream stream(descriptor);
    std::vector<ChatMessage> messages;
    bool clean_end = false;
    for (ChatMessage message; ParseDelimitedFromZeroCopyStream(&message, &stream, &clean_end); message.Clear()) {
        messages.push_back(message);
    }
    if (!clean_end) Fail("the stream does not end after a whole message");
    return messages;
}

void WriteAll(const std::vector<ChatMessage>& messages, int descriptor) {
    FileOutputStream stream(descriptor);
    for (const ChatMessage& message : messages) {
        if (!SerializeDelimitedToZeroCopyStream(message, &stream)) Fail("cannot write");
    }
}

std::vector<ChatMessage> Corpus(const std::string& name) {
    const std::string path = std::string(std::getenv("LIFELINE_CORPUS_DIR")) + "/" + name + ".delimited";
    const int descriptor = open(path.c_str(), O_RDONLY);
    if (descriptor < 0) Fail("cannot open " + path);
    std::vector<ChatMessage> messages = ReadAll(descriptor);
    close(descriptor);
    return messages;
}

void Check(const std::vector<ChatMessage>& received, const std::vector<ChatMessage>& expected) {
    if (received.size() != expected.size()) {
        Fail(std::to_string(received.size()) + " messages came, " + std::to_string(expected.size()) +
             " were expected");
    }
    google::protobuf::util::DefaultFieldComparator comparator;
    comparator.set_treat_nan_as_equal(true);
    for (size_t index = 0; index < expected.size(); ++index) {
        google::protobuf::util::MessageDifferencer differencer;
        std::string difference;
        differencer.set_field_comparator(&comparator);
        differencer.ReportDifferencesToString(&difference);
        if (!differencer.Compare(expected[index], received[index])) {
            Fail("message " + std::to_string(index) + " differs: " + difference);
        }
    }
}

sockaddr_in Loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    return address;
}

void EchoServer() {
    const int server = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = Loopback(0);
    socklen_t length = sizeof address;
    if (bind(server, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(server, 1) != 0 ||
        getsockname(server, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
        Fail("cannot listen");
    }
    std::cout << ntohs(address.sin_port) << std::endl;

    const int connection = accept(server, nullptr, nullptr);
    FileInputStream input(connection);
    FileOutputStream output(connection);
    ChatMessage message;
    while (ParseDelimitedFromZeroCopyStream(&message, &input, nullptr)) {
        if (!SerializeDelimitedToZeroCopyStream(message, &output) || !output.Flush()) Fail("cannot write");
        message.Clear();
    }
    close(connection);
}

void EchoClient(int port, const std::vector<ChatMessage>& messages) {
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = Loopback(port);
    if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) Fail("cannot connect");
    std::vector<ChatMessage> received;
    std::thread reader([&] { received = ReadAll(connection); });
    WriteAll(messages, connection);
    shutdown(connection, SHUT_WR);
    reader.join();
    close(connection);
    Check(received, messages);
}

}  // namespace

int main(int count, char** arguments) {
    const std::string command = count > 1 ? arguments[1] : "";
    if (command == "make") {
        WriteAll(Corpus(arguments[2]), STDOUT_FILENO);
    } else if (command == "check") {
        Check(ReadAll(STDIN_FILENO), Corpus(arguments[2]));
    } else if (command == "echo-server") {
        EchoServer();
    } else if (command == "echo-client") {
        EchoClient(std::atoi(arguments[2]), Corpus(arguments[3]));
    } else {
        Fail("unknown command " + command);
    }
}
