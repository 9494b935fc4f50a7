internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

// Random disturbances.
extension ScenarioStory {
    func disturb() {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<30: sendSome()
        case 30..<50: disturbNetwork()
        case 50..<70: disturbServer()
        case 70..<85: server.behavior = .random(using: &random)
        case 85..<90: disturbMachine()
        case 90..<92: user.reads.toggle()
        default: disturbUser()
        }
    }

    private func sendSome() {
        var payloads: [[UInt8]] = []
        for _ in 0..<Int.random(in: 1...8, using: &random) {
            // Mostly short; sometimes longer than the buffers of kernels.
            let limit = [10, 300, 3_000, 150_000].randomElement(using: &random) ?? 0
            let length = Int.random(in: 0...limit, using: &random)
            payloads.append([UInt8](repeating: .random(in: 0...255, using: &random), count: length))
        }
        // From one task, or from one task each.
        if Int.random(in: 0..<4, using: &random) == 0 {
            user.send(payloads, policy: randomPolicy())
        } else {
            for payload in payloads { user.send(payload, policy: randomPolicy()) }
        }
    }

    private func randomPolicy() -> SendPolicy {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: .fail
        case 1: .drop(after: .milliseconds(Int.random(in: 0...20_000, using: &random)))
        default: .wait(timeout: .milliseconds(Int.random(in: 0...60_000, using: &random)))
        }
    }

    private func disturbNetwork() {
        let host = Bool.random(using: &random) ? client : server.host
        switch Int.random(in: 0..<12, using: &random) {
        case 0..<4: client.setLink(up: false)
        case 4..<7: client.setLink(up: true)
        case 7: host.setLink(up: !host.isLinkUp)
        case 8: host.conditions.losesEverything.toggle()
        case 9: host.changeAddress()
        case 10: client.changeAddress()
        default: server.cutConnections(.silence, afterBytes: .random(in: 0...2_000, using: &random))
        }
    }

    private func disturbServer() {
        switch Int.random(in: 0..<6, using: &random) {
        case 0: server.resetConnections()
        case 1: server.closeConnections()
        case 2: if server.isRunning { server.kill() } else { server.restart() }
        case 3: server.cutConnections(.reset, afterBytes: .random(in: 0...2_000, using: &random))
        default: broadcast()
        }
    }

    private func broadcast() {
        // Mostly short; sometimes longer than the buffers of kernels and of the server.
        let limit = [1_000, 1_000, 200_000].randomElement(using: &random) ?? 0
        let payload = [UInt8](repeating: 7, count: .random(in: (limit / 2)...limit, using: &random))
        do throws(FramingError) {
            try server.broadcast(payload)
        } catch {
            world.fail("\(error)")
        }
    }

    private func disturbMachine() {
        let host = Int.random(in: 0..<4, using: &random) == 0 ? server.host : client
        let limit = [1_000, 30_000, 300_000].randomElement(using: &random) ?? 0
        host.sleep(for: .milliseconds(Int.random(in: 0...limit, using: &random)))
    }

    private func disturbUser() {
        // Mostly a send that still waits, because cancelling an ended one does nothing.
        let waiting = user.sends.indices.filter { user.sends[$0].end == nil }
        let number = (waiting.randomElement(using: &random) ?? 0) + 1
        switch Int.random(in: 0..<40, using: &random) {
        case 0: user.close()
        case 1: user.cancel()
        case 2..<20: user.reconnect()
        default: user.cancelSend(number)
        }
    }
}

extension PeerBehavior {
    static func random(using random: inout SimulationRandom) -> PeerBehavior {
        var behavior = PeerBehavior()
        switch Int.random(in: 0..<10, using: &random) {
        case 0: behavior = .refusing
        case 1: behavior = .dropping
        case 2: behavior = .unreachable
        case 3: behavior = .stalling
        case 4: behavior.answersPings = false
        case 5: behavior.answerDelay = .milliseconds(Int.random(in: 0...30_000, using: &random))
        case 6: behavior.endsAfterMessages = .random(in: 1...5, using: &random)
        case 7: behavior.endsAfterBytes = .random(in: 0...3_000, using: &random)
        case 8: behavior.greeting = Int.random(in: 0..<3, using: &random) == 0 ? .rejectTLS : .acceptAndReset
        default: break
        }
        behavior.manner = [.close, .reset, .violateProtocol, .fallSilent].randomElement(using: &random) ?? .close
        return behavior
    }
}

extension LinkConditions {
    static func random(using random: inout SimulationRandom) -> LinkConditions {
        var conditions = LinkConditions()
        conditions.latency = .milliseconds([0, 1, 20, 300].randomElement(using: &random) ?? 0)
        conditions.jitter = .milliseconds([0, 0, 5, 100].randomElement(using: &random) ?? 0)
        conditions.bytesPerSecond = [nil, nil, 20_000, 1_000_000].randomElement(using: &random) ?? nil
        return conditions
    }
}

extension ClientUser.Configuration {
    static func random(using random: inout SimulationRandom) -> ClientUser.Configuration {
        var configuration = ClientUser.Configuration()
        var client = ClientConfiguration()
        client.backoff.maximumAttempts = [1, 2, 4, 4, nil].randomElement(using: &random) ?? nil
        client.backoff.initialDelay = .milliseconds([20, 100, 1_000].randomElement(using: &random) ?? 20)
        client.backoff.factor = [1, 1.5, 2, 3].randomElement(using: &random) ?? 1
        client.backoff.jitter = [0, 0.2, 1].randomElement(using: &random) ?? 0
        client.backoff.cap = .seconds([2, 30].randomElement(using: &random) ?? 2)
        client.backoff.stabilityPeriod = .seconds([0, 1, 10].randomElement(using: &random) ?? 0)
        let liveness = LivenessOptions.random(using: &random)
        configuration.asks = liveness.heartbeat != nil
        client.connection.heartbeat = liveness.heartbeat ?? HeartbeatConfiguration()
        client.connection.idleTimeout = liveness.idleTimeout
        client.connection.writeTimeout = liveness.writeTimeout
        client.connection.unansweredByteLimit = liveness.unansweredByteLimit
        if Bool.random(using: &random) {
            client.sendQueue.maximumMessageCount = .random(in: 0...10, using: &random)
            client.sendQueue.maximumByteCount = .random(in: 0...5_000, using: &random)
        }
        if Bool.random(using: &random) { client.connection.outboundWaterMarks = WaterMarks(low: 64, high: 1_024) }
        // Low, so that few messages make the server wait.
        client.connection.inboundWaterMarks = WaterMarks(low: 500, high: 2_000)
        client.connection.connectTimeout = .seconds([3, 10].randomElement(using: &random) ?? 3)
        configuration.client = client
        return configuration
    }
}

extension SimulatedServer.Configuration {
    static func random(using random: inout SimulationRandom) -> SimulatedServer.Configuration {
        var configuration = SimulatedServer.Configuration()
        let liveness = LivenessOptions.random(using: &random)
        configuration.heartbeat = liveness.heartbeat
        configuration.idleTimeout = liveness.idleTimeout
        configuration.writeTimeout = liveness.writeTimeout
        configuration.unansweredByteLimit = liveness.unansweredByteLimit
        return configuration
    }
}

extension LivenessOptions {
    static func random(using random: inout SimulationRandom) -> LivenessOptions {
        var options = LivenessOptions(heartbeat: .random(using: &random))
        if Int.random(in: 0..<4, using: &random) == 0 {
            options.writeTimeout = .milliseconds(Int.random(in: 5_000...40_000, using: &random))
        }
        guard let heartbeat = options.heartbeat else { return options }
        // Without a heartbeat, both of these end healthy connections.
        if Int.random(in: 0..<4, using: &random) == 0 {
            options.idleTimeout = heartbeat.interval + .milliseconds(Int.random(in: 2_000...30_000, using: &random))
        }
        if Int.random(in: 0..<4, using: &random) == 0 {
            options.unansweredByteLimit = [100, 5_000, 100_000].randomElement(using: &random)
        }
        return options
    }
}

extension HeartbeatConfiguration? {
    static func random(using random: inout SimulationRandom) -> HeartbeatConfiguration? {
        if Int.random(in: 0..<5, using: &random) == 0 { return nil }
        var configuration = HeartbeatConfiguration()
        configuration.interval = .seconds([1, 5, 30].randomElement(using: &random) ?? 1)
        configuration.timeout = .seconds([1, 4, 10].randomElement(using: &random) ?? 1)
        configuration.allowedMisses = .random(in: 1...3, using: &random)
        return configuration
    }
}
