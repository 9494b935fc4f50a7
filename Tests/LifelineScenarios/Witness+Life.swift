internal import LifelineCore
internal import LifelineTesting

// Liveness of both peers.
extension Witness {
    func checkLife() {
        let isIll = !isAllWell
        // A closing client sends no pings.
        if state == .ready, let status = user.host.status(of: connections.last?.stream) {
            clientLife.look(at: status, isIll: isIll || serverLife.isIll(status.stream), self)
            if clientLife.isIll(status.stream) { serverLife.fallIll(status.stream) }
        }
        server.forEachChannel { status in
            serverLife.look(at: status, isIll: isIll || clientLife.isIll(status.stream), self)
            if serverLife.isIll(status.stream) { clientLife.fallIll(status.stream) }
        }
    }

    /// Whether pings of either side are answered in time: both machines are awake, the network is fast and intact, and
    /// both programs read and answer.
    private var isAllWell: Bool {
        let behavior = server.behavior
        guard user.reads, behavior.reads, behavior.answersPings, server.isRunning else { return false }
        var roundTrip = Witness.slack
        for host in [machine, server.host] {
            let conditions = host.conditions
            guard host.isLinkUp, !host.isAsleep, host.hasBeenAwake || host.lastWakeTime.nanoseconds == 0,
                !conditions.losesEverything, conditions.bytesPerSecond == nil, host.addressNumber == 1
            else { return false }
            roundTrip += (conditions.latency + conditions.jitter) * 2
        }
        return behavior.answerDelay + roundTrip < min(clientLife.patience, serverLife.patience)
    }
}
