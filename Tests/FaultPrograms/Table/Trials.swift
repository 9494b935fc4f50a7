import FaultSupport

/// Puts clients through faults, each on a network of its own.
struct Trials: Sendable {
    let family: TestNetwork.Family
    let bounds: Bounds

    /// Every fault, and what is expected of the client in it.
    var all: [Trial] {
        [linkDown]
            + [Fault.carrierLoss, .routeRemoval].map {
                Trial(fault: $0, reasons: ["networkLost"], bound: bounds.network, healBound: bounds.networkBack)
            }
            + [blackHole]
            + [
                Trial(
                    fault: .peerStopped,
                    reasons: ["heartbeatTimeout"],
                    bound: bounds.silence,
                    healBound: bounds.retry,
                    isAcknowledgedUnread: true
                ),
                // 60 MB: more than the buffers of both kernels hold.
                Trial(
                    fault: .peerNotReading,
                    reasons: ["heartbeatTimeout"],
                    bound: bounds.silence,
                    healBound: bounds.retry,
                    isAcknowledgedUnread: true,
                    messagesIntoIt: 2000,
                    messageSize: 30_000
                ),
            ]
            + [Fault.reset, .clientSocketKilled, .peerSocketKilled, .peerKilled].map {
                Trial(fault: $0, reasons: Trials.ended, bound: bounds.socket, healBound: bounds.retry)
            }
            + [
                Trial(
                    fault: .peerShutDown,
                    reasons: ["closedByPeer"],
                    bound: bounds.socket,
                    healBound: bounds.retry,
                    isGraceful: true
                )
            ]
    }

    private var linkDown: Trial {
        Trial(fault: .linkDown, reasons: ["networkLost"], bound: bounds.network, healBound: bounds.networkBack)
    }

    private var blackHole: Trial {
        Trial(fault: .blackHole, reasons: ["heartbeatTimeout"], bound: bounds.silence, healBound: bounds.retry)
    }

    /// What the kernel says on a socket depends on who is first.
    private static let ended: Set<String> = ["closedByPeer", "connectionFailed", "ioError"]

    /// One fault, with messages before, into and after it.
    func once(_ trial: Trial) async -> Outcome {
        await outcome(trial.fault.name, trial) { scene, outcome in
            let before = try await scene.send(100)
            try await scene.waitUntilReceived(before.upperBound)

            let broken = try await trial.fault.apply(to: scene)
            // Who sends is told of a reset, and has something to lose.
            try scene.startSending(trial.messagesIntoIt)
            try await notice(of: trial, since: broken, in: scene, &outcome)

            let mended = try await trial.fault.heal(in: scene)
            let received = try await messageArrives(in: scene, within: trial.healBound + .seconds(5))
            outcome.healed.append(received - (mended ?? broken).began)
            check(outcome.healed, trial.healBound, "healed", &outcome)
            outcome.messagesBefore = scene.messages(upTo: before.upperBound)
            if trial.isGraceful, outcome.messagesBefore.lost > 0 { outcome.misses.append("lost messages") }
        }
    }

    /// Sends until a message arrives; when it did. The client may be ready meanwhile and lose its connection again.
    private func messageArrives(in scene: FaultScene, within time: Duration) async throws -> BootTime {
        let deadline = ContinuousClock.now + time
        while true {
            do {
                let sent = try await scene.send(1, within: time)
                return try await scene.waitUntilReceived(sent.upperBound, within: bounds.silence).time
            } catch  where ContinuousClock.now < deadline {
                try Task.checkCancellation()
            }
        }
    }

    /// The link goes down and comes up again, many times, with one client.
    func flaps(_ count: Int) async -> Outcome {
        await outcome("\(count) link flaps") { scene, outcome in
            for _ in 0..<count {
                let broken = try await linkDown.fault.apply(to: scene)
                try await notice(of: linkDown, since: broken, in: scene, &outcome)
                guard let mended = try await linkDown.fault.heal(in: scene) else { continue }
                let ready = try await scene.client.next("that it is ready again") { $0.to == "ready" }
                outcome.healed.append(ready.time - mended.began)
            }
            check([Durations(outcome.healed).percentile(99)], bounds.networkBack, "99 % healed", &outcome)
        }
    }

    /// Packets vanish until that is noticed, many times, with one client.
    func blackHoles(_ count: Int) async -> Outcome {
        await outcome("\(count) black holes") { scene, outcome in
            for _ in 0..<count {
                let broken = try await blackHole.fault.apply(to: scene)
                try scene.startSending(5)
                try await notice(of: blackHole, since: broken, in: scene, &outcome)
                guard let mended = try await blackHole.fault.heal(in: scene) else { continue }
                let received = try await messageArrives(in: scene, within: bounds.retry + .seconds(5))
                outcome.healed.append(received - mended.began)
            }
        }
    }

    /// Packets are lost for a while; the connection stays.
    func loss(_ time: Duration) async -> Outcome {
        await outcome("20 % packet loss") { scene, outcome in
            let fault = Fault.packetLoss(percent: 20)
            _ = try await fault.apply(to: scene)
            try scene.client.tell("flow 10000")
            if await scene.client.says(within: time, where: { $0.from == "ready" }) {
                outcome.misses.append("took lost packets for a lost connection")
            }
            try scene.client.tell("flow 0")
            _ = try await fault.heal(in: scene)
            let sent = try await scene.send(1)
            try await scene.waitUntilReceived(sent.upperBound, within: .seconds(180))
            let lost = try await scene.network.affectedPacketCount()
            let all = try await scene.network.arrivedPacketCount()
            if scene.messages.lost > 0 { outcome.misses.append("lost messages") }
            outcome.note = "\(lost) of \(all) packets lost in \(Int(time / .seconds(1))) s"
        }
    }

    // MARK: -

    /// Runs a trial with a client that is ready; then counts its messages.
    private func outcome(
        _ name: String,
        _ trial: Trial? = nil,
        _ body: nonisolated(nonsending) (FaultScene, inout Outcome) async throws -> Void
    ) async -> Outcome {
        var outcome = Outcome(name: name)
        let arguments = bounds.clientArguments + ["--size", "\(trial?.messageSize ?? 0)"]
        do {
            // What was lost is known when both programs have ended.
            let scene = try await FaultScene.with(family, clientArguments: arguments) { scene in
                try await body(scene, &outcome)
                return scene
            }
            outcome.messages = scene.messages
        } catch {
            outcome.misses.append("\(error)")
            return outcome
        }
        let (lost, reported) = (outcome.messages.lost, outcome.messages.reported)
        if trial?.isAcknowledgedUnread == true ? reported > lost : reported != lost {
            outcome.misses.append("lost \(lost), and reported \(reported)")
        }
        if outcome.messages.doubled > 0 { outcome.misses.append("\(outcome.messages.doubled) arrived twice") }
        return outcome
    }

    /// Waits for the client to notice.
    private func notice(
        of trial: Trial,
        since moment: Moment,
        in scene: FaultScene,
        _ outcome: inout Outcome
    ) async throws {
        let event = try await scene.client.next("that it notices: \(trial.fault)", within: trial.bound + .seconds(5)) {
            $0.from == "ready"
        }
        outcome.applied.append(moment.ended - moment.began)
        outcome.noticed.append(event.time - moment.began)
        outcome.reason = event.reason ?? ""
        if !trial.reasons.contains(outcome.reason) { outcome.misses.append("wrong reason: \(outcome.reason)") }
        check(outcome.noticed.suffix(1), trial.bound, "noticed", &outcome)
    }

    private func check(
        _ durations: some Collection<Duration>,
        _ bound: Duration,
        _ verb: String,
        _ outcome: inout Outcome
    ) {
        guard let longest = durations.max(), longest > bound else { return }
        outcome.misses.append("\(verb) in \(longest.milliseconds) ms, not in \(bound.milliseconds) ms")
    }
}
