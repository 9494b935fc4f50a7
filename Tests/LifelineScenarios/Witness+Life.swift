package import LifelineCore
internal import LifelineTesting

// Who lives, and who does not.
extension Witness {
    /// A connection of the server's has ended.
    package func serverClosed(_ stream: Int, for failure: ConnectionError.Code?) {
        serverLife.closed(stream, for: failure, self)
    }

    func checkLife(_ client: SimulatedClient) {
        let isIll = !isAllWell(client)
        if let status = client.channelStatus {
            clientLife.look(at: status, isIll: isIll || serverLife.isIll(status.stream), self)
            if clientLife.isIll(status.stream) { serverLife.fallIll(status.stream) }
        }
        client.server.forEachChannel { status in
            serverLife.look(at: status, isIll: isIll || clientLife.isIll(status.stream), self)
            if serverLife.isIll(status.stream) { clientLife.fallIll(status.stream) }
        }
    }

    /// Whether a question is answered in time, whoever asks: both machines are awake, the network is quick and whole,
    /// and both programs read and answer.
    private func isAllWell(_ client: SimulatedClient) -> Bool {
        let (server, behavior) = (client.server, client.server.behavior)
        guard client.reads, behavior.reads, behavior.answersPings, server.isRunning else { return false }
        var roundTrip = Duration.zero
        for host in [client.host, server.host] {
            let conditions = host.conditions
            guard host.isLinkUp, !host.isAsleep, host.hasBeenAwake || host.lastWakeTime.nanoseconds == 0,
                !conditions.losesEverything, conditions.bytesPerSecond == nil, host.addressNumber == 1
            else { return false }
            roundTrip += (conditions.latency + conditions.jitter) * 2
        }
        return behavior.answerDelay + roundTrip < min(clientLife.patience, serverLife.patience)
    }
}
