/// Each row has the situations with the same result, and the result. In missing situations, nothing is done and nothing
/// changes.
extension ClientMachineMatrixTests {
    static let expectedOfConnections: [Event: String] = [
        .start: """
        idle: → connecting started (1), connect 1 [connecting #1]
        idleOffline: → waitingForNetwork started [waitingForNetwork]
        waitingForNetwork connecting connectingQueued endedEarly givenUp givenUpNext ready stable pausing \
        pausingStable handing handingThird withdrawing failed ended endedNext endedHanding lost cancelled replaced \
        backingOff gaveUp draining drainingHanding closedEnded closedEndedByUser over: alreadyRun
        """,
        .networkUp: """
        waitingForNetwork: → connecting networkUp (1), connect 1 [connecting #1]
        givenUp: → connecting networkUp (1) [connecting #1]
        ready stable handing handingThird withdrawing failed: probe 1
        pausing: probe 1 [ready #1 direct pause 1.0 due 15.0]
        pausingStable: probe 1 [ready #1 direct pause 12.0 due 15.0]
        ended: → connecting networkUp (1) held [connecting #1 due 5.0]
        endedHanding: → connecting networkUp (1) held [connecting #1 queued 1 due 5.0]
        lost: → connecting networkUp (1) held [connecting #1]
        backingOff gaveUp: → connecting networkUp (1), connect 2 [connecting #2]
        """,
        .networkLost: """
        connecting endedEarly: → waitingForNetwork networkLost, abort 1 networkLost [waitingForNetwork #1]
        connectingQueued: → waitingForNetwork networkLost, abort 1 networkLost [waitingForNetwork #1 queued 2 due 2.0]
        givenUpNext: → waitingForNetwork networkLost [waitingForNetwork #1]
        ready stable: → waitingForNetwork networkLost held, abort 1 networkLost [waitingForNetwork #1]
        pausing: → waitingForNetwork networkLost held, abort 1 networkLost [waitingForNetwork #1 pause 1.5]
        pausingStable: → waitingForNetwork networkLost held, abort 1 networkLost [waitingForNetwork #1 pause 20.0]
        handing withdrawing: → waitingForNetwork networkLost held, m3 notConnected, abort 1 networkLost \
        [waitingForNetwork #1 queued 2 due 30.0]
        handingThird: → waitingForNetwork networkLost held, m4 notConnected, abort 1 networkLost [waitingForNetwork \
        #1 queued 1]
        failed: → waitingForNetwork networkLost held, abort 1 networkLost [waitingForNetwork #1 queued 1 due 20.0]
        ended endedNext: abort 1 networkLost, → waitingForNetwork networkLost held [waitingForNetwork #1]
        endedHanding: abort 1 networkLost, → waitingForNetwork networkLost held [waitingForNetwork #1 queued 1]
        replaced: → waitingForNetwork networkLost held [waitingForNetwork #1]
        backingOff: → waitingForNetwork networkLost [waitingForNetwork]
        draining: → closed networkLost held, abort 1 networkLost [closed #1]
        drainingHanding: → closed networkLost held, abort 1 networkLost [closed #1 queued 1]
        closedEnded closedEndedByUser: abort 1 networkLost [closed #1]
        """,
        .connected: """
        connecting: → ready connected (1), use 1 [ready #1 direct due 16.0]
        connectingQueued: → ready connected (1), use 1, offer m1 to 1 [ready #1 queued 2 due 3.0]
        endedEarly: → ready connected (1), use 1, → backingOff closedByPeer (1) in 1.0 seconds held, close 1 \
        [backingOff #1 due 2.0]
        givenUp givenUpNext: abort 1 networkLost
        """,
        .connectedLate: """
        connecting: → ready connected (1), use 1 [ready #1 direct due 17.0]
        connectingQueued: → ready connected (1), use 1, m1 sendTimedOut, offer m2 to 1 [ready #1 queued 1 due 17.0]
        endedEarly: → ready connected (1), use 1, → backingOff closedByPeer (1) in 1.0 seconds held, close 1 \
        [backingOff #1 due 3.0]
        givenUp givenUpNext: abort 1 networkLost
        """,
        .pausedShortly: """
        connecting endedEarly givenUpNext replaced:  [connecting #1 pause 1.1]
        connectingQueued:  [connecting #1 queued 2 pause 1.1 due 2.0]
        ready pausing:  [ready #1 direct pause 1.1 due 15.0]
        stable pausingStable:  [ready #1 direct pause 12.1 due 15.0]
        handing withdrawing:  [ready #1 queued 3 pause 1.1 due 15.0]
        handingThird:  [ready #1 queued 2 pause 1.1 due 15.0]
        failed:  [ready #1 queued 1 pause 1.1 due 15.0]
        ended:  [backingOff #1 due 1.1]
        endedNext:  [connecting #1 pause 12.1 due 16.0]
        endedHanding:  [backingOff #1 queued 1 due 1.1]
        """,
        .pausedLong: """
        connecting endedEarly givenUpNext replaced:  [connecting #1 pause 61.0]
        connectingQueued:  [connecting #1 queued 2 pause 61.0 due 2.0]
        ready pausing:  [ready #1 direct pause 61.0 due 15.0]
        stable pausingStable:  [ready #1 direct pause 72.0 due 15.0]
        handing withdrawing:  [ready #1 queued 3 pause 61.0 due 15.0]
        handingThird:  [ready #1 queued 2 pause 61.0 due 15.0]
        failed:  [ready #1 queued 1 pause 61.0 due 15.0]
        ended:  [backingOff #1 due 5.0]
        endedNext:  [connecting #1 pause 72.0 due 16.0]
        endedHanding:  [backingOff #1 queued 1 due 5.0]
        backingOff:  [backingOff due 60.5]
        """,
        .connectedOther: "",
        .connectFailed: """
        connecting endedEarly: → backingOff connectFailed (1) in 1.0 seconds [backingOff due 2.0]
        connectingQueued: → backingOff connectFailed (1) in 1.0 seconds [backingOff queued 2 due 2.0]
        givenUp:  [waitingForNetwork]
        givenUpNext: connect 2 [connecting #2]
        """,
        .tlsRejected: """
        connecting endedEarly: → gaveUp tlsRejected (1) [gaveUp]
        connectingQueued: → gaveUp tlsRejected (1) [gaveUp queued 2 due 2.0]
        givenUp:  [waitingForNetwork]
        givenUpNext: connect 2 [connecting #2]
        """,
        .connectGivenUp: """
        connecting endedEarly:  [connecting]
        connectingQueued:  [connecting queued 2 due 2.0]
        givenUp:  [waitingForNetwork]
        givenUpNext: connect 2 [connecting #2]
        """,
        .inputEnded: """
        ready: → backingOff closedByPeer (1) in 1.0 seconds held, close 1 [backingOff #1 due 2.0]
        stable: → connecting closedByPeer (1) held, close 1 [connecting #1 due 17.0]
        pausing: → backingOff closedByPeer in 0.5 seconds held, close 1 [backingOff #1 pause 1.5 due 1.5]
        pausingStable: → backingOff closedByPeer in 8.0 seconds held, close 1 [backingOff #1 pause 20.0 due 17.0]
        handing withdrawing: → backingOff closedByPeer (1) in 1.0 seconds held, m3 notConnected, close 1 \
        [backingOff #1 queued 2 due 2.0]
        handingThird: → backingOff closedByPeer (1) in 1.0 seconds held, m4 notConnected, close 1 [backingOff #1 \
        queued 1 due 2.0]
        failed: → backingOff closedByPeer (1) in 1.0 seconds held, close 1 [backingOff #1 queued 1 due 2.0]
        """,
        .inputEndedBefore: """
        ready stable: → backingOff closedByPeer (1) in 1.0 seconds held, close 1 [backingOff #1 due 1.0]
        pausing: → backingOff closedByPeer in 1.5 seconds held, close 1 [backingOff #1 pause 1.5 due 1.5]
        pausingStable: → backingOff closedByPeer in 20.0 seconds held, close 1 [backingOff #1 pause 20.0 due 5.0]
        handing withdrawing: → backingOff closedByPeer (1) in 1.0 seconds held, m3 notConnected, close 1 \
        [backingOff #1 queued 2 due 1.0]
        handingThird: → backingOff closedByPeer (1) in 1.0 seconds held, m4 notConnected, close 1 [backingOff #1 \
        queued 1 due 1.0]
        failed: → backingOff closedByPeer (1) in 1.0 seconds held, close 1 [backingOff #1 queued 1 due 1.0]
        """,
        .inputEndedOther: "",
        .closed: """
        givenUp:  [waitingForNetwork]
        givenUpNext: connect 2 [connecting #2]
        ready: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3 [backingOff due 2.0]
        stable: → connecting closedByPeer (1) lost 1 of 3, connect 2 [connecting #2]
        pausing: → backingOff closedByPeer in 0.5 seconds lost 1 of 3 [backingOff pause 1.5 due 1.5]
        pausingStable: → backingOff closedByPeer in 8.0 seconds lost 1 of 3 [backingOff pause 20.0 due 20.0]
        handing: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3, m3 notConnected [backingOff queued 2 due \
        2.0]
        handingThird: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3, m4 notConnected, m3 notConnected \
        [backingOff due 2.0]
        withdrawing: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3, m3 notConnected, m1 cancelled \
        [backingOff queued 1 due 2.0]
        failed: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3 [backingOff queued 1 due 2.0]
        ended: publish backingOff lost 1 of 3 [backingOff due 1.0]
        endedNext replaced: publish connecting lost 1 of 3, connect 2 [connecting #2]
        endedHanding: publish backingOff lost 1 of 3 [backingOff queued 1 due 1.0]
        lost: publish waitingForNetwork lost 1 of 3 [waitingForNetwork]
        cancelled: publish closed lost 1 of 3, finish [closed]
        draining: → closed drained lost 1 of 3, finish [closed]
        drainingHanding: → closed drained lost 1 of 3, m1 closedLocally, finish [closed]
        closedEnded closedEndedByUser: publish backingOff lost 1 of 3, publish closed, finish [closed]
        """,
        .closedReset: """
        givenUp:  [waitingForNetwork]
        givenUpNext: connect 2 [connecting #2]
        ready: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3 [backingOff due 2.0]
        stable: → connecting closedByPeer (1) lost 1 of 3, connect 2 [connecting #2]
        pausing: → backingOff closedByPeer in 0.5 seconds lost 1 of 3 [backingOff pause 1.5 due 1.5]
        pausingStable: → backingOff closedByPeer in 8.0 seconds lost 1 of 3 [backingOff pause 20.0 due 20.0]
        handing: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3, m3 notConnected [backingOff queued 2 due \
        2.0]
        handingThird: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3, m4 notConnected, m3 notConnected \
        [backingOff due 2.0]
        withdrawing: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3, m3 notConnected, m1 cancelled \
        [backingOff queued 1 due 2.0]
        failed: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3 [backingOff queued 1 due 2.0]
        ended: publish backingOff lost 1 of 3 [backingOff due 1.0]
        endedNext replaced: publish connecting lost 1 of 3, connect 2 [connecting #2]
        endedHanding: publish backingOff lost 1 of 3 [backingOff queued 1 due 1.0]
        lost: publish waitingForNetwork lost 1 of 3 [waitingForNetwork]
        cancelled: publish closed lost 1 of 3, finish [closed]
        draining: → closed closedByPeer lost 1 of 3, finish [closed]
        drainingHanding: → closed closedByPeer lost 1 of 3, m1 closedLocally, finish [closed]
        closedEnded closedEndedByUser: publish backingOff lost 1 of 3, publish closed, finish [closed]
        """,
        .closedWithoutEnd: """
        givenUp:  [waitingForNetwork]
        givenUpNext: connect 2 [connecting #2]
        ready: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3 [backingOff due 2.0]
        stable: → connecting closedByPeer (1) lost 1 of 3, connect 2 [connecting #2]
        pausing: → backingOff closedByPeer in 0.5 seconds lost 1 of 3 [backingOff pause 1.5 due 1.5]
        pausingStable: → backingOff closedByPeer in 8.0 seconds lost 1 of 3 [backingOff pause 20.0 due 20.0]
        handing: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3, m3 notConnected [backingOff queued 2 due \
        2.0]
        handingThird: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3, m4 notConnected, m3 notConnected \
        [backingOff due 2.0]
        withdrawing: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3, m3 notConnected, m1 cancelled \
        [backingOff queued 1 due 2.0]
        failed: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3 [backingOff queued 1 due 2.0]
        ended: publish backingOff lost 1 of 3 [backingOff due 1.0]
        endedNext replaced: publish connecting lost 1 of 3, connect 2 [connecting #2]
        endedHanding: publish backingOff lost 1 of 3 [backingOff queued 1 due 1.0]
        lost: publish waitingForNetwork lost 1 of 3 [waitingForNetwork]
        cancelled: publish closed lost 1 of 3, finish [closed]
        draining: → closed connectionFailed lost 1 of 3, finish [closed]
        drainingHanding: → closed connectionFailed lost 1 of 3, m1 closedLocally, finish [closed]
        closedEnded closedEndedByUser: publish backingOff lost 1 of 3, publish closed, finish [closed]
        """,
        .closedSilent: """
        givenUp:  [waitingForNetwork]
        givenUpNext: connect 2 [connecting #2]
        ready: → backingOff heartbeatTimeout (1) in 1.0 seconds lost ? of 3 [backingOff due 2.0]
        stable: → backingOff heartbeatTimeout (1) in 1.0 seconds lost ? of 3 [backingOff due 13.0]
        pausing: → backingOff heartbeatTimeout in 0.5 seconds lost ? of 3 [backingOff pause 1.5 due 1.5]
        pausingStable: → backingOff heartbeatTimeout in 8.0 seconds lost ? of 3 [backingOff pause 20.0 due 20.0]
        handing: → backingOff heartbeatTimeout (1) in 1.0 seconds lost ? of 3, m3 notConnected [backingOff queued 2 \
        due 2.0]
        handingThird: → backingOff heartbeatTimeout (1) in 1.0 seconds lost ? of 3, m4 notConnected, m3 \
        notConnected [backingOff due 2.0]
        withdrawing: → backingOff heartbeatTimeout (1) in 1.0 seconds lost ? of 3, m3 notConnected, m1 cancelled \
        [backingOff queued 1 due 2.0]
        failed: → backingOff heartbeatTimeout (1) in 1.0 seconds lost ? of 3 [backingOff queued 1 due 2.0]
        ended: publish backingOff lost ? of 3 [backingOff due 1.0]
        endedNext replaced: publish connecting lost ? of 3, connect 2 [connecting #2]
        endedHanding: publish backingOff lost ? of 3 [backingOff queued 1 due 1.0]
        lost: publish waitingForNetwork lost ? of 3 [waitingForNetwork]
        cancelled: publish closed lost ? of 3, finish [closed]
        draining: → closed heartbeatTimeout lost ? of 3, finish [closed]
        drainingHanding: → closed heartbeatTimeout lost ? of 3, m1 closedLocally, finish [closed]
        closedEnded closedEndedByUser: publish backingOff lost ? of 3, publish closed, finish [closed]
        """,
        .closedWithinFrame: """
        givenUp:  [waitingForNetwork]
        givenUpNext: connect 2 [connecting #2]
        ready: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3 [backingOff due 2.0]
        stable: → connecting closedByPeer (1) lost 1 of 3, connect 2 [connecting #2]
        pausing: → backingOff closedByPeer in 0.5 seconds lost 1 of 3 [backingOff pause 1.5 due 1.5]
        pausingStable: → backingOff closedByPeer in 8.0 seconds lost 1 of 3 [backingOff pause 20.0 due 20.0]
        handing: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3, m3 notConnected [backingOff queued 2 due \
        2.0]
        handingThird: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3, m4 notConnected, m3 notConnected \
        [backingOff due 2.0]
        withdrawing: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3, m3 notConnected, m1 cancelled \
        [backingOff queued 1 due 2.0]
        failed: → backingOff closedByPeer (1) in 1.0 seconds lost 1 of 3 [backingOff queued 1 due 2.0]
        ended: publish backingOff lost 1 of 3 [backingOff due 1.0]
        endedNext replaced: publish connecting lost 1 of 3, connect 2 [connecting #2]
        endedHanding: publish backingOff lost 1 of 3 [backingOff queued 1 due 1.0]
        lost: publish waitingForNetwork lost 1 of 3 [waitingForNetwork]
        cancelled: publish closed lost 1 of 3, finish [closed]
        draining: → closed closedByPeer lost 1 of 3, finish [closed]
        drainingHanding: → closed closedByPeer lost 1 of 3, m1 closedLocally, finish [closed]
        closedEnded closedEndedByUser: publish backingOff lost 1 of 3, publish closed, finish [closed]
        """,
        .closedViolated: """
        givenUp:  [waitingForNetwork]
        givenUpNext: connect 2 [connecting #2]
        ready: → backingOff protocolViolation (1) in 1.0 seconds lost 1 of 3 [backingOff due 2.0]
        stable: → connecting protocolViolation (1) lost 1 of 3, connect 2 [connecting #2]
        pausing: → backingOff protocolViolation in 0.5 seconds lost 1 of 3 [backingOff pause 1.5 due 1.5]
        pausingStable: → backingOff protocolViolation in 8.0 seconds lost 1 of 3 [backingOff pause 20.0 due 20.0]
        handing: → backingOff protocolViolation (1) in 1.0 seconds lost 1 of 3, m3 notConnected [backingOff queued \
        2 due 2.0]
        handingThird: → backingOff protocolViolation (1) in 1.0 seconds lost 1 of 3, m4 notConnected, m3 \
        notConnected [backingOff due 2.0]
        withdrawing: → backingOff protocolViolation (1) in 1.0 seconds lost 1 of 3, m3 notConnected, m1 cancelled \
        [backingOff queued 1 due 2.0]
        failed: → backingOff protocolViolation (1) in 1.0 seconds lost 1 of 3 [backingOff queued 1 due 2.0]
        ended: publish backingOff lost 1 of 3 [backingOff due 1.0]
        endedNext replaced: publish connecting lost 1 of 3, connect 2 [connecting #2]
        endedHanding: publish backingOff lost 1 of 3 [backingOff queued 1 due 1.0]
        lost: publish waitingForNetwork lost 1 of 3 [waitingForNetwork]
        cancelled: publish closed lost 1 of 3, finish [closed]
        draining: → closed protocolViolation lost 1 of 3, finish [closed]
        drainingHanding: → closed protocolViolation lost 1 of 3, m1 closedLocally, finish [closed]
        closedEnded closedEndedByUser: publish backingOff lost 1 of 3, publish closed, finish [closed]
        """,
        .closedOther: "",
    ]
}
