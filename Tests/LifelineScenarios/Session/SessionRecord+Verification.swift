internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// Everything that users are promised.
extension SessionRecord {
    /// Checks what holds at every moment: buffers are within their bounds, and the machine counts what the user counts.
    ///
    /// - Parameter largest: what a message may cost.
    func check(largest: Int, now: MonotonicTime) {
        let own = end.options
        demand(
            end.machine.requestCount == openCalls.count,
            "\(end.machine.requestCount) requests of \(openCalls.count)"
        )
        demand(end.machine.runningCount == running.count, "\(end.machine.runningCount) handlers of \(running.count)")
        demand(
            end.machine.waitingCount >= waiting.count,
            "\(end.machine.waitingCount) messages wait of \(waiting.count)"
        )
        demand(
            end.link != nil || openAtMostOnce.isEmpty,
            "messages \(openAtMostOnce.sorted()) outlive their connection"
        )
        if end.isLeaving {
            let held = heldCalls.intersection(openCalls).count
            demand(end.machine.waitingCount >= waiting.count + held, "a request was begun, though the peer leaves")
        } else {
            heldCalls = []
        }
        checkKept(largest: largest)
        // With a place and without.
        let unreadCost = unread.reduce(0) { $0 + $1.receipt.cost }
        demand(unread.count <= 2 * own.inboundWindow.frameCount, "\(unread.count) messages wait for handlers")
        demand(unreadCost <= 2 * own.inboundWindow.byteCount, "\(unreadCost) bytes wait for handlers")
        demand(running.count <= own.maximumRunningCount, "\(running.count) requests run")
        let runningByteCount = running.reduce(0) { $0 + $1.byteCount }
        demand(
            runningByteCount <= max(own.inboundWindow.byteCount, running.count == 1 ? largest : 0),
            "requests run that have \(runningByteCount) bytes"
        )
        // Everything that the machine counts is known here, but for the heads of requests that run.
        let methodByteCount = peerMethods.values.reduce(0) { $0 + $1.utf8.count + SessionSize.frameOverhead }
        let rest = end.machine.keptByteCount - end.machine.keptSize.byteCount - unreadCost - methodByteCount
        demand(
            rest >= runningByteCount && rest <= runningByteCount + running.count * (150 + SessionSize.frameOverhead),
            "\(rest) bytes count as kept, beside \(runningByteCount) of requests that run"
        )
    }

    /// Checks the bounds of what is kept for the peer.
    private func checkKept(largest: Int) {
        let (own, kept) = (end.options, end.machine.keptSize)
        // Beside the limit: messages that wait, requests that have no room, responses of as many handlers as may run
        // and refusals of as many requests as the window takes, names of methods, ends of parts, and cancels of as many
        // requests as the windows take.
        let responseCount = 2 * own.maximumRunningCount + own.inboundWindow.frameCount
        let callCount = calls.isEmpty ? 0 : 3 * own.maximumRequestCount + 3 * peer.inboundWindow.frameCount
        let besides = 2 + end.machine.waitingCount + 8 + responseCount + callCount
        demand(
            kept.frameCount <= own.outboundLimit.frameCount + besides,
            "\(kept.frameCount) messages are kept for the peer"
        )
        demand(
            kept.byteCount <= 4 * own.outboundLimit.byteCount + besides * largest,
            "\(kept.byteCount) bytes are kept for the peer"
        )
    }

    /// Checks what holds whenever timers have fired.
    func checkDeadlines(now: MonotonicTime) {
        for number in openCalls {
            if let deadline = calls[number]?.deadline, deadline <= now {
                fail("\(name): request \(number) is overdue")
            }
        }
        if let closeDeadline, closeDeadline <= now { demand(isOver, "it takes longer to close than it may") }
        for task in running where !task.isCancelled {
            if let deadline = task.deadline, deadline <= now {
                fail("\(name): the handler of \(task.number) was not told that its time is over")
            }
        }
    }

    /// Checks what holds when everything that was under way has come, and nothing new is begun.
    func checkRest() {
        demand(end.machine.keptSize == SessionSize(), "\(end.machine.keptSize) is left")
        demand(openCalls.isEmpty, "requests \(openCalls.sorted()) do not end")
        demand(waiting.isEmpty, "messages \(waiting.sorted()) wait for ever")
        demand(running.isEmpty, "the handlers of \(running.map(\.number)) were not told that nobody waits")
        for (number, message) in sent where lossCount == 0 && message.delivery == .reliable && message.isObserved {
            switch outcomes[number] {
            case .processed?, .unsent?, .refused?: break
            case let outcome: fail("\(name): message \(number) is \(outcome.map { "\($0)" } ?? "open")")
            }
        }
    }

    /// Whether everything has come to its end but the messages of some streams, and a call.
    func isAtRest(besides call: Int?, isUnread: (Stream) -> Bool) -> Bool {
        let isSent = sent.allSatisfy { number, message in
            isUnread(message.stream) || !message.isObserved || outcomes[number] != nil
        }
        return isSent && openCalls.allSatisfy { $0 == call } && running.allSatisfy { $0.number == call }
            && unread.allSatisfy { isUnread($0.stream) }
            && waiting.allSatisfy { numbers[$0].flatMap { sent[$0]?.stream }.map(isUnread) ?? false }
    }

    /// Checks what holds in the end.
    ///
    /// - Parameter peers: all the other ends that there were: one, but for those of a client.
    func verify(peers: [SessionRecord]) {
        var cameCounts: [Int: Int] = [:]
        var (finishedThere, endedThere, begunThere) = (Set<Int>(), Set<Int>(), Set<Int>())
        for peer in peers {
            verifyOrder(at: peer)
            for (stream, numbers) in peer.came {
                for number in numbers {
                    guard let message = sent[number] else { continue }
                    cameCounts[number, default: 0] += 1
                    demand(message.stream == stream, "message \(number) of \(message.stream) came in \(stream)")
                }
            }
            for number in peer.begun where calls[number] != nil {
                demand(begunThere.insert(number).inserted, "request \(number) began in two sessions")
            }
            finishedThere.formUnion(peer.finished)
            endedThere.formUnion(peer.ended)
            for (number, count) in peer.endedParts where calls[number] != nil {
                let sentCount = reliableSentCount(.requestParts(number), besidesWaiting: false)
                demand(count == sentCount, "\(count) of \(sentCount) parts of \(number) came before its end")
            }
        }
        for (number, count) in cameCounts { demand(count == 1, "message \(number) came \(count) times") }
        verifyOutcomes(cameCounts, finishedThere)
        for number in calls.keys {
            guard let result = results[number] else {
                fail("\(name): request \(number) has not ended")
                continue
            }
            switch result {
            case nil: demand(begunThere.contains(number), "request \(number) has a response and did not begin")
            case .notSent?, .messageRefused?: demand(!begunThere.contains(number), "request \(number) began")
            default: break
            }
            if begunThere.contains(number) {
                demand(endedThere.contains(number), "nobody told the handler of \(number) that it is over")
            }
        }
    }

    private func verifyOutcomes(_ cameCounts: [Int: Int], _ finishedThere: Set<Int>) {
        var newest: [Stream: [String: Int]] = [:]
        for (number, message) in sent {
            guard let key = message.delivery.key else { continue }
            newest[message.stream, default: [:]][key] = max(number, newest[message.stream]?[key] ?? 0)
        }
        for (number, message) in sent {
            let hasCome = cameCounts[number] != nil
            let outcome = outcomes[number]
            switch outcome {
            // Parts of a request that has ended are dropped, and so processed.
            case .processed?:
                demand(hasCome || !message.stream.isPushes, "message \(number) did not come")
                demand(!hasCome || finishedThere.contains(number), "message \(number) was not processed")
            case .expired?, .dropped?, .unsent?, .refused?, .replaced?:
                demand(!hasCome, "message \(number) came, and is told to be \(outcome.map { "\($0)" } ?? "")")
            case .sent?, .inDoubt?: break
            case .kept?, .notStored?:
                fail("\(name): message \(number) is \(outcome.map { "\($0)" } ?? ""), without a store")
            case nil:
                demand(!message.isObserved, "nobody knows what became of message \(number), \(message)")
                guard message.stream.isPushes, !message.delivery.isAtMostOnce else { break }
                demand(hasCome && finishedThere.contains(number), "push \(number) is lost, and nobody was told")
            }
            if outcome == .replaced, let key = message.delivery.key {
                demand(newest[message.stream]?[key] != number, "message \(number) is replaced by nothing")
            }
        }
    }

    /// The messages of a stream come in the order in which they were sent, and so do requests. But a message that
    /// replaces another one stands in its place, so that only those of one key are in order; and one that is sent at
    /// most once may overtake others.
    private func verifyOrder(at peer: SessionRecord) {
        for (stream, numbers) in peer.came {
            var (last, lastByKey) = (0, [String: Int]())
            for number in numbers {
                guard let message = sent[number], !message.delivery.isAtMostOnce else { continue }
                if let key = message.delivery.key {
                    let previous = lastByKey.updateValue(number, forKey: key) ?? 0
                    demand(number > previous, "message \(number) came after \(previous), which it replaces")
                } else {
                    demand(number > last, "message \(number) of \(stream) came after \(last)")
                    last = number
                }
            }
        }
        var last = 0
        for number in peer.begun where calls[number] != nil {
            demand(number > last, "request \(number) came after \(last)")
            last = number
        }
    }
}
