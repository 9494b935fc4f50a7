internal import LifelineCore

/// Exposes clients to faults, each on a separate network.
package struct Trials: Sendable {
    private let family: TestNetwork.Family
    private let isPatient: Bool
    private let bounds = Bounds()

    /// - Parameter isPatient: whether clients whose fault does not show as silence get a heartbeat and a connect
    ///   timeout that a busy machine does not exceed. The time to heal is then not bounded in the same way.
    package init(family: TestNetwork.Family, isPatient: Bool = false) {
        self.family = family
        self.isPatient = isPatient
    }

    /// Every fault, with the expected behavior of the client.
    package static let all = Trial.all(Bounds())

    /// One fault, with messages before, during and after it.
    package func once(_ trial: Trial) async -> Outcome {
        let arguments = isPatient && !trial.reaction.isToSilence ? bounds.patientArguments : nil
        return await outcome(trial.fault.name, trial, arguments: arguments) { scene, outcome in
            let before = try await scene.send(100)
            try await scene.waitUntilReceived(before.upperBound)
            try await suffer(trial, sending: trial.messagesIntoIt, in: scene, &outcome)
            outcome.check(outcome.healed, trial.healBound, "healed")
            // Messages that have arrived are not lost later.
            if scene.messages(upTo: before.upperBound).lost > 0 { outcome.misses.append("lost what had arrived") }
        }
    }

    /// The link goes down and comes up again, many times, with one client.
    package func flaps(_ count: Int) async -> Outcome {
        let trial = Trial.linkDown(bounds)
        return await outcome("\(count) link flaps") { scene, outcome in
            for _ in 0..<count {
                let start = scene.client.steps.count
                let broken = try await trial.fault.apply(to: scene)
                try await notice(of: trial, since: broken, in: scene, &outcome)
                guard let mended = try await trial.fault.heal(in: scene) else { continue }
                let ready = try await scene.client.next("that it is ready again") { $0.to == "ready" }
                outcome.healed.append(ready.time - mended.began)
                outcome.check(Array(scene.client.steps[start...]), trial.reaction)
            }
            outcome.check([Durations(outcome.healed).percentile(99)], bounds.networkBack, "99 % were ready again")
        }
    }

    /// Packets vanish until the client notices, many times, with one client.
    package func blackHoles(_ count: Int) async -> Outcome {
        await outcome("\(count) black holes") { scene, outcome in
            for _ in 0..<count { try await suffer(.blackHole(bounds), sending: 5, in: scene, &outcome) }
        }
    }

    /// Packets are lost for a while; the connection stays. At this rate TCP itself sometimes stalls for many seconds,
    /// so the heartbeat is slower than in other trials.
    package func loss(_ time: Duration) async -> Outcome {
        await outcome("20 % packet loss", arguments: bounds.lossArguments(lasting: time)) { scene, outcome in
            let fault = Fault.packetLoss(percent: 20)
            _ = try await fault.apply(to: scene)
            let began = ContinuousClock.now
            try scene.client.tell("flow 20000")
            _ = await scene.client.says(within: time, where: { $0.from == "ready" })
            try Task.checkCancellation()
            let lasted = ContinuousClock.now - began
            try scene.client.tell("flow 0")
            _ = try await fault.heal(in: scene)
            let sent = try await scene.send(1, within: .seconds(180))
            try await scene.waitUntilReceived(sent.upperBound, within: .seconds(180))
            // Waits for the last message, because the last losses show only after the end.
            let end = scene.client.steps.first { $0.from == "ready" }
            outcome.reason = end?.reason ?? "nothing"
            if end != nil { outcome.misses.append("took lost packets for a lost connection") }
            let lost = try await scene.network.affectedPacketCount()
            let all = try await scene.network.arrivedPacketCount()
            if scene.messages.lost > 0 { outcome.misses.append("lost messages") }
            outcome.note = "\(lost) of \(all) packets lost in \(Int(lasted / .seconds(1))) s"
        }
    }

    // MARK: -

    /// Runs a trial with a ready client, and then counts its messages.
    private func outcome(
        _ name: String,
        _ trial: Trial? = nil,
        arguments: [String]? = nil,
        _ body: nonisolated(nonsending) (FaultScene, inout Outcome) async throws -> Void
    ) async -> Outcome {
        var outcome = Outcome(name: name)
        let arguments = (arguments ?? bounds.clientArguments) + ["--size", "\(trial?.messageSize ?? 0)"]
        do {
            // The losses are known when both programs have ended.
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
        let accounting = trial?.accounting ?? .exact
        let late = outcome.mended.map { outcome.messages.reported(since: $0) } ?? 0
        if !accounting.allows(lost: lost, reported: reported, late: late, isBusy: isPatient) {
            outcome.misses.append("lost \(lost), and reported \(reported), \(late) of them after all was right again")
        }
        if !accounting.rawValue.isEmpty { outcome.note = accounting.rawValue }
        if outcome.messages.doubled > 0 { outcome.misses.append("\(outcome.messages.doubled) arrived twice") }
        return outcome
    }

    /// A fault, from its beginning until messages arrive again.
    private func suffer(
        _ trial: Trial,
        sending count: Int,
        in scene: FaultScene,
        _ outcome: inout Outcome
    ) async throws {
        let start = scene.client.steps.count
        switch trial.accounting {
        case .nothingLost: try scene.startSending(5000)
        // A message that arrives without its acknowledgement would be reported as lost, although it is not.
        default: try await scene.waitUntilAcknowledged()
        }
        let broken = try await trial.fault.apply(to: scene)
        // A sender notices a reset, and has messages to lose.
        try scene.startSending(count)
        try await notice(of: trial, since: broken, in: scene, &outcome)
        let mended = try await trial.fault.heal(in: scene)
        outcome.mended = mended?.began
        let received = try await messageArrives(in: scene, within: trial.healBound + .seconds(5))
        outcome.healed.append(received - (mended ?? broken).began)
        // The step may be reported after its message has arrived.
        while scene.client.steps.last?.to != "ready" {
            _ = try await scene.client.next("that it is ready again") { $0.to == "ready" }
        }
        outcome.check(Array(scene.client.steps[start...]), trial.reaction)
    }

    /// Waits for the client to notice.
    private func notice(
        of trial: Trial,
        since moment: Moment,
        in scene: FaultScene,
        _ outcome: inout Outcome
    ) async throws {
        let event = try await scene.client.next("that it notices: \(trial)", within: trial.bound + .seconds(5)) {
            $0.from == "ready"
        }
        outcome.applied.append(moment.ended - moment.began)
        outcome.noticed.append(event.time - moment.began)
        outcome.reason = event.reason ?? ""
        // The fault exists at the latest when its command has ended.
        outcome.check([event.time - moment.ended], trial.bound, "noticed")
    }

    /// Sends until a message arrives. Returns the time. The client may be ready meanwhile and lose its connection
    /// again.
    private func messageArrives(in scene: FaultScene, within time: Duration) async throws -> MonotonicTime {
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
}

extension Outcome {
    fileprivate mutating func check(_ durations: some Collection<Duration>, _ bound: Duration, _ verb: String) {
        guard let longest = durations.max(), longest > bound else { return }
        delays.append("\(verb) in \(longest.milliseconds) ms, not in \(bound.milliseconds) ms")
    }

    fileprivate mutating func check(_ steps: [FaultEvent], _ reaction: Reaction) {
        if let violation = reaction.violation(in: steps) { misses.append(violation) }
    }
}
