extension SessionMachineMatrixTests {
    /// The situations that have the same result, and it: actions, and in brackets the frames that follow.
    ///
    /// `<lost>` and `<over>` stand for what becomes of everything that the busy ones have.
    static let expected: [Event: [String]] = [
        .connected: [
            "new opening failed:  [hello]",
            "open busy detached closing:  [hello again]",
            "ended serverEnded:",
            "serverNew serverOpen: opened 2 [welcome]",
            "serverBusy serverDetached: violated acknowledgementWentBack, <over> violation [goodbye violation]",
        ],
        .resumedAgain: [
            "new opening failed:  [hello] violated otherSession [goodbye violation]",
            "open:  [hello again] opened 1 again",
            "busy detached closing:  [hello again] opened 1 again [o2 push 2 ack 1/0, o3 push 3 ack 1/0, o4 push 4 ack 1/0, o5 request 2 6 ack 1/0]",
            "ended:  [] ",
            "serverNew serverOpen: opened 1 again [welcome again]",
            "serverBusy serverDetached: opened 1 again [welcome again, o2 push 2 ack 1/0, o3 push 3 ack 1/0, o4 push 4 ack 1/0, o5 request 2 6 ack 1/0]",
            "serverEnded:",
        ],
        .resumedTooFar: [
            "new opening failed: violated otherSession [goodbye violation]",
            "open: violated unknownAcknowledgement, sessionLost [goodbye violation]",
            "busy detached closing: violated unknownAcknowledgement, sessionLost, <lost> [goodbye violation]",
            "ended serverEnded:",
            "serverNew serverOpen: violated unknownAcknowledgement, ended violation [goodbye violation]",
            "serverBusy serverDetached: violated unknownAcknowledgement, <over> violation [goodbye violation]",
        ],
        .disconnected: [
            "new opening open busy detached failed closing ended serverNew serverOpen serverBusy serverDetached serverEnded:"
        ],
        .hello: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: violated unexpectedFrame [goodbye violation]",
            "open: violated unexpectedFrame, sessionLost [goodbye violation]",
            "busy closing: violated unexpectedFrame, sessionLost, <lost> [goodbye violation]",
            "serverOpen: violated openedTwice, ended violation [goodbye violation]",
            "serverBusy: violated openedTwice, <over> violation [goodbye violation]",
        ],
        .welcomeNew: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: opened 2",
            "open: violated openedTwice, sessionLost [goodbye violation]",
            "busy closing: violated openedTwice, sessionLost, <lost> [goodbye violation]",
            "serverOpen: violated unexpectedFrame, ended violation [goodbye violation]",
            "serverBusy: violated unexpectedFrame, <over> violation [goodbye violation]",
        ],
        .welcomeAgain: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: violated otherSession [goodbye violation]",
            "open: violated openedTwice, sessionLost [goodbye violation]",
            "busy closing: violated openedTwice, sessionLost, <lost> [goodbye violation]",
            "serverOpen: violated unexpectedFrame, ended violation [goodbye violation]",
            "serverBusy: violated unexpectedFrame, <over> violation [goodbye violation]",
        ],
        .welcomeOther: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: violated otherSession [goodbye violation]",
            "open: violated openedTwice, sessionLost [goodbye violation]",
            "busy closing: violated openedTwice, sessionLost, <lost> [goodbye violation]",
            "serverOpen: violated unexpectedFrame, ended violation [goodbye violation]",
            "serverBusy: violated unexpectedFrame, <over> violation [goodbye violation]",
        ],
        .welcomeVersion: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: violated version [goodbye violation]",
            "open: violated openedTwice, sessionLost [goodbye violation]",
            "busy closing: violated openedTwice, sessionLost, <lost> [goodbye violation]",
            "serverOpen: violated unexpectedFrame, ended violation [goodbye violation]",
            "serverBusy: violated unexpectedFrame, <over> violation [goodbye violation]",
        ],
        .push: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
            "open busy closing serverOpen serverBusy: push 5",
        ],
        .part: [
            "new open detached failed ended serverNew serverOpen serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
            "busy closing serverBusy: push 5 of 1",
        ],
        .atMostOncePush: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
            "open busy closing serverOpen serverBusy: push 5",
        ],
        .request: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
            "open busy serverOpen serverBusy: begin 8 5",
            "closing: refuse 8 5 closing",
        ],
        .sameRequest: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
            "open serverOpen: begin 7 5",
            "busy closing: violated serialInUse, sessionLost, <lost> [goodbye violation]",
            "serverBusy: violated serialInUse, <over> violation [goodbye violation]",
        ],
        .response: [
            "new open detached failed ended serverNew serverOpen serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
            "busy closing serverBusy: complete 101 5",
        ],
        .lateResponse: [
            "new open busy detached failed closing ended serverNew serverOpen serverBusy serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
        ],
        .cancel: [
            "new open detached failed ended serverNew serverOpen serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
            "busy closing serverBusy: cancel 7",
        ],
        .unknown: [
            "new open busy detached failed closing ended serverNew serverOpen serverBusy serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
        ],
        .duplicate: [
            "new open busy detached failed closing ended serverNew serverOpen serverBusy serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
        ],
        .unplacedBlank: [
            "new opening open busy detached failed closing ended serverNew serverOpen serverBusy serverDetached serverEnded:"
        ],
        .gap: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
            "open: violated gap, sessionLost [goodbye violation]",
            "busy closing: violated gap, sessionLost, <lost> [goodbye violation]",
            "serverOpen: violated gap, ended violation [goodbye violation]",
            "serverBusy: violated gap, <over> violation [goodbye violation]",
        ],
        .urgentGap: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
            "open: violated gap, sessionLost [goodbye violation]",
            "busy closing: violated gap, sessionLost, <lost> [goodbye violation]",
            "serverOpen: violated gap, ended violation [goodbye violation]",
            "serverBusy: violated gap, <over> violation [goodbye violation]",
        ],
        .urgentPush: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
            "open: violated wrongPlace, sessionLost [goodbye violation]",
            "busy closing: violated wrongPlace, sessionLost, <lost> [goodbye violation]",
            "serverOpen: violated wrongPlace, ended violation [goodbye violation]",
            "serverBusy: violated wrongPlace, <over> violation [goodbye violation]",
        ],
        .unplacedResponse: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: violated notOpened [goodbye violation]",
            "open: violated wrongPlace, sessionLost [goodbye violation]",
            "busy closing: violated wrongPlace, sessionLost, <lost> [goodbye violation]",
            "serverOpen: violated wrongPlace, ended violation [goodbye violation]",
            "serverBusy: violated wrongPlace, <over> violation [goodbye violation]",
        ],
        .acknowledged: [
            "new opening open detached failed ended serverNew serverOpen serverDetached serverEnded:",
            "busy closing serverBusy: #2 processed [o4 push 4 ack 1/0]",
        ],
        .acknowledgedTooMuch: [
            "new opening detached failed ended serverNew serverDetached serverEnded:",
            "open: violated unknownAcknowledgement, sessionLost [goodbye violation]",
            "busy closing: violated unknownAcknowledgement, sessionLost, <lost> [goodbye violation]",
            "serverOpen: violated unknownAcknowledgement, ended violation [goodbye violation]",
            "serverBusy: violated unknownAcknowledgement, <over> violation [goodbye violation]",
        ],
        .noFrame: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: violated undecodable [goodbye violation]",
            "open: violated undecodable, sessionLost [goodbye violation]",
            "busy closing: violated undecodable, sessionLost, <lost> [goodbye violation]",
            "serverOpen: violated undecodable, ended violation [goodbye violation]",
            "serverBusy: violated undecodable, <over> violation [goodbye violation]",
        ],
        .goodbyeClosed: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening open serverOpen: ended closed by peer",
            "busy closing serverBusy: <over> closed by peer",
        ],
        .goodbyeDraining: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening open busy closing serverOpen serverBusy: leaving draining",
        ],
        .goodbyeReplaced: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening open serverOpen: ended replaced by peer",
            "busy closing serverBusy: <over> replaced by peer",
        ],
        .goodbyeRefused: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening open serverOpen: ended refused by peer",
            "busy closing serverBusy: <over> refused by peer",
        ],
        .goodbyeVersion: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening open serverOpen: ended version by peer",
            "busy closing serverBusy: <over> version by peer",
        ],
        .goodbyeViolation: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening: leaving violation",
            "open: sessionLost, leaving violation",
            "busy closing: sessionLost, <lost>, leaving violation",
            "serverOpen: ended violation by peer",
            "serverBusy: <over> violation by peer",
        ],
        .goodbyeFull: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening open busy closing serverOpen serverBusy: leaving full",
        ],
        .goodbyeUnknown: [
            "new detached failed ended serverNew serverDetached serverEnded:",
            "opening open busy closing serverOpen serverBusy: leaving ?",
        ],
        .sendPush: [
            "new opening serverNew: accepted(1, isAdmitted: true)",
            "open serverOpen: accepted(1, isAdmitted: true) [o1 push 5]",
            "busy detached failed serverBusy serverDetached: accepted(6, isAdmitted: true)",
            "closing ended serverEnded: closed",
        ],
        .sendAtMostOnce: [
            "new opening detached failed serverNew serverDetached: dropped",
            "open serverOpen: accepted(1, isAdmitted: true) [push 5 (#1 sent)]",
            "busy serverBusy: accepted(6, isAdmitted: true)",
            "closing ended serverEnded: closed",
        ],
        .sendRequest: [
            "new opening busy detached failed serverNew serverBusy serverDetached: accepted",
            "open serverOpen: accepted [o1 request 1 5]",
            "closing ended serverEnded: notSent",
        ],
        .cancelRequest: [
            "new opening open failed ended serverNew serverOpen serverEnded:",
            "busy closing serverBusy: of 101  [u1 cancel 1 ack 1/0]",
            "detached serverDetached: of 101 ",
        ],
        .respond: [
            "new opening open failed ended serverNew serverOpen serverEnded:",
            "busy closing serverBusy: accepted  [u1 response 7 5 ack 1/0]",
            "detached serverDetached: accepted ",
        ],
        .finish: [
            "new opening open detached failed ended serverNew serverOpen serverDetached serverEnded:",
            "busy closing serverBusy: to acknowledge",
        ],
        .withdraw: [
            "new opening open ended serverNew serverOpen serverEnded:",
            "busy detached failed closing serverBusy serverDetached: withdrawn ",
        ],
        .timer: [
            "new opening open ended serverNew serverOpen serverEnded:",
            "busy detached failed closing serverBusy serverDetached: fail 102 timedOut",
        ],
        .lateTimer: [
            "new open ended serverNew serverOpen serverEnded:",
            "opening: not welcomed",
            "busy detached failed closing serverBusy serverDetached: fail 102 timedOut",
        ],
        .drain: [
            "new opening detached failed ended serverNew serverDetached serverEnded:",
            "open busy closing serverOpen serverBusy:  [goodbye draining]",
        ],
        .close: [
            "new serverNew: ended closed",
            "opening open serverOpen: ended closed [goodbye closed]",
            "busy detached failed closing ended serverBusy serverDetached serverEnded:",
        ],
        .abandon: [
            "new serverNew: ended closed",
            "opening open serverOpen: ended closed [goodbye closed]",
            "busy closing serverBusy: <over> closed [goodbye closed]",
            "detached serverDetached: <over> closed",
            "failed: fail 102 notSent, #4 unsent, ended closed",
            "ended serverEnded:",
        ],
    ]
}
