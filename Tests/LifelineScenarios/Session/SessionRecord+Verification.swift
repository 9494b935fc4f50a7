internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// Everything that users are promised.
extension SessionRecord {
    /// What holds at every moment: buffers are within their bounds, and no request outlives its deadline.
    ///
    /// - Parameters:
    ///   - peer: what the other end takes.
    ///   - largest: how large a message may be, as windows count it.
    func check(peer: SessionOptions, largest: Int, now: MonotonicTime) {
        let (own, outbound) = (end.options, end.machine.outbound)
        for lane in SessionLane.allCases {
            let sent = outbound.unprocessedSize(lane)
            demand(sent.frameCount <= peer.inboundWindow.frameCount, "the peer's window of \(lane) frames is exceeded")
            demand(
                sent.byteCount <= max(peer.inboundWindow.byteCount, sent.frameCount == 1 ? largest : 0),
                "the peer's window of \(lane) bytes is exceeded: \(sent)"
            )
        }
        // Beside the limit: one message in each lane that is larger, pushers that wait, requests in flight, responses
        // that end parts and others, to as many as may run each, refusals and cancels of as many as the windows take.
        let besides =
            2 + waitingPushers.count + openRequests.count + 2 * own.maximumRunningCount + own.inboundWindow.frameCount
        let cancelCount = requests.isEmpty ? 0 : own.maximumRequestCount + 2 * peer.inboundWindow.frameCount
        let kept = outbound.keptSize
        demand(
            kept.frameCount <= own.outboundLimit.frameCount + besides + cancelCount,
            "\(kept.frameCount) messages are kept for the peer"
        )
        demand(
            kept.byteCount <= own.outboundLimit.byteCount + (besides + cancelCount) * largest,
            "\(kept.byteCount) bytes are kept for the peer"
        )
        demand(
            end.link != nil || openAtMostOnce.isEmpty,
            "messages \(openAtMostOnce.sorted()) outlive their connection"
        )
        // With a place and without.
        let waiting = unprocessed.reduce(0) { $0 + $1.byteCount }
        demand(unprocessed.count <= 2 * own.inboundWindow.frameCount, "\(unprocessed.count) pushes wait for handlers")
        demand(waiting <= 2 * max(own.inboundWindow.byteCount, largest), "\(waiting) bytes wait for handlers")
        let counted = waiting + unprocessed.count * SessionPayload.messageOverhead
        demand(counted <= end.machine.inbound.unprocessedByteCount, "pushes count as processed that wait for handlers")
        demand(running.count <= own.maximumRunningCount, "\(running.count) requests run")
        let runningByteCount = running.reduce(0) { $0 + $1.byteCount }
        demand(
            runningByteCount <= max(own.inboundWindow.byteCount, running.count == 1 ? largest : 0),
            "requests run that have \(runningByteCount) bytes"
        )
    }

    /// What holds whenever timers have fired.
    func checkDeadlines(now: MonotonicTime) {
        for number in openRequests.keys {
            if let deadline = requests[number]?.deadline, deadline <= now {
                fail("\(name): request \(number) is overdue")
            }
        }
        if let closeDeadline, closeDeadline <= now { demand(isOver, "it takes longer to close than it may") }
        for request in running where !request.isCancelled {
            if let deadline = request.deadline, deadline <= now {
                fail("\(name): the handler of \(request.number) was not told that its time is over")
            }
        }
    }

    /// What holds when everything that was under way has come, and nothing new is begun.
    func checkRest() {
        demand(end.machine.outbound.keptSize == SessionSize(), "\(end.machine.outbound.keptSize) is left")
        demand(openRequests.isEmpty, "requests \(openRequests.keys.sorted()) do not end")
        demand(waitingPushers.isEmpty, "pushers wait for ever")
        demand(running.isEmpty, "the handlers of \(running.map(\.number)) were not told that nobody waits")
        for (number, push) in pushes where lossCount == 0 && push.delivery == .reliable {
            let outcome = outcomes[number]
            demand(
                outcome == .processed || outcome == .unsent || outcome == .refused,
                "message \(number) is \(outcome.map { "\($0)" } ?? "open")"
            )
        }
    }

    /// What holds in the end.
    ///
    /// - Parameter peers: all the other ends that there were: one, but for those of a client.
    func verify(peers: [SessionRecord]) {
        var cameCounts: [Int: Int] = [:]
        var newest: [String: Int] = [:]
        for (number, push) in pushes {
            guard let key = push.delivery.key else { continue }
            newest[push.method + " " + key] = max(number, newest[push.method + " " + key] ?? 0)
        }
        var (finishedThere, endedThere, begunThere) = (Set<Int>(), Set<Int>(), Set<Int>())
        for peer in peers {
            verifyOrder(at: peer)
            for number in peer.came where pushes[number] != nil || requests[number] != nil {
                cameCounts[number, default: 0] += 1
            }
            finishedThere.formUnion(peer.finished)
            endedThere.formUnion(peer.ended)
            begunThere.formUnion(peer.begun)
        }
        for (number, count) in cameCounts { demand(count == 1, "message \(number) came \(count) times") }
        for (number, push) in pushes {
            let hasCome = cameCounts[number] != nil
            if outcomes[number] == .replaced, let key = push.delivery.key {
                demand(newest[push.method + " " + key] != number, "message \(number) is replaced by nothing")
            }
            switch outcomes[number] {
            case .processed: demand(finishedThere.contains(number), "message \(number) was not processed")
            case .expired where peerUnderstates, .replaced where peerUnderstates: break
            case .expired, .replaced, .dropped, .unsent, .refused:
                demand(!hasCome, "message \(number) came, and is told to be \(String(describing: outcomes[number]))")
            case .sent, .inDoubt: break
            case nil: fail("\(name): nobody knows what became of message \(number), \(push)")
            }
        }
        for number in requests.keys {
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

    /// Messages come in the order in which they were accepted; but what replaces another one stands in its place, so
    /// that only those of one key are in order.
    private func verifyOrder(at peer: SessionRecord) {
        var (last, lastByKey) = (0, [String: Int]())
        for number in peer.came {
            guard let push = pushes[number], let key = push.delivery.key else {
                guard pushes[number] != nil || requests[number] != nil else { continue }
                demand(number > last, "message \(number) came after \(last)")
                last = number
                continue
            }
            let previous = lastByKey.updateValue(number, forKey: push.method + " " + key) ?? 0
            demand(number > previous, "message \(number) came after \(previous), which it replaces")
        }
    }
}
