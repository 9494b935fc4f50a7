/// Each row has the situations with the same result, and the result. In missing situations, nothing is done and nothing
/// changes.
extension ClientMachineMatrixTests {
    static let expectedOfRequests: [Event: String] = [
        .timerEarly: """
        ended: → connecting retryDue (2) held [connecting #1 due 5.0]
        endedHanding: → connecting retryDue (2) held [connecting #1 queued 1 due 5.0]
        """,
        .timerDue: """
        connectingQueued: m1 sendTimedOut [connecting #1 queued 1 due 3.0]
        ready stable:  [ready #1 direct due 30.0]
        pausing:  [ready #1 direct pause 1.5 due 30.0]
        pausingStable:  [ready #1 direct pause 20.0 due 30.0]
        handing withdrawing:  [ready #1 queued 3 due 30.0]
        handingThird:  [ready #1 queued 2 due 30.0]
        failed:  [ready #1 queued 1 due 20.0]
        ended: → connecting retryDue (2) held [connecting #1 due 5.0]
        endedNext: abort 1 connectionFailed closedLocally [connecting #1]
        endedHanding: → connecting retryDue (2) held [connecting #1 queued 1 due 5.0]
        backingOff: → connecting retryDue (2), connect 2 [connecting #2]
        closedEnded closedEndedByUser: abort 1 connectionFailed closedLocally [closed #1]
        """,
        .timerLate: """
        connectingQueued: m1 sendTimedOut, m2 dropped [connecting #1]
        ready: probe 1 [ready #1 direct due 56.0]
        stable: probe 1 [ready #1 direct due 67.0]
        pausing: probe 1 [ready #1 direct pause 1.5 due 56.0]
        pausingStable: probe 1 [ready #1 direct pause 20.0 due 67.0]
        handing withdrawing: m2 sendTimedOut, probe 1 [ready #1 queued 2 due 56.0]
        handingThird: probe 1 [ready #1 queued 2 due 56.0]
        failed: m1 sendTimedOut, probe 1 [ready #1 due 56.0]
        ended: → connecting retryDue (2) held, abort 1 connectionFailed closedLocally [connecting #1]
        endedNext: abort 1 connectionFailed closedLocally [connecting #1]
        endedHanding: → connecting retryDue (2) held, abort 1 connectionFailed closedLocally [connecting #1 queued 1]
        backingOff: → connecting retryDue (2), connect 2 [connecting #2]
        closedEnded closedEndedByUser: abort 1 connectionFailed closedLocally [closed #1]
        """,
        .reconnect: """
        ready stable pausing pausingStable: → connecting reconnectRequested (1) held, abort 1 reconnectRequested \
        [connecting #1]
        handing withdrawing: → connecting reconnectRequested (1) held, m3 notConnected, abort 1 reconnectRequested \
        [connecting #1 queued 2 due 30.0]
        handingThird: → connecting reconnectRequested (1) held, m4 notConnected, abort 1 reconnectRequested \
        [connecting #1 queued 1]
        failed: → connecting reconnectRequested (1) held, abort 1 reconnectRequested [connecting #1 queued 1 due 20.0]
        ended: abort 1 reconnectRequested, → connecting reconnectRequested (1) held [connecting #1]
        endedNext: abort 1 reconnectRequested [connecting #1]
        endedHanding: abort 1 reconnectRequested, → connecting reconnectRequested (1) held [connecting #1 queued 1]
        backingOff gaveUp: → connecting reconnectRequested (1), connect 2 [connecting #2]
        closedEnded closedEndedByUser: abort 1 reconnectRequested [closed #1]
        """,
        .beginClose: """
        idle idleOffline waitingForNetwork backingOff gaveUp: → closed closedByUser, finish [closed]
        connecting endedEarly: → closed closedByUser, abort 1 closedByUser [closed #1]
        connectingQueued: → closed closedByUser, m1 closedLocally, m2 closedLocally, abort 1 closedByUser [closed #1]
        givenUp givenUpNext: → closed closedByUser [closed #1]
        ready stable: → draining closedByUser, close 1 [draining #1]
        pausing: → draining closedByUser, close 1 [draining #1 pause 1.5]
        pausingStable: → draining closedByUser, close 1 [draining #1 pause 20.0]
        handing withdrawing: → draining closedByUser, m2 closedLocally, m3 closedLocally, close 1 [draining #1 \
        queued 1]
        handingThird: → draining closedByUser, m4 closedLocally, close 1 [draining #1 queued 1]
        failed: → draining closedByUser, m1 closedLocally, close 1 [draining #1]
        ended: → closed closedByUser held [closed #1 due 5.0]
        endedNext: → closed closedByUser held [closed #1 due 16.0]
        endedHanding: → closed closedByUser held [closed #1 queued 1 due 5.0]
        lost replaced: → closed closedByUser held [closed #1]
        """,
        .close: """
        idle idleOffline waitingForNetwork backingOff gaveUp: → closed closedByUser, finish [closed]
        connecting endedEarly: → closed closedByUser, abort 1 closedByUser [closed #1]
        connectingQueued: → closed closedByUser, m1 closedLocally, m2 closedLocally, abort 1 closedByUser [closed #1]
        givenUp givenUpNext: → closed closedByUser [closed #1]
        ready stable: → draining closedByUser, close 1 [draining #1]
        pausing: → draining closedByUser, close 1 [draining #1 pause 1.5]
        pausingStable: → draining closedByUser, close 1 [draining #1 pause 20.0]
        handing withdrawing: → draining closedByUser, m2 closedLocally, m3 closedLocally, close 1 [draining #1 \
        queued 1]
        handingThird: → draining closedByUser, m4 closedLocally, close 1 [draining #1 queued 1]
        failed: → draining closedByUser, m1 closedLocally, close 1 [draining #1]
        ended: → closed closedByUser held [closed #1 due 5.0]
        endedNext: → closed closedByUser held [closed #1 due 16.0]
        endedHanding: → closed closedByUser held [closed #1 queued 1 due 5.0]
        lost replaced: → closed closedByUser held [closed #1]
        closedEndedByUser: abort 1 closedByUser [closed #1]
        """,
        .cut: """
        idle idleOffline waitingForNetwork backingOff gaveUp: → closed closedByUser, finish [closed]
        connecting endedEarly: → closed closedByUser, abort 1 closedByUser [closed #1]
        connectingQueued: → closed closedByUser, m1 closedLocally, m2 closedLocally, abort 1 closedByUser [closed #1]
        givenUp givenUpNext: → closed closedByUser [closed #1]
        ready stable: → draining closedByUser, close 1, → closed closedByUser held, abort 1 closedByUser [closed #1]
        pausing: → draining closedByUser, close 1, → closed closedByUser held, abort 1 closedByUser [closed #1 \
        pause 1.5]
        pausingStable: → draining closedByUser, close 1, → closed closedByUser held, abort 1 closedByUser [closed \
        #1 pause 20.0]
        handing withdrawing: → draining closedByUser, m2 closedLocally, m3 closedLocally, close 1, → closed \
        closedByUser held, abort 1 closedByUser [closed #1 queued 1]
        handingThird: → draining closedByUser, m4 closedLocally, close 1, → closed closedByUser held, abort 1 \
        closedByUser [closed #1 queued 1]
        failed: → draining closedByUser, m1 closedLocally, close 1, → closed closedByUser held, abort 1 \
        closedByUser [closed #1]
        ended endedNext draining: → closed closedByUser held, abort 1 closedByUser [closed #1]
        endedHanding drainingHanding: → closed closedByUser held, abort 1 closedByUser [closed #1 queued 1]
        lost replaced: → closed closedByUser held [closed #1]
        closedEnded closedEndedByUser: abort 1 closedByUser [closed #1]
        """,
        .cancel: """
        idle idleOffline waitingForNetwork backingOff gaveUp: → closed cancelled, finish [closed]
        connecting endedEarly: → closed cancelled, abort 1 cancelled [closed #1]
        connectingQueued: → closed cancelled, m1 closedLocally, m2 closedLocally, abort 1 cancelled [closed #1]
        givenUp givenUpNext: → closed cancelled [closed #1]
        ready stable draining: → closed cancelled held, abort 1 cancelled [closed #1]
        pausing: → closed cancelled held, abort 1 cancelled [closed #1 pause 1.5]
        pausingStable: → closed cancelled held, abort 1 cancelled [closed #1 pause 20.0]
        handing withdrawing: → closed cancelled held, m2 closedLocally, m3 closedLocally, abort 1 cancelled [closed \
        #1 queued 1]
        handingThird: → closed cancelled held, m4 closedLocally, abort 1 cancelled [closed #1 queued 1]
        failed: → closed cancelled held, m1 closedLocally, abort 1 cancelled [closed #1]
        ended endedNext: abort 1 cancelled, → closed cancelled held [closed #1]
        endedHanding: abort 1 cancelled, → closed cancelled held [closed #1 queued 1]
        lost replaced: → closed cancelled held [closed #1]
        drainingHanding: → closed cancelled held, abort 1 cancelled [closed #1 queued 1]
        closedEnded closedEndedByUser: abort 1 cancelled [closed #1]
        """,
        .offerWait: """
        idle idleOffline: wait(1) [idle queued 1 due 2.5]
        waitingForNetwork: wait(1) [waitingForNetwork queued 1 due 2.5]
        connecting endedEarly givenUpNext replaced: wait(1) [connecting #1 queued 1 due 2.5]
        connectingQueued: wait(3) [connecting #1 queued 3 due 2.0]
        givenUp lost: wait(1) [waitingForNetwork #1 queued 1 due 2.5]
        ready stable pausing pausingStable: sendNow
        handing withdrawing: fail(sendQueueFull)
        handingThird: wait(5) [ready #1 queued 3 due 2.5]
        failed: wait(2) [ready #1 queued 2 due 2.5]
        ended: wait(1) [backingOff #1 queued 1 due 1.0]
        endedNext: wait(1) [connecting #1 queued 1 due 13.5]
        endedHanding: wait(2) [backingOff #1 queued 2 due 1.0]
        cancelled draining drainingHanding closedEnded closedEndedByUser over: fail(closedLocally)
        backingOff: wait(1) [backingOff queued 1 due 1.0]
        gaveUp: wait(1) [gaveUp queued 1 due 2.5]
        """,
        .offerFail: """
        idle idleOffline waitingForNetwork connecting connectingQueued endedEarly givenUp givenUpNext failed ended \
        endedNext endedHanding lost replaced backingOff gaveUp: fail(notConnected)
        ready stable pausing pausingStable: sendNow
        handing withdrawing: fail(sendQueueFull)
        handingThird: wait(5) [ready #1 queued 3 due 15.0]
        cancelled draining drainingHanding closedEnded closedEndedByUser over: fail(closedLocally)
        """,
        .offerDrop: """
        idle idleOffline: wait(1) [idle queued 1 due 3.5]
        waitingForNetwork: wait(1) [waitingForNetwork queued 1 due 3.5]
        connecting endedEarly givenUpNext replaced: wait(1) [connecting #1 queued 1 due 3.5]
        connectingQueued: wait(3) [connecting #1 queued 3 due 2.0]
        givenUp lost: wait(1) [waitingForNetwork #1 queued 1 due 3.5]
        ready stable pausing pausingStable: sendNow
        handing withdrawing: fail(sendQueueFull)
        handingThird: wait(5) [ready #1 queued 3 due 3.5]
        failed: wait(2) [ready #1 queued 2 due 3.5]
        ended: wait(1) [backingOff #1 queued 1 due 1.0]
        endedNext: wait(1) [connecting #1 queued 1 due 14.5]
        endedHanding: wait(2) [backingOff #1 queued 2 due 1.0]
        cancelled draining drainingHanding closedEnded closedEndedByUser over: fail(closedLocally)
        backingOff: wait(1) [backingOff queued 1 due 1.0]
        gaveUp: wait(1) [gaveUp queued 1 due 3.5]
        """,
        .offerLarge: """
        idle idleOffline: wait(1) [idle queued 1 of 20 bytes due 2.5]
        waitingForNetwork: wait(1) [waitingForNetwork queued 1 of 20 bytes due 2.5]
        connecting endedEarly givenUpNext replaced: wait(1) [connecting #1 queued 1 of 20 bytes due 2.5]
        connectingQueued: wait(3) [connecting #1 queued 3 of 40 bytes due 2.0]
        handing withdrawing: fail(sendQueueFull)
        givenUp lost: wait(1) [waitingForNetwork #1 queued 1 of 20 bytes due 2.5]
        ready stable pausing pausingStable: sendNow
        handingThird: wait(5) [ready #1 queued 3 of 40 bytes due 2.5]
        failed: wait(2) [ready #1 queued 2 of 30 bytes due 2.5]
        ended: wait(1) [backingOff #1 queued 1 of 20 bytes due 1.0]
        endedNext: wait(1) [connecting #1 queued 1 of 20 bytes due 13.5]
        endedHanding: wait(2) [backingOff #1 queued 2 of 30 bytes due 1.0]
        cancelled draining drainingHanding closedEnded closedEndedByUser over: fail(closedLocally)
        backingOff: wait(1) [backingOff queued 1 of 20 bytes due 1.0]
        gaveUp: wait(1) [gaveUp queued 1 of 20 bytes due 2.5]
        """,
        .offerTooLarge: """
        idle idleOffline waitingForNetwork connecting connectingQueued endedEarly givenUp givenUpNext handing \
        handingThird withdrawing failed ended endedNext endedHanding lost replaced backingOff gaveUp: fail(sendQueueFull)
        ready stable pausing pausingStable: sendNow
        cancelled draining drainingHanding closedEnded closedEndedByUser over: fail(closedLocally)
        """,
        .cancelFirst: """
        connectingQueued: m1 cancelled [connecting #1 queued 1 due 3.0]
        handing withdrawing endedHanding drainingHanding: withdraw m1
        failed: m1 cancelled [ready #1 due 15.0]
        """,
        .cancelSecond: """
        connectingQueued: m2 cancelled [connecting #1 queued 1 due 2.0]
        handing withdrawing: m2 cancelled [ready #1 queued 2 due 15.0]
        """,
        .sendFailed: """
        ready stable:  [ready #1 due 15.0]
        pausing:  [ready #1 pause 1.5 due 15.0]
        pausingStable:  [ready #1 pause 20.0 due 15.0]
        handing withdrawing: m3 notConnected [ready #1 queued 2 due 15.0]
        handingThird: m4 notConnected [ready #1 queued 1 due 15.0]
        """,
        .sendFailedOther: "",
        .handedOver: """
        handing withdrawing: m1 sent by 1, offer m2 to 1 [ready #1 queued 2 due 15.0]
        endedHanding: m1 sent by 1 [backingOff #1 due 1.0]
        drainingHanding: m1 sent by 1 [draining #1]
        """,
        .refused: """
        handing: m3 notConnected [ready #1 queued 2 due 15.0]
        withdrawing: m1 cancelled, offer m2 to 1 [ready #1 queued 2 due 15.0]
        drainingHanding: m1 closedLocally [draining #1]
        """,
        .handedOverOther: "",
    ]
}
