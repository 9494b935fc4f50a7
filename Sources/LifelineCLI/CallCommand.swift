internal import ArgumentParser

struct CallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call",
        abstract: "Calls the room that `lifeline serve` serves.",
        discussion: """
            Each subcommand is one of the shapes that a method of a session has:
              echo      a request and its reply. The default
              watch     a request and a stream of messages
              say-all   a stream of messages and the reply to it
              talk      streams of messages both ways
              report    a push from the client
              chat      pushes from the server, and requests

            A connection that is lost is made again, with 0.25 s, 0.5 s and so on up to 5 s between attempts, and the \
            session goes on over it: nothing is lost, doubled or reordered. A server that was restarted does not know \
            the session any more: a new one begins, and what had been sent and not answered is in doubt, since nobody \
            knows whether the old server has handled it. The command says what that was. A server that drains, as it \
            does after an interrupt, answers first, so that nothing is in doubt.

            Results go to standard output; what happens to the connection and the session, to standard error.

            Examples:
              lifeline call --text "Hello"
              lifeline call --count 100000
              lifeline call watch --count 5 --interval 0.5
              ls | lifeline call say-all --name List
              lifeline call talk --name Ada
              lifeline call report --name Ada --text "having lunch"
              lifeline call chat --name Ada
              date | lifeline call chat --name Clock
              lifeline call echo --to unix:///tmp/room.sock --text "Hello"
              lifeline call echo --to ws://127.0.0.1:7000/room --text "Hello"
              lifeline call echo --to tls://chat.example.org:7443 --ca ca.pem --text "Hello"
              lifeline call echo --to wss://10.0.0.7:7443/room --trust-pins --pin sha256/47DEQpj8HBSa… --text "Hello"

            Exit codes: 0 done, 64 wrong usage, 65 bad data, 69 the server is unavailable (or no connection for \
            --give-up-after), 70 the server failed, 74 the session was lost with something in doubt (or output \
            failed), 75 no answer within --timeout, 76 the other side does not speak the session protocol, 77 the \
            server does not let this client in, 130 and 143 interrupted; but chat, talk, and watch without --count, \
            exit with 0 then.
            """,
        subcommands: [
            CallEcho.self, CallWatch.self, CallSayAll.self, CallTalk.self, CallReport.self, CallChat.self,
        ],
        defaultSubcommand: CallEcho.self
    )
}
